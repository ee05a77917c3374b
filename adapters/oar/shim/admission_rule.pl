# `oarsub -t pilotfish`: the job is handed over to pilotfish, by its queue.
if (grep { $_ eq 'pilotfish' } @{$type_list}) {
    @{$type_list} = grep { $_ ne 'pilotfish' } @{$type_list};
    $queue_name = 'pilotfish';
    print("[ADMISSION RULE] handed over to pilotfish\n");
}

package PilotfishShim;

# Between the scheduler of a queue and its waiting jobs: jobs that pilotfish keeps are left out of this pass, and jobs
# that it has placed may start on their nodes only. See adapters/oar/placement_file.py for the file.
#
# Rule: a pass reads the file once, as late as it can, and waits for nothing. A file that is missing, damaged, too large,
# of another owner, or whose heartbeat has passed, means plain OAR. No job is kept for longer than PILOTFISH_LONGEST
# seconds after its first submission, whatever the file says, and nothing that a user asked for is loosened. A job whose
# properties would reach out of the brackets around them is plain OAR's. Only jobs in memory are changed, except for the
# message that oarstat shows of a kept job.

use strict;
use warnings;
use Fcntl qw(O_RDONLY O_NONBLOCK O_NOFOLLOW S_ISREG);

my ($MOST_BYTES, $LONGEST_ALIVE_S, $MOST_MESSAGES, $ALL) = (4 * 1024 * 1024, 120, 200, 10_000_000);
my $MOST_SQL = 4096;
my $NAME = qr/[A-Za-z0-9_.:-]{1,80}/;
my $NODE = qr/[A-Za-z0-9_.-]{1,100}/;
# The functions of OAR::IO that give a scheduler its jobs, and whether their limit holds for each user.
my %WRAPPED = (get_jobs_to_schedule => 0, get_fairsharing_jobs_to_schedule => 1);

# `-MPilotfishShim=check` only loads it.
sub import {
    my ($class, $check) = @_;
    return if defined $check;
    eval { install(); 1 } or report($@);
}

# Say in OAR's log why this pass is plain OAR.
sub report {
    my ($why) = @_;
    chomp $why;
    my $say = $why =~ /\Asilent/ ? 'oar_debug' : 'oar_warn';
    eval {
        require OAR::Modules::Judas;
        OAR::Modules::Judas->can($say)->("[pilotfish] plain OAR in this pass: $why\n");
    };
}

# Return the content of the file: {keep}{queue|project}{NAME} in seconds, {free}{JOB}, {place}{JOB} as SQL.
sub placements {
    my ($file, $owner, $now) = @_;
    sysopen(my $in, $file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW) or die "$file: $!\n";
    my ($mode, $uid, $size) = (stat $in)[2, 4, 7];
    my $allowed = getpwnam($owner);
    die "$file is no regular file\n" unless defined $mode and S_ISREG($mode);
    die "$file does not belong to $owner or root\n" unless $uid == 0 or (defined $allowed and $uid == $allowed);
    die "$file can be written by others\n" if $mode & 022;
    die "$file has more than $MOST_BYTES bytes\n" if $size > $MOST_BYTES;
    my $text = '';
    while (my $count = sysread($in, $text, 65536, length $text)) {
        die "$file has more than $MOST_BYTES bytes\n" if length $text > $MOST_BYTES;
    }
    close $in;
    $text =~ s/\Apilotfish-placements 1\n// and $text =~ s/^end\n\z//m or die "$file is not whole\n";
    my %said = (keep => {}, free => {}, place => {});
    my $alive;
    for (split /\n/, $text) {
        if (/\Aalive ([0-9]{1,12})\z/) { $alive = $1 }
        elsif (/\Akeep (queue|project) ($NAME) ([0-9]{1,8})\z/) { $said{keep}{$1}{$2} = $3 }
        elsif (/\Afree ([0-9]{1,18})\z/) { $said{free}{$1} = 1 }
        elsif (/\Aplace ([0-9]{1,18}) ([0-9]{1,12})((?: $NODE)+)\z/) {
            my ($job, $until, $nodes) = ($1, $2, $3);
            my $list = join ',', map { "'$_'" } split ' ', $nodes;
            $said{place}{$job} = "network_address IN ($list)" if $until >= $now;
        }
        else { die "$file has a line that is not understood\n" }
    }
    die "$file is not whole\n" unless defined $alive;
    die "silent since " . ($now - $alive) . " s\n" if $alive < $now;
    die "$file holds for too long: is the clock right?\n" if $alive > $now + $LONGEST_ALIVE_S;
    return \%said;
}

# Wrap the functions that give a scheduler its jobs. Dies if one is missing. The file is read when the first of them is
# called, so that it can still name a job whose submission caused this pass.
sub install {
    my $said;
    require OAR::IO;
    for my $name (sort keys %WRAPPED) {
        my $inner = OAR::IO->can($name) or die "OAR::IO has no $name: this version of OAR is not known\n";
        my $by_user = $WRAPPED{$name};
        no strict 'refs';
        no warnings qw(redefine prototype);
        *{"OAR::IO::$name"} = sub ($$$) {
            my ($dbh, $queue, $limit) = @_;
            $said //= eval { placements($ENV{PILOTFISH_FILE}, $ENV{PILOTFISH_OWNER}, time()) } // do { report($@); 0 };
            return $inner->($dbh, $queue, $limit) unless $said;
            my @all = $inner->($dbh, $queue, $ALL);
            my @left = eval { map { { %$_ } } chosen($said, $dbh, @all) };
            if ($@) {
                report($@);
                @left = @all;
            }
            my %count;
            return grep { $count{$by_user ? $_->{job_user} : ''}++ < $limit } @left;
        };
    }
}

# Return the jobs for this pass, those that are placed with their nodes.
sub chosen {
    my ($said, $dbh, @jobs) = @_;
    my ($now, $messages, @left) = (time(), 0);
    my $longest = $ENV{PILOTFISH_LONGEST} =~ /\A[0-9]{1,8}\z/ ? $ENV{PILOTFISH_LONGEST} : 0;
    for my $job (@jobs) {
        unless (contained($job->{properties} // '')) {
            push @left, $job;
            next;
        }
        if (my $nodes = $said->{place}{ $job->{job_id} }) {
            my $own = defined $job->{properties} && $job->{properties} ne '' ? "($job->{properties}) AND " : '';
            push @left, { %$job, properties => "$own$nodes" };
            next;
        }
        my $until = $job->{submission_time} + seconds_kept($said, $job, $longest);
        if ($until <= $now or $job->{submission_time} > $now + $LONGEST_ALIVE_S) {
            push @left, $job;
            next;
        }
        my ($second, $minute, $hour) = localtime $until;
        my $message = sprintf 'Kept by pilotfish, at most until %02d:%02d:%02d', $hour, $minute, $second;
        if (($job->{message} // '') ne $message and $messages++ < $MOST_MESSAGES) {
            eval { OAR::IO::set_job_message($dbh, $job->{job_id}, $message) };
        }
    }
    return @left;
}

# Return whether SQL stays within brackets that are put around it, by a plain look: its own brackets are balanced, and it
# has nothing in which brackets would count otherwise (comments, dollar quotes, escaped quotes). `contained` in
# adapters/oar/records/requests.py is the same.
sub contained {
    my ($sql) = @_;
    return 0 if length $sql > $MOST_SQL or $sql =~ /\\['"]/;
    my $depth = 0;
    while ($sql =~ /'[^']*'|"[^"]*"|(--|\/\*|[\$#;`\\'"\0])|([()])/g) {
        return 0 if defined $1;
        next unless defined $2;
        $depth += $2 eq '(' ? 1 : -1;
        return 0 if $depth < 0;
    }
    return $depth == 0;
}

# Return for how long after its submission a job is kept, 0 if it is not. A job that OAR submitted again is not.
sub seconds_kept {
    my ($said, $job, $longest) = @_;
    return 0 if $said->{free}{ $job->{job_id} } or $job->{resubmit_job_id};
    my $most = 0;
    for my $span ($said->{keep}{queue}{ $job->{queue_name} }, $said->{keep}{project}{ $job->{project} }) {
        $most = $span if defined $span and $span > $most;
    }
    return $most < $longest ? $most : $longest;
}

1;

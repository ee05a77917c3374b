"""Lines of `scontrol -ao show job` of Slurm 22.05, and the other texts of a small site as it is now."""

from __future__ import annotations

SUBMIT = 1_772_431_200.0  # 2026-03-02T06:00:00
HEAD = (
    "JobId={id} {array}JobName={name} UserId=ann(5) GroupId=games(60) MCS_label=N/A Priority={priority} Nice={nice} "
    "Account=lab QOS=high JobState={state} Reason={reason} Dependency={after} Requeue={requeue} Restarts=0 BatchFlag=1 "
    "ExitCode=0:0 RunTime=00:00:06 TimeLimit={limit} TimeMin={least} SubmitTime=2026-03-02T06:00:00 "
    "EligibleTime={eligible} AccrueTime=Unknown StartTime={start} EndTime={end} Deadline={deadline} SuspendTime=None "
    "LastSchedEval=2026-03-02T06:00:00 Scheduler=Backfill Partition={part} AllocNode:Sid=localhost:4572 "
    "ReqNodeList={required} ExcNodeList={excluded} NodeList={nodes} NumNodes={count} NumCPUs={cpus} NumTasks={tasks} "
    "CPUs/Task={each} ReqB:S:C:T=0:0:*:* TRES={tres} Socks/Node=* NtasksPerN:B:S:C={per}:0:*:* CoreSpec=* MinCPUsNode=1 "
    "{memory} MinTmpDiskNode=0 Features={features} DelayBoot=00:00:00 OverSubscribe={shared} Contiguous={whole} "
    "Licenses={licences} Network=(null) {more}Command=/x/JobState=FAILED WorkDir=/tmp TimeLimit=1 StdErr=/dev/null\n"
)
WAITING = {
    "array": "", "name": "wide", "priority": 10187, "nice": 0, "state": "PENDING", "reason": "Priority",
    "after": "(null)", "requeue": 1, "limit": "00:20:00", "least": "N/A", "eligible": "2026-03-02T06:00:00",
    "start": "2026-03-02T09:00:00", "end": "2026-03-02T09:20:00", "deadline": "N/A", "part": "main", "required": "(null)",
    "excluded": "(null)", "nodes": "", "count": "2", "cpus": "4", "tasks": "4", "each": "1",
    "tres": "cpu=4,mem=512M,node=1,billing=4", "per": "0", "memory": "MinMemoryCPU=128M", "features": "(null)",
    "shared": "OK", "whole": "0", "licences": "(null)", "more": "",
}  # fmt: skip
RUNNING = {
    **WAITING, "state": "RUNNING", "reason": "None", "start": "2026-03-02T07:00:00", "end": "2026-03-02T07:20:00",
    "nodes": "n[1-2]",
}  # fmt: skip


def line(number: int, base: dict[str, object], **changes: object) -> str:
    return HEAD.format(id=number, **{**base, **changes})


NODES = "".join(f"NodeName=n{i} CPUTot=8 CoresPerSocket=8 RealMemory=16000 State=IDLE\n" for i in range(1, 5))
CONFIG = (
    "Configuration data as of 2026-03-02T07:10:00\nClusterName = c\nSchedulerType = sched/backfill\n"
    "SelectType = select/cons_tres\nSelectTypeParameters = CR_CORE\nPriorityType = priority/basic\n"
)


def present_texts(*jobs: str, **changes: str) -> dict[str, str]:
    """Return what Slurm prints at 2026-03-02T07:10:00 of four nodes, one partition and these jobs."""
    part = "PartitionName=main Nodes=n[1-4] Default=YES\n"
    return {
        "scontrol_config.txt": CONFIG, "scontrol_node.txt": NODES, "scontrol_part.txt": part,
        "scontrol_job.txt": "".join(jobs), **changes,
    }  # fmt: skip

"""Files of a small made-up site of Slurm: four nodes, two partitions, two users, three jobs."""

from __future__ import annotations

from pathlib import Path

CONF = """\
ClusterName=small
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
AccountingStorageEnforce=associations,limits,qos
NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=240 DefaultTime=60
PartitionName=fast Nodes=n[1-2] MaxTime=30 PriorityTier=10
"""
ASSOCIATIONS = """\
Cluster|Account|User|Partition|Share|Priority|GrpTRES|MaxJobs|QOS|Def QOS|Par Name
small|root|||1||||normal||
small|root|root||1||||normal||
small|lab|||10||cpu=16,mem=1G||normal||root
small|lab|ann||2|||5|high,normal|normal|
small|lab|bob||parent|||-1|normal||
"""
SERVICES = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall|\
LimitFactor|MinPrioThres|MaxTRESRunMinsPU|MaxTRESRunMinsPA|GrpJobsAccrue|MaxJobsAccruePU|MaxJobsAccruePA
normal|0|00:00:00||cluster||1.000000|||||||||||
high|100|00:01:30|normal|requeue|DenyOnLimit,NoReserve|0.5|node=2|cpu=32,gres/gpu=4|3|1-00:00:00|||||||
"""
EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
small||2026-03-02T06:00:00|Unknown||Cluster Registered TRES|
small|n1|2026-03-02T07:00:00|2026-03-02T08:00:00|DRAIN|disk|root(0)
small|n2|2026-03-02T07:30:00|Unknown|DOWN*|Not responding|slurm(1)
"""
RESERVATIONS = """\
Cluster|Name|ID|TimeStart|TimeEnd|NodeNames|Flags|Users|Accounts
small|course|3|2026-03-02T09:00:00|2026-03-02T10:00:00|n[1-2]|SPEC_NODES|ann|lab
"""
SHARES = """\
Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS
root|||0.000000|300||1.000000||
 lab||10|0.5|300|1.0|1.0||0.9
  lab|ann|2|0.5|250|0.8|0.8|0.3|0.5
"""
COLUMNS = (
    "JobID|JobName|User|Account|QOS|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes"
    "|AllocNodes|ReqCPUS|AllocCPUS|ReqMem|ReqTRES|NodeList|Priority|Flags|SubmitLine"
)
DONE = {
    "JobID": "1", "JobName": "job", "User": "ann", "Account": "lab", "QOS": "normal", "Partition": "main",
    "State": "COMPLETED", "Submit": "2026-03-02T06:00:00", "Eligible": "2026-03-02T06:00:00",
    "Start": "2026-03-02T06:00:10", "End": "2026-03-02T06:01:40", "ElapsedRaw": "90", "TimelimitRaw": "10", "ReqNodes": "1",
    "AllocNodes": "1", "ReqCPUS": "2", "AllocCPUS": "2", "ReqMem": "2000M", "ReqTRES": "cpu=2,mem=2000M,node=1",
    "NodeList": "n1", "Priority": "1000", "Flags": "SchedMain,StartRecieved", "SubmitLine": "sbatch -n2 --wrap=sleep 90",
}  # fmt: skip


def row(**fields: str) -> str:
    """Return a record of sacct: a job that completed, with other fields where they are named."""
    record = {**DONE, **fields}
    return "|".join(record[name] for name in COLUMNS.split("|"))


def records(*rows: str) -> str:
    """Return a dump of sacct with these records."""
    return "\n".join((COLUMNS, *rows)) + "\n"


JOBS = records(
    row(),
    row(JobID="2", State="TIMEOUT", SubmitLine="sbatch -N2 --exclusive -p fast,main job.sh -n99"),
    row(JobID="3_[4-6%2]", State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned", AllocNodes="0",
        AllocCPUS="0", ElapsedRaw="0", Eligible="Unknown", Flags="", SubmitLine="sbatch -a 1-6%2 -n1 --wrap=x"),
)  # fmt: skip
FILES = {
    "slurm.conf": CONF, "assoc.psv": ASSOCIATIONS, "qos.psv": SERVICES, "events.psv": EVENTS, "sacct.psv": JOBS,
    "reservations.psv": RESERVATIONS, "sshare.psv": SHARES,
}  # fmt: skip


def write_site(folder: Path, **files: str | None) -> Path:
    """Write the files of the site into a folder, and return it.

    Args:
        folder: where.
        files: other text by file name, with `_` for the dot before the ending; None: the file is not there.
    """
    changed = {name[::-1].replace("_", ".", 1)[::-1]: text for name, text in files.items()}
    for name, text in {**FILES, **changed}.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder

"""A Slurm job, node and partitions for tests of placement."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.adapters.slurm.placement.partitions import CoreSharing, Partition
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.simulate.model.snapshot import JobState, NodeState

JOB = SlurmJob(
    7, JobState.PENDING, "BeginTime", uid=5, account="research", qos="high", partition="main", nodes=1, cpus=2,
    time_limit=600.0, submit=990.0, begin=1590.0, priority=10, comment="pilotfish:hold=600",
    tres=(("cpu", 2.0), ("mem", 256.0), ("node", 1.0)),
)  # fmt: skip
NOW = 1000.0
MAIN = Partition("main", nodes=frozenset({"n0", "n1"}))
SHARED = Partition("shared", nodes=frozenset({"n0", "n1"}), sharing=CoreSharing.FORCE, rows=2)
BOTH = {"main": MAIN, "shared": SHARED}
NODE = SlurmNode("n0", NodeState.UP, 4, 4e9, partitions=frozenset(BOTH), idle=2, free=3e9)
RUNNING = replace(JOB, id=1, state=JobState.RUNNING, placed=("n0",), memory=1e9)
# Output of Slurm 22.05
QOS = (
    "QOS=high(2) UsageRaw=0.000000 GrpJobs=7(0) GrpJobsAccrue=N(0) GrpSubmitJobs=N(1) GrpWall=600(0.08) "
    "GrpTRES=cpu=20(0),mem=N(0),fs/disk=N(0) GrpTRESMins=cpu=1000(118),mem=N(0) GrpTRESRunMins=cpu=500(0),mem=N(0) "
    "MaxWallPJ=2 MaxTRESPJ=cpu=8,mem=2000 MaxTRESPN=cpu=4 MaxTRESMinsPJ=cpu=300 MinPrioThresh=  MinTRESPJ=cpu=1 "
    "PreemptMode=OFF Priority=100 Account Limits= research={MaxJobsPA=N(0) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1) "
    "MaxTRESPA=cpu=12(0),mem=N(0)} User Limits= 5={MaxJobsPU=2(0) MaxSubmitJobsPU=N(1) MaxTRESPU=cpu=16(0),mem=N(0)} "
    "9={MaxJobsPU=2(0) MaxSubmitJobsPU=N(0) MaxTRESPU=cpu=16(0),mem=N(0)}\n"
)
LIMITS = (
    "Current Association Manager state\nAssociation Records\n"
    "ClusterName=pilot Account=root UserName= Partition= Priority=0 ID=1 ParentAccount= Lft=1 GrpJobs=50(1) "
    "GrpTRES=cpu=N(0) MaxJobs= MaxWallPJ= MaxTRESPJ=\n"
    "ClusterName=pilot Account=research UserName= Partition= Priority=0 ID=3 ParentAccount=root(1) Lft=6 GrpJobs=N(0) "
    "GrpTRES=cpu=30(18),mem=N(2304) MaxJobs=6 MaxWallPJ= MaxTRESPJ=\n"
    "ClusterName=pilot Account=research UserName=games(5) Partition= Priority=0 ID=5 ParentAccount= Lft=11 "
    "GrpJobs=9(4) GrpTRES=cpu=N(18) MaxJobs=6(4) MaxWallPJ=100 MaxTRESPJ=cpu=24 MaxTRESPN= MaxTRESMinsPJ=\n"
    f"QOS Records\n{QOS}"
)

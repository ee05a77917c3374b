"""Recorded answers of a good Slurm site, for tests of the doctor."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import Finding, Level, ServiceState
from pilotfish.adapters.slurm import doctor
from pilotfish.adapters.slurm.doctor.questions import Answers, ask
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.records import SlurmNode
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.snapshot import NodeState

#: The relevant lines of Slurm 22.05.
CONFIG = """Configuration data as of 2026-11-21T07:19:35
AccountingStorageEnforce = associations,limits,qos
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStoreFlags    = job_comment
AuthType                = auth/munge
DefMemPerCPU            = 1024
JobAcctGatherParams     = (null)
JobDefaults             = (null)
JobSubmitPlugins        = (null)
MinJobAge               = 300 sec
PreemptType             = preempt/none
PriorityFlags           =
PriorityMaxAge          = 7-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PrivateData             = none
SchedulerParameters     = (null)
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CPU_MEMORY
SlurmUser               = slurm(64030)
SlurmctldHost[0]        = ctl(10.0.0.1)
SlurmctldParameters     = (null)
SLURM_CONF              = /no/such/folder/slurm.conf
SLURM_VERSION           = 22.05.8
SuspendProgram          = (null)
TaskPlugin              = task/none

Slurmctld(primary) at ctl is UP
"""
#: Lines that newer releases add, from their documentation.
NEWER = """
Cgroup Support Configuration:
CgroupPlugin            = cgroup/v2
ConstrainRAMSpace       = yes
"""
PARTITION = (
    "PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "ExclusiveUser=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 Nodes=n[1-2] RootOnly=NO ReqResv=NO OverSubscribe=NO "
    "State=UP TotalCPUs=8 TotalNodes=2 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED "
    "MaxMemPerNode=UNLIMITED TRES=cpu=8,mem=8G,node=2,billing=8"
)
NOW = 1_795_245_609.0
SDIAG = f"***\nsdiag output at Sat Nov 21 07:20:09 2026 ({NOW:.0f})\n***\n"
OPERATOR = "backup|Operator|research\n"
USERS = "Current Association Manager state\n\nUser Records\n\nUserName=backup({uid}) DefAccount=research\n"
GOOD = ServiceState("live")
NODES = [SlurmNode(name, NodeState.UP, 4, 4 * 2.0**30, partitions=frozenset({"main"})) for name in ("n1", "n2")]


class Recorded:
    """A runner that answers from a record and stores the commands; an error is raised."""

    def __init__(self, **answers: str | AdapterError) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, str | AdapterError] = {
            "squeue --version": "slurm-wlm 22.05.8\n",
            "scontrol show config": CONFIG,
            "sdiag": SDIAG,
            "scontrol --oneliner --all show partition": PARTITION.format(name="main"),
            "scontrol --oneliner --all show node": "",
            "sacctmgr": OPERATOR,
            "scontrol show assoc_mgr": USERS.format(uid=34),
            "munge": "MUNGE:AwQ:",
            "systemctl": "",
            "sinfo": "",
            "squeue": "",
        } | {key.replace("__", "~").replace("_", " ").replace("~", "_"): value for key, value in answers.items()}

    def __call__(self, argv: Sequence[str]) -> str:
        line = shlex.join(argv)
        self.asked.append(line)
        answer = self.answers[max((key for key in self.answers if line.startswith(key)), key=len)]
        if isinstance(answer, AdapterError):
            raise answer
        return answer


def asked_of(config: str = CONFIG, user: str = "backup", **settings: object) -> Answers:
    """Return the answers of a good site, with some of them replaced."""
    asked = ask(Recorded(scontrol_show_config=config), user, lambda: NOW)
    asked.nodes = NODES
    for name, value in settings.items():
        assert hasattr(asked, name)
        setattr(asked, name, value)
    return asked


def found(asked: Answers, service: ServiceState = GOOD, selection: SlurmSelection | None = None,
          cluster: Cluster | None = None) -> list[Finding]:  # fmt: skip
    return list(doctor.findings_of(asked, selection or SlurmSelection(), cluster, service))


def about(topic: str, asked: Answers, **others: object) -> list[tuple[Level, str]]:
    return [(each.level, each.says) for each in found(asked, **others) if each.topic == topic]


def changed(**settings: str) -> str:
    """Return the configuration with some settings changed."""
    text = CONFIG
    for name, value in settings.items():
        lines = [f"{name} = {value}" if line.split(" ")[0] == name else line for line in text.splitlines()]
        text = "\n".join(lines) if f"{name} = {value}" in lines else "\n".join([f"{name} = {value}", *lines])
    return text

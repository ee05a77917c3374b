"""The Slurms that play the cases, each with its slurm.conf, accounts and cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fast_slurm import BEGIN
from rule_case import Case
from rules_of_limits import LIMITS, MIDNIGHT_CASE, OTHERS, PARTITIONS, entry
from rules_of_passes import NODES, ORDER, PASSES, SWITCHES
from rules_of_settings import SETTINGS
from rules_of_trouble import SUSPENSION, TROUBLE
from rules_when_tuned import TUNED_CASES


@dataclass(frozen=True, eq=False)
class RuleSite:
    """Cases that share a slurm.conf.

    Args:
        name: of the site.
        rules: lines of slurm.conf before the nodes and partitions of the cases.
        accounts: commands of sacctmgr before those of the cases.
        cases: they happen next to each other.
        begin: what its clock shows first, UTC.
        topology: its topology.conf; "": none.
    """

    name: str
    rules: str
    accounts: Sequence[str]
    cases: Sequence[Case]
    begin: str = BEGIN
    topology: str = ""


PRIORITIES = """
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityWeightAge=10000
PriorityMaxAge=0-1
PriorityWeightFairshare=10000
PriorityWeightQOS=100000
PriorityWeightPartition=1000000
PriorityCalcPeriod=1
AccountingStorageEnforce=associations,limits,qos
"""
USERS = ("add account lab", "add user games account=lab", "add user root account=lab", "add user news account=lab")
#: A pass takes as long as ever, so that the fast clock must not end it.
LONG_PASSES = "default_queue_depth=500,max_sched_time=40,bf_max_time=300,bf_yield_interval=10000000,bf_continue"


def scheduler_words(words: Iterable[str]) -> str:
    """Return the words of SchedulerParameters of a site, without those that `-NAME` takes away.

    Slurm reads the first of two that are alike.
    """
    values = dict[str, str]()
    for word in (*LONG_PASSES.split(","), *words):
        name, _, value = word.partition("=")
        if name.startswith("-"):
            del values[name[1:]]
        else:
            values[name] = value
    return ",".join(f"{name}={value}" if value else name for name, value in values.items())


PLAIN = RuleSite(
    "plain",
    f"""{PRIORITIES}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
Licenses=tool:1
GresTypes=gpu
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10
SchedulerParameters={LONG_PASSES}
""",
    USERS,
    (*PASSES, *ORDER, *NODES, *LIMITS, *PARTITIONS, *OTHERS, entry("NO")),
)
TUNED = RuleSite(
    "tuned",
    f"""{PRIORITIES}
SelectType=select/linear
EnforcePartLimits=ANY
PriorityFlags=NO_FAIR_TREE
PriorityWeightJobSize=500000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters={LONG_PASSES},bf_max_job_user=2,bf_max_job_part=6,assoc_limit_stop,preempt_youngest_first
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10 PreemptMode=OFF
""",
    (*USERS, *(f"add user {user} account=lab" for user in ("man", "list", "irc", "proxy", "sync", "uucp"))),
    (*TUNED_CASES, entry("ANY")),
)
SETTING_SITE = RuleSite(
    "settings",
    f"""{PRIORITIES.replace("PriorityWeightFairshare=10000", "")}
PriorityWeightJobSize=5000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10
SchedulerParameters={LONG_PASSES}
""",
    (*USERS, *(f"add user {user} account=lab" for user in ("man", "list"))),
    [setting.case for setting in SETTINGS],
)
STRICT = RuleSite(
    "strict",
    f"""{PRIORITIES.strip()},safe
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/qos
EnforcePartLimits=ALL
PreemptMode=REQUEUE
ReturnToService=1
SchedulerParameters={LONG_PASSES}
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10
""",
    USERS,
    (*TROUBLE, entry("ALL")),
)
GANG = RuleSite(
    "gang",
    f"""{PRIORITIES}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerParameters={LONG_PASSES}
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10 PreemptMode=OFF
""",
    USERS,
    SUSPENSION,
)
#: Its clock shows midnight some minutes after it has started.
MIDNIGHT = RuleSite(
    "midnight",
    f"""{PRIORITIES}
PriorityUsageResetPeriod=DAILY
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters={LONG_PASSES}
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10
""",
    USERS,
    (MIDNIGHT_CASE,),
    "2026-03-02 23:44:00",
)
#: The nodes of each case are below one switch. Slurm 22.05 needs all leaf switches at one depth.
TREE = RuleSite(
    "tree",
    f"""{PRIORITIES}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
SchedulerParameters={LONG_PASSES}
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10
""",
    USERS,
    SWITCHES,
    topology="""SwitchName=s1 Nodes=n[1-3]
SwitchName=s2 Nodes=n[4-5]
SwitchName=s3 Nodes=n[6-9]
SwitchName=s4 Nodes=n[10,12]
SwitchName=s5 Nodes=n11
SwitchName=s6 Nodes=n13
SwitchName=s7 Nodes=n[15,18]
SwitchName=s8 Nodes=n[14,16]
SwitchName=s9 Nodes=n17
SwitchName=left Switches=s[1-2]
SwitchName=right Switches=s3
SwitchName=leaf Switches=s[4-6]
SwitchName=promised Switches=s[7-9]
SwitchName=top Switches=left,right,leaf,promised
""",
)
#: Sites whose cases hold as they are, and all sites.
RULE_SITES = (PLAIN, TUNED, STRICT, GANG, MIDNIGHT, TREE)
SITES = (*RULE_SITES, SETTING_SITE)

"""The Slurms that play the cases, each with its slurm.conf, accounts and cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rule_case import Case
from rules_of_limits import LIMITS, OTHERS, PARTITIONS
from rules_of_passes import NODES, ORDER, PASSES
from rules_when_tuned import TUNED_CASES


@dataclass(frozen=True)
class RuleSite:
    """Cases that share a slurm.conf.

    Args:
        name: of the site.
        rules: lines of slurm.conf before the nodes and partitions of the cases.
        accounts: commands of sacctmgr before those of the cases.
        cases: they happen next to each other.
    """

    name: str
    rules: str
    accounts: Sequence[str]
    cases: Sequence[Case]


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
LONG_PASSES = "default_queue_depth=500,max_sched_time=40,bf_max_time=300,bf_yield_interval=10000000"
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
    (*PASSES, *ORDER, *NODES, *LIMITS, *PARTITIONS, *OTHERS),
)
TUNED = RuleSite(
    "tuned",
    f"""{PRIORITIES}
SelectType=select/linear
PriorityFlags=NO_FAIR_TREE
PriorityWeightJobSize=500000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters={LONG_PASSES},bf_max_job_user=2,bf_max_job_part=6,assoc_limit_stop
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10 PreemptMode=OFF
""",
    (*USERS, *(f"add user {user} account=lab" for user in ("man", "list", "irc", "proxy", "sync", "uucp"))),
    TUNED_CASES,
)
SITES = (PLAIN, TUNED)

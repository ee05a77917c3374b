"""Cases of the rules that most sites rest on: each is decided by one rule of Slurm's, see `Case`."""

from __future__ import annotations

from rule_case import CORES, Case, Submission, jobs_changed, qos_unlimited, scheduler

Job = Submission
FAR = 4_000_000_000

#: The highest job does not fit: it closes its partition and takes the nodes from the other one, where `low` would fit.
CLOSED = Case(
    "closed",
    nodes=(CORES, CORES),
    partitions={"": "", "other": ""},
    jobs=(
        Job("gate1", "-w {n1} -n4 -t30", "+150"),
        Job("gate2", "-w {n2} -n4 -t30", "+20"),
        Job("first", "-n1 -t5 -w {n2}", "60"),
        Job("wide", "-N2 --exclusive -t5 --nice=100", "20"),
        Job("low", "-p closed_other -n1 -t60 --nice=200", "20"),
    ),
    without={"the wide job": jobs_changed("closed", "wide", begin=FAR)},
)
#: `head` waits for 3 of 4 cores. Its reservation takes the whole node: `long` waits, too; only `short` ends before it.
WHOLE = Case(
    "whole",
    jobs=(
        Job("gate1", "-n2 -t10", "+150"),
        Job("gate2", "-n2 -t30", "+10"),
        Job("head", "-n3 -t5", "30"),
        Job("long", "-n1 -t60 --nice=100", "30"),
        Job("short", "-n1 -t2 --nice=200", "30"),
    ),
    without={"reservations": scheduler(bf_min_prio_reserve=FAR)},
)
#: `second` is over a limit of its QOS: it waits, and `low` passes it in the same pass.
HIDDEN = Case(
    "hidden",
    accounts=("add qos one MaxJobsPerUser=1", "modify user games set qos+=one"),
    jobs=(
        Job("gate", "-n4 -t30", "+10"),
        Job("first", "-n1 -t10 --qos=one", "90"),
        Job("second", "-n1 -t10 --qos=one", "20"),
        Job("low", "-n1 -t10 --nice=100", "20"),
    ),
    without={"the limit": qos_unlimited("one")},
)
CASES = (CLOSED, WHOLE, HIDDEN)
RULES = """
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=10000
PriorityMaxAge=0-1
PriorityWeightFairshare=10000
PriorityWeightQOS=100000
PriorityWeightPartition=1000000
PriorityCalcPeriod=1
AccountingStorageEnforce=associations,limits,qos
PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10 DefMemPerCPU=100
"""
ACCOUNTS = ("add account lab", "add user games account=lab", "add user root account=lab")

"""Cases of the passes, of the order of jobs, and of the choice of nodes."""

from __future__ import annotations

from dataclasses import replace

from rule_case import (
    CORES,
    Case,
    both,
    changed_rules,
    jobs_changed,
    no_limits,
    nodes_changed,
    partition_changed,
    priority_changed,
    qos_changed,
    scheduler_changed,
)
from rule_case import Submission as Job

#: A time that never comes, and a priority that no job has.
FAR = 4_000_000_000
GATE = Job("gate", "-n4 -t30", "+10")
LEAST_LOADED = changed_rules(is_least_loaded=True)

PASSES = (
    # The highest job does not fit: it closes its partition and takes the nodes from the other one, where `low` would fit.
    Case(
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
    ),
    # `head` waits for 3 of 4 cores. Its reservation takes the whole node: `long` waits, too; only `short` ends before it.
    Case(
        "whole",
        jobs=(
            Job("gate1", "-n2 -t10", "+150"),
            Job("gate2", "-n2 -t30", "+10"),
            Job("head", "-n3 -t5", "30"),
            Job("long", "-n1 -t60 --nice=100", "30"),
            Job("short", "-n1 -t2 --nice=200", "30"),
        ),
        without={"reservations": scheduler_changed(bf_min_prio_reserve=FAR)},
    ),
    # As before, but the head's reservation leaves n2 alone; that of the second job, by priority, does not.
    Case(
        "every",
        nodes=(CORES, CORES),
        jobs=(
            Job("gate1", "-w {n1} -n2 -t10", "+120"),
            Job("gate2", "-w {n1} -n2 -t30", "+10"),
            Job("gate3", "-w {n2} -n2 -t10", "+150"),
            Job("gate4", "-w {n2} -n2 -t30", "+10"),
            Job("head", "-w {n1} -N1 -n3 -t5", "30"),
            Job("next", "-w {n2} -N1 -n3 -t5 --nice=50", "30"),
            Job("long", "-w {n2} -n1 -t60 --nice=100", "30"),
            Job("short", "-w {n2} -n1 -t2 --nice=200", "30"),
        ),
        without={"all reservations but one": scheduler_changed(bf_job_part_count_reserve=1)},
    ),
    # A job without a limit has that of its partition, and ends before the reservation.
    Case(
        "unsaid",
        partitions={"": "DefaultTime=2"},
        jobs=(
            Job("gate1", "-n2 -t10", "+100"),
            Job("gate2", "-n2 -t30", "+10"),
            Job("head", "-n3 -t5", "30"),
            Job("short", "-n1 --nice=200", "30"),
        ),
        without={
            "DefaultTime": both(
                partition_changed("unsaid", default_time_min=None), jobs_changed("unsaid", "short", limit_min=None)
            )
        },
    ),
    # Backfilling shortens a job that says from which limit on it is content.
    Case(
        "content",
        jobs=(
            Job("gate1", "-n2 -t10", "+100"),
            Job("gate2", "-n2 -t30", "+10"),
            Job("head", "-n3 -t5", "30"),
            Job("flexible", "-n1 -t60 --time-min=2 --nice=200", "30"),
        ),
        without={"TimeMin": jobs_changed("content", "flexible", time_min_min=None)},
    ),
)
ORDER = (
    Case(
        "order",
        partitions={"": "", "tier": "PriorityTier=5", "factor": "PriorityJobFactor=10"},
        accounts=("add qos urgent Priority=100", "modify user games set qos+=urgent"),
        jobs=(
            GATE,
            Job("nice", "-n4 -t1 --nice=5000", "45"),
            Job("plain", "-n4 -t1", "45"),
            Job("urgent", "-n4 -t1 --qos=urgent", "45"),
            Job("factor", "-p order_factor -n4 -t1", "45"),
            Job("tier", "-p order_tier -n4 -t1 --nice=50000", "45"),
        ),
        without={
            "PriorityTier": partition_changed("order_tier", tier=1),
            "PriorityJobFactor": partition_changed("order_factor", job_factor=1),
            "the QOS's priority": qos_changed("urgent", priority=0),
            "nice": jobs_changed("order", "nice", nice=0),
        },
    ),
    Case(
        "age",
        jobs=(
            Job("gate", "-n4 -t30", "+160"),
            Job("old", "-n4 -t1 --nice=100", "45"),
            Job("young", "-n4 -t1", "45", after=130),
        ),
        without={"age": priority_changed(age=0.0)},
    ),
    # MaxJobsAccrue: of the jobs of the QOS, the age of one counts. `young` comes after `second`, and overtakes it.
    Case(
        "ageless",
        accounts=("add qos ageless MaxJobsAccruePerUser=1", "modify user games set qos+=ageless"),
        jobs=(
            Job("gate", "-n4 -t30", "+190"),
            Job("first", "-n4 -t1 --qos=ageless", "45"),
            Job("second", "-n4 -t1 --qos=ageless", "45"),
            Job("young", "-n4 -t1", "45", after=30),
        ),
        without={"MaxJobsAccrue": no_limits(qos="ageless")},
    ),
    Case(
        "share",
        accounts=("add account fair", "add user mail account=fair", "add user lp account=fair"),
        jobs=(
            Job("gate", "-n4 -t30", "+130", user="mail"),
            Job("heavy", "-n4 -t1", "45", user="mail"),
            Job("light", "-n4 -t1", "45", user="lp"),
        ),
        without={"fair share": priority_changed(fair_share=0.0)},
    ),
)
NODES = (
    Case(
        "weight",
        nodes=(f"{CORES} Weight=10", CORES, f"{CORES} Weight=5"),
        jobs=(Job("a", "-n4 -t5", "60"), Job("b", "-n4 -t5", "60"), Job("c", "-n4 -t5", "60")),
        without={"weights": nodes_changed(weight=1)},
    ),
    # Between the gates n1-n2, n4-n5 and n7 are free: one node comes from the shortest run.
    Case(
        "runs",
        nodes=(CORES,) * 7,
        jobs=(
            Job("gate1", "-w {n3} -n4 -t30", "+60"),
            Job("gate2", "-w {n6} -n4 -t30", "+60"),
            Job("single", "-n4 -t5", "60"),
            Job("pair", "-N2 -n8 -t5", "60"),
        ),
        without={"the best fit": LEAST_LOADED},
    ),
    Case(
        "fit",
        nodes=(CORES,) * 3,
        jobs=(
            Job("gate1", "-w {n2} -n2 -t30", "+60"),
            Job("gate2", "-w {n3} -n1 -t30", "+60"),
            Job("exact", "-n2 -t5", "60"),
        ),
        without={"the best fit": LEAST_LOADED},
    ),
    Case(
        "emptiest",
        nodes=(CORES,) * 2,
        partitions={"": "LLN=YES"},
        jobs=(Job("a", "-n1 -t5", "60"), Job("b", "-n1 -t5", "60"), Job("c", "-n1 -t5", "60")),
        without={"LLN": partition_changed("emptiest", is_least_loaded=False)},
    ),
    Case(
        "feature",
        nodes=(f"{CORES} Feature=thin", f"{CORES} Feature=fat", f"{CORES} Feature=fat"),
        jobs=(
            Job("fat", "-n1 -t5 -C fat", "60"),
            Job("other", "-n1 -t5 -x {n1},{n2}", "60"),
        ),
        without={
            "the feature": jobs_changed("feature", "fat", constraint=""),
            "excluded nodes": jobs_changed("feature", "other", excluded_nodes=()),
        },
    ),
    Case(
        "alone",
        nodes=(CORES,) * 2,
        partitions={"": "OverSubscribe=EXCLUSIVE"},
        jobs=(Job("a", "-n1 -t5", "60"), Job("b", "-n1 -t5", "60"), Job("c", "-n1 -t5", "30")),
        without={"OverSubscribe=EXCLUSIVE": partition_changed("alone", is_exclusive=False)},
    ),
    # Without a default a job gets all memory of its node.
    Case(
        "memory",
        partitions={"": "DefMem=none"},
        jobs=(GATE, Job("a", "-n1 -t5", "60"), Job("b", "-n1 -t5", "30")),
        without={"memory": changed_rules(counts_memory=False)},
    ),
    Case(
        "megabytes",
        nodes=(CORES, f"{CORES} Weight=10"),
        jobs=(Job("a", "-n1 -t5 --mem=2500", "60"), Job("b", "-n1 -t5 --mem=2500", "60")),
        without={"memory": changed_rules(counts_memory=False)},
    ),
    # A core is not shared: one task has both of its CPUs.
    Case(
        "threads",
        nodes=("CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=4000",),
        jobs=(
            Job("a", "-n1 -t30", "+90"),
            Job("b", "-n7 -t5", "30", after=10),
            Job("c", "-n6 -t1 --nice=100", "30", after=10),
        ),
        without={
            "whole cores": lambda site: replace(
                site, nodes=tuple(replace(node, cores=node.cpus, threads=1) for node in site.nodes)
            )
        },
    ),
    # --mem=0 is all memory of a node.
    Case(
        "all_memory",
        nodes=(CORES, f"{CORES} Weight=10"),
        jobs=(Job("gate", "-w {n1} -n1 -t30", "+60"), Job("a", "-n1 -t5 --mem=0", "60")),
        without={"--mem=0": jobs_changed("all_memory", "a", memory_per_node_mib=100)},
    ),
    # More memory for a CPU than the partition allows makes two CPUs of it.
    Case(
        "dear",
        nodes=(CORES, f"{CORES} Weight=10"),
        partitions={"": "MaxMemPerCPU=500"},
        jobs=(Job("a", "-n1 -t5 --mem-per-cpu=1000", "60"), Job("b", "-n3 -t5", "60")),
        without={"MaxMemPerCPU": partition_changed("dear", max_memory_per_cpu_mib=None)},
    ),
    # -N1-2 aims at two nodes, three tasks of which two are on a node take two, and three CPUs of a task are on one.
    Case(
        "spread",
        nodes=(CORES, CORES, f"{CORES} Weight=10"),
        jobs=(
            Job("gate", "-w {n1} -n2 -t30", "+150"),
            Job("range", "-N1-2 -n2 -t5", "20"),
            Job("pairs", "-n3 --ntasks-per-node=2 -t5", "20", after=60),
            Job("threes", "-n1 -c3 -t5", "20", after=110),
        ),
        without={
            "-N1-2": jobs_changed("spread", "range", max_nodes=1),
            "--ntasks-per-node": jobs_changed("spread", "pairs", tasks_per_node=None, min_nodes=1),
            "-c3": jobs_changed("spread", "threes", cpus_per_task=1, min_cpus=1),
        },
    ),
    # An explicit default of no memory is not the same as none.
    Case(
        "no_memory",
        partitions={"": "DefMemPerCPU=0"},
        jobs=(Job("a", "-n2 -t5", "60"), Job("b", "-n2 -t5", "60")),
        without={"DefMemPerCPU=0": partition_changed("no_memory", default_memory_per_cpu_mib=None)},
    ),
    # The jobs of the partition may have two CPUs of a node together.
    Case(
        "packed",
        nodes=(CORES, CORES),
        partitions={"": "MaxCPUsPerNode=2"},
        jobs=(Job("a", "-n2 -t5", "60"), Job("b", "-n2 -t5", "60"), Job("c", "-n2 -t5", "30")),
        without={"MaxCPUsPerNode": partition_changed("packed", max_cpus_per_node=None)},
    ),
    # Named nodes come first, then those next to them, up and down; a job may have more nodes than it names.
    Case(
        "named",
        nodes=(CORES,) * 5,
        jobs=(
            Job("gate", "-w {n2} -N1 -n4 -t30", "+60"),
            Job("up", "-w {n4} -N2 -n8 -t5", "30"),
            Job("down", "-w {n5} -N2 -n2 -t5", "30", after=100),
            Job("more", "-w {n1} -n5 -t5", "30", after=170),
        ),
        without={"the names": jobs_changed("named", "up", "down", required_nodes=())},
    ),
    Case(
        "gpus",
        nodes=(f"{CORES} Gres=gpu:2",),
        jobs=(
            Job("a", "-n1 -t10 --gres=gpu:1", "90"),
            Job("b", "-n1 -t5 --gres=gpu:2", "30"),
            Job("c", "-n1 -t1 --gres=gpu:1 --nice=100", "30"),
        ),
        without={"GPUs": jobs_changed("gpus", "b", gpus_per_node=0)},
    ),
)
SWITCHES = (
    # The leaf switch with the fewest nodes that suffice; then the nearest ones.
    Case(
        "switches",
        nodes=(CORES,) * 9,
        jobs=(
            Job("pair", "-N2 -n8 -t5", "60"),
            Job("four", "-N4 -n16 -t5", "60"),
            Job("three", "-N3 -n12 -t5", "60"),
            Job("six", "-N6 -n24 -t5", "30", after=120),
        ),
        without={"the switches": lambda site: replace(site, switches=())},
    ),
    # Backfilling starts the second job on n2, the smallest leaf switch, and n1; by CPUs, n1 would suffice.
    Case(
        "leaf",
        nodes=("CPUs=2 RealMemory=4000", "CPUs=1 RealMemory=4000", "CPUs=2 RealMemory=4000", CORES),
        jobs=(
            Job("gate", "-w {n4} --exclusive -t20", "+60"),
            Job("wide", "-N4 -t5", "10"),
            Job("small", "-n2 -t1 --nice=5000", "20"),
        ),
        without={"the switches": lambda site: replace(site, switches=())},
    ),
    # n1 and n3 have a leaf switch together. n3 is idle, but planned for the first job, so that n1 fits best.
    Case(
        "promised",
        nodes=(CORES,) * 5,
        jobs=(
            Job("gate", "-w {n4} --exclusive -t20", "+60"),
            Job("wide", "-N2 --exclusive -x {n1},{n2},{n5} -t5", "10"),
            Job("narrow", "-N1 --exclusive -t30 --nice=5000", "20"),
        ),
        without={"the plan": jobs_changed("promised", "wide", begin=FAR)},
    ),
)

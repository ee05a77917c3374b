"""Random small sites under Slurm's rules, and passes at chosen seconds, for comparisons and laws.

Numbers come from short lists, so that ties, full nodes and touching plans are common. An *aspect* is a rule of Slurm
that a site uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pilotfish.simulate.slurm.site import (
    PriorityRules,
    SchedulerRules,
    Site,
    SiteAssociation,
    SiteJob,
    SiteLimits,
    SiteNode,
    SitePartition,
    SiteQos,
    SiteReservation,
    SiteRules,
    SiteSwitch,
)
from tests.reference.slurm_choice import choose
from tests.reference.slurm_machine import Job, Machine

T0 = 1_000_000
NEVER_S = 10**8
#: No pass begins by itself.
BY_HAND = {
    "is_deferred": True, "batch_sched_delay": NEVER_S, "sched_interval": NEVER_S, "bf_interval": 10_000,
    "bf_max_time": NEVER_S,
}  # fmt: skip
#: Seconds between two passes that are asked for.
GAPS_S = (1, 3, 30, 61, 301, 907)
ASPECTS = frozenset(
    {
        "partitions", "node lists", "weights", "memory", "gpus", "shapes", "ranges", "exclusive", "arrays",
        "dependencies", "overdue", "scheduler", "limits", "slow passes", "switches",
    }
)  # fmt: skip
Draw = Callable[[Any], Any]


@st.composite
def sites(draw: Draw, aspects: frozenset[str] = frozenset()) -> Site:
    """Draw a site that uses some rules, with jobs that could all run on its empty nodes."""
    nodes = tuple(
        _node(draw, number, aspects)
        for number in range(draw(st.integers(2, 8)))
    )  # fmt: skip
    parts = _partitions(draw, tuple(node.name for node in nodes), aspects)
    rules = SiteRules(
        scheduler=SchedulerRules(**BY_HAND | _scheduler(draw, aspects)),
        priority=PriorityRules(period_s=NEVER_S, partition=100.0, qos=100.0), epilog_s=(2.0, 2.0),
        counts_memory="memory" in aspects, default_memory_per_cpu_mib=draw(st.sampled_from((None, 0, 100))), enforces_limits="limits" in aspects,
        over_time_limit_min=draw(st.sampled_from((0, 1))) if "overdue" in aspects else 0,
        test_s=2.0 if "slow passes" in aspects else 0.0, record_s=2.0 if "slow passes" in aspects else 0.0,
    )  # fmt: skip
    switches = _switches(draw, nodes) if "switches" in aspects else ()
    site = Site(rules, nodes, parts, jobs=_jobs(draw, nodes, parts, aspects), switches=switches)
    if "limits" in aspects:
        site = replace(site, qos=_qos(draw), associations=_associations(draw))
    if "reservations" in aspects:
        site = replace(site, reservations=_reservations(draw, nodes))
    return possible(site)


@st.composite
def passes_of(draw: Draw, most: int = 12) -> list[tuple[int, str]]:
    """Draw passes: when, and of what kind."""
    time, passes = T0, list[tuple[int, str]]()
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.sampled_from(GAPS_S))
        passes.append((time, draw(st.sampled_from(("main", "full", "backfill", "backfill")))))
    return passes


def possible(site: Site) -> Site:
    """Return a site without the jobs that could not run on its empty nodes in each of their partitions."""
    machine = Machine(site)
    able = (
        all(choose(machine, job, part, allowed(machine, job, part), []) for part in job.parts) for job in machine.jobs
    )
    return replace(site, jobs=tuple(job for job, is_able in zip(site.jobs, able, strict=True) if is_able))


def allowed(machine: Machine, job: Job, part: SitePartition) -> set[int]:
    """Return the nodes of a partition that a job may use."""
    return machine.part_nodes(part) & machine.allowed_nodes(job)


def _node(draw: Draw, number: int, aspects: frozenset[str]) -> SiteNode:
    cores = draw(st.sampled_from((1, 2, 4, 8)))
    node = SiteNode(f"n{number}", cpus=cores, cores=cores, memory_mib=1000)
    if "shapes" in aspects:
        threads = draw(st.sampled_from((1, 1, 2)))
        node = replace(node, threads=threads, cpus=cores * threads)
    if "weights" in aspects:
        node = replace(node, weight=draw(st.sampled_from((1, 1, 5))))
    if "gpus" in aspects:
        node = replace(node, gpus=draw(st.sampled_from((0, 1, 4))))
    if "node lists" in aspects:
        features = draw(st.sampled_from(((), ("fat",), ("fat", "new"))))
        node = replace(node, features=features, works=draw(st.sampled_from((True, True, True, False))))
    return node


def _switches(draw: Draw, nodes: tuple[SiteNode, ...]) -> tuple[SiteSwitch, ...]:
    """Draw a tree of two or three levels, sometimes without its root; a node may be below no switch."""
    leaves = [list[str]() for _ in range(draw(st.integers(1, 4)))]
    for node in nodes:
        if (place := draw(st.integers(0, 4 * len(leaves)))) < 4 * len(leaves):
            leaves[place % len(leaves)].append(node.name)
    switches = [SiteSwitch(f"s{number}", tuple(names)) for number, names in enumerate(leaves)]
    level, middle = [switch.name for switch in switches], draw(st.integers(0, len(leaves)))
    if 0 < middle < len(leaves):
        halves = (tuple(level[:middle]), tuple(level[middle:]))
        switches += [SiteSwitch(f"m{number}", switches=names) for number, names in enumerate(halves)]
        level = ["m0", "m1"]
    if draw(st.integers(0, 4)):
        switches.append(SiteSwitch("top", switches=tuple(level)))
    return tuple(draw(st.sampled_from((switches, switches[::-1]))))


def _partitions(draw: Draw, names: tuple[str, ...], aspects: frozenset[str]) -> tuple[SitePartition, ...]:
    first = SitePartition("main", names, is_default=True)
    if "partitions" not in aspects:
        return (first,)
    partitions = list[SitePartition]()
    for name in ("main", "side", "third")[: draw(st.integers(2, 3))]:
        begin = draw(st.integers(0, len(names) - 1))
        partitions.append(
            SitePartition(
                name, names[begin : draw(st.integers(begin + 1, len(names)))], is_default=name == "main",
                tier=draw(st.sampled_from((1, 1, 2))), job_factor=draw(st.sampled_from((1, 2))),
                max_time_min=draw(st.sampled_from((None, None, 5))),
                max_nodes=draw(st.sampled_from((None, None, 2))),
                max_cpus_per_node=draw(st.sampled_from((None, None, 2, 3))),
                is_exclusive="exclusive" in aspects and draw(st.booleans()),
            )
        )  # fmt: skip
    return tuple(partitions)


def _scheduler(draw: Draw, aspects: frozenset[str]) -> dict[str, Any]:
    """Draw a few values of SchedulerParameters."""
    time = dict[str, Any]()
    if "slow passes" in aspects:  # a test takes two seconds, and so does a record of a main pass
        time = {
            "max_sched_time": float(draw(st.integers(1, 12))),
            "bf_continue": True, "bf_max_time": float(draw(st.integers(1, 12))),
            "bf_yield_interval": draw(st.sampled_from((1.0, 2.0, 3.0))), "bf_yield_sleep": draw(st.sampled_from((0.5, 3.0))),
        }  # fmt: skip
    if "scheduler" not in aspects:
        return time
    values = {
        "default_queue_depth": (0, 1, 3), "partition_job_depth": (1, 3), "sched_max_job_start": (1, 2),
        "bf_window_min": (1, 5, 30), "bf_resolution": (1, 30, 300), "bf_max_job_test": (1, 3),
        "bf_max_job_start": (1, 2), "bf_max_job_user": (1, 2), "bf_max_job_part": (1, 3),
        "bf_max_job_user_part": (1, 2), "bf_max_job_assoc": (1, 2),
        "bf_max_job_array_resv": (1, 2), "bf_job_part_count_reserve": (1, 2), "bf_min_age_reserve": (60,),
        "bf_min_prio_reserve": (60, 101), "bf_one_resv_per_job": (True,), "bf_window_linear": (30, 60),
        "pack_serial_at_end": (True,), "bf_busy_nodes": (True,), "goes_past_limits": (False,),
    }  # fmt: skip
    names = draw(st.lists(st.sampled_from(sorted(values)), max_size=3, unique=True))
    return time | {name: draw(st.sampled_from(values[name])) for name in names}


def _jobs(
    draw: Draw, nodes: tuple[SiteNode, ...], parts: tuple[SitePartition, ...], aspects: frozenset[str]
) -> tuple[SiteJob, ...]:
    """Draw jobs, by submission; those of an array together."""
    jobs, submit, names = list[SiteJob](), T0, [part.name for part in parts]
    for number in range(1, draw(st.integers(2, 12)) + 1):
        submit += draw(st.sampled_from((0, 0, 2, 60, 600)))
        least, limit = draw(st.integers(1, min(3, len(nodes)))), draw(st.sampled_from((1, 2, 5, 10, 60)))
        job = SiteJob(
            str(number), f"j{number}", draw(st.sampled_from(("alice", "bob"))), "physics", "normal",
            tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))), float(submit),
            limit_min=limit, min_nodes=least, max_nodes=draw(st.sampled_from((None, least))),
            tasks=least * draw(st.integers(1, 4)),
            run_s=float(draw(st.sampled_from((10, 58, 60 * limit)))),
        )  # fmt: skip
        job = replace(job, **_changes(draw, job, nodes, aspects))
        jobs += _tasks(draw, job) if "arrays" in aspects else [job]
    if "dependencies" in aspects:
        for place, job in enumerate(jobs):
            if place and draw(st.integers(0, 3)) == 0:
                before = jobs[draw(st.integers(0, place - 1))]
                if (before.array or before.id) != job.array:
                    kind = draw(st.sampled_from(("afterany", "afterok")))
                    jobs[place] = replace(job, dependency=f"{kind}:{before.array or before.id}")
    return tuple(jobs)


def _changes(draw: Draw, job: SiteJob, nodes: tuple[SiteNode, ...], aspects: frozenset[str]) -> dict[str, Any]:
    """Draw what else a job asks for."""
    changes = dict[str, Any]()
    if "memory" in aspects:
        kind = draw(st.sampled_from(("memory_per_node_mib", "memory_per_cpu_mib")))
        changes[kind] = draw(st.sampled_from((None, 100, 300, 1000)))
    if "gpus" in aspects:
        changes["gpus_per_node"] = draw(st.sampled_from((0, 0, 1, 2)))
    if "shapes" in aspects:
        changes["cpus_per_task"] = draw(st.sampled_from((1, 1, 2, 3)))
        changes["tasks_per_node"] = draw(st.sampled_from((None, None, job.tasks // job.min_nodes)))
    if "ranges" in aspects:
        changes["max_nodes"] = draw(st.sampled_from((None, job.min_nodes, job.min_nodes + 2)))
    if "exclusive" in aspects:
        changes["is_exclusive"] = draw(st.sampled_from((False, False, True)))
    if "node lists" in aspects:
        changes["constraint"] = draw(st.sampled_from(("", "", "fat", "new", "fat&new")))
        changes["excluded_nodes"] = draw(st.sampled_from(((), (), (nodes[0].name,))))
        named = ((nodes[0].name,), (nodes[-1].name, nodes[0].name), (nodes[1].name,))
        changes["required_nodes"] = draw(st.sampled_from(((), (), *named)))
    if "overdue" in aspects:
        changes["run_s"] = draw(st.sampled_from((job.run_s, 5000.0)))
    if "limits" in aspects:
        changes["qos"] = draw(st.sampled_from(("normal", "high")))
    if "reservations" in aspects:
        changes["reservation"] = draw(st.sampled_from(("", "", "r0", "r1")))
    if "scheduler" in aspects:
        changes["nice"] = draw(st.sampled_from((0, 0, 5)))
    return changes


def _tasks(draw: Draw, job: SiteJob) -> list[SiteJob]:
    """Return a job, or the tasks of an array in its place."""
    number, most = draw(st.sampled_from((1, 1, 2, 5))), draw(st.sampled_from((None, None, 1, 2)))
    if number == 1:
        return [job]
    return [replace(job, id=f"{job.id}_{task}", array=job.id, task=task, array_limit=most) for task in range(number)]


def _qos(draw: Draw) -> tuple[SiteQos, ...]:
    def limits() -> SiteLimits:
        changes = {
            "group_jobs": 2, "user_jobs": 1, "group_tres": {"cpu": 6}, "user_tres": {"cpu": 4}, "max_tres": {"node": 2},
        }  # fmt: skip
        names = draw(st.lists(st.sampled_from(sorted(changes)), max_size=2, unique=True))
        return SiteLimits(**{name: changes[name] for name in names})

    return (SiteQos("normal", limits=limits()), SiteQos("high", priority=10, limits=limits()))


def _associations(draw: Draw) -> tuple[SiteAssociation, ...]:
    def limits(*, user: bool) -> SiteLimits:
        changes = {"max_jobs": 2, "max_tres": {"cpu": 6}} if user else {"group_jobs": 3, "group_tres": {"node": 3}}
        names = draw(st.lists(st.sampled_from(sorted(changes)), max_size=1))
        return SiteLimits(**{name: changes[name] for name in names})

    return (
        SiteAssociation("root"), SiteAssociation("physics", parent=0, limits=limits(user=False)),
        SiteAssociation("physics", "alice", 1, limits=limits(user=True)),
        SiteAssociation("physics", "bob", 1, limits=limits(user=True)),
    )  # fmt: skip


def _reservations(draw: Draw, nodes: tuple[SiteNode, ...]) -> tuple[SiteReservation, ...]:
    reservations = list[SiteReservation]()
    for number in range(draw(st.integers(1, 2))):
        start = T0 + draw(st.sampled_from((0, 60, 90, 600)))
        first = draw(st.integers(0, len(nodes) - 1))
        names = tuple(node.name for node in nodes[first : first + draw(st.sampled_from((1, 2, 3, 8)))])
        end = start + draw(st.sampled_from((60, 300, 1205)))
        flags = draw(st.sampled_from(((), (), ("MAINT",), ("OVERLAP",), ("FLEX",), ("IGNORE_JOBS",))))
        users = draw(st.sampled_from(((), (), ("alice",))))
        reservations.append(
            SiteReservation(f"r{number}", float(start), float(end), names, frozenset(users), flags=frozenset(flags))
        )
    return tuple(reservations)

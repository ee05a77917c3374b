"""Random small sites under Slurm's rules, and passes at chosen seconds, for comparisons and laws.

Numbers come from short lists, so that ties, full nodes and touching plans are common.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pilotfish.simulate.slurm.site import (
    PriorityRules,
    SchedulerRules,
    Site,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteRules,
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


@st.composite
def nodes_of(draw: Any, most: int = 8, *, mixed: bool = True) -> tuple[SiteNode, ...]:
    """Draw nodes of one core each up to eight."""
    sizes = draw(st.lists(st.sampled_from((1, 2, 4, 8) if mixed else (4,)), min_size=2, max_size=most))
    return tuple(SiteNode(f"n{i}", cpus=size, cores=size) for i, size in enumerate(sizes))


@st.composite
def jobs_of(draw: Any, nodes: int, parts: tuple[str, ...], most: int = 12) -> tuple[SiteJob, ...]:
    """Draw jobs, by submission."""
    jobs, submit = [], T0
    for number in range(draw(st.integers(2, most))):
        submit += draw(st.sampled_from((0, 0, 2, 60, 600)))
        least = draw(st.integers(1, min(3, nodes)))
        limit = draw(st.sampled_from((1, 2, 5, 10, 60)))
        jobs.append(
            SiteJob(
                str(number + 1),
                f"j{number}",
                draw(st.sampled_from(("alice", "bob"))),
                "physics",
                "normal",
                (draw(st.sampled_from(parts)),),
                float(submit),
                limit_min=limit,
                min_nodes=least,
                max_nodes=draw(st.sampled_from((None, least))),
                tasks=least * draw(st.integers(1, 4)),
                run_s=float(draw(st.sampled_from((10, 58, 60 * limit)))),
            )  # fmt: skip
        )
    return tuple(jobs)


@st.composite
def sites(draw: Any) -> Site:
    """Draw a site of one partition whose jobs ask for cores."""
    nodes = draw(nodes_of())
    parts = (SitePartition("main", tuple(node.name for node in nodes), is_default=True),)
    rules = SiteRules(
        scheduler=SchedulerRules(**BY_HAND), priority=PriorityRules(period_s=NEVER_S, partition=100.0),
        epilog_s=(2.0, 2.0),
    )  # fmt: skip
    return possible(Site(rules, nodes, parts, jobs=draw(jobs_of(len(nodes), ("main",)))))


def possible(site: Site) -> Site:
    """Return a site without the jobs that could not run on the empty machine."""
    machine = Machine(site)
    able = (
        any(choose(machine, job, part, allowed(machine, job, part), []) for part in job.parts) for job in machine.jobs
    )
    return replace(site, jobs=tuple(job for job, is_able in zip(site.jobs, able, strict=True) if is_able))


def allowed(machine: Machine, job: Job, part: SitePartition) -> set[int]:
    """Return the nodes of a partition that a job may use."""
    return machine.part_nodes(part) & machine.allowed_nodes(job)


@st.composite
def passes_of(draw: Any, most: int = 12) -> list[tuple[int, str]]:
    """Draw passes: when, and of what kind."""
    time, passes = T0, []
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.sampled_from(GAPS_S))
        passes.append((time, draw(st.sampled_from(("main", "full", "backfill", "backfill")))))
    return passes

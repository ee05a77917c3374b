"""A backfill pass that leaves out what cannot start starts the same jobs as one that plans every job."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.slurm import site_tables
from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteJob, SiteLimits, SiteNode, SitePartition
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import ADVANCE
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

DAY_S = 86_400.0
LONG, WIDE = 60, len(NODES)


def starts_and_tests(
    place: Site, plans: bool, days: float = 30.0
) -> tuple[list[tuple[int, int, tuple[int, ...]]], int]:
    """Return (job, start, nodes) of each start in so many days, and how often a job was tested."""
    site = completed(place)
    block = site_block(site, Phases.drawn(site, 0), seed=0)
    block.count["plans"] = plans
    load("slurm.site_requests")(block.address, ADVANCE, T0 + days * DAY_S)
    rows = block.starts[: int(block.count["starts"])]
    nodes = [
        tuple(block.pieces["node"][first : first + number]) for first, number in rows[["piece0", "pieces"]].tolist()
    ]
    return list(zip(rows["job"].tolist(), rows["start"].tolist(), nodes, strict=True)), int(block.count["tests"])


def plans_and_looks(place: Site, hours: int = 12) -> tuple[list[list[int]], int]:
    """Return the expected start of each job after each of so many hours of passes that plan all, and the times tried."""
    site = completed(place)
    block, plans = site_block(site, Phases.drawn(site, 0), seed=0), []
    block.count["plans"] = 1
    for hour in range(hours):
        load("slurm.site_requests")(block.address, ADVANCE, T0 + 3600.0 * (hour + 1))
        plans.append(block.jobs["expected"].tolist())
    return plans, int(block.count["looks"])


@st.composite
def jobs(draw: st.DrawFn) -> list[SiteJob]:
    """Draw jobs of all widths and lengths that are submitted within an hour."""
    number = draw(st.integers(5, 25))
    return [
        job(
            draw(st.sampled_from(("alice", "bob", "carol"))),
            id=str(number),
            submit=T0 + draw(st.integers(0, 3600)),
            min_nodes=(width := draw(st.integers(1, WIDE))),
            max_nodes=width,
            tasks=width,
            cpus_per_task=(cpus := draw(st.integers(1, 3))),
            min_cpus=width * cpus,
            gpus_per_node=draw(st.integers(0, 1)),
            limit_min=draw(st.integers(1, LONG)),
            run_s=draw(st.floats(1, 60 * LONG)),
            is_exclusive=draw(st.booleans()),
            nice=draw(st.integers(0, 1000)),
        )
        for number in range(1, number + 1)
    ]


@settings(max_examples=30, deadline=None)
@given(
    jobs=jobs(),
    most_jobs=st.integers(1, 4),
    most_tests=st.integers(1, 30),
    cpus=st.integers(1, 12),
    gpus=st.integers(1, 4),
)
def test_the_jobs_that_are_left_out_would_not_have_started(
    jobs: list[SiteJob], most_jobs: int, most_tests: int, cpus: int, gpus: int
) -> None:
    scheduler = replace(RULES.scheduler, bf_max_job_test=most_tests)
    rules = replace(RULES, priority=PriorityRules(size=1000, age=100), scheduler=scheduler)
    bob = SiteLimits(group_tres={"cpu": float(cpus), "gres/gpu": float(gpus)})
    place = site(jobs, rules=rules, associations={"alice": SiteLimits(max_jobs=most_jobs), "bob": bob})
    assert starts_and_tests(place, plans=False)[0] == starts_and_tests(place, plans=True)[0]


#: Whole nodes of two kinds, of which one is heavier and has a partition of its own.
WHOLE = tuple(SiteNode(f"w{i}", cpus=4, cores=4, memory_mib=1000, weight=10 if i > 15 else 1) for i in range(20))
PARTS = (
    SitePartition("main", tuple(node.name for node in WHOLE), is_default=True, is_exclusive=True),
    SitePartition("heavy", tuple(node.name for node in WHOLE[16:]), is_exclusive=True),
)


@st.composite
def whole_jobs(draw: st.DrawFn) -> list[SiteJob]:
    """Draw jobs of whole nodes, some wide and many short, of which more come than fit."""
    return [
        job(
            draw(st.sampled_from(("alice", "bob", "carol"))),
            id=str(number),
            submit=T0 + draw(st.integers(0, 7200)),
            partitions=draw(st.sampled_from((("main",), ("main",), ("heavy",), ("main", "heavy")))),
            min_nodes=(width := draw(st.sampled_from((1, 1, 1, 2, 3, 4)))) * draw(st.sampled_from((1, 1, 1, 4))),
            max_nodes=None,
            tasks=width,
            min_cpus=width * draw(st.integers(1, 4)),
            limit_min=(limit := draw(st.sampled_from((5, 10, 20, 60, 60, 180, 600)))),
            run_s=draw(st.floats(0.1, 1.0)) * 60 * limit,
            time_min_min=draw(st.sampled_from((None, None, None, None, 2))),
            nice=draw(st.integers(0, 1000)),
        )
        for number in range(1, draw(st.integers(30, 80)) + 1)
    ]


@settings(max_examples=20, deadline=None)
@given(jobs=whole_jobs(), step=st.sampled_from((60, 300, 600)), nodes=st.integers(6, 40))
def test_the_places_that_are_put_off_decide_no_start(jobs: list[SiteJob], step: int, nodes: int) -> None:
    scheduler = replace(RULES.scheduler, bf_resolution=step)
    rules = replace(RULES, priority=PriorityRules(age=100), scheduler=scheduler)
    alice = {"alice": SiteLimits(group_tres={"node": float(nodes)})}
    place = replace(site(jobs, rules=rules, associations=alice), nodes=WHOLE, partitions=PARTS)
    assert starts_and_tests(place, plans=False, days=1.0)[0] == starts_and_tests(place, plans=True, days=1.0)[0]


@settings(max_examples=30, deadline=None)
@given(jobs=whole_jobs(), step=st.sampled_from((60, 300, 600)))
def test_searches_that_begin_at_a_bound_find_the_same_places(jobs: list[SiteJob], step: int) -> None:
    scheduler = replace(RULES.scheduler, bf_resolution=step)
    rules = replace(RULES, priority=PriorityRules(age=100), scheduler=scheduler)
    place = replace(site(jobs, rules=rules), nodes=WHOLE, partitions=PARTS)
    plans, looks = plans_and_looks(place)
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(site_tables, "MOST_BOUNDS", 0)
        plans_without_bounds, most_looks = plans_and_looks(place)
    assert plans == plans_without_bounds
    assert looks <= most_looks


def test_searches_of_jobs_that_are_alike_begin_where_the_one_before_ended() -> None:
    drawn = random.Random(2)
    single = job(is_exclusive=True, max_nodes=1)
    running = [replace(single, id=str(k + 1), limit_min=30 * (k + 1), run_s=1800.0 * (k + 1)) for k in range(20)]
    waiting = [
        replace(
            single,
            id=str(100 + k),
            submit=T0 + 1.0 + k,
            min_nodes=(width := drawn.choice((1, 2, 3, 7))),
            max_nodes=width,
            limit_min=drawn.choice((60, 240, 600)),
            partitions=drawn.choice((("main",), ("heavy",))) if width < 4 else ("main",),
        )
        for k in range(80)
    ]
    place = replace(site([*running, *waiting]), nodes=WHOLE, partitions=PARTS)
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(site_tables, "MOST_BOUNDS", 0)
        plans_without_bounds, most_looks = plans_and_looks(place, hours=1)
    plans, looks = plans_and_looks(place, hours=1)
    assert plans == plans_without_bounds
    assert looks < most_looks


def test_a_long_queue_behind_a_wide_job_is_not_planned_for_a_short_job_at_its_end() -> None:
    single = job(is_exclusive=True, max_nodes=1, limit_min=300, run_s=15_000.0)
    first = replace(single, id="1", min_nodes=18, max_nodes=18)
    wide = replace(first, id="2", submit=T0 + 10.0, min_nodes=20, max_nodes=20)
    waiting = [replace(single, id=str(3 + k), submit=T0 + 20.0 + k, min_nodes=3, max_nodes=3) for k in range(60)]
    short = replace(single, id="99", submit=T0 + 200.0, limit_min=30, run_s=1000.0)
    place = replace(site([first, wide, *waiting, short]), nodes=WHOLE, partitions=PARTS)
    starts, tests = starts_and_tests(place, plans=False)
    all_starts, all_tests = starts_and_tests(place, plans=True)
    assert starts == all_starts and len(starts) == 63
    assert 62 in {number for number, start, _ in starts if start < T0 + 400}
    assert tests * 4 < all_tests


def test_jobs_of_a_user_at_the_limit_are_not_tested() -> None:
    small = job(max_nodes=1, cpus_per_task=2, min_cpus=2, run_s=1500.0)
    place = site(
        [replace(small, id=str(k), submit=T0 + k) for k in range(1, 51)],
        associations={"alice": SiteLimits(group_tres={"cpu": 5.0})},
    )
    starts, tests = starts_and_tests(place, plans=False)
    all_starts, all_tests = starts_and_tests(place, plans=True)
    assert starts == all_starts and len(starts) == 50
    assert tests * 4 < all_tests


def test_jobs_that_would_run_into_a_reservation_are_not_tested() -> None:
    first = job(id="1", is_exclusive=True, min_nodes=WIDE - 1, run_s=3000.0)
    wide = job(id="2", submit=T0 + 100.0, is_exclusive=True, min_nodes=WIDE)
    behind = [job(id=str(3 + k), submit=T0 + 200.0 + k, is_exclusive=True, limit_min=LONG + 1 + k) for k in range(50)]
    place = site([first, wide, *behind])
    starts, tests = starts_and_tests(place, plans=False)
    all_starts, all_tests = starts_and_tests(place, plans=True)
    assert starts == all_starts and len(starts) == 52
    assert tests * 4 < all_tests

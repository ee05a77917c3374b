"""A backfill pass that leaves out what cannot start starts the same jobs as one that plans every job."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteJob, SiteLimits
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import ADVANCE
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

DAY_S = 86_400.0
LONG, WIDE = 60, len(NODES)


def starts_and_tests(place: Site, plans: bool) -> tuple[list[tuple[int, ...]], int]:
    """Return (job, start, pieces) of each start, and how often a job was tested."""
    site = completed(place)
    block = site_block(site, Phases.drawn(site, 0), seed=0)
    block.count["plans"] = plans
    load("slurm.site_requests")(block.address, ADVANCE, T0 + 30 * DAY_S)
    rows = block.starts[: int(block.count["starts"])]
    return rows[["job", "start", "pieces"]].tolist(), int(block.count["tests"])


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

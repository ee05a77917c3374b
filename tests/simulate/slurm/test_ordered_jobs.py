"""Jobs that are handed over stand in an order of their own while they are held, and nothing else changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.handed_order import LEFT, Handling, left_to_slurm, limits_s, ordered_jobs
from pilotfish.simulate.slurm.ordered_jobs import OrderedJobs
from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteJob, SiteLimits
from pilotfish.simulate.slurm.site_tables import completed
from pilotfish.simulate.slurm.twin import replay_site
from tests.reference.slurm_machine import Machine
from tests.reference.slurm_replay import Passes, PlainReplay
from tests.simulate.slurm import small_sites
from tests.simulate.slurm.test_laws_of_replays import with_own_clocks
from tests.simulate.slurm.test_passes_by_definition import by_twin
from tests.support.slurm_sites import ASPECTS, passes_of, sites

some_sites = st.frozensets(st.sampled_from(sorted(ASPECTS | {"reservations"})), max_size=2).flatmap(sites)


def drawn_keys(site: Site, draws: st.DataObject) -> np.ndarray:
    """Draw the keys of the jobs that may be handed over; some are not."""
    may = left_to_slurm(site) == 0
    return np.array([draws.draw(st.sampled_from((0.0, 1.0, 2.0, math.nan))) if one else math.nan for one in may])


@given(some_sites, passes_of(), st.sampled_from((0.0, 60.0, 700.0, math.inf)), st.data())
@settings(max_examples=60, deadline=None)
def test_the_passes_start_what_a_naive_hold_starts(
    site: Site, passes: Passes, hold_s: float, draws: st.DataObject
) -> None:
    keys = drawn_keys(site, draws)
    machine = Machine(completed(site))
    machine.order_keys = {row: key for row, key in enumerate(keys.tolist()) if not math.isnan(key)}
    machine.hold_s = hold_s
    expected, plans = PlainReplay(machine, epilog=int(site.rules.epilog_s[0]), limit_phase=0).run(passes)
    assert by_twin(site, passes, handed=OrderedJobs(keys, hold_s)) == (expected, plans)
    assert by_twin(site, passes, plans=False, handed=OrderedJobs(keys, hold_s))[0] == expected


@given(some_sites.map(with_own_clocks), st.integers(0, 3), st.data())
@settings(max_examples=40, deadline=None)
def test_the_order_that_slurm_has_changes_nothing(site: Site, seed: int, draws: st.DataObject) -> None:
    """Under priority/basic, the first come stand first; all jobs are held, and none is requeued."""
    rules = replace(site.rules, priority=PriorityRules(is_multifactor=False))
    jobs = tuple(replace(job, nice=0) for job, reason in zip(site.jobs, left_to_slurm(site), strict=True) if not reason)
    site = replace(site, rules=rules, jobs=jobs, events=())
    order = ordered_jobs(site, "fcfs", left_to_slurm(site), Handling(math.inf, 10**6))
    assert list(replay_site(site, seed, handed=order).starts) == list(replay_site(site, seed).starts)


@given(some_sites.map(with_own_clocks), st.integers(0, 3), st.sampled_from(("sjf", "largest", "random", "f1")))
@settings(max_examples=30, deadline=None)
def test_without_a_hold_or_without_jobs_nothing_changes(site: Site, seed: int, order: str) -> None:
    starts = list(replay_site(site, seed).starts)
    at_once = ordered_jobs(site, order, left_to_slurm(site), Handling(0.0))
    none = ordered_jobs(site, order, np.ones(len(site.jobs)), Handling(math.inf))
    assert list(replay_site(site, seed, handed=at_once).starts) == starts
    assert list(replay_site(site, seed, handed=none).starts) == starts


def test_a_held_job_gains_no_age_until_its_hold_is_over() -> None:
    """A job with a hold stands behind one of the same age without, once both are Slurm's again."""
    rules = replace(
        small_sites.RULES, priority=PriorityRules(age=1000.0, max_age_s=10_000.0, period_s=30.0), enforces_limits=False
    )
    all_nodes = {"min_nodes": 6, "is_exclusive": True}
    jobs = [
        small_sites.job(id="0", run_s=2000.0, **all_nodes), small_sites.job(id="1", **all_nodes),
        small_sites.job(id="2", user="bob", **all_nodes),
    ]  # fmt: skip
    site = small_sites.site(jobs, rules=rules)
    keys = np.array([math.nan, 1.0, math.nan])

    def first(handed: OrderedJobs | None) -> int:
        return replay_site(site, handed=handed).starts[1].job

    assert first(None) == first(OrderedJobs(keys, 0.0)) == 1
    assert first(OrderedJobs(keys, 600.0)) == 2


ALL_NODES = {"min_nodes": 6, "is_exclusive": True}


def starts_of(site: Site, handed: OrderedJobs | None) -> list[int]:
    """Return the jobs in the order of their starts."""
    return [start.job for start in replay_site(site, handed=handed).starts]


def test_held_jobs_are_released_while_another_waits_and_only_then() -> None:
    jobs = [
        small_sites.job(id=f"{row}", run_s=2000.0, limit_min=limit, **ALL_NODES)
        for row, limit in enumerate((60, 60, 10))
    ]
    site = small_sites.site(jobs)
    all_held, first_left = np.array([9.0, 2.0, 1.0]), np.array([math.nan, 2.0, 1.0])
    assert starts_of(site, None) == [0, 1, 2]
    assert starts_of(site, OrderedJobs(all_held, math.inf)) == [2, 1, 0]
    assert starts_of(site, OrderedJobs(first_left, math.inf)) == [0, 2, 1]  # none but held ones wait behind it
    late = small_sites.job(id="3", submit=small_sites.T0 + 100.0, run_s=10.0, **ALL_NODES)
    replay = replay_site(
        replace(site, jobs=(*jobs, late)), handed=OrderedJobs(np.append(first_left, math.nan), math.inf)
    )
    assert [start.job for start in replay.starts] == [0, 1, 2, 3]  # in the order of Slurm
    assert replay.released is not None and replay.released.tolist() == [False, True, True, False]


def test_a_job_in_another_partition_or_that_a_limit_stops_releases_none() -> None:
    jobs = [small_sites.job(id=f"{row}", run_s=2000.0, **ALL_NODES) for row in range(3)]
    side = replace(small_sites.PARTITION, name="side", is_default=False)
    elsewhere = small_sites.job(id="3", partitions=("side",), **ALL_NODES)
    keys = np.array([math.nan, 2.0, 1.0, math.nan])
    site = small_sites.site([*jobs, elsewhere])
    site = replace(site, partitions=(*site.partitions, side))
    assert starts_of(site, OrderedJobs(keys, math.inf))[:3] == [0, 3, 2]
    none = SiteLimits(max_jobs=0)
    assert starts_of(
        small_sites.site([*jobs, small_sites.job(id="3", user="bob", **ALL_NODES)], associations={"bob": none}),
        OrderedJobs(keys, math.inf),
    )[:3] == [0, 2, 1]


@pytest.mark.parametrize("hold_s", [700.0, 20.0, 0.0])
def test_a_job_that_is_handed_over_starts_once_it_was_seen(hold_s: float) -> None:
    site = small_sites.site([small_sites.job()])
    (start,) = replay_site(site, handed=OrderedJobs(np.zeros(1), hold_s, seen_s=40.0)).starts
    assert min(40.0, hold_s) <= start.start - small_sites.T0 <= min(40.0, hold_s) + 5.0


def test_the_nodes_of_a_held_job_wait_until_it_is_placed() -> None:
    """After the job before it has ended, its nodes stand idle for that time."""
    jobs = [small_sites.job(id=f"{row}", run_s=2000.0, **ALL_NODES) for row in range(2)]
    site, keys = small_sites.site(jobs), np.zeros(2)

    def gap_s(seen_s: float, hold_s: float) -> float:
        first, second = replay_site(site, handed=OrderedJobs(keys, hold_s, seen_s)).starts
        assert first.end is not None and second.end == second.start + 2000.0
        return second.start - first.end

    at_once = gap_s(0.0, math.inf)
    assert gap_s(40.0, math.inf) == at_once + 40.0
    assert gap_s(40.0, 1000.0) == at_once  # it is Slurm's again


def test_wide_jobs_are_held_for_one_backfill_pass_only() -> None:
    jobs = [small_sites.job(id="0"), small_sites.job(id="1", tasks=8), small_sites.job(id="2", min_nodes=2)]
    site = small_sites.site([*jobs, small_sites.job(id="3", tasks=4)])

    def holds(wide_nodes: int | None) -> list[float]:
        return np.asarray(ordered_jobs(site, "fcfs", left_to_slurm(site), Handling(600.0, wide_nodes)).hold_s).tolist()

    assert holds(None) == [600.0, 30.0, 30.0, 600.0]  # of six nodes with four CPUs each
    assert holds(3) == [600.0] * 4 and holds(1) == [30.0] * 4


def test_jobs_that_the_script_leaves_alone_are_left_to_slurm() -> None:
    jobs = (
        small_sites.job(id="1"), small_sites.job(id="2_1", array="2", task=1),
        small_sites.job(id="3", dependency="afterok:1"), small_sites.job(id="4", begin=small_sites.T0 + 60.0),
        small_sites.job(id="5", reservation="r"), small_sites.job(id="6", released=small_sites.T0 + 60.0),
        small_sites.job(id="7", partitions=()),
    )  # fmt: skip
    site = small_sites.site(jobs)
    assert left_to_slurm(site).tolist() == [0, 2, 3, 4, 5, 6, 0]
    assert left_to_slurm(site, ["main"]).tolist() == [0, 2, 3, 4, 5, 6, 0]
    other = replace(site, partitions=(*site.partitions, replace(site.partitions[0], name="side", is_default=False)))
    assert left_to_slurm(other, ["side"]).tolist() == [1] * 7 and LEFT[0] == "in another partition"
    with pytest.raises(ConfigError, match="'man' is not a partition; did you mean 'main'"):
        left_to_slurm(site, ["man"])


def test_jobs_are_ordered_by_what_was_expected_of_them_up_to_their_limits() -> None:
    jobs: list[SiteJob] = [small_sites.job(id=f"{row}", limit_min=limit) for row, limit in enumerate((60, 10, None))]
    site = small_sites.site(jobs)
    assert limits_s(site).tolist() == [3600.0, 600.0, 36_000.0]
    by_limit = ordered_jobs(site, "sjf", left_to_slurm(site), Handling(600.0))
    assert by_limit.keys.tolist() == [3600.0, 600.0, 36_000.0]
    expected = np.array([120.0, 9999.0, math.nan])
    assert ordered_jobs(site, "sjf", left_to_slurm(site), Handling(600.0), expected).keys.tolist() == [
        120.0,
        600.0,
        36_000.0,
    ]

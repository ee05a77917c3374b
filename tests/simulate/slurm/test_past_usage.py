"""Usage from runs of the past: that of recorded runs of a real Slurm, and that with which a period began."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.slurm.past_usage import decay_over, period_begin, usage_at_begin, usage_of_runs
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteQos
from tests.simulate.slurm import small_sites
from tests.simulate.slurm.recorded_priorities import samples
from tests.simulate.slurm.small_sites import PARTITION, T0
from tests.support.slurm_recordings import Run, recorded_case

DAY_S = 86_400
#: Seconds of a recorded run after which the phase of the calculations hardly counts.
LATER_S = 2400


def recorded(case: str) -> tuple[Site, dict[int, Array]]:
    """Return a recorded site with its jobs, and the RawUsage of its associations at some seconds after its begin."""
    run = Run(recorded_case(case) / "r1")
    site = read_site(run.folder.parent, run.folder / "sacct.psv.gz")
    rows = {(row.account, row.user): number for number, row in enumerate(site.associations)}
    usage = dict[int, Array]()
    for seconds, tables in samples(run.folder):
        usage[int(run.t0) + seconds] = np.zeros(len(site.associations))
        for account, user, _, _, raw, *_ in tables["sshare"]:
            usage[int(run.t0) + seconds][rows[account.strip(), user]] = float(raw)
    return site, usage


@pytest.mark.parametrize("case", ["plain", "tiers", "arrays", "memory", "preempt"])
def test_usage_of_recorded_runs_is_what_sshare_printed(case: str) -> None:
    site, printed = recorded(case)
    times = [time for time in printed if time > min(printed) + LATER_S]
    errors = [np.abs(usage_of_runs(site, time) - printed[time]).sum() / printed[time].sum() for time in times]
    assert len(times) > 8 and np.mean(errors) < 0.015 and max(errors) < 0.06


@pytest.mark.parametrize("case", ["plain", "tiers", "arrays", "memory", "preempt"])
def test_usage_at_the_begin_of_a_period_follows_from_that_at_its_end(case: str) -> None:
    """The period is the second half of a recording, with all that jobs used that ran on into it.

    So it begins with the first submission of these, with a usage that has decayed to the printed one in the middle.
    """
    site, printed = recorded(case)
    times = sorted(time for time in printed if printed[time][0] > 0)
    middle, end = times[len(times) // 2], times[-2]
    jobs = tuple(job for job in site.jobs if not job.runs or (job.runs[-1].end or math.inf) > middle)
    period = replace(site, jobs=jobs)
    usage = usage_at_begin(period, printed[end], end)
    assert usage is not None and len(jobs) < 0.7 * len(site.jobs)
    decayed = usage * decay_over(site.rules.priority, middle - period_begin(period)) + usage_of_runs(period, middle)
    assert np.abs(decayed - printed[middle]).sum() < 0.1 * printed[middle].sum()


def run(start: int, seconds: int, cpus: int, user: str = "alice", qos: str = "normal") -> SiteJob:
    record = JobRecord("COMPLETED", T0 + start, T0 + start, T0 + start + seconds, "main", ("n0",), cpus)
    return replace(
        small_sites.job(user, id=f"{start}-{seconds}-{cpus}-{user}", qos=qos), submit=T0 + start, runs=(record,)
    )


def place(jobs: tuple[SiteJob, ...], **priority: object) -> Site:
    site = small_sites.site(jobs, qos=(SiteQos("high", usage_factor=0.5),))
    return replace(site, rules=replace(site.rules, priority=replace(site.rules.priority, **priority)))


def test_usage_is_billing_seconds_of_a_user_and_all_accounts_above() -> None:
    site = place((run(0, 1000, 4), run(0, 100, 2, "carol", "high")), half_life_s=0.0)
    names = [row.user or row.account for row in site.associations]
    usage = dict(zip(names, usage_of_runs(site, T0 + 500.0).tolist(), strict=True))
    late = 4 * 300.0 / 2  # of the run that goes on, the mean time since the last calculation does not count
    assert usage == {
        "root": 2100 - late, "science": 2100 - late, "physics": 2000 - late, "chem": 100, "alice": 2000 - late, "bob": 0,
        "carol": 100,
    }  # fmt: skip


def test_usage_is_halved_in_the_half_life_and_weighed_as_the_partition_says() -> None:
    job = replace(run(0, 60, 4), memory_per_cpu_mib=100, gpus_per_node=1)
    heavy = replace(PARTITION, billing_weights={"cpu": 1.0, "mem": 0.01, "gres/gpu": 10.0})
    for flags, billing in (((), 4 + 4 + 10), (("MAX_TRES",), 10), (("MAX_TRES_GRES",), 4 + 10)):
        site = replace(place((job,), half_life_s=float(DAY_S), flags=frozenset(flags)), partitions=(heavy,))
        assert usage_of_runs(site, T0 + 60.0 + DAY_S)[0] == pytest.approx(60 * billing / 2, rel=2e-3)


@pytest.mark.parametrize(("seconds", "lost"), [(1000, 150), (60, 54)])
def test_without_limits_the_last_part_of_a_run_is_lost(seconds: int, lost: float) -> None:
    """Of a minute, four fifths are lost unless a calculation fell into it: 60 - 60**2 / 600."""
    site = place((run(0, seconds, 1),), half_life_s=0.0)
    site = replace(site, rules=replace(site.rules, enforces_limits=False))
    assert usage_of_runs(site, T0 + 9000.0)[0] == pytest.approx(seconds - lost)


runs_of_users = st.tuples(
    st.integers(0, 3 * DAY_S), st.integers(10, 50_000), st.integers(1, 4), st.sampled_from(("alice", "bob", "carol"))
)


@given(
    st.lists(runs_of_users, min_size=1, max_size=12), st.lists(st.integers(0, 10**7), min_size=3, max_size=3),
    st.sampled_from((0.0, 50_000.0, 604_800.0)),
)  # fmt: skip
def test_what_a_site_began_with_is_found_again(
    jobs: list[tuple[int, int, int, str]], began: list[int], half_life_s: float
) -> None:
    site = place(tuple(run(*job) for job in jobs), half_life_s=half_life_s)
    before = np.array([sum(began), sum(began), began[0] + began[1], began[2], *began], np.float64)
    seconds = T0 + 5.0 * DAY_S - period_begin(site)
    remainder = (1.0 - 0.693 / half_life_s) ** seconds if half_life_s else 1.0
    usage = usage_at_begin(site, before * remainder + usage_of_runs(site, T0 + 5.0 * DAY_S), T0 + 5.0 * DAY_S)
    assert usage is not None
    np.testing.assert_allclose(usage, before, rtol=1e-6, atol=1e-3)


def test_usage_that_is_reset_meanwhile_says_nothing_of_the_begin() -> None:
    site = place((run(0, 1000, 4),), usage_reset="MONTHLY")
    assert usage_at_begin(site, np.ones(len(site.associations)), T0 + 5000.0) is None

"""The card's numbers: three sides over the same jobs, verdicts, intervals that hold what was planted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.slurm.ordered_jobs import OrderedJobs
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_effect import Draws
from pilotfish.simulate.slurm.site_outcome import Grouping, SiteOutcome
from pilotfish.simulate.slurm.site_score import (
    GAIN,
    LOSS,
    SAME,
    SMALLER,
    UNCLEAR,
    Sides,
    SiteScore,
    judged,
    score,
)

DAY_S = 86_400.0


def site_of(jobs: int, days: int, users: int = 3) -> Site:
    """Return a site of jobs over some days, of users in turn."""
    rows = (
        SiteJob(f"{row}", "j", f"u{row % users}", "x", "normal", ("batch",), row * days * DAY_S / jobs,
                (JobRecord("COMPLETED", 0.0, 0.0, 1.0),))
        for row in range(jobs)
    )  # fmt: skip
    partition = SitePartition("batch", ("n1",), is_default=True)
    return Site(SiteRules(), (SiteNode("n1", cpus=4, cores=4),), (partition,), jobs=tuple(rows))


def outcome(waits: np.ndarray, days: int) -> SiteOutcome:
    waits = np.asarray(waits, float)
    hours = np.full(24 * days, 3600.0)
    return SiteOutcome(
        waits, waits + 100.0, 1.0 + waits / 100.0, waits * math.nan, hours, None, None, 4, 1, days * DAY_S
    )


def card(site: Site, days: int, recorded: np.ndarray, twin: np.ndarray, pilotfish: np.ndarray) -> SiteScore:
    """Return the card of one replay of each side, with all jobs handed over for 60 s."""
    jobs = len(site.jobs)
    handed, third = OrderedJobs(np.zeros(jobs), 60.0), [outcome(pilotfish, days)]
    return score(site, outcome(recorded, days), [outcome(twin, days)], third, np.zeros(jobs, np.int8), handed)


def test_a_gain_is_against_the_twin_and_never_against_the_record() -> None:
    site, draw = site_of(400, 20), np.random.default_rng(1)
    twin = draw.exponential(600.0, 400) + 100.0
    result = card(site, 20, twin + 5.0, twin, twin - 50.0)
    mean = result.headline.mean
    assert result.headline.verdict == GAIN
    assert mean.difference == pytest.approx(-50.0) and mean.error == pytest.approx(-5.0)
    assert mean.low == pytest.approx(-50.0) and mean.high == pytest.approx(-50.0)
    assert [one.name for one in result.measures] == ["waiting", "turnaround", "slowdown"]
    assert card(site, 20, twin, twin, twin + 50.0).headline.verdict == LOSS
    assert card(site, 20, twin + 51.0, twin, twin - 50.0).headline.verdict == SMALLER
    assert card(site, 20, twin, twin, twin).headline.verdict == SAME


def test_jobs_count_only_if_they_start_on_all_sides_and_since_the_begin() -> None:
    site, waits = site_of(40, 10), np.full(40, 10.0)
    recorded, twin, pilotfish = waits.copy(), waits.copy(), waits.copy()
    recorded[0], twin[1], pilotfish[2] = (math.nan,) * 3
    assert card(site, 10, recorded, twin, pilotfish).handed.compared == 37
    sides, handed = [outcome(waits, 10)], OrderedJobs(np.zeros(40), 60.0)
    result = score(site, sides[0], sides, sides, np.zeros(40, np.int8), handed, since=5 * DAY_S)
    assert (result.handed.seen, result.handed.compared) == (20, 20)


def test_placed_released_and_moved_jobs_are_counted() -> None:
    site, twin = site_of(40, 10), np.full(40, 30.0)
    pilotfish = twin.copy()
    pilotfish[3], pilotfish[4], pilotfish[5] = 930.0, 0.0, 200.0
    twin[4] = 4000.0
    result = card(site, 10, twin, twin, pilotfish)
    assert (result.handed.placed, result.handed.released) == (38.0, 2.0)
    assert (result.later.jobs, [one.id for one in result.later.most]) == (2, ["3", "5"])
    assert (result.earlier.jobs, result.earlier.mean_s) == (1, 4000.0)


@given(st.permutations(range(3)), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_permuting_the_users_permutes_their_rows(order: list[int], seed: int) -> None:
    site, draw = site_of(60, 10), np.random.default_rng(seed)
    twin, pilotfish = draw.exponential(600.0, (2, 60))
    names = {f"u{row}": f"u{other}" for row, other in enumerate(order)}
    renamed = replace(site, jobs=tuple(replace(job, user=names[job.user]) for job in site.jobs))
    before, after = (
        {one.name: one.wait for one in dict(card(one, 10, twin, twin, pilotfish).groups)["user"]}
        for one in (site, renamed)
    )
    assert {names[name]: wait for name, wait in before.items()} == after


def test_the_interval_holds_a_planted_gain_nineteen_times_of_twenty() -> None:
    """The gain differs from day to day and from job to job; its mean is -60 s."""
    days, jobs, trials, draw = 30, 300, 200, np.random.default_rng(7)
    site, day, everyone = site_of(jobs, days), np.arange(jobs) * days // jobs, np.ones(jobs, bool)
    draws, one_class, held = Draws(site, 1, 0), Grouping("", ("all",), np.zeros(jobs, np.int64)), 0
    for _ in range(trials):
        twin = draw.exponential(600.0, jobs) + 1000.0
        gain = 60.0 + draw.normal(0.0, 40.0, days)[day] + draw.normal(0.0, 80.0, jobs)
        (mean,) = draws.means([twin[None], (twin - gain)[None]], everyone, one_class)
        assert mean is not None and mean.low is not None and mean.high is not None
        held += mean.low <= -60.0 <= mean.high
    assert 0.89 * trials <= held <= 0.99 * trials, held


@given(st.floats(-100.0, -0.1), st.floats(0.1, 100.0), st.floats(1.0, 100.0))
def test_the_missing_days_follow_the_square_root_law(difference: float, above: float, days: float) -> None:
    """An interval that is shorter by the root of the days touches 0."""
    mean = Sides(100.0, 100.0, 100.0 + difference, difference - 1.0, above)
    verdict, more = judged(mean, days)
    assert verdict == UNCLEAR and more is not None and more > 0
    half = (above - mean.difference) * math.sqrt(days / (days + more)) if mean.difference else math.nan
    assert half == pytest.approx(abs(mean.difference or 0.0))


def test_a_verdict_needs_an_interval_and_more_than_the_own_error() -> None:
    assert judged(Sides(10.0, 10.0, 5.0), 7.0) == (UNCLEAR, None)
    assert judged(Sides(30.0, 10.0, 5.0, -15.0, 5.0), 7.0) == (SMALLER, None)
    assert judged(Sides(12.0, 10.0, 5.0, -15.0, 5.0), 7.0)[0] == UNCLEAR
    assert judged(Sides(None, 10.0, 5.0, -6.0, -4.0), 7.0) == (GAIN, None)

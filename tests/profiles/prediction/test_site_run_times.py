"""Run times of a site's jobs are drawn from those of like jobs that ended, and known times of running ones count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pilotfish.profiles.prediction.site_run_times import SiteRunTimes
from pilotfish.simulate.slurm.site import JobRecord, SiteJob

HOUR = 3600.0


def job(name: str, **changes: Any) -> SiteJob:
    return replace(SiteJob(name, name, "ann", "lab", "normal", ("main",), submit=0.0, limit_min=120), **changes)


def ended(name: str, run_s: float, end: float, state: str = "COMPLETED") -> SiteJob:
    return job(name, runs=(JobRecord(state, start=end - run_s, end=end),))


def drawn(past: list[SiteJob], jobs: list[SiteJob], ran_s: float = 0.0, draws: int = 200) -> np.ndarray[Any, Any]:
    """Return the draws, [draws, jobs]."""
    rows = len(jobs)
    times = SiteRunTimes(past, jobs, np.full(rows, 2 * HOUR), np.full(rows, ran_s))
    return np.array([times.drawn(seed) for seed in range(draws)])


PAST = [ended("a", 600.0 + 60 * place, 1000.0 * (1 + place)) for place in range(11)]


def test_draws_spread_as_the_run_times_of_like_jobs() -> None:
    low, middle, high = np.quantile(drawn(PAST, [job("a")]), (0.1, 0.5, 0.9))
    assert 570 <= low <= 780 and 780 <= middle <= 1020 and 1020 <= high <= 1400


def test_without_like_jobs_a_job_runs_until_its_limit() -> None:
    assert (drawn([], [job("a")]) == 2 * HOUR).all()
    times = SiteRunTimes([], [job("a")], np.array([HOUR]), np.zeros(1))
    assert (times.learned, times.is_predicted.sum()) == (0, 0)


def test_a_job_that_was_cancelled_or_still_runs_says_nothing() -> None:
    open_job = job("a", runs=(JobRecord("RUNNING", start=5.0),))
    assert (drawn([ended("a", 60.0, 1000.0, "CANCELLED"), open_job], [job("a")]) == 2 * HOUR).all()


def test_a_running_job_takes_longer_than_it_has_run() -> None:
    draws = drawn(PAST, [job("a")], ran_s=1000.0)
    assert (draws >= 1000.0).all() and draws.max() < 2 * HOUR


def test_a_job_that_outlasts_all_before_it_ends_between_now_and_its_limit() -> None:
    draws = drawn(PAST, [job("a")], ran_s=5000.0)
    assert (draws >= 5000.0).all() and (draws <= 2 * HOUR).all() and np.ptp(draws) > 600


def test_no_draw_is_beyond_the_limit() -> None:
    times = SiteRunTimes(PAST, [job("a", limit_min=10)], np.array([600.0]), np.zeros(1))
    assert all(times.drawn(seed)[0] <= 600.0 for seed in range(50))


def test_the_same_seed_draws_the_same_and_counts_what_is_known() -> None:
    times = SiteRunTimes(PAST, [job("a"), job("b", user="bob", account="x")], np.full(2, HOUR), np.zeros(2))
    assert (times.drawn(3) == times.drawn(3)).all() and (times.drawn(3) != times.drawn(4)).any()
    assert (times.learned, times.is_predicted.sum()) == (11, 2)

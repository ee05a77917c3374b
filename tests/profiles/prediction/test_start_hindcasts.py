"""Forecasts for past moments know no more than was known then, and widen the intervals of today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pilotfish.profiles.prediction import start_hindcasts
from pilotfish.profiles.prediction.start_hindcasts import PastForecast, StartBounds, bounds_from_past, moments_before
from pilotfish.simulate.slurm.present import site_at
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteNode, SitePartition, SiteRules

HOUR = 3600.0
NODES = (SiteNode("n1", cpus=4, cores=4),)
SITE = Site(SiteRules(), NODES, (SitePartition("main", ("n1",), is_default=True),))


def job(name: str, submit: float, start: float | None, end: float | None, **changes: Any) -> SiteJob:
    run = JobRecord("COMPLETED" if end else "PENDING", submit, start, end, "main", ("n1",) if start else ())
    plain = SiteJob(name, "sim", "ann", "lab", "normal", ("main",), submit, (run,), limit_min=60, tasks=4, min_cpus=4)
    return replace(plain, **changes)


#: Jobs of ten minutes one after another on one node: each is submitted an hour before it starts.
QUEUE = [job(str(k), 600.0 * k, 600.0 * k + HOUR, 600.0 * k + HOUR + 600.0) for k in range(100)]


def test_a_past_moment_has_the_jobs_of_then_without_their_ends() -> None:
    moment = 600.0 * 20 + HOUR + 10.0
    present, ended = site_at(SITE, QUEUE, moment)
    assert [one.id for one in ended] == [str(k) for k in range(20)]
    running, *waiting = present.jobs
    assert (running.id, running.runs[-1].end, running.runs[-1].state) == ("20", None, "RUNNING")
    assert [one.id for one in waiting] == [str(k) for k in range(21, 27)]
    assert all(one.runs == (JobRecord("PENDING", one.submit),) for one in waiting)


def test_a_job_that_was_held_then_is_not_released() -> None:
    present, _ = site_at(SITE, [job("1", 0.0, 900.0, 1000.0, released=800.0)], 500.0)
    assert (present.jobs[0].released or 0.0) > 1e7
    present, _ = site_at(SITE, [job("1", 0.0, 900.0, 1000.0, released=400.0)], 500.0)
    assert present.jobs[0].released is None


def test_moments_are_on_one_grid_and_have_as_long_a_past() -> None:
    moments, later = (moments_before(QUEUE, now) for now in (60_000.0, 60_010.0))
    assert start_hindcasts.FEWEST <= len(moments) <= start_hindcasts.MOMENTS and moments == later
    assert min(moments) >= 30_000.0 and max(moments) < 60_000.0
    assert moments_before([], 60_000.0) == []


def test_too_many_jobs_are_not_forecast_for_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = set[int]()
    for most in range(100, 3000, 50):
        monkeypatch.setattr(start_hindcasts, "MOST_JOBS", most)
        numbers.add(len(moments_before(QUEUE, 62_000.0)))
    assert 0 in numbers and min(numbers - {0}) >= start_hindcasts.FEWEST


def _missing_by(seconds: float, now: float) -> StartBounds:
    """Return the bounds after forecasts for the past that were too early by so many seconds."""

    def forecast(_site: Site, jobs: Sequence[SiteJob], moment: float) -> list[PastForecast]:
        present, _ = site_at(SITE, jobs, moment)
        starts = [(one.id, one.submit + HOUR - seconds) for one in present.jobs if one.runs[-1].start is None]
        return [PastForecast(name, moment, start - 50.0, start, start + 50.0) for name, start in starts]

    return bounds_from_past(SITE, QUEUE, now, forecast)


def test_forecasts_that_were_too_early_move_the_later_bound_alone() -> None:
    now, times = 55_000.0, np.array([57_000.0])
    bounds = _missing_by(400.0, now)
    assert bounds.starts >= 20
    low, high = bounds.widened(now, times - 50.0, times, times + 50.0)
    assert low.tolist() == [56_950.0] and high == pytest.approx([57_400.0], abs=1.0)


def test_forecasts_that_held_leave_the_interval_as_it_is() -> None:
    now, times = 55_000.0, np.array([57_000.0, np.inf])
    low, high = _missing_by(0.0, now).widened(now, times - 50.0, times, times + 50.0)
    assert low[0] == 56_950.0 and high.tolist() == [57_050.0, np.inf]


def test_a_job_that_still_waits_after_its_bound_has_missed_it() -> None:
    waiting = [job(f"w{k}", 1000.0, None, None) for k in range(12)]

    def forecast(_site: Site, _jobs: Sequence[SiteJob], moment: float) -> list[PastForecast]:
        return [PastForecast(one.id, moment, moment, moment + 10.0, moment + 20.0) for one in waiting]

    bounds = bounds_from_past(SITE, waiting, 9000.0, forecast)
    assert bounds.starts > 0
    _, high = bounds.widened(9000.0, *(np.array([9000.0 + late]) for late in (0.0, 10.0, 20.0)))
    assert high[0] > 9100.0


def test_a_past_that_repeats_itself_is_forecast_as_it_was() -> None:
    bounds = bounds_from_past(SITE, QUEUE, 55_000.0)
    assert bounds.starts > 10
    low, high = bounds.widened(55_000.0, *(np.array([58_000.0]),) * 3)
    assert low[0] <= 58_000.0 <= high[0] and high[0] - low[0] < 2 * HOUR

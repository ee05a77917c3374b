"""A day's number under a model is compared with that under its baseline; equal replays have a ratio of 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pilotfish.learning.contenders import variants
from pilotfish.learning.day_gain import DAY_S, day_gain
from pilotfish.learning.traces import Trace
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed
from tests.simulate.replay.test_replay import workload

DAYS, JOBS = 4, 60


def jobs_of_days() -> Workload:
    draws = np.random.default_rng(1)
    number = np.arange(DAYS * JOBS)
    gaps = np.diff(DAY_S * (number // JOBS) + 60.0 * (number % JOBS), prepend=0.0)
    runs = draws.integers(60, 4000, len(gaps)).astype(float)
    sizes = draws.integers(1, 5, len(gaps))
    return workload([*zip(gaps.tolist(), runs.tolist(), (2.0 * runs).tolist(), sizes.tolist(), strict=True)])


def under(jobs: Workload, order: str) -> Replayed:
    (policy,) = (one.policy for one in variants(predicting=False) if one.name == f"easy:order={order}")
    return replay(jobs, 8, policy)


def test_days_are_compared_and_their_ratios_multiplied() -> None:
    jobs = jobs_of_days()
    trace = Trace("t", "0", jobs, 8)
    learned, baseline = under(jobs, "sjf"), under(jobs, "fcfs")
    gain = day_gain(trace, learned, baseline)
    logs = []
    for day in range(DAYS):
        rows = [row for row in range(len(jobs)) if jobs.submit_time[row] // DAY_S == day]
        means = [
            sum(float(side.start_time[row] - jobs.submit_time[row]) for row in rows) / len(rows) + 1.0
            for side in (learned, baseline)
        ]
        logs.append(math.log(means[0] / means[1]))
    assert (gain.days, gain.jobs) == (DAYS, DAYS * JOBS)
    assert gain.moved == int((learned.start_time != baseline.start_time).sum()) > 0
    ratio, low, high = gain.ratios["wait"]
    assert ratio == pytest.approx(math.exp(sum(logs) / DAYS)) and low < ratio < high < 1.0
    assert gain.ratios["bsld"][0] < 1.0


def test_equal_replays_gain_nothing() -> None:
    jobs = jobs_of_days()
    baseline = under(jobs, "fcfs")
    gain = day_gain(Trace("t", "0", jobs, 8), baseline, baseline)
    assert gain.moved == 0 and gain.longest_wait == 1.0
    assert all(ratio == (1.0, 1.0, 1.0) for ratio in gain.ratios.values())


def test_only_jobs_that_count_are_compared() -> None:
    jobs = jobs_of_days()
    late = jobs.submit_time >= 2 * DAY_S
    gain = day_gain(Trace("t", "0", jobs, 8, late), under(jobs, "sjf"), under(jobs, "fcfs"))
    assert (gain.days, gain.jobs) == (2, 2 * JOBS)

"""The mean under a model is compared with that under its baseline, as in `evaluate`; equal replays have a ratio of 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.learning.contenders import variants
from pilotfish.learning.day_gain import DAY_S, day_gain
from pilotfish.learning.evaluation import Scores, verdict
from pilotfish.learning.objectives import metrics
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


def test_the_ratio_is_that_of_evaluate_and_its_interval_is_over_days() -> None:
    jobs = jobs_of_days()
    trace = Trace("t", "0", jobs, 8)
    learned, baseline = under(jobs, "sjf"), under(jobs, "fcfs")
    gain = day_gain(trace, learned, baseline)
    scored = Scores(
        "t",
        {
            str(id(side)): {key: np.array([value]) for key, value in metrics(side).items()}
            for side in (learned, baseline)
        },
    )
    assert (gain.days, gain.jobs) == (DAYS, DAYS * JOBS)
    assert gain.moved == int((learned.start_time != baseline.start_time).sum()) > 0
    for number in ("bsld", "wait"):
        ratio, low, high = gain.ratios[number]
        expected = verdict(scored, [str(id(learned))], str(id(baseline)), number).ratio
        assert ratio == pytest.approx(expected, rel=1e-3) and low < ratio < high < 1.0


def test_a_day_counts_by_its_jobs() -> None:
    """One job on the first day waits 0 s under both; two on the second wait 30 s in all, and 90 s."""
    late = [(0.0, 10.0, 10.0, 8), (DAY_S, 20.0, 20.0, 8)]
    first = workload([*late, (0.0, 20.0, 20.0, 8)])
    replays = [replay(first, 8, one.policy) for one in variants(predicting=False)[:1]]
    starts = np.array([0.0, DAY_S, DAY_S + 20.0])
    learned, baseline = (
        replace(replays[0], start_time=starts + np.array([0.0, *waits])) for waits in ((0.0, 10.0), (10.0, 60.0))
    )
    ratio, low, high = day_gain(Trace("t", "0", first, 8), learned, baseline).ratios["wait"]
    assert ratio == pytest.approx((30.0 / 3 + 1.0) / (90.0 / 3 + 1.0))
    assert (low, high) == (pytest.approx((30.0 / 2 + 1.0) / (90.0 / 2 + 1.0)), 1.0)


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

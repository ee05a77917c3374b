"""Run times predicted in a replay: nothing that ends later counts, and what is learned is the schedule's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes, RunTimeAccuracy, accuracy
from pilotfish.profiles.prediction.predictors import UNKNOWN_SHARE, LastTwo
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Conservative, Easy, Policy
from pilotfish.simulate.replay.replay import replay

TIMES = st.integers(0, 40).map(float)


@st.composite
def traces(draw: st.DrawFn) -> Workload:
    """Return jobs of few users, who ask for 0 s (nothing) to 100 s."""
    rows = draw(st.lists(st.tuples(TIMES, TIMES, st.integers(1, 6), st.integers(0, 2), TIMES), min_size=2, max_size=30))
    gap, run, size, user, asked = (np.array(column) for column in zip(*rows, strict=True))
    asked = asked * 2.5
    more = {"user": user, "requested_time": asked, "executable": user % 2}
    walltime = np.where(asked > 0, asked, run)
    return Workload("w", np.arange(len(rows)), np.cumsum(gap / 8), run, walltime, size.astype(np.int64), more)


@given(traces(), st.sampled_from([Easy(), Easy("sjf"), Conservative()]), st.data())
@settings(max_examples=150, deadline=None)
def test_no_prediction_depends_on_what_ends_later(jobs: Workload, policy: Policy, data: Any) -> None:
    """Jobs that have not ended by a time run longer or shorter, and predictions until then stay the same."""
    first = OnlineRunTimes(jobs)
    done = replay(jobs, 6, policy, run_times=first)
    now = data.draw(st.sampled_from(jobs.submit_time.tolist()))
    asked = jobs.more["requested_time"] > 0  # without a request, the run time is the walltime, which is known
    later = asked & (done.finish_time >= now)
    longer = np.array(data.draw(st.lists(TIMES, min_size=len(jobs), max_size=len(jobs))))
    run = np.where(later, np.maximum(now - done.start_time, 0.0) + longer, jobs.run_time)
    second = OnlineRunTimes(replace(jobs, run_time=run))
    again = replay(replace(jobs, run_time=run), 6, policy, run_times=second)
    until = jobs.submit_time <= now
    assert np.array_equal(first.made[until], second.made[until])
    before = done.start_time < now
    assert np.array_equal(done.start_time[before], again.start_time[before])
    assert (first.made <= jobs.walltime).all() and (first.made >= 0.0).all()


def test_what_is_learned_is_how_long_jobs_ran_in_this_schedule() -> None:
    """The first two end in the simulated schedule at 5 s and 10 s; the recorded waiting times do not count."""
    more = {"user": np.array([1, 1, 1, 1, 2]), "requested_time": np.array([5.0, 90.0, 90.0, 90.0, 90.0]),
            "wait_time": np.full(5, 1000.0)}  # fmt: skip
    jobs = Workload("w", np.arange(5), np.array([0.0, 0, 10, 11, 11]), np.array([50.0, 10, 1, 1, 1]),
                    more["requested_time"], np.full(5, 1), more)  # fmt: skip
    online = OnlineRunTimes(jobs, LastTwo())
    replay(jobs, 2, run_times=online)
    assert online.made.tolist() == [5.0, 90.0, 90.0, 7.5, 90.0]


def test_jobs_without_a_request_are_predicted_by_others_and_counted() -> None:
    more = {"requested_time": np.array([-1.0, 0.0, 100.0])}
    jobs = Workload(
        "w", np.arange(3), np.arange(3.0), np.full(3, 50.0), np.array([50.0, 50.0, 100.0]), np.full(3, 1), more
    )
    online = OnlineRunTimes(jobs)
    assert online.unasked == 2 and online.expected(0) is None and online.expected(2) == UNKNOWN_SHARE * 100.0
    online.ended(0)
    assert online.expected(1) == 50.0 and OnlineRunTimes(replace(jobs, more={})).unasked == 0


def test_accuracy() -> None:
    expected = np.array([10.0, 120.0, 20.0, np.inf, np.nan, 0.0])
    actual = np.array([10.0, 100.0, 80.0, 5.0, 5.0, 0.5])
    assert accuracy(expected, actual) == RunTimeAccuracy(4, pytest.approx(1.1), 0.75, 0.5)
    assert accuracy(expected[3:5], actual[3:5]) is None

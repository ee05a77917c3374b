"""Predictors on traces, over the same jobs and with unknown values."""

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.profiles.prediction.evaluate import PREDICTORS, evaluate, traced
from pilotfish.profiles.prediction.predictors import (
    LIMIT,
    TRAITS,
    UNKNOWN_SHARE,
    Estimate,
    History,
    LastTwo,
    Prediction,
    SubmittedJob,
)
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import Workload
from tests.profiles.prediction.generated_users import habitual


def without(workload, *columns):
    return replace(workload, more={name: column for name, column in workload.more.items() if name not in columns})


@pytest.mark.parametrize("seed", range(3))
def test_history_beats_the_estimate_and_the_last_two_where_users_repeat_themselves(seed):
    found = evaluate(traced(habitual(seed=seed)), list(PREDICTORS)).scores
    assert found["history"].relative < 0.5
    assert found["history"].mean_error < found["last-two"].mean_error
    assert found["history"].underpredicted <= found["last-two"].underpredicted
    assert found["estimate"].relative == 1 and found["estimate"].underpredicted == 0


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_the_share_of_covered_jobs_is_the_quantile(quantile):
    found = evaluate(traced(habitual(6000)), ["history"], quantile).scores["history"]
    assert 1 - found.underpredicted == pytest.approx(quantile, abs=0.06)


def test_intervals_hold_what_they_promise_for_most_users():
    found = evaluate(traced(habitual(6000)), list(PREDICTORS)).scores
    assert found["estimate"].intervals is None and found["last-two"].intervals is None
    intervals = found["history"].intervals
    assert 0.76 <= intervals.inside <= 0.87 and intervals.width > 1 and 0 <= intervals.no_better < 0.5
    assert intervals.users == 20 and intervals.held >= intervals.calibrated >= 15


def test_while_no_job_has_ended_a_share_of_the_limit_is_expected():
    job = SubmittedJob((None,) * len(TRAITS), 100.0)
    assert History().predict(job) == Prediction(UNKNOWN_SHARE * 100.0, LIMIT, 0)
    assert Estimate().predict(job) == LastTwo().predict(job) == Prediction(100.0, LIMIT, 0)


def test_scores_match_their_definitions():
    trace = traced(habitual(300))
    found = evaluate(trace, ["estimate", "history"])
    errors = np.abs(np.array([job.limit for job in trace.jobs]) - trace.values)
    assert found.jobs == 300
    assert found.scores["estimate"].mean_error == pytest.approx(errors.mean())
    assert found.scores["estimate"].median_error == pytest.approx(np.median(errors))
    assert sum(found.scores["history"].kinds.values()) == pytest.approx(1)


def test_memory_is_predicted_in_bytes_over_recorded_jobs():
    workload = habitual(500)
    workload.more["used_memory"][::7] = -1
    found = evaluate(traced(workload, "memory"), list(PREDICTORS))
    assert found.jobs == 500 - len(range(0, 500, 7))
    assert found.scores["history"].relative < 0.5
    assert found.scores["estimate"].mean_error > 1024
    with pytest.raises(ConfigError, match="memory"):
        traced(replace(workload, more={**workload.more, "used_memory": np.full(500, 1024.0)}), "memory")


def test_silent_predictors_are_named_and_the_others_scored():
    found = evaluate(traced(without(habitual(500), "user", "requested_time")), list(PREDICTORS))
    assert found.silent == ["estimate", "last-two"]
    assert found.jobs > 400 and found.scores["history"].relative is None
    nothing = evaluate(traced(without(habitual(500), "requested_time")), ["estimate"])
    assert (nothing.jobs, nothing.scores) == (0, {})


def test_jobs_without_an_estimate_are_not_compared():
    workload = habitual(500)
    workload.more["requested_time"][:100] = -1
    found = evaluate(traced(workload), list(PREDICTORS))
    assert (found.jobs, found.left_out) == (400, 100)


def test_constant_columns_are_ignored():
    workload = habitual(200)
    same = {"executable": np.ones(200), "group": np.full(200, -1.0)}
    with_them = evaluate(traced(replace(workload, more={**workload.more, **same})), ["history"])
    assert with_them == evaluate(traced(workload), ["history"])
    assert not any("executable" in kind for kind in with_them.scores["history"].kinds)


def test_a_batch_begins_after_a_pause_of_its_user_or_a_day():
    times = np.array([0.0, 10.0, 600.0, 1900.0, *(5000.0 + 1000.0 * i for i in range(90))])
    users = np.array([1, 2, 1, 1, *[3] * 90])
    more = {"user": users, "requested_time": np.arange(94.0) + 1}
    made = Workload("w", np.arange(94), times, np.full(94, 1.0), more["requested_time"], np.full(94, 1), more)
    found = [job.batch for job in traced(made).jobs]
    assert found[:4] == [0, 1, 0, 3] and set(found[4:]) == {4, 91}


def test_unknown_waits_are_counted():
    assert traced(habitual(50, waits=False)).unknown_waits == 50
    assert traced(habitual(50)).unknown_waits == 0

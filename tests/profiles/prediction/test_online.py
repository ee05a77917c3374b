"""Laws of prediction: no use of later facts, never above the limit, and valid quantiles."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.prediction.evaluate import TracedJobs, predict_all
from pilotfish.profiles.prediction.predictors import (
    LATEST_RUNS,
    LIMIT,
    RUN_AGEING,
    TRAITS,
    Estimate,
    History,
    LastTwo,
    SubmittedJob,
    weighted_quantiles,
)

PREDICTORS = [Estimate, LastTwo, History]
times = st.integers(0, 30).map(float)
few = st.integers(0, 2) | st.none()


def job(user=1, limit=100.0, **traits):
    known = {"user": user, "size": 1, "walltime": limit, **traits}
    return SubmittedJob(tuple(known.get(name) for name in TRAITS), limit)


@st.composite
def traces(draw):
    rows = draw(st.lists(st.tuples(times, times, times, few, few, st.sampled_from([None, 5.0, 40.0])), min_size=1))
    rows.sort(key=lambda row: row[0])
    submit, wait, run = (np.array(column) for column in list(zip(*rows, strict=True))[:3])
    jobs = [job(user, limit, executable=program) for *_, user, program, limit in rows]
    return TracedJobs(jobs, submit, submit + wait + run, run)


@pytest.mark.parametrize("predictor", PREDICTORS)
@given(data=st.data())
def test_later_facts_change_no_prediction(predictor, data):
    observed = data.draw(traces())
    at = data.draw(st.integers(0, len(observed.jobs) - 1))
    now = observed.asked_at[at]
    later = observed.known_at >= now
    longer = np.array(data.draw(st.lists(times, min_size=len(later), max_size=len(later))))
    changed = replace(
        observed,
        known_at=np.where(later, now + longer, observed.known_at),
        values=np.where(later, longer, observed.values),
    )
    before, after = predict_all(observed, predictor()), predict_all(changed, predictor())
    till_then = int((observed.asked_at <= now).sum())
    assert before[:till_then] == after[:till_then]


@pytest.mark.parametrize("predictor", PREDICTORS)
@given(observed=traces())
def test_predictions_keep_the_limit_and_have_a_reason(predictor, observed):
    for asked, made in zip(observed.jobs, predict_all(observed, predictor()), strict=True):
        if made is None:
            assert asked.limit is None
            continue
        assert made.value >= 0
        assert (made.jobs == 0) == (made.kind == LIMIT)
        if asked.limit is not None:
            assert max(made.value, made.high or 0) <= asked.limit
        if made.low is not None:
            assert made.low <= made.value <= made.high


@given(observed=traces())
def test_a_higher_quantile_predicts_no_less(observed):
    low, high = (predict_all(observed, History(quantile)) for quantile in (0.3, 0.8))
    for one, other in zip(low, high, strict=True):
        assert (one is None) == (other is None)
        assert one is None or one.value <= other.value


@given(st.lists(times, min_size=1, max_size=LATEST_RUNS), st.floats(0.01, 0.99))
def test_a_bound_is_the_least_value_with_its_share_of_weight(values, wanted):
    (found,) = weighted_quantiles(values, [wanted])
    weights = RUN_AGEING ** np.arange(1, len(values) + 1)
    whole = weights.sum() + 1
    assert weights[np.array(values) < found].sum() / whole < wanted + 1e-9
    assert weights[np.array(values) <= found].sum() / whole >= wanted - 1e-9 or found == max(values)


def test_only_jobs_that_ended_before_submission_count():
    jobs = [job(), job(), job()]
    zero = np.zeros(3)
    observed = TracedJobs(jobs, np.array([0.0, 0.0, 5.0]), np.array([0.0, 5.0, 5.0]), zero)
    made = predict_all(observed, History())
    assert [one.jobs for one in made] == [0, 0, 1]


def test_changed_habits_are_followed():
    history = History(0.5)
    for batch, value in enumerate([10.0] * 100 + [50.0] * 10):
        history.learn(replace(job(), batch=batch), value)
    assert history.predict(job()).value == 50.0


def test_the_closest_kind_with_enough_jobs_answers_and_says_so():
    history = History(0.6)
    for program, value in (("a", 10.0), ("b", 20.0), ("b", 21.0), ("b", 22.0)):
        history.learn(job(executable=program), value)
    known = history.predict(job(executable="b"))
    assert (known.value, known.kind, known.jobs) == (22.0, "user, executable, size, walltime", 3)
    assert history.predict(job(executable="a")).kind == "user, size, walltime"
    assert history.predict(job(executable="c", size=2)).kind == "user, walltime"
    assert history.predict(job(user=2)).kind == "size, walltime"
    assert history.predict(job(user=2, limit=1000.0)).kind == "any job"


def test_without_enough_jobs_the_closest_kind_with_any_answers():
    history = History(0.9)
    history.learn(job(executable="a"), 10.0)
    history.learn(job(executable="b"), 90.0)
    made = history.predict(job(executable="a"))
    assert (made.value, made.kind, made.jobs) == (10.0, "user, executable, size, walltime", 1)


def test_unknown_users_get_a_share_of_their_limit():
    history = History(0.5)
    history.learn(job(user=1, limit=100.0), 20.0)
    assert history.predict(job(user=2, limit=1000.0, size=3)).value == pytest.approx(200.0)
    assert history.predict(job(user=2, limit=None)) is None


def test_last_two_is_as_published():
    last_two = LastTwo()
    last_two.learn(job(), 10.0)
    assert last_two.predict(job()).value == 100.0
    for value in (30.0, 50.0):
        last_two.learn(job(), value)
    made = last_two.predict(job())
    assert (made.value, made.jobs, made.kind) == (40.0, 2, "user")
    assert last_two.predict(job(limit=35.0)).value == 35.0
    assert last_two.predict(job(user=2)).value == last_two.predict(job(user=None)).value == 100.0


@pytest.mark.parametrize("quantile", [0, 1, -1, float("nan")])
def test_a_quantile_is_between_0_and_1(quantile):
    with pytest.raises(ValueError, match="quantile"):
        History(quantile)

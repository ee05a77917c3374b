"""The constants of prediction beat the last-two predictor in every scenario of synthetic users."""

import numpy as np
import pytest

from benchmarks.prediction_constants import choose
from benchmarks.synthetic_users import SCENARIOS, synthetic_users
from pilotfish.profiles.prediction.evaluate import PREDICTORS, evaluate, traced


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_history_beats_the_last_two_jobs_in_error_and_underprediction(scenario):
    found = evaluate(traced(synthetic_users(scenario, 1500, 11)), list(PREDICTORS)).scores
    assert found["history"].relative < 0.5
    assert found["history"].mean_error < found["last-two"].mean_error
    assert found["history"].underpredicted < found["last-two"].underpredicted


def test_synthetic_users_depend_on_the_seed_and_match_the_scenario():
    one, same, other = (synthetic_users(SCENARIOS[1], 500, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.run_time, same.run_time) and not np.array_equal(one.run_time, other.run_time)
    assert (one.run_time <= one.more["requested_time"]).all() and (np.diff(one.submit_time) >= 0).all()
    assert len(np.unique(one.more["executable"])) > len(np.unique(one.more["user"])) > 20
    assert np.unique(one.more["requested_time"]).size < 40  # round values


def test_choose_takes_the_constants_that_are_least_often_too_low_among_the_near_best_eligible_ones():
    worths = {
        (0.5, 0.0, 1.0): [(0.2, 0.06), (0.2, -0.2)],  # too low too often in one scenario
        (0.6, 0.0, 1.0): [(0.2, 0.03), (0.2, -0.02)],  # too low too often on average
        (0.7, 0.0, 1.0): [(0.4, 0.02), (0.4, -0.04)],
        (0.7, 0.5, 1.0): [(0.41, -0.1)] * 2,
        (0.7, 0.5, 0.9): [(0.5, -0.2)] * 2,
    }
    assert choose(worths) == [(0.7, 0.5, 1.0), (0.7, 0.0, 1.0), (0.7, 0.5, 0.9)]

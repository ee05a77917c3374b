"""The constants in use keep what they were chosen for, on made-up users of several kinds."""

import numpy as np
import pytest

from pilotfish.profiles.prediction.evaluate import PREDICTORS, evaluate
from pilotfish.profiles.prediction.trace import traced
from tests.benchmarks.choosing import choose
from tests.benchmarks.habits import WORLDS, made_up


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_nearer_than_the_last_two_and_less_often_too_low(world):
    found = evaluate(traced(made_up(world, 1500, 11)), list(PREDICTORS)).scores
    assert found["history"].relative < 0.5
    assert found["history"].mean_error < found["last-two"].mean_error
    assert found["history"].underpredicted < found["last-two"].underpredicted


def test_users_are_made_up_from_a_seed_and_are_as_the_world_says():
    one, same, other = (made_up(WORLDS[1], 500, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.run_time, same.run_time) and not np.array_equal(one.run_time, other.run_time)
    assert (one.run_time <= one.more["requested_time"]).all() and (np.diff(one.submit_time) >= 0).all()
    assert len(np.unique(one.more["executable"])) > len(np.unique(one.more["user"])) > 20
    assert np.unique(one.more["requested_time"]).size < 40  # round values


def test_the_one_that_forgets_fastest_of_the_near_best_that_are_eligible_is_chosen():
    worths = {
        (0.5, 50, 1.0): [(0.2, 0.01), (0.2, -0.2)],  # too low too often in one world
        (0.7, 50, 1.0): [(0.4, 0.0)] * 2,
        (0.7, 25, 1.0): [(0.41, -0.1)] * 2,
        (0.7, 10, 1.0): [(0.5, -0.1)] * 2,
    }
    assert choose(worths) == [(0.7, 25, 1.0), (0.7, 50, 1.0), (0.7, 10, 1.0)]

"""The face for gymnasium passes its checker, and shows what the environment shows."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from importlib.metadata import entry_points

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")

from gymnasium.utils.env_checker import check_env

from pilotfish.learning.environments.gymnasium_face import GymnasiumFace
from pilotfish.learning.environments.orders import DECIDES, OrderEnvironment
from pilotfish.learning.environments.pairs import PairEnvironment
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment
from pilotfish.simulate.errors import ConfigError, PolicyError
from tests.learning.environments import test_orders, test_rule_choice
from tests.learning.environments.test_pairs import small


@pytest.mark.parametrize("due", ["any", "largest", "first", "random"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_passes_the_checker(due, seed) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(small(due=due, seed=seed, rows=16).as_gymnasium(), skip_render_check=True)


@pytest.mark.parametrize("decides", DECIDES)
@pytest.mark.parametrize("seed", [0, 1])
def test_an_order_passes_the_checker(decides, seed) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        face = test_orders.small(decides, seed=seed, rows=16).as_gymnasium()
        check_env(face, skip_render_check=True)
    observations, info = face.reset(seed=1)
    while not face.world.done[0]:
        assert face.observation_space.contains(observations)
        observations, _, ended, _, info = face.step(face.action_space.sample(info["action_mask"]))
    assert ended and not info["action_mask"].any() and (observations["jobs"] == 0.0).all()


@pytest.mark.parametrize("observation", ["minimal", "small", "normal"])
@pytest.mark.parametrize("options", [{}, {"one": True}, {"always": True, "objective": "energy-delay"}])
def test_a_choice_of_rules_passes_the_checker(observation, options) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        face = test_rule_choice.small(observation=observation, **options).as_gymnasium()
        check_env(face, skip_render_check=True)
    observations, info = face.reset(seed=1)
    while not face.world.done[0]:
        assert face.observation_space.contains(observations)
        observations, _, ended, _, info = face.step(face.action_space.sample(info["action_mask"]))
    assert ended and not info["action_mask"].any() and (observations["state"][-21:-1] == 0.0).all()


def test_an_episode_ends_with_its_last_observation_and_an_empty_mask() -> None:
    face, total = small(rows=16).as_gymnasium(), 0.0
    observation, info = face.reset(seed=4)
    for decision in range(40):
        assert face.observation_space.contains(observation)
        assert (info["action_mask"] == face.action_masks()).all() and face.action_masks().any()
        observation, reward, ended, truncated, info = face.step(face.action_space.sample(info["action_mask"]))
        total += reward
        assert (ended, truncated) == (decision == 39, False)
    assert not info["action_mask"].any() and (observation["jobs"] == [0.0, 1.0, 1.0, 0.0]).all()
    assert total == pytest.approx(face.world.last_return[0])
    with pytest.raises(PolicyError, match="the episode is over"):
        face.step(0)
    again, _ = face.reset(seed=4)
    assert not (again["jobs"] == [0.0, 1.0, 1.0, 0.0]).all()


def test_an_observation_stays_as_it_was() -> None:
    face = GymnasiumFace(small(rows=16))
    observation, _ = face.reset(options={"start": 3})
    before = copy.deepcopy(observation)
    face.step(face.action_space.sample())
    assert all((observation[name] == before[name]).all() for name in before)
    assert (face.reset(options={"start": 3})[0]["jobs"] == before["jobs"]).all()


def test_a_forbidden_action_is_an_error() -> None:
    face = GymnasiumFace(small())
    face.reset()
    with pytest.raises(PolicyError, match="forbids"):
        face.step(int(np.flatnonzero(~face.action_masks())[0]))
    with pytest.raises(ConfigError, match="1, for gymnasium"):
        GymnasiumFace(small(copies=2))


def test_the_space_is_copied_without_the_environment() -> None:
    space = GymnasiumFace(small(rows=16)).action_space
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == gymnasium.spaces.Discrete(320)


def test_a_package_that_is_missing_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, GymnasiumFace.__module__)
    with pytest.raises(ConfigError, match=r"gymnasium is not installed .allowed: pip install 'pilotfish.rl.'"):
        small().as_gymnasium()


def test_it_is_found_by_its_entry_point() -> None:
    found_by_name = entry_points(group="pilotfish.environments")
    assert found_by_name["pairs"].load() is PairEnvironment
    assert found_by_name["rule-choice"].load() is RuleChoiceEnvironment
    assert found_by_name["orders"].load() is OrderEnvironment

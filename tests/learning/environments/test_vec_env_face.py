"""The face for stable-baselines3 passes its checks, and MaskablePPO learns through it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

REASON = "stable-baselines3 and sb3-contrib, of the extra rl, are not installed"
pytest.importorskip("sb3_contrib", reason=REASON)

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

from pilotfish.learning.environments.vec_env_face import VecEnvFace
from tests.docs.recipes import RECIPES, Create, steps
from tests.learning.environments.pair_worlds import any_action
from tests.learning.environments.test_pairs import small
from tests.learning.environments.test_rule_choice import small as rule_choices


def test_it_shows_what_the_environment_shows() -> None:
    face = small(copies=3, rows=16).as_vec_env()
    face.seed(7)
    observations, plain = face.reset(), small(copies=3, rows=16, seed=7)
    assert is_masking_supported(face) and not face.has_attr("nothing")
    random = np.random.default_rng(0)
    for decision in range(45):
        assert all((observations[name] == part).all() for name, part in plain.observations.items())
        assert (get_action_masks(face) == plain.mask).all()
        copied, actions = {name: part.copy() for name, part in observations.items()}, any_action(plain, random)
        plain.step(actions)
        before = observations
        observations, rewards, ended, infos = face.step(actions)
        assert all((before[name] == part).all() for name, part in copied.items())
        assert rewards.dtype == np.float32 and rewards == pytest.approx(plain.reward)
        assert (ended == plain.done).all() and ended.all() == (decision == 39)
    assert infos == [{}, {}, {}]


def test_the_last_step_of_an_episode_says_how_it_ended() -> None:
    world = small(copies=2, rows=16, episode=3)
    face = VecEnvFace(world)
    face.reset()
    for _ in range(3):
        _, _, ended, infos = face.step(world.mask.argmax(axis=1))
    assert ended.all() and [info["episode"]["l"] for info in infos] == [3, 3]
    assert [info["episode"]["r"] for info in infos] == world.last_return.tolist()
    for number, info in enumerate(infos):
        assert face.observation_space.contains(info["terminal_observation"])
        assert (info["terminal_observation"]["nodes"] == world.last_nodes[number]).all()


def test_masked_ppo_learns_to_choose_rules() -> None:
    world = rule_choices(jobs=10, copies=4, observation="small")
    face = world.as_vec_env()
    MaskablePPO("MultiInputPolicy", face, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(128)
    face.reset()
    ended = np.zeros(4, bool)
    while not ended.any():
        _, _, ended, infos = face.step(any_action(world, np.random.default_rng(0)))
    for number in np.flatnonzero(ended).tolist():
        assert face.observation_space.contains(infos[number]["terminal_observation"])
        assert infos[number]["episode"]["r"] == world.last_return[number] < 0.0


@pytest.mark.real  # save() starts uname
def test_masked_ppo_learns_and_is_kept(tmp_path) -> None:
    face = VecEnvFace(small(copies=4, rows=8, episode=16))
    model = MaskablePPO("MultiInputPolicy", face, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    model.save(tmp_path / "m.zip")
    action, _ = MaskablePPO.load(tmp_path / "m.zip").predict(
        face.reset(), action_masks=get_action_masks(face), deterministic=True
    )
    assert face.world.mask[np.arange(4), action].all()


@pytest.mark.real
def test_the_example_of_the_guide_runs(tmp_path) -> None:
    (example,) = (
        step
        for step in steps((RECIPES / "environment.md").read_text())
        if isinstance(step, Create) and "ppo" in step.path
    )
    (tmp_path / example.path).write_text(example.text)
    subprocess.run([sys.executable, example.path], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "agent.zip").is_file()

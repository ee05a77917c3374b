"""A replay under a learned choice of rules is the episode of its training, and with one pair it is that policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.learning.environments import irmasim
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.learned.rule_chooser import RuleNetwork
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.queue_policies.policy_specs import Pairs
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.worlds.contended import ContendedReplay
from pilotfish.simulate.world.known_run_times import ACTUAL
from tests.support.rule_models import rule_model

LAB = irmasim.cluster("heterogeneous")
SMALL = Cluster("small", (LAB.nodes[0], LAB.nodes[-1]))


@given(st.integers(0, 99), st.integers(1, 40), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_it_is_the_episode_of_the_environment(seed: int, size: int, one: bool, always: bool) -> None:
    jobs, model = irmasim.batch(size, "heterogeneous", seed), rule_model("minimal", seed, one=one, always=always)
    policy = model.policy("learned:a.pfmodel.json")
    replayed = replay(jobs, machine_of(SMALL), policy)
    world, starts = RuleChoiceEnvironment([jobs], SMALL, model.options), np.zeros(0)
    while not world.done[0]:
        starts = np.fmax(starts, world.schedule()[0]) if len(starts) else world.schedule()[0]
        world.step([policy.action(world.state[0], world.mask[0])])
    assert isinstance(replayed, ContendedReplay)
    assert replayed.joules == pytest.approx(float(world.last_joules[0]), rel=1e-9)
    span = float(replayed.finish_time.max() - replayed.workload.submit_time.min())
    assert span == pytest.approx(float(world.last_makespan[0]), rel=1e-12)
    is_started = ~np.isnan(starts)
    assert replayed.start_time[is_started].tolist() == starts[is_started].tolist()


@given(
    st.integers(0, 99),
    st.sampled_from(["first", "shortest", "low_mem_bw"]),
    st.sampled_from(["high_core", "low_power"]),
)
@settings(max_examples=40, deadline=None)
def test_one_pair_is_that_policy(seed: int, job: str, core: str) -> None:
    jobs, machine = irmasim.batch(40, "heterogeneous", seed), machine_of(SMALL)
    policy = rule_model("minimal", seed, [(job, core)]).policy("learned:a.pfmodel.json")
    ours, theirs = (replay(jobs, machine, one) for one in (policy, Pairs(job, core)))
    assert ours.start_time.tolist() == theirs.start_time.tolist()
    assert ours.finish_time.tolist() == theirs.finish_time.tolist()


def test_scores_are_those_of_a_plain_network() -> None:
    model, state = rule_model("small", 4), np.linspace(0.0, 1.0, 25, dtype=np.float32)
    values = state.astype(float).tolist()
    for number, (weights, biases) in enumerate(model.layers, 1):
        sums = [
            bias + sum(value * row[i] for value, row in zip(values, weights, strict=True))
            for i, bias in enumerate(biases)
        ]
        values = [sum_ if sum_ > 0.0 or number == len(model.layers) else 0.01 * sum_ for sum_ in sums]
    assert RuleNetwork(model.layers).scores(state) == pytest.approx(values, rel=1e-6)


def test_what_it_cannot_replay_is_one_error() -> None:
    jobs, policy = irmasim.batch(5, "heterogeneous", 1), rule_model("small").policy("learned:a.pfmodel.json")
    with pytest.raises(
        ConfigError, match="sees a machine with processors: 2, cores: 6; this one has processors: 2, cores: 8"
    ):
        replay(jobs, machine_of(SMALL), policy)
    blind = rule_model("minimal").policy("learned:a.pfmodel.json")
    with pytest.raises(ConfigError, match="run times: actual"):
        replay(jobs, machine_of(SMALL), blind, run_times=ACTUAL)
    with pytest.raises(ConfigError, match=r"no engine replays learned:a\.pfmodel\.json where decisions take time"):
        replay(jobs, machine_of(SMALL), blind, decision_time=1.0)

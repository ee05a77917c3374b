"""A training of agents that choose rules: windows, and the same to the bit where it is resumed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pilotfish.learning.agents.rule_agents import RuleTraining
from pilotfish.learning.environments import irmasim
from pilotfish.learning.rule_training import JUDGED, PLAYED, RuleLearning, pair_costs, training_worlds, windows
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.world.rule_options import VOID, RuleOptions

OPTIONS = RuleOptions("energy", "minimal", (("first", "high_core"), ("first", "low_power"), VOID))


def learning(seed: int, *, critic: bool = True) -> RuleLearning:
    worlds = training_worlds(irmasim.batch(30, "heterogeneous", 1), irmasim.cluster("heterogeneous"), OPTIONS, 8)
    return RuleLearning(*worlds, RuleTraining(6, 4, 0.05, critic=critic, paired=True), seed)


@pytest.mark.parametrize("critic", [True, False])
def test_a_resumed_training_is_the_same_to_the_bit(critic: bool) -> None:
    unbroken, begun, resumed, other = (learning(seed, critic=critic) for seed in (1, 1, 1, 2))
    for until in (2, 4):
        unbroken.run(until)
        other.run(until)
    begun.run(2)
    resumed.restore(json.loads(json.dumps(begun.state())))
    assert resumed.state() == begun.state()
    resumed.run(4)
    assert resumed.state() == unbroken.state() != other.state()


def test_what_is_kept_is_the_best_that_was_judged() -> None:
    training, values = learning(1), []
    for until in range(1, 7):
        training.run(until)
        values.append(training.value)
        assert training.value == min(values) and len(training.course) == until


def test_windows_begin_at_zero_and_are_the_same_for_all_seeds() -> None:
    jobs = irmasim.batch(30, "heterogeneous", 1)
    for window in windows(jobs, 8, 40, 0):
        assert len(window) == 8 and window.submit_time[0] == 0.0
        first = int(window.id[0]) - 1
        expected = jobs.submit_time[first : first + 8] - jobs.submit_time[first]
        assert window.submit_time.tolist() == expected.tolist()
    world, judging = training_worlds(jobs, irmasim.cluster("heterogeneous"), OPTIONS, 8)
    assert (len(world.workloads), len(judging.workloads)) == (PLAYED, JUDGED)
    with pytest.raises(ConfigError, match="at least 32, two episodes"):
        windows(jobs, 16, 1, 0)


def test_costs_of_pairs_are_those_of_their_episodes() -> None:
    machine, jobs = irmasim.cluster("heterogeneous"), [irmasim.batch(9, "heterogeneous", seed) for seed in (1, 2)]
    for number, workload in enumerate(jobs):
        both, alone = pair_costs(jobs, machine, OPTIONS), pair_costs([workload], machine, OPTIONS)
        assert set(both) == set(OPTIONS.pairs)
        assert all(both[pair][number] == alone[pair][0] > 0.0 for pair in both)
    assert not np.array_equal(*both.values())

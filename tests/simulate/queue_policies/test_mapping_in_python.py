"""The mapping policies in Python give the schedules of the compiled ones, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.interface import Start, Wake
from pilotfish.simulate.queue_policies.policy_facts import PolicySpec
from pilotfish.simulate.queue_policies.policy_specs import ON_NODES, Saving, parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.world_parts import Part
from tests.simulate.replay.worlds.test_shared_nodes import ALIKE, CAPS, CLUSTERS, ROWS, STREAMS, Recent, lab, workload

NAMES = st.sampled_from(list(ON_NODES))


def agree(jobs: Workload, cluster: Cluster, policy: PolicySpec, *, predicted: bool, actual: bool = False) -> None:
    """Assert that a policy gives the same schedule with a part that does nothing."""
    run_times: list[Any] = [Recent(jobs) if predicted else "actual" if actual else "walltime" for _ in range(2)]
    compiled = replay(jobs, machine_of(cluster), policy, run_times=run_times[0])
    general = replay(jobs, machine_of(cluster), policy, run_times=run_times[1], parts=(Part(),))
    for column in ("submit_time", "start_time", "finish_time", "overran", "rejected", "stranded", "pieces"):
        expected, times = getattr(compiled, column), column.endswith("time")
        assert np.array_equal(expected, getattr(general, column), equal_nan=times), column


@given(ROWS, CLUSTERS, NAMES, st.sampled_from(("walltime", "actual", "predicted")), st.booleans())
@settings(max_examples=200, deadline=None)
def test_it_decides_as_the_compiled_one(
    rows: list[Any], cluster: Cluster, name: str, knows: str, follows: bool
) -> None:
    jobs = workload(rows)
    if follows and len(jobs) > 1:
        jobs = replace(jobs, dependencies=Dependencies(np.array([0]), np.array([len(jobs) - 1])))
    agree(jobs, cluster, parse(name), predicted=knows == "predicted", actual=knows == "actual")


@given(ROWS, ALIKE, NAMES, CAPS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_it_decides_as_the_compiled_one_under_a_power_cap(
    rows: list[Any], cluster: Cluster, name: str, cap: PowerCap, predicted: bool
) -> None:
    agree(workload(rows), cluster, Saving(parse(name), limit=cap), predicted=predicted)


class OwnOrder:
    """Starts one job at a time, the shortest first, where a mapping policy would start it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decide(self, now: Any) -> Any:
        job = min(now.waiting, key=lambda job: job.walltime, default=None)
        nodes = job and now.best_nodes(job, self.name)
        if nodes is not None:
            yield Start(job, nodes=nodes)
            yield Wake(now.time)


def test_a_policy_of_ones_own_can_leave_the_nodes_to_it() -> None:
    jobs = workload(STREAMS)
    together, apart = (replay(jobs, machine_of(lab(count)), OwnOrder("let"), contention=True) for count in (1, 2))
    assert together.finish_time.tolist() == pytest.approx([20.0, 20.0])
    assert apart.finish_time.tolist() == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize(("name", "machine"), [("best", machine_of(lab())), ("let", 4)])
def test_a_policy_or_a_world_that_is_not_known_is_one_error(name: str, machine: Any) -> None:
    shared = {} if isinstance(machine, int) else {"contention": True}
    with pytest.raises(PolicyError, match=f"its best nodes by '{name}' are asked for.*on nodes that jobs share"):
        replay(workload(STREAMS), machine, OwnOrder(name), **shared)

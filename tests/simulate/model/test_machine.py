"""The machine of a cluster file: adjacency of clusters matters only to policies that use them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.machine import machine_of, speeds_of
from pilotfish.simulate.queue_policies.interface import Start
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative
from pilotfish.simulate.replay.replay import replay
from tests.simulate.replay.test_replay import workload


def lab(*cores: int, **groups: list[int]) -> Cluster:
    nodes = tuple(Node(f"n{i}", NodeType(f"t{many}", many, 1e9, 1e9)) for i, many in enumerate(cores))
    named = {name: tuple(f"n{i}" for i in members) for name, members in groups.items()}
    return Cluster("lab", nodes, groups=named, source="lab.yaml")


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6), st.data())
def test_groups_are_the_cores_of_adjacent_nodes(cores: list[int], data: Any) -> None:
    cut = data.draw(st.integers(1, len(cores) - 1))
    cluster = lab(*cores, b=list(range(cut, len(cores)))[::-1], a=list(range(cut)))
    assert list(machine_of(cluster).groups) == [(0, sum(cores[:cut]) - 1), (sum(cores[:cut]), sum(cores) - 1)]
    assert list(machine_of(cluster, whole_nodes=True).groups) == [(0, cut - 1), (cut, len(cores) - 1)]


class First:
    """A policy that allocates the machine's first cluster to each job."""

    def decide(self, now: Any) -> Any:
        return [Start(job, [now.machine.groups[0]]) for job in now.waiting]


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_local_allocations_reject_clusters_that_are_not_adjacent(allocation: str) -> None:
    machine, jobs = machine_of(lab(2, 2, 2, even=[0, 2], odd=[1])), workload([(0.0, 1.0, 1.0, 4)])
    if allocation.endswith("local"):
        with pytest.raises(ConfigError, match=r"lab\.yaml: clusters\.even: its nodes are not adjacent"):
            replay(jobs, 6, Conservative(allocation=allocation), groups=machine.groups)
    else:
        assert replay(jobs, 6, Conservative(allocation=allocation), groups=machine.groups).finish_time[0] == 1.0


def test_python_policies_reject_clusters_that_are_not_adjacent() -> None:
    jobs, machine = workload([(0.0, 1.0, 1.0, 2)]), machine_of(lab(2, 2, 2, even=[0, 2]))
    with pytest.raises(PolicyError, match="its nodes are not adjacent"):
        replay(jobs, 6, First(), groups=machine.groups)
    assert replay(jobs, 6, First(), groups=machine_of(lab(2, 2, first=[0])).groups).finish_time[0] == 1.0


def test_speeds_are_known_if_all_are() -> None:
    fast, slow = NodeType("f", 1, 1e9, 1e9, speed=2e9), NodeType("s", 1, 1e9, 1e9)
    assert speeds_of(Cluster("c", (Node("a", fast), Node("b", fast)))) == (2e9,)
    assert speeds_of(Cluster("c", (Node("a", fast), Node("b", slow)))) == speeds_of(None) == ()

"""This machine as a cluster, and the clusters that the local adapter refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.local import create
from pilotfish.adapters.local.host import machine_cluster
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster
from tests.support.local_world import CLUSTER, CPUS


@pytest.mark.parametrize("cpus_per_node", [1, 2, 3, 1000])
def test_every_cpu_is_in_one_node_and_memory_is_split(cpus_per_node: int) -> None:
    cluster, _ = machine_cluster(cpus_per_node)
    assert sorted(cpu for node in cluster.nodes for cpu in node.cpus) == CPUS
    assert all(len(node.cpus) == node.type.cores for node in cluster.nodes)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert total * 0.99 < sum(node.type.memory for node in cluster.nodes) <= total
    assert {node.memory_domain for node in cluster.nodes} == {"host0"}
    assert len({node.type.memory_bandwidth for node in cluster.nodes}) == 1
    assert len(cluster.index) == len(cluster.nodes)


def test_one_cpu_nodes_are_named_after_their_cpu() -> None:
    cluster, _ = machine_cluster()
    assert [node.name for node in cluster.nodes] == [f"cpu{cpu}" for cpu in CPUS]


def test_an_assumed_bandwidth_is_reported() -> None:
    assumed, warnings = machine_cluster()
    assert any("10 GB/s assumed" in warning for warning in warnings)
    assert assumed.nodes[0].type.memory_bandwidth == 10e9


@pytest.mark.parametrize("cpus, says", [((), "nodes.a.cpus: missing"), ((CPUS[0], 4095), "CPU 4095")])
def test_nodes_need_cpus_of_this_process(tmp_path: Path, cpus: tuple[int, ...], says: str) -> None:
    cluster = Cluster("lab", (replace(CLUSTER.nodes[0], cpus=cpus), CLUSTER.nodes[1]), source="lab.yaml")
    with pytest.raises(ConfigError, match=says):
        create(cluster, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_shared_cpus_are_reported_once(tmp_path: Path) -> None:
    nodes = [replace(CLUSTER.nodes[0], name=name, cpus=(CPUS[0],)) for name in "abc"]
    for used_nodes, note_count in ((nodes, 1), (nodes[:1], 0)):
        adapter = create(Cluster("lab", tuple(used_nodes)), tmp_path / "state", cgroups=False)
        adapter.close()
        assert len(adapter.notes) == note_count
        assert all(f"nodes 'a' and 'b' share CPU {CPUS[0]}" in note for note in adapter.notes)

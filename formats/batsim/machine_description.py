"""The machine and the configuration as Batsim describes them to a decision component, in SIMULATION_BEGINS.

Rule: the resources are those of the replay. Hosts of a SimGrid platform have the properties of the file; states that
they do not have cannot be set. Storages come after all other resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import Machine, Powers, storages_of
from ..simgrid.network import SimGridWiring
from ..simgrid.platform import Host
from .descriptions import Descriptions

#: The configuration of Batsim 4, with its defaults.
CONFIG: dict[str, Any] = {
    "redis-enabled": False, "redis-hostname": "127.0.0.1", "redis-port": 6379, "redis-prefix": "default",
    "profiles-forwarded-on-submission": False, "dynamic-jobs-enabled": False, "dynamic-jobs-acknowledged": False,
    "profile-reuse-enabled": False, "sched-config": "", "forward-unknown-events": False,
}  # fmt: skip


def simulation_begins(
    machine: Machine, cluster: Cluster | None, described: Descriptions, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the `data` of SIMULATION_BEGINS. O(resources + profiles).

    Args:
        machine: the machine.
        cluster: what it was made from, if anything.
        described: the jobs.
        config: changes of CONFIG, and further keys.
    """
    storages, hosts = storages_of(cluster) or (), _hosts(cluster)
    compute = [_resource(i, name, hosts.get(name)) for i, name in enumerate(_names(machine, cluster))]
    storage = [_resource(machine.processors + i, name, hosts.get(name)) for i, name in enumerate(storages)]
    return {
        "nb_resources": len(compute) + len(storage), "nb_compute_resources": len(compute),
        "nb_storage_resources": len(storage), "allow_compute_sharing": False, "allow_storage_sharing": True,
        "config": {**CONFIG, **config}, "compute_resources": compute, "storage_resources": storage,
        "workloads": described.files, "profiles": described.profiles,
    }  # fmt: skip


def states_of(machine: Machine, cluster: Cluster | None) -> dict[str, bool]:
    """Return the states that machines can be brought into, and whether they are on then; empty if power is unknown."""
    powers = machine.powers
    if not isinstance(powers, Powers):
        return {}
    on, off = state_numbers(cluster)
    return {on: True} | ({} if powers.off is None else {off: False})


def state_numbers(cluster: Cluster | None) -> tuple[str, str]:
    """Return the numbers of the states in which machines compute, and are off."""
    host = next(iter(_hosts(cluster).values()), None)
    if host is None:
        return "0", "1"
    return str(host.pstate), host.properties.get("sleep_pstates", "1").partition(":")[0]


def resource_speeds(machine: Machine, cluster: Cluster | None) -> list[float]:
    """Return the speed of each resource, flop/s; empty if one is not known."""
    if cluster is None or any(kind.speed is None for kind in cluster.types):
        return []
    cores = len(cluster.nodes) != machine.processors
    return [node.type.relative_speed for node in cluster.nodes for _ in range(node.type.cores if cores else 1)]


def _names(machine: Machine, cluster: Cluster | None) -> list[str]:
    """Return the name of each resource: that of its node, with the number of the core where cores are resources."""
    if cluster is None:
        return [f"host{i}" for i in range(machine.processors)]
    nodes = [node.name for node in cluster.nodes]
    if len(nodes) == machine.processors:
        return nodes
    return [f"{node.name}/{core}" for node in cluster.nodes for core in range(node.type.cores)]


def _hosts(cluster: Cluster | None) -> dict[str, Host]:
    """Return the hosts of a SimGrid platform, those first that compute; empty for other machines."""
    if cluster is None or not isinstance(cluster.wiring, SimGridWiring):
        return {}
    named = {host.name: host for host in cluster.wiring.platform.hosts}
    return {node.name: named[node.name] for node in cluster.nodes} | named


def _resource(number: int, name: str, host: Host | None) -> dict[str, Any]:
    properties = dict(host.properties) if host else {}
    of_zone = {key: value for key, value in reversed(properties.items()) if key != "role"}
    return {"id": number, "name": name, "state": "idle", "properties": {"role": "", **properties},
            "zone_properties": of_zone}  # fmt: skip

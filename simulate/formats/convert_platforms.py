"""Platforms from SimGrid's format to a cluster file and back, and what the other cannot say.

Rule: a replay on what is written is the replay on what was read. Whatever else is lost is counted.
"""

from __future__ import annotations

from ..batch.powers import powers_of
from ..platform import Cluster, Contention
from .cluster import dump_cluster
from .converted import Converted, some
from .simgrid_cluster import cluster_of
from .simgrid_platform import Host, SimGridPlatform
from .simgrid_power import PROPERTIES
from .simgrid_write import platform_text


def simgrid_to_cluster(platform: SimGridPlatform, notes: tuple[str, ...] = ()) -> Converted:
    """The cluster file (YAML) of a platform. O(hosts). Raises ConfigError: see `cluster_of`.

    Args:
        notes: comments at its beginning.
    """
    import yaml

    cluster = cluster_of(platform)
    hosts = [host for host in platform.hosts if host.name in cluster.index]
    counts = {
        "hosts that do not compute (master, storage)": len(platform.hosts) - len(hosts),
        "cores beyond the first, of hosts": sum(host.cores > 1 for host in hosts),
        "watts of a host that is neither idle nor quite busy": sum(map(_has_epsilon, hosts)),
        "other properties of hosts": sum(not host.properties.keys() <= {*PROPERTIES, "role"} for host in hosts),
        "networks of clusters": len(platform.clusters),
        "links": len(platform.links),
        "routes": len(platform.routes),
    }
    comments = "".join(f"# {note}\n" for note in (*notes, "memory and its bandwidth are not known: taken as boundless"))
    text = comments + yaml.safe_dump(dump_cluster(cluster), sort_keys=False)
    return Converted(text, f"{len(hosts):,} nodes of a core", some(counts))


def _has_epsilon(host: Host) -> bool:
    """Whether a third number of a state says something else than the first."""
    text = next((host.properties[key] for key in PROPERTIES[:2] if key in host.properties), "")
    watts = [part.split(":") for part in text.split(",")]
    return any(len(each) == 3 and float(each[1]) != float(each[0]) for each in watts)


def cluster_to_simgrid(cluster: Cluster) -> Converted:
    """The platform file (XML) of a cluster. O(cores). Raises ConfigError: see `platform_text`."""
    kinds = [node.type for node in cluster.nodes]
    powers = [(kind.power, kind) for kind in kinds if kind.power is not None]
    counts = {
        "speeds that are not known: now a flop a cycle": sum(kind.speed is None for kind in kinds),
        "memory and its bandwidth": len(kinds),
        "contention for memory": sum(kind.contention is not Contention.NONE for kind in kinds),
        "memory domains, numbers of CPUs": sum(bool(node.memory_domain or node.cpus) for node in cluster.nodes),
        "nodes of several cores: now hosts of one": sum(kind.cores > 1 for kind in kinds),
        "what these draw in other states": sum(
            kind.cores > 1 and bool(power.states or power.off is not None) for power, kind in powers
        ),
        "power that cores do not share evenly": sum(powers_of(kind, kind.cores) is None for _, kind in powers),
        "estimates of power for budgets": sum(
            power.budget_idle is not None or power.budget_computing is not None for power, _ in powers
        ),
        "clusters of nodes": len(cluster.groups),
        "networks": int(cluster.wiring is not None),
    }
    return Converted(platform_text(cluster), f"{sum(kind.cores for kind in kinds):,} hosts and a master", some(counts))

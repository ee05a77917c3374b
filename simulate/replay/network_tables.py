"""State tables of replays in which the run time of a job depends on its placement and on the network.

Rule: policies are the same as in other replays and see nothing of the network.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.queue.network import tables
from ..model.cluster import Cluster, Contention
from ..model.machine import MixedPowers, Powers, runs_of
from ..model.network import Link, Network, NetworkRoute, Place, unlimited
from ..model.programs import ProgramBuilder, renumber_storages
from ..model.workload import Workload
from ..queue_policies.policy_specs import Contending
from .power_log import log_rows

#: Least bandwidth, bytes/s: below it, a message might never arrive.
SLOWEST = 1e-6


def network_tables(
    workload: Workload, network: Network, powers: Powers | MixedPowers | None, rows: int | None = None,
    slots: int | None = None, *, log_power: bool = False,
) -> dict[str, Array]:  # fmt: skip
    """Return the network tables that a kernel needs in addition to those of its policy. O(jobs + places^2 x route).

    Args:
        workload: the jobs, with programs.
        network: the network.
        powers: power of the resources; None if not known.
        rows: rows of the table of jobs, if more than there are jobs.
        slots: most ranks that all hosts run at once, if jobs share them; None: a host runs one job at a time.
        log_power: the power of each job over time is logged.
    """
    programs, links, size = workload.programs or ProgramBuilder().programs(), network.links, len(workload)
    ways = [*network.ways, *(network.own or [NetworkRoute()] * len(network.places))]
    places, reach = len(network.places), max((len(way.links) for way in ways), default=0)
    hosts, rows = len(network.speeds), rows or size
    courses = np.zeros(rows, tables.COURSE)
    courses["program"] = tables.NONE
    courses["ranks"][:size] = workload.size
    if workload.programs is not None:
        courses["program"][:size] = workload.more["program"]
    most = slots or hosts
    many = _most_uses(rows, most, len(links), reach, len(network.storages)) + 3 * (slots or 0)
    uses = np.zeros(many, tables.USE)
    uses["next"] = np.arange(1, len(uses) + 1)
    shared, ports = _ports(network, len(links)) if slots else ([], np.zeros((0, 3), np.int64))
    table = _links([*(link.bandwidth for link in links), *shared])
    return {
        "courses": courses,
        "programs": programs.programs,
        "program_phases": renumber_storages(programs, [network.storage(name) for name in programs.storages]),
        "amounts": programs.amounts,
        "speeds": network.speeds,
        # On nodes that jobs share, ranks have cores of their own.
        "cores": np.full(hosts, math.inf) if slots else np.array(network.cores or np.ones(hosts), np.float64),
        **_heat(network.speeds, powers),
        "place_of": network.place_of,
        "places": np.array([_port(place) for place in network.places], tables.PLACE),
        "links": table,
        "ports": ports,
        "route0": np.cumsum([0, *(len(way.links) for way in ways)], dtype=np.int64),
        "routes": np.array([link for way in ways for link in way.links], np.int64),
        "latency": np.array([way.latency for way in ways]),
        "pace": 1.0 / np.array([way.flow for way in ways]),
        "uses": uses,
        "laid": np.zeros(places, np.int64),
        "hosts": np.zeros(hosts, np.int64),
        "ranks": np.zeros(hosts, np.int64),
        "loads": np.zeros(hosts, tables.LOAD),
        **{name: np.zeros(len(table), np.int64) for name in ("touched", "dirty", "sought")},
        "met": np.zeros(min(rows, most) + 1, np.int64),
        "wanted": np.zeros(min(rows, most) + 1),
        "rule": np.array((int(network.increments),), tables.RULE),
        "power_log": log_rows(min(rows, most), kept=log_power),
    }


def _heat(speeds: Array, powers: Powers | MixedPowers | None) -> dict[str, Array]:
    """Return what hosts draw above their idle power: joules per flop, and watts at a load of almost 0."""
    per_flop, lift = np.zeros(len(speeds)), np.zeros(len(speeds))
    first = 0
    for many, kind in runs_of(powers, len(speeds)) if powers else ():
        mine = slice(first, first + many)
        per_flop[mine] = (kind.computing - kind.least) / speeds[mine]
        lift[mine] = kind.least - kind.idle
        first += many
    return {"joules_per_flop": per_flop, "lift": lift}


def _port(place: Place) -> tuple[float, float, int, int, int]:
    """Return a row of places: bytes/s of each direction, and of both together."""
    if place.duplex:
        return place.port, place.limit, 0, 0, place.loops
    return math.inf, min(place.port, place.limit), 0, 0, place.loops


def _links(bandwidths: list[float]) -> Array:
    found = np.zeros(len(bandwidths), tables.LINK)
    found["bandwidth"], found["level"], found["first"] = bandwidths, math.inf, tables.NONE
    return found


def _ports(network: Network, first: int) -> tuple[list[float], Array]:
    """Return the bytes/s of the ports of all hosts as links, and the numbers of each host's, see `tables`."""
    way, both, *_ = np.array([_port(place) for place in network.places]).T
    rates = np.stack([way, way, both], axis=1)[network.place_of]
    limited = np.isfinite(rates)
    numbers = np.where(limited, first + np.cumsum(limited).reshape(rates.shape) - 1, tables.NONE)
    return rates[limited].tolist(), numbers


def _most_uses(jobs: int, hosts: int, links: int, reach: int, storages: int) -> int:
    """Return an upper bound on the links that all jobs use at once.

    A job of q hosts has at most q + p places, where p is 2, or the number of storages if that is more, with at most
    `reach` links, those of the longest route, between two of them. Links per host are highest for q = 1, or for the q
    at which the job uses all links.
    """
    most = 1 + max(2, storages)
    each = min(links, max(most**2 * reach, math.ceil(most * math.sqrt(links * reach))))
    return min(hosts * each, jobs * links) + 1


def network_for(
    workload: Workload, machine: int, policy: object, network: Callable[[], Network] | None
) -> Network | None:
    """Return the network for these jobs; None if their run times do not depend on it.

    Args:
        workload: the jobs.
        machine: number of resources.
        policy: the policy.
        network: makes the network; None if not known.

    Raises:
        ConfigError: the jobs need a network that is not known, cannot be simulated, or is not supported by the policy.
    """
    if workload.programs is None:
        return None
    if isinstance(policy, Contending):
        what = "the tasks of its jobs are independent, and these jobs communicate"
        raise ConfigError("policy", "", what, "easy, strict, conservative, a mapping policy, ./mine.py:Class")
    if network is None:
        raise ConfigError(workload.name, "", "the network of the machine is not known", "--cluster")
    return checked_network(workload, machine, network)


def checked_network(workload: Workload, machine: int, network: Callable[[], Network]) -> Network:
    """Return the network that is made, if it can be simulated.

    Args:
        workload: the jobs, for messages.
        machine: number of resources.
        network: makes the network.

    Raises:
        ConfigError: it cannot.
    """
    found = network()
    if len(found.speeds) != machine:
        what = f"the network joins {len(found.speeds):,} hosts, and the machine has {machine:,} resources"
        raise ConfigError(workload.name, "", what, "one resource per host: --resource node; or --contention")
    for kind, rates in (("link", found.links), ("port", found.places)):
        for each in rates:
            rate = each.bandwidth if isinstance(each, Link) else min(each.port, each.limit)
            if not rate >= SLOWEST:
                raise ConfigError(workload.name, "", f"{kind} {each.name}: {rate:g} bytes/s", f"{SLOWEST:g} or more")
    if not (slowest := min((way.flow for way in (*found.ways, *found.own)), default=math.inf)) >= SLOWEST:
        raise ConfigError(workload.name, "", f"a flow gets at most {slowest:g} bytes/s", f"{SLOWEST:g} or more")
    return found


def network_of_nodes(workload: Workload, cluster: Cluster, network: Callable[[], Network] | None) -> Network | None:
    """Return the network between the nodes that these jobs share; None if no run time depends on it.

    Args:
        workload: the jobs.
        cluster: the nodes.
        network: makes the network of the cluster; ignored if the cluster has no wiring.

    Raises:
        ConfigError: the network cannot be simulated.
    """
    if workload.programs is None:
        return None
    for kind in cluster.types:
        if kind.contention is Contention.PIECEWISE_LINEAR and kind.sockets > 1:
            what = "jobs communicate, and the processors of a node progress on their own: contention piecewise-linear"
            raise ConfigError(cluster.source, f"node_types.{kind.name}", what, "another contention model")
    if cluster.wiring is None or network is None:
        return unlimited([node.type.relative_speed for node in cluster.nodes])
    return checked_network(workload, len(cluster.nodes), network)

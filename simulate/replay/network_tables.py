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
from ..model.machine import MixedPowers, Powers, runs_of
from ..model.network import Link, Network, NetworkRoute, Place
from ..model.programs import ProgramBuilder, renumber_storages
from ..model.workload import Workload
from ..queue_policies.policy_specs import Placing

#: Least bandwidth, bytes/s: below it, a message might never arrive.
SLOWEST = 1e-6


def network_tables(
    workload: Workload, network: Network, powers: Powers | MixedPowers | None, rows: int | None = None
) -> dict[str, Array]:
    """Return the network tables that a kernel needs in addition to those of its policy. O(jobs + places^2 x route).

    Args:
        workload: the jobs, with programs.
        network: the network.
        powers: power of the resources; None if not known.
        rows: rows of the table of jobs, if more than there are jobs.
    """
    programs, links, size = workload.programs or ProgramBuilder().programs(), network.links, len(workload)
    ways = [*network.ways, *(network.own or [NetworkRoute()] * len(network.places))]
    places, reach = len(network.places), max((len(way.links) for way in ways), default=0)
    hosts, rows = len(network.speeds), rows or size
    courses = np.zeros(rows, tables.COURSE)
    courses["program"] = tables.NONE
    if workload.programs is not None:
        courses["program"][:size] = workload.more["program"]
    uses = np.zeros(_most_uses(rows, hosts, len(links), reach, len(network.storages)), tables.USE)
    uses["next"] = np.arange(1, len(uses) + 1)
    return {
        "courses": courses,
        "programs": programs.programs,
        "phases": renumber_storages(programs, [network.storage(name) for name in programs.storages]),
        "amounts": programs.amounts,
        "speeds": network.speeds,
        "cores": np.array(network.cores or np.ones(hosts), np.float64),
        **_heat(network.speeds, powers),
        "place_of": network.place_of,
        "places": np.array([_port(place) for place in network.places], tables.PLACE),
        "links": _links(network),
        "route0": np.cumsum([0, *(len(way.links) for way in ways)], dtype=np.int64),
        "routes": np.array([link for way in ways for link in way.links], np.int64),
        "latency": np.array([way.latency for way in ways]),
        "pace": 1.0 / np.array([way.flow for way in ways]),
        "uses": uses,
        "laid": np.zeros(places, np.int64),
        "hosts": np.zeros(hosts, np.int64),
        "loads": np.zeros(hosts, tables.LOAD),
        **{name: np.zeros(len(links), np.int64) for name in ("touched", "dirty", "sought")},
        "rule": np.array([tables.INCREMENTS if network.increments else tables.MAX_MIN]),
        "met": np.zeros(min(rows, hosts) + 1, np.int64),
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


def _port(place: Place) -> tuple[float, float, int, int]:
    """Return a row of places: bytes/s of each direction, and of both together."""
    if place.duplex:
        return place.port, place.limit, 0, place.loops
    return math.inf, min(place.port, place.limit), 0, place.loops


def _links(network: Network) -> Array:
    found = np.zeros(len(network.links), tables.LINK)
    found["bandwidth"] = [link.bandwidth for link in network.links]
    found["level"], found["first"] = math.inf, tables.NONE
    return found


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
    if isinstance(policy, Placing):
        what = "this policy places jobs on nodes that they share, and here run times depend on a network"
        raise ConfigError("policy", "", what, "easy, strict or conservative, with or without parts, ./mine.py:Class")
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
        raise ConfigError(workload.name, "", what, "one resource per host: --resource node")
    for kind, rates in (("link", found.links), ("port", found.places)):
        for each in rates:
            rate = each.bandwidth if isinstance(each, Link) else min(each.port, each.limit)
            if not rate >= SLOWEST:
                raise ConfigError(workload.name, "", f"{kind} {each.name}: {rate:g} bytes/s", f"{SLOWEST:g} or more")
    if not (slowest := min((way.flow for way in (*found.ways, *found.own)), default=math.inf)) >= SLOWEST:
        raise ConfigError(workload.name, "", f"a flow gets at most {slowest:g} bytes/s", f"{SLOWEST:g} or more")
    return found

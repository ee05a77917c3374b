"""The tables of the network between resources, for kernels that carry jobs through their phases."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..kernels.queue.network import tables as networked
from ..model.machine import MixedPowers, Powers, runs_of
from ..model.network import Network, NetworkPlace, NetworkRoute
from ..model.programs import ProgramBuilder, renumber_storages
from ..model.workload import Workload
from .power_log import log_rows


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
    courses = np.zeros(rows, networked.COURSE)
    courses["program"] = networked.NONE
    courses["ranks"][:size] = workload.size
    if workload.programs is not None:
        courses["program"][:size] = workload.more["program"]
    most = slots or hosts
    use_count = _most_uses(rows, most, len(links), reach, len(network.storages)) + 3 * (slots or 0)
    uses = np.zeros(use_count, networked.USE)
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
        "places": np.array([_port(place) for place in network.places], networked.PLACE),
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
        "loads": np.zeros(hosts, networked.LOAD),
        **{name: np.zeros(len(table), np.int64) for name in ("touched", "dirty", "sought")},
        "met": np.zeros(min(rows, most) + 1, np.int64),
        "wanted": np.zeros(min(rows, most) + 1),
        "rule": np.array((int(network.increments),), networked.RULE),
        "power_log": log_rows(min(rows, most), kept=log_power),
    }


def _heat(speeds: Array, powers: Powers | MixedPowers | None) -> dict[str, Array]:
    """Return what hosts draw above their idle power: joules per flop, and watts at a load of almost 0."""
    per_flop, lift = np.zeros(len(speeds)), np.zeros(len(speeds))
    first = 0
    for count, kind in runs_of(powers, len(speeds)) if powers else ():
        hosts = slice(first, first + count)
        per_flop[hosts] = (kind.computing - kind.least) / speeds[hosts]
        lift[hosts] = kind.least - kind.idle
        first += count
    return {"joules_per_flop": per_flop, "lift": lift}


def _port(place: NetworkPlace) -> tuple[float, float, int, int, int]:
    """Return a row of places: bytes/s of each direction, and of both together."""
    if place.duplex:
        return place.port, place.limit, 0, 0, place.loops
    return math.inf, min(place.port, place.limit), 0, 0, place.loops


def _links(bandwidths: list[float]) -> Array:
    table = np.zeros(len(bandwidths), networked.LINK)
    table["bandwidth"], table["level"], table["first"] = bandwidths, math.inf, networked.NONE
    return table


def _ports(network: Network, first: int) -> tuple[list[float], Array]:
    """Return the bytes/s of the ports of all hosts as links, and the numbers of each host's, see `networked`."""
    way, both, *_ = np.array([_port(place) for place in network.places]).T
    rates = np.stack([way, way, both], axis=1)[network.place_of]
    limited = np.isfinite(rates)
    numbers = np.where(limited, first + np.cumsum(limited).reshape(rates.shape) - 1, networked.NONE)
    return rates[limited].tolist(), numbers


def _most_uses(jobs: int, hosts: int, links: int, reach: int, storages: int) -> int:
    """Return an upper bound on the links that all jobs use at once.

    A job of q hosts has at most q + p places, where p is 2, or the number of storages if that is more, with at most
    `reach` links, those of the longest route, between two of them. Links per host are highest for q = 1, or for the q
    at which the job uses all links.
    """
    most = 1 + max(2, storages)
    host_uses = min(links, max(most**2 * reach, math.ceil(most * math.sqrt(links * reach))))
    return min(hosts * host_uses, jobs * links) + 1

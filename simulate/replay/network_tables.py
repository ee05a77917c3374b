"""The tables of a replay in which jobs run as fast as their places and the network let them.

Rule: policies are those of the other replays, and know as little of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels.batch.network import tables
from ..network import Link, Network
from ..workload import Workload
from .spec import Policy

Array = npt.NDArray[Any]
#: Bytes/s below which what is sent might never arrive.
SLOWEST = 1e-6


def network_tables(workload: Workload, network: Network, rows: int | None = None) -> dict[str, Array]:
    """What a kernel needs beside the tables of its policy. O(jobs + places^2 x route).

    Args:
        rows: of the table of jobs, if it has more than these.
    """
    programs, links, ways = workload.programs, network.links, network.ways
    assert programs is not None
    places, reach = len(network.places), max((len(way.links) for way in ways), default=0)
    courses = np.zeros(rows or len(workload), tables.COURSE)
    courses["program"] = tables.NONE
    courses["program"][: len(workload)] = workload.more["program"]
    uses = np.zeros(_most_uses(len(workload), len(network.speeds), len(links), reach), tables.USE)
    uses["next"] = np.arange(1, len(uses) + 1)
    cells = np.zeros(tables.NET_CELLS, np.int64)
    cells[tables.PLACES] = places
    return {
        "courses": courses,
        "programs": programs.programs,
        "phases": _phases(workload, network),
        "amounts": programs.amounts,
        "speeds": network.speeds,
        "place_of": network.place_of,
        "places": np.array([(place.port, place.duplex, 0) for place in network.places], tables.PLACE),
        "links": _links(network),
        "route0": np.cumsum([0, *(len(way.links) for way in ways)], dtype=np.int64),
        "routes": np.array([link for way in ways for link in way.links], np.int64),
        "latency": np.array([way.latency for way in ways]),
        "uses": uses,
        "laid": np.zeros(places, np.int64),
        "hosts": np.zeros(len(network.speeds), np.int64),
        "sent": np.zeros(2 * len(network.speeds)),
        **{name: np.zeros(len(links), np.int64) for name in ("touched", "dirty", "sought")},
        "met": np.zeros(min(len(workload), len(network.speeds)) + 1, np.int64),
        "cells": cells,
        "lags": np.zeros(tables.LAGS),
    }


def _links(network: Network) -> Array:
    found = np.zeros(len(network.links), tables.LINK)
    found["bandwidth"] = [link.bandwidth for link in network.links]
    found["alone"] = [not link.shared for link in network.links]
    found["level"], found["first"] = math.inf, tables.NONE
    return found


def _phases(workload: Workload, network: Network) -> Array:
    """With the places of storages."""
    assert workload.programs is not None
    found = workload.programs.phases.copy()
    places = np.array([network.storage(name) for name in workload.programs.storages] or [0], np.int64)
    for key, kinds in (("at", (tables.STORE, tables.STAGE)), ("to", (tables.STAGE,))):
        of = np.isin(found["kind"], kinds)
        found[key][of] = places[found[key][of]]
    return found


def _most_uses(jobs: int, hosts: int, links: int, reach: int) -> int:
    """Links that all jobs at once may use. A job of q hosts has q + 2 places at most, and `reach` links between two:
    the most for each host is with q = 1, or where it comes to use all links."""
    each = min(links, max(9 * reach, math.ceil(3 * math.sqrt(links * reach))))
    return min(hosts * each, jobs * links) + 1


def takes_networks(policy: object) -> bool:
    """Whether a policy takes jobs whose run times depend on where they run."""
    return isinstance(policy, Policy)


def network_for(
    workload: Workload, machine: int, policy: object, network: Callable[[], Network] | None
) -> Network | None:
    """What joins the machine's resources, where it matters for these jobs.

    Raises:
        ConfigError: it does, but nothing is known of it, it cannot be simulated, or the policy can do nothing with it.
    """
    if workload.programs is None:
        return None
    if not takes_networks(policy):
        what = "this policy takes jobs whose run times are known, and here they depend on where jobs run"
        raise ConfigError("policy", "", what, "easy, strict, conservative, with parts or without")
    if network is None:
        raise ConfigError(workload.name, "", "it is not known what joins the machine's resources", "--cluster")
    found = network()
    if len(found.speeds) != machine:
        what = f"{len(found.speeds):,} hosts are joined, and the machine has {machine:,} resources"
        raise ConfigError(workload.name, "", what, "a resource for each host: --resource node")
    for kind, rates in (("link", found.links), ("port", found.places)):
        for each in rates:
            rate = each.bandwidth if isinstance(each, Link) else each.port
            if not rate >= SLOWEST:
                raise ConfigError(workload.name, "", f"{kind} {each.name}: {rate:g} bytes/s", f"{SLOWEST:g} or more")
    return found

"""Write a cluster as a SimGrid platform, the inverse of `simgrid.cluster`.

Rule: each core becomes a host, as it is a resource of a replay, with its share of the node's power; a node of one core
keeps its power states. All hosts are in one zone without links: for workloads that wait or compute.
Source: SimGrid's documentation, "Platform file reference".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster, NodeType, Power, Transition
from ...simulate.model.machine import powers_of
from ..hostlist import MOST_NODES
from .cluster import MASTER, MASTERS

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="AS0" routing="Vivaldi">
"""
_TAIL = "</zone>\n</platform>\n"
#: Flop/s of a sleep state, and of a transition that takes no time.
_ASLEEP, _AT_ONCE = 1e-3, 1e18


def platform_text(cluster: Cluster) -> str:
    """Return the XML of a platform file. O(cores). Raises ConfigError: too many cores, or duplicate host names."""
    count = sum(node.type.cores for node in cluster.nodes)
    if count > MOST_NODES:
        raise ConfigError(cluster.source, "nodes", f"{count} cores would become as many hosts", f"at most {MOST_NODES}")
    hosts = [_host(MASTER, f"{_speed(cluster.nodes[0].type)!r}f", {})]  # Batsim gives this name the role of the master
    kinds, host_names = {kind: _properties(kind) for kind in cluster.types}, set(MASTERS)
    for node in cluster.nodes:
        cores = range(node.type.cores)
        names = [node.name] if len(cores) == 1 else [f"{node.name}_{core}" for core in cores]
        if repeated := host_names.intersection(names):
            allowed = f"names that are neither {', '.join(MASTERS)} nor those of another node's cores"
            problem = f"host {min(repeated)!r} would be defined twice"
            raise ConfigError(cluster.source, f"nodes: {node.name}", problem, allowed)
        host_names.update(names)
        hosts += [_host(name, *kinds[node.type]) for name in names]
    return _HEAD + "".join(hosts) + _TAIL


def _speed(kind: NodeType) -> float:
    """Return flop/s of a core; one flop a cycle if unknown."""
    return kind.frequency if kind.speed is None else kind.speed


def _host(name: str, speeds: str, properties: dict[str, str]) -> str:
    start = f' <host id={quoteattr(name)} coordinates="0 0 0" speed={quoteattr(speeds)}'
    parts = "".join(f'  <prop id="{key}" value={quoteattr(value)}/>\n' for key, value in properties.items())
    return f"{start}>\n{parts} </host>\n" if parts else f"{start}/>\n"


def _properties(kind: NodeType) -> tuple[str, dict[str, str]]:
    """Return the speeds of a host's performance states and its power properties."""
    speed, powers = _speed(kind), powers_of(kind, kind.cores)
    if powers is None or kind.power is None:
        return f"{speed!r}f", {}
    states, triples = [(speed, powers.idle, powers.computing)], list[str]()
    epsilon = "" if powers.epsilon is None else f"{powers.epsilon!r}:"
    if kind.cores == 1:
        for state in kind.power.states:
            if state.frequency is not None and state.full_watts is not None:
                states.append((state.frequency * (speed / kind.frequency), state.watts, state.full_watts))
        for watts, *transitions in _sleeps(kind.power):
            triples.append(":".join(str(len(states) + i) for i in range(3)))
            states += [
                (_ASLEEP, watts, watts),
                *((inverse(transition.seconds), transition.watts, transition.watts) for transition in transitions),
            ]
    values = [f"{idle!r}:{'' if i else epsilon}{full!r}" for i, (_, idle, full) in enumerate(states)]
    properties = {"wattage_per_state": ", ".join(values)}
    if kind.cores == 1 and kind.power.off is not None:
        properties["wattage_off"] = repr(kind.power.off)
    if triples:
        properties["sleep_pstates"] = ", ".join(triples)
    return ", ".join(f"{speed!r}f" for speed, _, _ in states), properties


def _sleeps(power: Power) -> Iterator[tuple[float, Transition, Transition]]:
    """Yield (watts, way there, way back) of each sleep state; off is the first."""
    asleep = [(state.watts, state.enter, state.leave) for state in power.states if state.frequency is None]
    for watts, enter, leave in [(power.off, power.switch_off, power.switch_on), *asleep]:
        if watts is not None and enter is not None and leave is not None:
            yield watts, enter, leave


def inverse(seconds: float) -> float:
    """Return the speed at which a flop takes `seconds`, exact if a neighbouring float is."""
    if seconds < 1 / _AT_ONCE:
        return _AT_ONCE
    speed = 1.0 / seconds
    near = (speed, math.nextafter(speed, 0.0), math.nextafter(speed, math.inf))
    return next((candidate for candidate in near if 1.0 / candidate == seconds), speed)

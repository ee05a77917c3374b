"""A SimGrid platform as Batsim sees it: one resource for each host that computes.

The resources, and after them the storages, are in the order of their names as text: a10 comes before a2.

Rule: a host is one resource of one core, whatever its cores; hosts with the role (or a usual name) of the master, or
the role of a storage, are no resources. Speeds are in flop/s; the format has no memory, which is unlimited here. A host
draws its idle power while nothing computes on it, otherwise epsilon + (all cores - epsilon) * load. One busy core is a
load of 1 / cores. If epsilon is not given, it is the idle power. In `sleep_pstates`, each triple names a sleep state
and two more: the host switches off (and on) at the power of these, for as long as one flop takes there. The first
triple is `off`.
Source: Batsim's documentation, "Platform"; SimGrid's documentation, "Host energy plugin".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from ...simulate.model.cluster import Cluster, Contention, Node, NodeType, Power, PowerState, Transition
from ..documents.document_errors import bad, found, from_source, inside
from ..documents.schema import one_of
from ..hostlist import ALLOWED, is_node_name
from .network import SimGridWiring
from .platform import Host, SimGridPlatform

#: Properties about power; two of them also have an older name.
PROPERTIES = ("wattage_per_state", "watt_per_state", "wattage_off", "watt_off", "sleep_pstates")
_WATTS = re.compile(r"\s*[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]{1,3})?\s*")
_ALLOWED = "idle:all cores, or idle:epsilon:all cores, in watts, for each performance state, separated by commas"
_ALLOWED_SLEEP = "triples such as 1:2:3 of states: asleep, switching off, switching on; separated by commas"


class _Watts(NamedTuple):
    """Power of a performance state: idle, with all cores busy, and at a load of almost 0 if it is not idle's."""

    idle: float
    full: float
    epsilon: float | None = None

    def one_core(self, cores: int) -> float:
        """Return the power with one core busy."""
        least = self.idle if self.epsilon is None else self.epsilon
        return self.full if cores == 1 else least + (self.full - least) / cores


def power_of(host: Host) -> Power | None:
    """Return the power of a host; None if it states none. Raises ConfigError."""
    key = next((key for key in PROPERTIES[:2] if key in host.properties), None)
    if key is None:
        return None
    watts = inside(key, _all_watts, host.properties[key], len(host.speeds))
    triples = inside("sleep_pstates", _triples, host.properties.get("sleep_pstates", ""), host.speeds)
    special = {state for triple in triples for state in triple}
    if host.pstate in special:
        raise bad(f"found {host.pstate}, the initial state", "other states", "sleep_pstates")
    power = Power(
        watts[host.pstate].idle,
        computing=watts[host.pstate].one_core(host.cores),
        epsilon=watts[host.pstate].epsilon,
        off=_off(host),
        states=(
            *(_computing(host, watts, i) for i in range(len(watts)) if i not in special | {host.pstate}),
            *(_asleep(host, watts, *triple) for triple in triples[1:]),
        ),
    )
    if not triples:
        return power
    off = _asleep(host, watts, *triples[0])
    return replace(power, off=off.watts, switch_on=off.leave, switch_off=off.enter)


def _computing(host: Host, watts: list[_Watts], state: int) -> PowerState:
    if host.speeds[state] <= 0:
        raise bad(f"found 0 flop/s in state {state}", "more than 0, or a state of sleep_pstates", "speed")
    idle, full = watts[state].idle, watts[state].one_core(host.cores)
    return PowerState(f"pstate{state}", idle, full, host.speeds[state])


def _asleep(host: Host, watts: list[_Watts], state: int, enter: int, leave: int) -> PowerState:
    """Return the power state of a sleep state with its transitions."""
    transitions = (Transition(watts[switch].full, 1.0 / host.speeds[switch]) for switch in (enter, leave))
    return PowerState(f"pstate{state}", watts[state].idle, None, None, *transitions)


def _off(host: Host) -> float | None:
    key = next((key for key in PROPERTIES[2:4] if key in host.properties), None)
    return None if key is None else inside(key, _watts, host.properties[key])


def _all_watts(text: str, count: int) -> list[_Watts]:
    """Return the power of each performance state."""
    states = []
    for part in text.split(","):
        watts = [_watts(number) for number in part.split(":")]
        if len(watts) not in (2, 3):
            raise bad(found(part.strip()), _ALLOWED)
        if watts[-1] < watts[0]:
            raise bad(f"{found(part.strip())}: less power with all cores busy than idle", _ALLOWED)
        states.append(_Watts(watts[0], watts[-1], watts[1] if len(watts) == 3 else None))
    if len(states) != count:
        raise bad(f"found {len(states)} for {count} performance states", _ALLOWED)
    return states


def _watts(text: str) -> float:
    if not _WATTS.fullmatch(text) or float(text) > 1e9:
        raise bad(found(text.strip()), "watts, 0 or more")
    return float(text)


def _triples(text: str, speeds: tuple[float, ...]) -> list[tuple[int, int, int]]:
    """Return triples of states: asleep, switching off, switching on."""
    triples = []
    for part in text.split(",") if text.strip() else ():
        states = [int(word) if re.fullmatch("[0-9]{1,4}", word.strip()) else -1 for word in part.split(":")]
        if len(states) != 3 or not all(0 <= state < len(speeds) for state in states):
            raise bad(found(part.strip()), f"{_ALLOWED_SLEEP}; states are 0 to {len(speeds) - 1}")
        sleep, enter, leave = states
        if speeds[enter] <= 0 or speeds[leave] <= 0:
            raise bad(f"{found(part.strip())}: at 0 flop/s, switching never ends", "states with a speed above 0")
        triples.append((sleep, enter, leave))
    sleeps = {triple[0] for triple in triples}
    if len(sleeps) < len(triples) or any(sleeps & set(triple[1:]) for triple in triples):
        raise bad(f"{found(text)}: a state is named twice", "each state in one role")
    return triples


#: Bytes and bytes/s that stand for unlimited.
BOUNDLESS = 1e14
#: Batsim's name for the master, and the name of the only host in a cluster of masters, as in its platforms.
MASTER = "master_host"
MASTERS = (MASTER, f"{MASTER}0")
ROLES = ("", "compute_node", "master", "storage")


def cluster_of(platform: SimGridPlatform) -> Cluster:
    """Return the cluster that Batsim would see. O(hosts).

    Raises:
        ConfigError: a host that Batsim would refuse (with its line), or no host that computes.
    """
    return from_source(platform.source, _cluster, platform)


def _cluster(platform: SimGridPlatform) -> Cluster:
    of = {host: cluster.name for cluster in platform.clusters for host in cluster.hosts}
    computing = sorted(filter(_computes, platform.hosts), key=lambda host: host.name)
    if not computing:
        raise bad("no host computes", "at least one host that is neither the master nor a storage")
    kinds, names = dict[tuple[object, ...], NodeType](), Counter[str]()
    nodes = []
    for host in computing:
        power = [host.properties.get(key) for key in PROPERTIES]
        alike = (host.speeds, host.pstate, any(power) and host.cores, *power)
        if alike not in kinds:
            base = of.get(host.name, "host")
            names[base] += 1
            again = f"-{names[base]}" if names[base] > 1 else ""
            kinds[alike] = inside(f"line {host.line}: host {host.name}", _node_type, host, base + again)
        nodes.append(Node(host.name, kinds[alike]))
    node_names = {node.name for node in nodes}
    members = {group.name: tuple(host for host in group.hosts if host in node_names) for group in platform.clusters}
    groups = {cluster: hosts for cluster, hosts in members.items() if hosts}
    name = re.split(r"[\\/]", platform.source)[-1].removesuffix(".xml") or "platform"
    storages = tuple(sorted(host.name for host in platform.hosts if host.properties.get("role") == "storage"))
    wiring = SimGridWiring(platform, tuple(nodes), storages)
    return Cluster(name, tuple(nodes), groups=groups, source=platform.source, wiring=wiring)


def _computes(host: Host) -> bool:
    role, where = host.properties.get("role", ""), f"line {host.line}: host {host.name}.role"
    inside(where, one_of, role, ROLES, ", ".join(ROLES[1:]))
    return role in ROLES[:2] and host.name not in MASTERS


def _node_type(host: Host, name: str) -> NodeType:
    if not is_node_name(host.name):
        raise bad(found(host.name), ALLOWED, key="id")
    speed = host.speeds[host.pstate]
    if speed <= 0:
        raise bad(f"found {speed:g} flop/s in the initial state {host.pstate}", "more than 0", key="speed")
    return NodeType(
        name, 1, BOUNDLESS, BOUNDLESS, frequency=speed, speed=speed, contention=Contention.NONE, power=power_of(host)
    )

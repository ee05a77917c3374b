"""The cluster file (schema pilotfish/cluster/v1): read YAML or JSON as a Cluster, and write it.

Rule: a cluster that is read here is consistent; contradictions are refused, with the key named.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..simulate.errors import did_you_mean
from ..simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CoRun,
    CpuSharing,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
    PowerState,
    Transition,
)
from ..simulate.model.network import Tree
from .documents.document_errors import Collector, bad, found, from_source, shown
from .documents.files import check_schema, read_document
from .documents.quantities import (
    Convert,
    above_zero,
    format_size,
    number,
    parse_duration,
    parse_frequency,
    parse_rate,
    parse_size,
    whole,
)
from .documents.schema import build, choice, dump, entries, name, one_of
from .hostlist import MOST_NODES, expand, fold, fold_cpus, parse_cpus
from .text import count

_WATTS = number(0, 1e9)
_RATE_MB = number(0, 1e12)


def _transition(value: Any) -> Transition:
    table = {"watts": _WATTS, "seconds": parse_duration}
    return build(Transition, table, value, table)


_STATE: dict[str, Convert[Any]] = {
    "watts": _WATTS,
    "full_watts": _WATTS,
    "frequency": above_zero(parse_frequency),
    "enter": _transition,
    "leave": _transition,
}
_POWER: dict[str, Convert[Any]] = {
    **dict.fromkeys(("idle", "per_core", "per_socket", "computing"), _WATTS),
    "idle_uncore": number(0, 1),
    **dict.fromkeys(("budget_idle", "budget_computing", "off", "epsilon"), _WATTS),
    **dict.fromkeys(("switch_on", "switch_off"), _transition),
    "states": lambda value: tuple(entries(value, _state).values()),
}
_PIECEWISE: dict[str, Convert[Any]] = {
    "b": number(-1e6, 0),
    "c": _RATE_MB,
    "da": number(-1e6, 1e6),
    **dict.fromkeys(("db", "dc", "dd"), _RATE_MB),
    "n_max": whole(1, 1000),
    "d_weight": number(0, 1000),
}
_TREE = {**dict.fromkeys(("port", "switch", "backbone"), above_zero(parse_rate)), "latency": number(0, 1e6)}


def _state(key: str, value: Any) -> PowerState:
    state = build(PowerState, _STATE, value, ("watts",), name=name(key))
    if (state.full_watts is None) != (state.frequency is None):
        missing = "full_watts" if state.full_watts is None else "frequency"
        raise bad("missing", "frequency and full_watts together (DVFS), or neither (sleep)", key=missing)
    if state.full_watts is not None and state.full_watts < state.watts:
        raise bad(found(state.full_watts), f"at least watts, {state.watts:g}", key="full_watts")
    return state


def _power(value: Any) -> Power:
    power = build(Power, _POWER, value, ("idle",))
    by_core = [key for key in ("per_core", "per_socket", "idle_uncore") if key in value]
    if power.computing is not None and by_core:
        raise bad("given together with computing", "power by cores or by state, not both", key=by_core[0])
    if power.epsilon is not None and power.computing is None:
        raise bad("given without computing", "power by state: idle, epsilon and computing", key="epsilon")
    for low, high in (("idle", "computing"), ("budget_idle", "budget_computing")):
        least, most = getattr(power, low), getattr(power, high)
        if least is not None and most is not None and most < least:
            raise bad(found(most), f"at least {low}, {least:g}", key=high)
    return power


def _piecewise(value: Any) -> PiecewiseLinear:
    constants = build(PiecewiseLinear, _PIECEWISE, value, ("b", "c", "da", "db", "dc", "dd"))
    if constants.dc <= constants.n_max * constants.dd:
        raise bad(found(constants.dc), "more than n_max * dd, else d divides by zero", key="dc")
    return constants


_FACTOR, _PACE = number(1, 1000), number(0.01, 100)


def _co_run(value: Any) -> tuple[CoRun, ...]:
    """Read {job's profile: {neighbour's profile: factor}}."""

    def pairs(job: str, neighbours: Any) -> dict[str, CoRun]:
        return entries(neighbours, lambda key, part: CoRun(name(job), name(key), _FACTOR(part)))

    return tuple(pair for factors in entries(value, pairs).values() for pair in factors.values())


_NODE_TYPE: dict[str, Convert[Any]] = {
    "cores": whole(1, 100_000),
    "memory": above_zero(parse_size),
    "memory_bandwidth": above_zero(parse_rate),
    "sockets": whole(1, 10_000),
    "frequency": above_zero(parse_frequency),
    "speed": number(above=True),
    "loop_speed": number(above=True),
    "contention": choice(Contention),
    "contending_threads": choice(ContendingThreads),
    "cpu_sharing": choice(CpuSharing),
    "remote_access_penalty": number(1, 1000),
    "queueing": number(0, 1000),
    "power": _power,
    "piecewise": _piecewise,
    "co_run_inflation": _co_run,
}


def _node_type(key: str, value: Any) -> NodeType:
    kind = build(NodeType, _NODE_TYPE, value, ("cores", "memory", "memory_bandwidth"), name=name(key))
    if kind.sockets > kind.cores:
        raise bad(found(kind.sockets), f"at most one for each of the {count(kind.cores, 'core')}", key="sockets")
    if kind.contention is Contention.PIECEWISE_LINEAR and kind.piecewise is None:
        raise bad("missing", f"its constants {', '.join(_PIECEWISE)}", key="piecewise")
    if kind.contention is not Contention.PIECEWISE_LINEAR and kind.piecewise is not None:
        raise bad(f"given with contention {kind.contention}", "contention: piecewise-linear", key="piecewise")
    return kind


def _nodes(value: Any, types: dict[str, NodeType]) -> tuple[Node, ...]:
    if not isinstance(value, list) or not value:
        raise bad(found(value), 'a list such as [{names: "n[1-4]", type: fast}]')
    entry_of: dict[str, int] = {}
    domains: dict[str, NodeType] = {}
    nodes: list[Node] = []

    allowed = f"a node type of this file: {', '.join(map(shown, types))}"
    table: dict[str, Convert[Any]] = {
        "names": expand,
        "type": lambda wanted: types[one_of(wanted, types, allowed)],
        "relative_speed": _PACE,
        "memory_domain": name,
        "cpus": parse_cpus,
    }
    wrong = Collector()
    for i, part in enumerate(value):
        entry: dict[str, Any] | None = wrong.read(f"[{i}]", build, dict, table, part, ("names", "type"))
        if entry is None:
            continue
        entry["type"] = entry["type"].at_pace(entry.pop("relative_speed", 1.0))
        for node in entry.pop("names"):
            if node in entry_of:
                wrong.add(bad(f"node {node!r} is already in nodes[{entry_of[node]}]", "each once", key=f"[{i}].names"))
                break
            entry_of[node] = i
            nodes.append(Node(node, **entry))
        if len(nodes) > MOST_NODES:
            raise bad(f"more than {MOST_NODES} nodes")
        wrong.read(f"[{i}]", _check_entry, entry, domains)
    wrong.check()
    return tuple(nodes)


def _check_entry(entry: dict[str, Any], domains: dict[str, NodeType]) -> None:
    kind, domain, cpus = entry["type"], entry.get("memory_domain"), entry.get("cpus")
    if domain is not None and domains.setdefault(domain, kind) != kind:
        allowed = f"nodes of one type, here {domains[domain].name!r}"
        raise bad(f"{domain!r} has nodes of type {kind.name!r} too", allowed, key="memory_domain")
    if cpus is not None and len(cpus) < kind.cores:
        raise bad(f"found {len(cpus)} for {count(kind.cores, 'core')}", "at least one for each core", key="cpus")


def _oversubscription(value: Any) -> float:
    if value == "unlimited":
        return math.inf
    if isinstance(value, str):
        raise bad(found(value) + did_you_mean(value, ["unlimited"]), "a number above 0, or unlimited")
    return number(above=True)(value)


def _groups(value: Any, node_names: set[str]) -> dict[str, tuple[str, ...]]:
    def group(key: str, part: Any) -> tuple[str, ...]:
        name(key)
        names = expand(part)
        if unknown := next((node for node in names if node not in node_names), None):
            raise bad(f"{unknown!r} is not a node of this cluster{did_you_mean(unknown, node_names)}", "its nodes")
        return names

    return entries(value, group)


def parse_cluster(data: dict[str, Any], source: str) -> Cluster:
    """Return the cluster that a mapping describes.

    Args:
        data: as read from the file, `schema` included.
        source: the file's name, for messages.

    Raises:
        ConfigError: names the key, what was found and what is allowed.
    """
    return from_source(source, _cluster, check_schema(data, "cluster", source), source)


def _cluster(data: dict[str, Any], source: str) -> Cluster:
    table: dict[str, Convert[Any]] = {
        "name": name,
        "node_types": lambda value: entries(value, _node_type, "at least one node type"),
        **dict.fromkeys(("nodes", "clusters"), lambda value: value),
        "network": lambda value: build(Tree, _TREE, value, ("port",)),
        "oversubscription": _oversubscription,
    }
    wrong = Collector()
    parts: dict[str, Any] = wrong.read("", build, dict, table, data, ("node_types", "nodes")) or data
    types = parts.get("node_types")
    if wrong.errors:  # stand-ins, to find what is wrong with the nodes, too
        types = {str(key): NodeType(str(key), 1, 1.0, 1.0) for key in types} if isinstance(types, dict) else None
    nodes = wrong.read("nodes", _nodes, parts["nodes"], types) if types and "nodes" in parts else None
    nodes, node_names = nodes or (), {node.name for node in nodes or ()}
    groups = (
        wrong.read("clusters", _groups, parts["clusters"], node_names) if node_names and "clusters" in parts else None
    )
    wrong.check()
    tree = _with_nodes(parts["network"], nodes, groups or {}) if "network" in parts else None
    oversubscription = parts.get("oversubscription", 1.0)
    return Cluster(parts.get("name", "cluster"), nodes, oversubscription, groups or {}, source, tree)


def _with_nodes(tree: Tree, nodes: tuple[Node, ...], groups: dict[str, tuple[str, ...]]) -> Tree:
    """Return `tree` with its nodes: each in the first group that has it, the others in a group of their own."""
    first = {node: group for group, names in reversed(groups.items()) for node in names}
    number = {group: i for i, group in enumerate(dict.fromkeys(first.get(node.name, "") for node in nodes))}
    speeds = tuple(node.type.relative_speed for node in nodes)
    cores = tuple(node.type.cores for node in nodes)
    return replace(tree, speeds=speeds, cores=cores, group_of=tuple(number[first.get(node.name, "")] for node in nodes))


def read_cluster(path: str | Path) -> Cluster:
    """Return the cluster in a YAML or JSON file. Raises ConfigError, see `parse_cluster`."""
    return parse_cluster(read_document(path), str(path))


def _dump_type(kind: NodeType) -> dict[str, Any]:
    data = dump(kind, ("name", "variant_of", "pace"))
    data |= {"memory": _readable(kind.memory), "memory_bandwidth": _readable(kind.memory_bandwidth, rate=True)}
    if kind.frequency is not None:
        data["frequency"] = _frequency(kind.frequency)
    if kind.co_run_inflation:
        data["co_run_inflation"] = pairs = dict[str, dict[str, float]]()
        for pair in kind.co_run_inflation:
            pairs.setdefault(pair.job, {})[pair.neighbour] = pair.factor
    if kind.power and kind.power.states:
        data["power"]["states"] = {state.name: _dump_state(state) for state in kind.power.states}
    return data


def _dump_state(state: PowerState) -> dict[str, Any]:
    frequency = {} if state.frequency is None else {"frequency": _frequency(state.frequency)}
    return dump(state, ("name",)) | frequency


def _dump_entry(alike: Node, names: list[str]) -> dict[str, Any]:
    pace = {"relative_speed": alike.type.pace} if alike.type.variant_of else {}
    entry = {"names": _in_order(names), "type": alike.type.nominal.name, **pace, **dump(alike, ("name", "type"))}
    return entry | ({"cpus": fold_cpus(alike.cpus)} if alike.cpus else {})


def dump_cluster(cluster: Cluster) -> dict[str, Any]:
    """Return the mapping that `parse_cluster` reads back as this cluster; equal consecutive nodes share an entry."""
    groups = groupby(cluster.nodes, lambda node: replace(node, name=""))
    data: dict[str, Any] = {
        "schema": "pilotfish/cluster/v1",
        "name": cluster.name,
        "node_types": {kind.name: _dump_type(kind) for kind in map(attrgetter("type.nominal"), cluster.nodes)},
        "nodes": [_dump_entry(alike, [node.name for node in nodes]) for alike, nodes in groups],
        "oversubscription": "unlimited" if math.isinf(cluster.oversubscription) else cluster.oversubscription,
    }
    if cluster.groups:
        data["clusters"] = {key: _in_order(list(names)) for key, names in cluster.groups.items()}
    if isinstance(cluster.wiring, Tree):
        tree = dump(cluster.wiring, ("speeds", "cores", "group_of"))
        data["network"] = {key: part if key == "latency" else _readable(part, rate=True) for key, part in tree.items()}
    return data


def _readable(amount: float, *, rate: bool = False) -> str | float:
    """Return an amount as people write it if that is exact, else the number."""
    if not 1 <= amount < 1e15:
        return amount
    texts = (format_size(amount, rate=rate), *([] if rate else [f"{amount / 2**20:.0f}MiB"]))
    parse = parse_rate if rate else parse_size
    return next((text for text in texts if "e" not in text and parse(text) == amount), amount)


def _frequency(hertz: float) -> str | float:
    """Return a frequency in GHz if that is exact, else in Hz."""
    if not 1 <= hertz < 1e15:
        return hertz
    text = f"{hertz / 1e9:.9g}GHz"
    return text if "e" not in text and parse_frequency(text) == hertz else hertz


def _in_order(names: list[str]) -> str:
    """Fold names only if unfolding gives the same order."""
    folded = fold(names)
    return folded if expand(folded) == tuple(names) else ",".join(names)

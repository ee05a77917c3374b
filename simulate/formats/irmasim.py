"""IRMaSim's platforms (JSON) as clusters: nodes of processors of cores, with what a processor's memory and power are.

Rule: as IRMaSim, keys that it does not know are passed over; a type that the file does not define is looked for in
node_types.json and processor_types.json beside it. GHz, GB, MB/s and watts as there. What its code of today does in
another way than the paper (a weight of 0.6 in d, static power for each core) is as in the paper.
Where mem_bw is not said, a processor's bandwidth is c: from there on its tasks are slowed.
Source: IRMaSim's paper (Herrera et al., CCGrid 2021), III-A; its data/*_types.json, and the examples beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..platform import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from .hostlist import MOST_NODES
from .reading import read_document
from .shape import Convert, from_source, inside, listed, mapping, name, nearest, number, shown, whole
from .units import LARGEST, bad, found

_CONSTANTS: dict[str, Convert[float]] = {
    "b": number(-1e6, 0.0),
    "da": number(-1e6, 1e6),
    **{key: number(0.0, 1e12) for key in ("c", "db", "dc", "dd")},
}
_WATTS = number(0.0, 1e9)
#: The paper's names, and those of the examples.
_POWER = (("pa", "dynamic_power"), ("pb", "static_power"))
_PROCESSOR: dict[str, Convert[Any]] = {
    "cores": whole(1, 100_000),
    "clock_rate": number(above=True),
    "dpflops_per_cycle": number(above=True),
    "mem_bw": number(above=True),
    "min_power": number(0.0, 1.0),
    **_CONSTANTS,
    **{key: _WATTS for pair in _POWER for key in pair},
}
#: Where types are looked for that a platform does not define, beside it.
LIBRARY = {"node": "node_types.json", "processor": "processor_types.json"}


def is_irmasim(data: Mapping[str, Any]) -> bool:
    """Whether a document is a platform of IRMaSim's."""
    return "platform" in data and "schema" not in data


def parse_platform(data: Mapping[str, Any], source: str) -> Cluster:
    """The cluster of a document. Raises ConfigError, with the key. O(nodes)."""
    return from_source(source, _platform, data, source)


def _platform(data: Mapping[str, Any], source: str) -> Cluster:
    platforms = inside("platform", mapping, data["platform"])
    if len(platforms) != 1:
        raise bad(f"{len(platforms)} platforms", "one", key="platform")
    called, value = next(iter(platforms.items()))
    where = f"platform.{shown(called)}"
    given = inside(where, mapping, value)
    if given.get("model_name", "modelV1") != "modelV1":
        raise bad(found(given["model_name"]), "modelV1", key=f"{where}.model_name")
    clusters = inside(f"{where}.clusters", listed(_cluster, least=1), given.get("clusters"))
    wanted = dict.fromkeys(kind for _, parts in clusters for kind, _, _ in parts)
    kinds = {kind: _node_type(kind, data, Path(source).parent) for kind in wanted}
    nodes, groups = dict[str, Node](), dict[str, tuple[str, ...]]()
    for i, (group, parts) in enumerate(clusters):
        group, first = group or f"cluster{i}", len(nodes)
        count = 0
        for kind, own, many in parts:
            if len(nodes) + many > MOST_NODES:
                raise bad(f"more than {MOST_NODES} nodes", key=f"{where}.clusters[{i}]")
            for k in range(many):
                label = f"{group}.{own or f'node{count}'}" + (f"-{k}" if own and many > 1 else "")
                if label in nodes:
                    raise bad(f"{label!r} is there twice", "each once", key=f"{where}.clusters[{i}]")
                nodes[label] = Node(label, kinds[kind])
                count += 1
        groups[group] = tuple(nodes)[first:]
    return Cluster(shown(called), tuple(nodes.values()), groups=groups, source=source)


def _cluster(value: Any) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """Its name, and of its nodes type, name and number; no name is ""."""
    given = mapping(value)
    called = inside("id", name, given["id"]) if "id" in given else ""
    return called, inside("nodes", listed(_nodes, least=1), given.get("nodes"))


def _nodes(value: Any) -> tuple[str, str, int]:
    given = mapping(value)
    kind, own = (inside(key, name, given[key]) if key in given else "" for key in ("type", "id"))
    if not kind:
        raise bad("missing", "a type of node", key="type")
    return kind, own, inside("number", whole(1, MOST_NODES), given.get("number", 1))


def _defined(group: str, wanted: str, data: Mapping[str, Any], folder: Path) -> tuple[str, Any]:
    """Where a type is defined, and as what: in the file, or in the library beside it."""
    here, library = inside(group, mapping, data.get(group, {})), folder / LIBRARY[group]
    if wanted in here:
        return f"{group}.{shown(wanted)}", here[wanted]
    beside = read_document(library) if library.exists() else {}
    if wanted in beside:
        return f"{library.name}.{shown(wanted)}", beside[wanted]
    near = nearest(wanted, [*here, *beside])
    raise bad(f"no type {shown(wanted)!r}{near}", f"types here, or in {library.name} beside it", key=group)


def _node_type(called: str, data: Mapping[str, Any], folder: Path) -> NodeType:
    where, value = _defined("node", called, data, folder)
    processor, sockets, memory = inside(where, _node, value)
    where, value = _defined("processor", processor, data, folder)
    return inside(where, _kind, value, called, sockets, memory)


def _node(value: Any) -> tuple[str, int, float]:
    """The type of a node's processors, how many it has, and bytes of memory: more than enough where none are said."""
    parts = inside("processors", listed(mapping, least=1), mapping(value).get("processors"))
    kinds = {str(part.get("type")) for part in parts}
    if len(kinds) > 1:
        raise bad(f"processors of {len(kinds)} types", "of one type", key="processors")
    many = [inside(f"processors[{i}].number", whole(1, 10_000), part.get("number", 1)) for i, part in enumerate(parts)]
    memory = inside("memory", mapping, value.get("memory", {})).get("capacity", LARGEST / 1e9)
    return kinds.pop(), sum(many), inside("memory.capacity", number(0.0, LARGEST / 1e9, above=True), memory) * 1e9


def _kind(value: Any, called: str, sockets: int, memory: float) -> NodeType:
    """A node type of processors like this one."""
    given = {key: inside(key, _PROCESSOR[key], part) for key, part in mapping(value).items() if key in _PROCESSOR}
    for key in ("cores", "clock_rate"):
        if key not in given:
            raise bad("missing", "required here: cores, clock_rate", key=key)
    constants = {key: given[key] for key in _CONSTANTS if key in given}
    missing = [key for key in _CONSTANTS if key not in given]
    if constants and missing:
        raise bad("missing", f"all of {', '.join(_CONSTANTS)}, or none", key=missing[0])
    model = PiecewiseLinear(**constants) if constants else None
    if model is not None and model.dc <= model.n_max * model.dd:
        raise bad(found(model.dc), f"more than {model.n_max} dd, else d divides by zero", key="dc")
    pa, pb = (next((given[key] for key in keys if key in given), None) for keys in _POWER)
    if (pa is None) != (pb is None):
        raise bad("missing", "pa and pb, or dynamic_power and static_power", key="pa" if pa is None else "pb")
    power = None if pa is None or pb is None else Power(0.0, pa, pb, idle_uncore=given.get("min_power", 1.0))
    hertz, cores = given["clock_rate"] * 1e9, given["cores"] * sockets
    speed = hertz * given.get("dpflops_per_cycle", 1.0)
    bandwidth = given["mem_bw"] * 1e9 if "mem_bw" in given else constants.get("c", 0.0) * 1e6
    return NodeType(
        called, cores, memory, (bandwidth or LARGEST) * sockets, sockets, hertz, speed,
        Contention.PIECEWISE_LINEAR if model else Contention.NONE, power=power, piecewise=model,
    )  # fmt: skip

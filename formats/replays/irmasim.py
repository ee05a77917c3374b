"""IRMaSim's JSON: platforms as clusters, and workloads as rigid jobs.

Rule: unknown keys are ignored, as IRMaSim does. Units are IRMaSim's (GHz, GB, MB/s, MB, watts). A type that the file
does not define is read from node_types.json or processor_types.json in the same folder. Where IRMaSim's code and paper
differ (a weight of 0.6 in d, static power for each core), the paper is followed. A processor without mem_bw gets the
bandwidth c, from which on its tasks are slowed. A task runs for instructions / (IPC x frequency), on the slowest core
there is; `mem` and `mem_vol` belong to a task. In IRMaSim, req_time never ends a job, so jobs have no walltime; job
rules read req_time from the column `asked`.
Source: Herrera et al., "IRMaSim", CCGrid 2021, section III-A; data/*_types.json and the examples of its repository.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from ...simulate.model.workload import LONGEST, Workload, in_order
from ..documents.document_errors import bad, found, from_source, inside, shown
from ..documents.files import read_document
from ..documents.quantities import LARGEST, Convert, number, whole
from ..documents.schema import entries, listed, mapping, name, one_of, require
from ..hostlist import MOST_NODES

_CONSTANTS: dict[str, Convert[float]] = {
    "b": number(-1e6, 0.0),
    "da": number(-1e6, 1e6),
    **{key: number(0.0, 1e12) for key in ("c", "db", "dc", "dd")},
}
_WATTS = number(0.0, 1e9)
#: Names in the paper, and in the examples.
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
#: Files next to a platform that define types for it.
LIBRARY = {"node": "node_types.json", "processor": "processor_types.json"}


def is_irmasim_platform(data: Mapping[str, Any]) -> bool:
    """Return whether a document is an IRMaSim platform."""
    return "platform" in data and "schema" not in data


def parse_platform(data: Mapping[str, Any], source: str) -> Cluster:
    """Return the cluster of a platform document. O(nodes). Raises ConfigError with the key."""
    return from_source(source, _platform, data, source)


def _platform(data: Mapping[str, Any], source: str) -> Cluster:
    platforms = inside("platform", mapping, data["platform"])
    if len(platforms) != 1:
        raise bad(f"found {len(platforms)} platforms", "one", key="platform")
    platform_name, value = next(iter(platforms.items()))
    where = f"platform.{shown(platform_name)}"
    platform = inside(where, mapping, value)
    if platform.get("model_name", "modelV1") != "modelV1":
        raise bad(found(platform["model_name"]), "modelV1", key=f"{where}.model_name")
    clusters = inside(f"{where}.clusters", listed(_cluster, least=1), platform.get("clusters"))
    kind_names = dict.fromkeys(kind for _, parts in clusters for kind, _, _ in parts)
    kinds = {kind: _node_type(kind, data, Path(source).parent) for kind in kind_names}
    nodes, groups = dict[str, Node](), dict[str, tuple[str, ...]]()
    for i, (group, parts) in enumerate(clusters):
        group, first = group or f"cluster{i}", len(nodes)
        count = 0
        for kind, identity, repeats in parts:
            if len(nodes) + repeats > MOST_NODES:
                raise bad(f"more than {MOST_NODES} nodes", key=f"{where}.clusters[{i}]")
            for k in range(repeats):
                label = f"{group}.{identity or f'node{count}'}" + (f"-{k}" if identity and repeats > 1 else "")
                if label in nodes:
                    raise bad(f"node {label!r} is defined twice", "each once", key=f"{where}.clusters[{i}]")
                nodes[label] = Node(label, kinds[kind])
                count += 1
        groups[group] = tuple(nodes)[first:]
    return Cluster(shown(platform_name), tuple(nodes.values()), groups=groups, source=source)


def _cluster(value: Any) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """Return the name ("" = none) of a cluster, and (type, name, number) of each entry of its nodes."""
    cluster = _known_keys({"nodes": None, **mapping(value)}, {"id": name, "nodes": listed(_nodes, least=1)})
    return cluster.get("id", ""), cluster["nodes"]


def _nodes(value: Any) -> tuple[str, str, int]:
    node = _known_keys(value, {"type": name, "id": name, "number": whole(1, MOST_NODES)})
    require(node, ("type",), "a type of node")
    return node["type"], node.get("id", ""), node.get("number", 1)


def _definition(group: str, kind: str, data: Mapping[str, Any], folder: Path) -> tuple[str, Any]:
    """Return where a type is defined (in the file, or in the library next to it) and its definition."""
    types, library = inside(group, mapping, data.get(group, {})), folder / LIBRARY[group]
    if kind in types:
        return f"{group}.{shown(kind)}", types[kind]
    shared = read_document(library) if library.exists() else {}
    if kind in shared:
        return f"{library.name}.{shown(kind)}", shared[kind]
    near = did_you_mean(kind, [*types, *shared])
    raise bad(f"no type {shown(kind)!r}{near}", f"types of this file, or of {library.name} in its folder", key=group)


def _node_type(called: str, data: Mapping[str, Any], folder: Path) -> NodeType:
    where, value = _definition("node", called, data, folder)
    processor, sockets, memory = inside(where, _node, value)
    where, value = _definition("processor", processor, data, folder)
    return inside(where, _kind, value, called, sockets, memory)


def _node(value: Any) -> tuple[str, int, float]:
    """Return the processor type of a node, the number of processors, and bytes of memory (unlimited by default)."""
    parts = inside("processors", listed(mapping, least=1), mapping(value).get("processors"))
    kinds = {str(part.get("type")) for part in parts}
    if len(kinds) > 1:
        raise bad(f"found processors of {len(kinds)} types", "processors of one type", key="processors")
    counts = [
        inside(f"processors[{i}].number", whole(1, 10_000), part.get("number", 1)) for i, part in enumerate(parts)
    ]
    memory = inside("memory", mapping, value.get("memory", {})).get("capacity", LARGEST / 1e9)
    return kinds.pop(), sum(counts), inside("memory.capacity", number(0.0, LARGEST / 1e9, above=True), memory) * 1e9


def _kind(value: Any, called: str, sockets: int, memory: float) -> NodeType:
    """Return the node type made of such processors."""
    processor = _known_keys(value, _PROCESSOR)
    require(processor, ("cores", "clock_rate"))
    constants = {key: processor[key] for key in _CONSTANTS if key in processor}
    if constants:
        require(processor, _CONSTANTS, f"all of {', '.join(_CONSTANTS)}, or none")
    model = PiecewiseLinear(**constants) if constants else None
    if model is not None and model.dc <= model.n_max * model.dd:
        raise bad(found(model.dc), f"more than {model.n_max} dd, else d divides by zero", key="dc")
    pa, pb = (next((processor[key] for key in keys if key in processor), None) for keys in _POWER)
    if (pa is None) != (pb is None):
        raise bad("missing", "pa and pb, or dynamic_power and static_power", key="pa" if pa is None else "pb")
    power = None if pa is None or pb is None else Power(0.0, pa, pb, idle_uncore=processor.get("min_power", 1.0))
    hertz, cores = processor["clock_rate"] * 1e9, processor["cores"] * sockets
    speed = hertz * processor.get("dpflops_per_cycle", 1.0)
    bandwidth = processor["mem_bw"] * 1e9 if "mem_bw" in processor else constants.get("c", 0.0) * 1e6
    return NodeType(
        called, cores, memory, (bandwidth or LARGEST) * sockets, sockets, hertz, speed,
        Contention.PIECEWISE_LINEAR if model else Contention.NONE, power=power, piecewise=model,
    )  # fmt: skip


_MB = 1e6
_COUNT = whole(1, 2**53)
#: Keys of a profile or of a job; `cpu` is req_ops in the paper.
_TASK: dict[str, Convert[Any]] = {
    "req_ops": number(),
    "cpu": number(),
    "ipc": number(above=True),
    **dict.fromkeys(("req_time", "mem", "mem_vol"), number()),
}
_JOB: dict[str, Convert[Any]] = {
    "id": name,
    "subtime": number(0, LONGEST),
    **dict.fromkeys(("res", "nodes", "ntasks", "ntasks_per_node"), _COUNT),
    **_TASK,
}


class _Job(NamedTuple):
    """A job; `run` and `asked` are seconds, `memory` and `volume` MB, all of one task."""

    called: str
    profile: str
    submit: float
    tasks: int
    run: float
    memory: float
    volume: float
    asked: float


def is_irmasim_workload(data: Any) -> bool:
    """Return whether a document is an IRMaSim workload: its jobs or their profiles count instructions.

    A profile may have a `type` of Batsim's as well, which IRMaSim ignores.
    """
    if not isinstance(data, dict):
        return False
    profiles, jobs = data.get("profiles"), data.get("jobs")
    parts = [*(profiles.values() if isinstance(profiles, dict) else ()), *(jobs if isinstance(jobs, list) else ())]
    keys = [part.keys() for part in parts if isinstance(part, dict)]
    return any({"req_ops", "ipc"} <= names or ("type" not in names and names & {"req_ops", "ipc"}) for names in keys)


def parse_irmasim(
    data: Mapping[str, Any], path: Path, *, speeds: Collection[float] = (), skip_invalid: bool = False
) -> Workload:
    """Return the jobs of a document in the order of submission. O(jobs).

    Args:
        data: the JSON document.
        path: its file, for messages and the name of the workload.
        speeds: cycles/s of all cores of the machine.
        skip_invalid: leave out, and count, invalid jobs.

    Raises:
        ConfigError: an invalid job, or `speeds` is empty.
    """
    return from_source(str(path), _workload, data, path, speeds, skip_invalid)


def _workload(data: Mapping[str, Any], path: Path, speeds: Collection[float], skip_invalid: bool) -> Workload:
    if not speeds:
        problem = "its jobs count instructions, but the speed of the cores is unknown"
        raise bad(problem, "--cluster with the speed of each node type, cycles/s of a core")
    profiles = inside("profiles", entries, data.get("profiles", {}), lambda key, part: _task_keys(part, _TASK))
    jobs, refused, slowest = list[_Job](), 0, min(speeds)
    for i, part in enumerate(inside("jobs", listed(lambda each: each), data.get("jobs"))):
        try:
            jobs.append(inside(f"jobs[{i}]", _job, part, i, profiles, slowest))
        except ConfigError:
            if not skip_invalid:
                raise
            refused += 1
    kinds = (object, object, float, np.int64, float, float, float, float)
    columns = [np.array([job[i] for job in jobs], kind) for i, kind in enumerate(kinds)]
    called, profile, submit, tasks, run, memory, volume, requested = columns
    more = {"name": called, "profile": profile, "memory": memory * _MB, "volume": volume * _MB, "asked": requested}
    machine = inside("nb_res", _COUNT, data["nb_res"]) if "nb_res" in data else None
    left_out = {"jobs that cannot be replayed": refused} if refused else {}
    return in_order(
        Workload(
            path.name.removesuffix(".gz").removesuffix(".json"), np.arange(1, len(jobs) + 1), submit,
            run, np.full(len(jobs), math.inf), tasks,
            more=more, machine=machine, left_out=left_out,
        )
    )  # fmt: skip


def _known_keys(value: Any, table: Mapping[str, Convert[Any]]) -> dict[str, Any]:
    return {key: inside(key, table[key], part) for key, part in mapping(value).items() if key in table}


def _task_keys(value: Any, table: Mapping[str, Convert[Any]]) -> dict[str, Any]:
    """Return the known keys of a profile or job; next to req_ops, `cpu` is Batsim's."""
    part = mapping(value)
    return _known_keys({key: one for key, one in part.items() if key != "cpu" or "req_ops" not in part}, table)


def _job(value: Any, i: int, profiles: Mapping[str, Mapping[str, Any]], speed: float) -> _Job:
    job = _task_keys(value, _JOB)
    profile, task = value.get("profile", ""), cast("Mapping[str, Any]", job)
    if profile:
        task = dict(profiles[inside("profile", one_of, profile, profiles, "a profile of this file")])
    work = next((task[key] for key in ("req_ops", "cpu") if key in task), None)
    for key, part in (("subtime", job.get("subtime")), ("req_ops", work), ("ipc", task.get("ipc"))):
        if part is None:
            raise bad("missing", "subtime of the job, and req_ops and ipc of the job or its profile", key=key)
    seconds = work / task["ipc"] / speed
    if seconds > LONGEST:
        raise bad(f"the job takes {seconds:g} seconds", f"at most {LONGEST:g}", key="req_ops")
    requested, memory, volume = task.get("req_time", math.inf), task.get("mem", 0.0), task.get("mem_vol", 0.0)
    called = job.get("id", f"job{i}")
    return _Job(called, profile or called, job["subtime"], _tasks(job), seconds, memory, volume, requested)


def _tasks(job: Mapping[str, Any]) -> int:
    """Return the number of tasks: stated directly, or nodes times tasks on each."""
    total = job.get("res", job.get("ntasks", job.get("nodes", 0) * job.get("ntasks_per_node", 1)))
    if not total:
        raise bad("missing", "res, or ntasks, or nodes", key="res")
    return int(total)

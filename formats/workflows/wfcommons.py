"""WfCommons WfFormat: read instances of versions 1.0 to 1.6; write version 1.5.

Rule: a task keeps its dependencies, cores, run time, CPU use and memory; unknown keys are ignored, as the format's
documentation says. What is written reads back as the same tasks, to the last bit, one task a line. The format requires
a date and a makespan: the epoch stands for an unknown date, the critical path for the makespan.
Source: the schema and migration tool of github.com/wfcommons/WfFormat. Up to 1.3 `runtime` is in s and `memory` in kB;
1.4 has runtimeInSeconds and memoryInBytes; 1.5 splits specification from execution and refers to tasks by id (before:
by name); 1.6 adds optional metrics.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from ...simulate.model.job import DEFAULT_PROFILE, Provenance
from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, found, from_source, inside, shown
from ..documents.quantities import LARGEST, Convert, is_number, number, plain
from ..documents.schema import listed, mapping, name
from ..text import count
from .workflow_tasks import TINY_S, Task, Tasks, earliest, title

VERSIONS = "1.0 to 1.6"
_positive = number(0, LARGEST)
_seconds, _cores = number(0, LONGEST), number(0, 1e6)
_items = listed(mapping)


def wfcommons_tasks(data: dict[str, Any], source: str) -> Tasks:
    """Return the tasks of a WfFormat instance as recorded. O(tasks + dependencies).

    Args:
        data: the JSON document.
        source: the file's name, for messages.

    Raises:
        ConfigError: no tasks, or an invalid number; the key is named.
    """
    return from_source(source, _tasks, data, source)


def _tasks(data: dict[str, Any], source: str) -> Tasks:
    version = _version(data.get("schemaVersion"))
    body = inside("workflow", mapping, data.get("workflow"))
    specification = inside("workflow.specification", mapping, body.get("specification", body))
    key = "tasks" if "tasks" in specification or "jobs" not in specification else "jobs"
    where = f"workflow.specification.{key}" if "specification" in body else f"workflow.{key}"
    tasks = inside(where, listed(mapping, least=1), specification.get(key))
    ids = inside(where, _identities, tasks, "specification" in body)
    if "specification" in body:
        execution = inside("workflow.execution", mapping, body.get("execution") or {})
        runs = inside("workflow.execution.tasks", _runs, execution)
    else:
        execution, runs = body, dict(zip(ids, tasks, strict=True))
    after = inside(where, _dependencies, tasks, ids)
    read = []
    for i, (identity, task) in enumerate(zip(ids, tasks, strict=True)):
        run = runs.get(identity) or runs.get(str(task.get("id"))) or {}
        read.append(inside(f"{where}[{i}]", _task, identity, task, run, tuple(after[identity])))
    warnings = (*_warnings(read, version), *_speed_warnings(execution))
    origin = Provenance("measured", note="a WfFormat trace")
    return Tasks(title(data.get("name")), tuple(read), source, _extras(tasks, runs), warnings, origin)


def _warnings(tasks: list[Task], version: str) -> Iterator[str]:
    yield f"WfFormat {version} records no memory bandwidth: taken as 0, so no memory contention is forecast"
    if unknown := sum(task.time is None for task in tasks):
        assumed = DEFAULT_PROFILE.provenance.note
        number = count(unknown, "of the tasks has", "of the tasks have")
        yield f"{number} no recorded run time: planned with the default ({assumed})"
    if zero := sum(task.time == 0 for task in tasks):
        number = count(zero, "of the tasks has", "of the tasks have")
        yield f"{number} a recorded run time of zero: taken as {TINY_S:g} s"
    if busy := sum(task.time is not None and task.busy_cores > task.cores * 1.005 for task in tasks):
        yield f"{busy:,} of the tasks used more CPU than their recorded cores: utilisation taken as 1"


def _task(identity: str, specified: dict[str, Any], run: dict[str, Any], after: tuple[str, ...]) -> Task:
    def recorded(convert: Convert[float], *keys: str) -> tuple[str, float | None]:
        """Return the first key with a value, and the value."""
        key = next((key for key in keys if run.get(key) is not None), "")
        return key, inside(key, convert, run[key]) if key else None

    key, memory = recorded(_positive, "memoryInBytes", "memory")
    _, time = recorded(_seconds, "runtimeInSeconds", "runtime")
    cores = max(1.0, recorded(_cores, "coreCount", "cores")[1] or 1.0)
    busy = recorded(_positive, "avgCPU")[1]
    if busy is None and cores != math.ceil(cores):
        busy = cores * 100
    program = specified.get("name")
    label = program if isinstance(program, str) else ""
    scale = 1000 if key == "memory" else 1
    return Task(identity, time, after, math.ceil(cores), busy, (memory or 0.0) * scale, name=label)


def _extras(tasks: tuple[dict[str, Any], ...], runs: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Count the tasks that have a command, and those that have files."""
    keys = ("files", "inputFiles", "outputFiles")
    return {
        "commands": sum(bool(run.get("command")) for run in runs.values()),
        "files": sum(any(task.get(key) for key in keys) for task in tasks),
    }


def _version(value: Any) -> str:
    text = str(value) if isinstance(value, float) else value
    if text is not None and (not isinstance(text, str) or not re.fullmatch(r"1\.[0-9]{1,3}", text)):
        raise bad(found(value), f"a WfFormat version, {VERSIONS}", key="schemaVersion")
    return text or "(version not stated)"


def _identities(tasks: tuple[dict[str, Any], ...], by_id: bool) -> list[str]:
    """Return the job id of each task: its id from 1.5 on, before that its name, made unique where tasks share it."""
    if by_id:
        return [inside(f"[{i}].id", name, task.get("id", task.get("name"))) for i, task in enumerate(tasks)]
    names = [inside(f"[{i}].name", name, task.get("name", task.get("id"))) for i, task in enumerate(tasks)]
    if len(set(names)) == len(names):
        return names
    return [f"{label}_{shown(task.get('id', i))}" for i, (label, task) in enumerate(zip(names, tasks, strict=True))]


def _runs(execution: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(run.get("id")): run for run in _items(execution.get("tasks") or [])}


def _dependencies(tasks: tuple[dict[str, Any], ...], ids: list[str]) -> dict[str, dict[str, None]]:
    """Return the predecessors of each task, in order, from `parents` and `children` (either may declare an edge)."""
    identity_of = {
        str(task.get(key)): identity for key in ("name", "id") for task, identity in zip(tasks, ids, strict=True)
    }
    identity_of |= {identity: identity for identity in ids}
    after: dict[str, dict[str, None]] = {identity: {} for identity in ids}
    for i, (identity, task) in enumerate(zip(ids, tasks, strict=True)):
        for parent in inside(f"[{i}].parents", listed(name), task.get("parents") or []):
            after[identity][identity_of.get(parent, parent)] = None
        for position, child in enumerate(inside(f"[{i}].children", listed(name), task.get("children") or [])):
            if child not in identity_of:
                raise bad(
                    f"{child!r} is not a task of this file", "ids of its tasks", key=f"[{i}].children[{position}]"
                )
            after[identity_of[child]][identity] = None
    return after if any(after.values()) else _by_files(tasks, ids)


def _by_files(tasks: tuple[dict[str, Any], ...], ids: list[str]) -> dict[str, dict[str, None]]:
    """Return the predecessors of each task if none declares any: readers of a file follow its writer (up to 1.4)."""
    writers: dict[str, str] = {}
    reads: list[tuple[str, str]] = []
    for i, (identity, task) in enumerate(zip(ids, tasks, strict=True)):
        for file in inside(f"[{i}].files", _items, task.get("files") or []):
            if file.get("link") == "output":
                writers.setdefault(str(file.get("name")), identity)
            else:
                reads.append((identity, str(file.get("name"))))
    after: dict[str, dict[str, None]] = {identity: {} for identity in ids}
    for reader, file_name in reads:
        if (writer := writers.get(file_name, reader)) != reader:
            after[reader][writer] = None
    return after


def _speed_warnings(execution: dict[str, Any]) -> Iterator[str]:
    speeds: set[float] = set()
    machines = execution.get("machines")
    for machine in machines if isinstance(machines, list) else []:
        cpu = machine.get("cpu") if isinstance(machine, dict) else None
        speed = cpu.get("speedInMHz", cpu.get("speed")) if isinstance(cpu, dict) else None
        if is_number(speed) and 0 < speed < 1e6:
            speeds.add(speed)
    if speeds:
        listing = ", ".join(f"{speed:g}" for speed in sorted(speeds)[:5])
        yield f"run times were recorded on machines of {listing} MHz and are not rescaled"


_UNKNOWN_DATE = "1970-01-01T00:00:00+00:00"


def dump_wfcommons(given: Tasks, note: str) -> str:
    """Return the text of an instance. O(tasks + dependencies).

    Args:
        given: the tasks to write.
        note: the description of the instance.
    """
    children: dict[str, list[str]] = {task.id: [] for task in given.tasks}
    for task in given.tasks:
        for before in dict.fromkeys(task.after):
            children[before].append(task.id)
    specified = [_specified(task, children[task.id]) for task in given.tasks]
    executed = [_executed(task) for task in given.tasks if task.time is not None]
    head = {"name": given.name, "description": note, "schemaVersion": "1.5"}
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    body = f'"specification": {{"tasks": [\n{_lines(specified)}\n], "files": []}}'
    if executed:
        makespan = json.dumps(plain(max(end for _, end in earliest(given.tasks))))
        body += f',\n"execution": {{"makespanInSeconds": {makespan}, "executedAt": "{_UNKNOWN_DATE}", "tasks": [\n'
        body += f"{_lines(executed)}\n]}}"
    return f'{{\n{text},\n"workflow": {{\n{body}\n}}\n}}\n'


def _lines(rows: list[dict[str, Any]]) -> str:
    return ",\n".join(map(json.dumps, rows))


def _specified(task: Task, children: list[str]) -> dict[str, Any]:
    return {"name": task.name or task.id, "id": task.id, "parents": [*dict.fromkeys(task.after)], "children": children}


def _executed(task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "runtimeInSeconds": plain(task.time or 0.0), "coreCount": task.cores}
    if task.busy is not None:
        row["avgCPU"] = plain(task.busy)
    if task.memory:
        row["memoryInBytes"] = plain(task.memory)
    return row

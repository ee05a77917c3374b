"""WfCommons WfFormat 1.5, written: the counterpart of `wfcommons`.

Rule: what is written is read back as the same tasks, to the last bit; a task a line. Of a task without a run time no
more is said than who it waits for. The format wants to know when the
workflow ran, and for how long: the epoch stands for not known, and the longest path for the machine without limits.
Source: the schema of github.com/wfcommons/WfFormat.
"""

from __future__ import annotations

import json
from typing import Any

from .batsim import plain
from .tasks import Task, Tasks
from .unrolled import earliest

_NEVER = "1970-01-01T00:00:00+00:00"


def dump_wfcommons(given: Tasks, note: str) -> str:
    """The text of an instance. O(tasks + dependencies).

    Args:
        note: its description.
    """
    children: dict[str, list[str]] = {task.id: [] for task in given.tasks}
    for task in given.tasks:
        for before in dict.fromkeys(task.after):
            children[before].append(task.id)
    told = [_specified(task, children[task.id]) for task in given.tasks]
    ran = [_ran(task) for task in given.tasks if task.time is not None]
    head = {"name": given.name, "description": note, "schemaVersion": "1.5"}
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    body = f'"specification": {{"tasks": [\n{_lines(told)}\n], "files": []}}'
    if ran:
        makespan = json.dumps(plain(max(end for _, end in earliest(given.tasks))))
        body += f',\n"execution": {{"makespanInSeconds": {makespan}, "executedAt": "{_NEVER}", "tasks": [\n'
        body += f"{_lines(ran)}\n]}}"
    return f'{{\n{text},\n"workflow": {{\n{body}\n}}\n}}\n'


def _lines(rows: list[dict[str, Any]]) -> str:
    return ",\n".join(map(json.dumps, rows))


def _specified(task: Task, children: list[str]) -> dict[str, Any]:
    return {"name": task.name or task.id, "id": task.id, "parents": [*dict.fromkeys(task.after)], "children": children}


def _ran(task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "runtimeInSeconds": plain(task.time or 0.0), "coreCount": task.cores}
    if task.busy is not None:
        row["avgCPU"] = plain(task.busy)
    if task.memory:
        row["memoryInBytes"] = plain(task.memory)
    return row

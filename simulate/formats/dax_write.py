"""Pegasus DAX 3.6, written: the counterpart of `dax`.

Rule: what is written is read back as the same tasks, but for the last bit of memory, which is in megabytes; run time,
cores and memory are profiles of the namespace pegasus.
Source: the DAX 3.6 schema (pegasus.isi.edu/schema).
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from .batsim import plain
from .tasks import Task, Tasks

_SCHEMA = "http://pegasus.isi.edu/schema/DAX"


def dump_dax(given: Tasks, note: str) -> str:
    """The text of a document. O(tasks + dependencies).

    Args:
        note: a comment at the top.
    """
    told = " ".join(note.split()).replace("--", "- -")
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<!-- {told} -->"]
    head.append(f'<adag xmlns="{_SCHEMA}" version="3.6" name={quoteattr(given.name)}>')
    jobs = [line for task in given.tasks for line in _job(task)]
    after = [_child(task) for task in given.tasks if task.after]
    return "\n".join([*head, *jobs, *after, "</adag>"]) + "\n"


def _job(task: Task) -> Iterator[str]:
    said = {"runtime": task.time, "cores": task.cores if task.cores > 1 else None, "memory": task.memory / 1e6 or None}
    yield f"  <job id={quoteattr(task.id)} name={quoteattr(task.name or task.id)}>"
    for key, value in said.items():
        if value is not None:
            yield f'    <profile namespace="pegasus" key="{key}">{plain(float(value))}</profile>'
    yield "  </job>"


def _child(task: Task) -> str:
    parents = "".join(f"<parent ref={quoteattr(before)}/>" for before in dict.fromkeys(task.after))
    return f"  <child ref={quoteattr(task.id)}>{parents}</child>"

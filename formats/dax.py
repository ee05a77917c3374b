"""Pegasus DAX: read abstract workflows in XML, versions 2.x and 3.x; write version 3.6.

Rule: elements are known by their local names, whatever their namespace; document types and entities are refused before
they are read. What is written reads back as the same tasks, except for the last bit of memory, which is in megabytes.
Run time, cores and memory are written as profiles of the namespace pegasus.
Source: the DAX 2.1 to 3.6 schemas (pegasus.isi.edu/schema), and the `runtime` attribute that Pegasus' workflow
generator adds to jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from ..simulate.model.job import Provenance
from ..simulate.model.workload import LONGEST
from .schema import Convert, bad, found, from_source, inside, name, number, plain
from .workflow_tasks import TINY_S, Task, Tasks, default_warning, title
from .xml import XmlReader

#: Elements of a job that a Task cannot hold, and what they are called in a report of what is lost.
_EXTRAS = {"argument": "commands", "uses": "files"}


def dax_tasks(data: bytes, source: str) -> Tasks:
    """Return the tasks of a DAX document as recorded. O(bytes).

    A job runs for its `runtime` (attribute, or profile pegasus/runtime) on its cores (profile pegasus/cores, default 1)
    with its memory (profile pegasus/memory, MB).

    Args:
        data: the XML, in the encoding that it declares.
        source: the file's name, for messages.

    Raises:
        ConfigError: not XML (with the line), not a DAX, a document type, or an invalid number.
    """
    return from_source(source, _Reader().tasks, data, source)


class _Reader(XmlReader):
    """Read the elements of a DAX document; `job` and `child` are the open elements."""

    def __init__(self) -> None:
        super().__init__()
        self.label = "workflow"
        self.jobs: list[tuple[int, dict[str, str]]] = []
        self.after: dict[str, dict[str, None]] = {}
        self.child_lines: dict[str, int] = {}
        self.job: dict[str, str] | None = None
        self.child: str | None = None
        self.profile_key: str | None = None
        self.text = ""
        self.extras: dict[str, set[int]] = {what: set() for what in _EXTRAS.values()}

    def tasks(self, data: bytes, source: str) -> Tasks:
        self.read(data)
        ids = {job.get("id") for _, job in self.jobs}
        for child, line in self.child_lines.items():
            if child not in ids:
                raise bad(f"child {child[:100]!r} is not a job of this file", "the id of a job", key=f"line {line}")
        tasks = tuple(inside(f"line {line}", self.task, job) for line, job in self.jobs)
        if not tasks:
            raise bad("no jobs", "at least one job element")
        extras = {what: len(who) for what, who in self.extras.items()}
        return Tasks(self.label, tasks, source, extras, tuple(_warnings(tasks)), Provenance("given", note="a DAX file"))

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """See `XmlReader`."""
        if self.depth == 1 and tag != "adag":
            raise bad(f"the element {tag[:60]!r}", "adag, the root of a DAX", key=self.here())
        if self.depth == 1:
            self.label = title(attributes.get("name"))
        elif self.depth == 2 and tag in ("job", "dag", "dax"):
            self.job = dict(attributes)
            self.jobs.append((self.line, self.job))
        elif self.depth == 2 and tag == "child":
            self.child = self.reference(attributes)
            self.child_lines.setdefault(self.child, self.line)
        elif self.depth == 3 and tag == "parent" and self.child is not None:
            self.after.setdefault(self.child, {})[self.reference(attributes)] = None
        elif self.depth == 3 and tag in _EXTRAS and self.job is not None:
            self.extras[_EXTRAS[tag]].add(len(self.jobs))
        elif self.depth == 3 and tag == "profile" and attributes.get("namespace", "").lower() == "pegasus":
            self.profile_key, self.text = attributes.get("key", "").lower(), ""

    def reference(self, attributes: dict[str, str]) -> str:
        if not attributes.get("ref"):
            raise bad("no ref", "ref, the id of a job", key=self.here())
        return attributes["ref"]

    def characters(self, data: str) -> None:
        """See `XmlReader`."""
        if self.profile_key is not None:
            self.text += data

    def end(self, tag: str) -> None:
        """See `XmlReader`."""
        if self.depth == 3 and self.profile_key is not None and self.job is not None:
            self.job.setdefault(self.profile_key, self.text)
            self.profile_key = None
        if self.depth == 2:
            self.job = self.child = None

    def task(self, job: dict[str, str]) -> Task:
        identity = inside("id", name, job.get("id"))
        memory = inside("memory", _of_text(number(0, 1e12)), job.get("memory", "0")) * 1e6
        time = inside("runtime", _of_text(number(0, LONGEST)), job["runtime"]) if "runtime" in job else None
        cores = inside("cores", _of_text(number(1, 1e6)), job.get("cores", "1"))
        after = tuple(self.after.get(identity, ()))
        return Task(identity, time, after, math.ceil(cores), memory=memory, name=job.get("name", ""))


def _warnings(tasks: tuple[Task, ...]) -> Iterator[str]:
    yield "DAX records no memory bandwidth: taken as 0, so no memory contention is forecast"
    if zero := sum(task.time == 0 for task in tasks):
        yield f"{zero} of the jobs have a run time of zero: taken as {TINY_S:g} s"
    if unknown := [task.id for task in tasks if task.time is None]:
        yield from default_warning(unknown)


def _of_text(convert: Convert[float]) -> Convert[float]:
    def parse(text: str) -> float:
        try:
            given = float(text)
        except ValueError:
            raise bad(found(text), "a number") from None
        return convert(given)

    return parse


_SCHEMA = "http://pegasus.isi.edu/schema/DAX"


def dump_dax(given: Tasks, note: str) -> str:
    """Return the text of a DAX document. O(tasks + dependencies).

    Args:
        given: the tasks to write.
        note: a comment at the top.
    """
    comment = " ".join(note.split()).replace("--", "- -")
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<!-- {comment} -->"]
    head.append(f'<adag xmlns="{_SCHEMA}" version="3.6" name={quoteattr(given.name)}>')
    jobs = [line for task in given.tasks for line in _job(task)]
    after = [_child(task) for task in given.tasks if task.after]
    return "\n".join([*head, *jobs, *after, "</adag>"]) + "\n"


def _job(task: Task) -> Iterator[str]:
    profiles = {
        "runtime": task.time,
        "cores": task.cores if task.cores > 1 else None,
        "memory": task.memory / 1e6 or None,
    }
    yield f"  <job id={quoteattr(task.id)} name={quoteattr(task.name or task.id)}>"
    for key, value in profiles.items():
        if value is not None:
            yield f'    <profile namespace="pegasus" key="{key}">{plain(float(value))}</profile>'
    yield "  </job>"


def _child(task: Task) -> str:
    parents = "".join(f"<parent ref={quoteattr(before)}/>" for before in dict.fromkeys(task.after))
    return f"  <child ref={quoteattr(task.id)}>{parents}</child>"

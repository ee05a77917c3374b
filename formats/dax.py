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

from ..simulate.errors import ConfigError
from ..simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from ..simulate.model.workload import LONGEST
from .schema import bad, found, from_source, inside, name, number, plain
from .workflow_tasks import TINY_S, ProfilePool, Task, Tasks, check_graph, default_warning
from .xml import XmlReader

_TRACE = Provenance("given", note="a DAX file")
_seconds = number(0, LONGEST)
_cores = number(1, 1e6)
_megabytes = number(0, 1e12)
#: Elements of a job that a Task cannot hold, and what they are called in a report of what is lost.
_EXTRAS = {"argument": "commands", "uses": "files"}


def parse_dax(data: bytes, source: str) -> Workflow:
    """Return the workflow of a DAX document. O(bytes).

    A job runs for its `runtime` (attribute, or profile pegasus/runtime) on its cores (profile pegasus/cores, default 1)
    with its memory (profile pegasus/memory, MB). DAX records no memory bandwidth; it is taken as 0.

    Args:
        data: the XML, in the encoding that it declares.
        source: the file's name, for messages.

    Raises:
        ConfigError: not XML (with the line), not a DAX, a document type, or an invalid number.
        InvalidJobError: a duplicate job, an unknown parent or child, or a cycle.
    """
    return check_graph(from_source(source, _Reader(source).workflow, data))


def dax_tasks(data: bytes, source: str) -> Tasks:
    """Return the tasks of a DAX document as recorded; arguments and errors as in `parse_dax`."""
    found = from_source(source, _Reader(source).tasks, data)
    check_graph(found.graph())
    return found


class _Reader(XmlReader):
    """Read the elements of a DAX document; `job` and `child` are the open elements."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.label = "workflow"
        self.jobs: list[tuple[int, dict[str, str]]] = []
        self.after: dict[str, dict[str, None]] = {}
        self.child_lines: dict[str, int] = {}
        self.job: dict[str, str] | None = None
        self.child: str | None = None
        self.profile_key: str | None = None
        self.text = ""
        self.zero = 0
        self.unknown: list[str] = []
        self.interned = ProfilePool()
        self.extras: dict[str, set[int]] = {"commands": set(), "files": set()}

    def workflow(self, data: bytes) -> Workflow:
        given = self.tasks(data)
        jobs = tuple(Job(task.id, self.profile(task), task.after, memory=task.memory) for task in given.tasks)
        warnings = ["DAX records no memory bandwidth: taken as 0, so no memory contention is forecast"]
        if self.zero:
            warnings.append(f"{self.zero} of the jobs have a run time of zero: taken as {TINY_S:g} s")
        if self.unknown:
            warnings += default_warning(self.unknown)
        return Workflow(given.name, jobs, self.source, tuple(warnings))

    def tasks(self, data: bytes) -> Tasks:
        self.read(data)
        ids = {job.get("id") for _, job in self.jobs}
        for child, line in self.child_lines.items():
            if child not in ids:
                raise bad(f"child {child[:100]!r} is not a job of this file", "the id of a job", key=f"line {line}")
        tasks = tuple(inside(f"line {line}", self.task, job) for line, job in self.jobs)
        if not tasks:
            raise bad("no jobs", "at least one job element")
        return Tasks(self.label, tasks, self.source, {what: len(who) for what, who in self.extras.items()})

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """See `XmlReader`."""
        if self.depth == 1 and tag != "adag":
            raise bad(f"the element {tag[:60]!r}", "adag, the root of a DAX", key=self.here())
        if self.depth == 1:
            self.label = _label(attributes.get("name", ""))
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
        memory = inside("memory", lambda text: _megabytes(_number(text)), job.get("memory", "0")) * 1e6
        time = None
        if "runtime" in job:
            time = inside("runtime", lambda text: _seconds(_number(text)), job["runtime"])
        cores = inside("cores", lambda text: _cores(_number(text)), job.get("cores", "1"))
        after = tuple(self.after.get(identity, ()))
        return Task(identity, time, after, math.ceil(cores), memory=memory, name=job.get("name", ""))

    def profile(self, task: Task) -> Profile:
        if task.time is None:
            self.unknown.append(task.id)
            return DEFAULT_PROFILE
        self.zero += task.time == 0
        return self.interned.one(Profile((ThreadGroup(task.cores, max(task.time, TINY_S)),), provenance=_TRACE))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise bad(found(text), "a number") from None


def _label(text: str) -> str:
    try:
        return name(text.replace("/", "-").strip())
    except ConfigError:
        return "workflow"


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

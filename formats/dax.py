"""Pegasus DAX (abstract workflows in XML, versions 2.x and 3.x) as workflows.

Rule: elements are known by their local names, whatever their namespace; a document type, and with it every
entity, is refused before it is read. Source: the DAX 2.1 to 3.6 schemas (pegasus.isi.edu/schema), and the
`runtime` attribute that Pegasus' workflow generator writes on a job.
"""

from __future__ import annotations

import math

from ..errors import ConfigError
from ..job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from ..workload import LONGEST
from .elements import Elements
from .shape import from_source, inside, name, number
from .tasks import Task, Tasks
from .units import bad, found
from .wfcommons import TINY_S
from .workflow import Interned, checked, default_warning

_TRACE = Provenance("given", note="a DAX file")
_seconds = number(0, LONGEST)
_cores = number(1, 1e6)
_megabytes = number(0, 1e12)
#: Elements of a job that say something which no task has.
_BESIDE = {"argument": "commands", "uses": "files"}


def parse_dax(data: bytes, source: str) -> Workflow:
    """Return the workflow of a DAX document. O(bytes).

    A job takes its `runtime` (attribute, or profile of the namespace pegasus) on its cores (profile
    pegasus/cores, default 1), and memory (pegasus/memory, MB). Bandwidth is not in the format: 0.

    Args:
        data: the XML, in the encoding that it declares.
        source: the file's name, for messages.

    Raises:
        ConfigError: not XML (with the line), not a DAX, a document type, or a number that is none.
        InvalidJobError: a duplicate job, an unknown parent or child, or a cycle.
    """
    return checked(from_source(source, _Reader(source).workflow, data))


def dax_tasks(data: bytes, source: str) -> Tasks:
    """The tasks of a DAX document as they are recorded. Raises as `parse_dax`."""
    found = from_source(source, _Reader(source).tasks, data)
    checked(found.graph())
    return found


class _Reader(Elements):
    """`job` and `child` are the elements that are open."""

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
        self.interned = Interned()
        self.beside: dict[str, set[int]] = {"commands": set(), "files": set()}

    def workflow(self, data: bytes) -> Workflow:
        given = self.tasks(data)
        jobs = tuple(Job(task.id, self.profile(task), task.after, memory=task.memory) for task in given.tasks)
        warnings = ["DAX records no memory bandwidth: taken as 0, so no memory contention is foreseen"]
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
                raise bad(f"child {child[:100]!r} is not a job here", "the id of a job", key=f"line {line}")
        tasks = tuple(inside(f"line {line}", self.task, job) for line, job in self.jobs)
        if not tasks:
            raise bad("no jobs in it", "at least one job element")
        return Tasks(self.label, tasks, self.source, {what: len(who) for what, who in self.beside.items()})

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """See `Elements`."""
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
        elif self.depth == 3 and tag in _BESIDE and self.job is not None:
            self.beside[_BESIDE[tag]].add(len(self.jobs))
        elif self.depth == 3 and tag == "profile" and attributes.get("namespace", "").lower() == "pegasus":
            self.profile_key, self.text = attributes.get("key", "").lower(), ""

    def reference(self, attributes: dict[str, str]) -> str:
        if not attributes.get("ref"):
            raise bad("no ref", "ref, the id of a job", key=self.here())
        return attributes["ref"]

    def characters(self, data: str) -> None:
        """See `Elements`."""
        if self.profile_key is not None:
            self.text += data

    def end(self, tag: str) -> None:
        """See `Elements`."""
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

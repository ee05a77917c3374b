"""Pegasus DAX: read abstract workflows in XML, versions 2.x and 3.x; write version 3.6.

Rule: elements are known by their local names, whatever their namespace; document types and entities are refused before
they are read. What is written reads back as the same tasks, except for the last bit of memory, which is in megabytes,
and for characters of program names that XML cannot hold, which are written as escapes.
Run time, cores and memory are written as profiles of the namespace pegasus.
Source: the DAX 2.1 to 3.6 schemas (pegasus.isi.edu/schema), and the `runtime` attribute that Pegasus' workflow
generator adds to jobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from ...simulate.model.job import Provenance
from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, found, from_source, inside
from ..documents.quantities import Convert, number, plain
from ..documents.schema import name
from ..documents.xml import Element, parse_xml
from ..text import clean, count
from .workflow_tasks import TINY_S, Task, Tasks, default_warning, title

_seconds, _cores, _megabytes = number(0, LONGEST), number(1, 1e6), number(0, 1e12)
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
    return from_source(source, _tasks, data, source)


def _tasks(data: bytes, source: str) -> Tasks:
    root = parse_xml(data).inner[0]
    if root.tag != "adag":
        raise bad(f"the element {root.tag[:60]!r}", "adag, the root of a DAX", key=f"line {root.line}")
    jobs = [element for element in root.inner if element.tag in ("job", "dag", "dax")]
    ids, after = {job.attributes.get("id") for job in jobs}, dict[str, dict[str, None]]()
    for element in (element for element in root.inner if element.tag == "child"):
        child, parents = _reference(element), [_reference(parent) for parent in element.inner if parent.tag == "parent"]
        if child not in ids:
            raise bad(f"child {child[:100]!r} is not a job of this file", "the id of a job", key=f"line {element.line}")
        after.setdefault(child, {}).update(dict.fromkeys(parents))
    tasks = tuple(inside(f"line {job.line}", _task, job, after) for job in jobs)
    if not tasks:
        raise bad("no jobs", "at least one job element")
    extras = {loss: sum(any(part.tag == tag for part in job.inner) for job in jobs) for tag, loss in _EXTRAS.items()}
    origin = Provenance("given", note="a DAX file")
    return Tasks(title(root.attributes.get("name")), tasks, source, extras, tuple(_warnings(tasks)), origin)


def _reference(element: Element) -> str:
    if not element.attributes.get("ref"):
        raise bad("no ref", "ref, the id of a job", key=f"line {element.line}")
    return element.attributes["ref"]


def _task(job: Element, after: dict[str, dict[str, None]]) -> Task:
    attributes = dict(job.attributes)
    for part in job.inner:
        if part.tag == "profile" and part.attributes.get("namespace", "").lower() == "pegasus":
            attributes.setdefault(part.attributes.get("key", "").lower(), part.text)
    identity = inside("id", name, attributes.get("id"))
    memory = inside("memory", _of_text, attributes.get("memory", "0"), _megabytes) * 1e6
    time = inside("runtime", _of_text, attributes["runtime"], _seconds) if "runtime" in attributes else None
    cores = math.ceil(inside("cores", _of_text, attributes.get("cores", "1"), _cores))
    return Task(identity, time, tuple(after.get(identity, ())), cores, memory=memory, name=attributes.get("name", ""))


def _warnings(tasks: tuple[Task, ...]) -> Iterator[str]:
    yield "DAX records no memory bandwidth: taken as 0, so no memory contention is forecast"
    if zero := sum(task.time == 0 for task in tasks):
        yield f"{count(zero, 'of the jobs has', 'of the jobs have')} a run time of zero: taken as {TINY_S:g} s"
    if unknown := [task.id for task in tasks if task.time is None]:
        yield from default_warning(unknown)


def _of_text(text: str, convert: Convert[float]) -> float:
    try:
        value = float(text)
    except ValueError:
        raise bad(found(text), "a number") from None
    return convert(value)


_SCHEMA = "http://pegasus.isi.edu/schema/DAX"


def dump_dax(given: Tasks, note: str) -> str:
    """Return the text of a DAX document. O(tasks + dependencies).

    Args:
        given: the tasks to write.
        note: a comment at the top.
    """
    comment = re.sub(r"-(?=-|$)", "- ", clean(" ".join(note.split())))
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
    yield f"  <job id={quoteattr(task.id)} name={quoteattr(clean(task.name or task.id))}>"
    for key, value in profiles.items():
        if value is not None:
            yield f'    <profile namespace="pegasus" key="{key}">{plain(float(value))}</profile>'
    yield "  </job>"


def _child(task: Task) -> str:
    parents = "".join(f"<parent ref={quoteattr(before)}/>" for before in dict.fromkeys(task.after))
    return f"  <child ref={quoteattr(task.id)}>{parents}</child>"

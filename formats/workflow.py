"""The workflow file (schema pilotfish/workflow/v1), and the one reader of workflows of every kind.

Rule: a Workflow that comes out of here can be planned: its graph is sound, its profiles are known, and
profiles that are equal are one object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InvariantError
from ..job import DEFAULT_PROFILE, Job, Profile, Wait, Workflow
from .profile import parse_profile
from .reading import check_schema, decode, parse_document, read_bytes, unpacked
from .shape import (
    Convert,
    above_zero,
    build,
    choice,
    from_source,
    inside,
    keyed,
    listed,
    mapping,
    name,
    nearest,
    shown,
    text,
    whole,
    word,
)
from .tasks import Tasks, tasks_of
from .units import bad, found, parse_duration, parse_size

Profiles = Callable[[str], Profile | None]
KINDS = "a workflow of pilotfish (schema: pilotfish/workflow/v1), WfCommons WfFormat JSON, or Pegasus DAX XML"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_workflow(path: str | Path, profiles: Profiles | None = None) -> Workflow:
    """Return the workflow in a file; its kind is told by its content.

    Args:
        path: YAML or JSON of ours, WfFormat JSON, or Pegasus DAX; also packed by gzip.
        profiles: profile name -> profile or None; with a method `names()`, errors suggest near matches.

    Raises:
        ConfigError: the file is unreadable or wrong; file and key are named.
        InvalidJobError: a duplicate job, an unknown dependency or a cycle.
    """
    source = str(path)
    data = unpacked(read_bytes(path), source)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
        from .dax import parse_dax

        return parse_dax(data, source)
    document = parse_document(decode(data, source), source)
    if "schema" in document or ("jobs" in document and "workflow" not in document):
        return parse_workflow(document, source, profiles)
    if "workflow" in document:
        from .wfcommons import parse_wfcommons

        return parse_wfcommons(document, source)
    raise ConfigError(source, "", "no workflow in it", KINDS)


def read_tasks(path: str | Path, profiles: Profiles | None = None) -> Tasks:
    """Return the tasks of a workflow as its file records them; see `read_workflow`."""
    source = str(path)
    data = unpacked(read_bytes(path), source)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
        from .dax import dax_tasks

        return dax_tasks(data, source)
    return document_tasks(parse_document(decode(data, source), source), source, profiles)


def document_tasks(document: dict[str, Any], source: str, profiles: Profiles | None = None) -> Tasks:
    """The same, of what is in a file of WfFormat, or of ours."""
    if "workflow" in document and "schema" not in document:
        from .wfcommons import wfcommons_tasks

        return wfcommons_tasks(document, source)
    return tasks_of(parse_workflow(document, source, profiles))


def parse_workflow(data: dict[str, Any], source: str, profiles: Profiles | None = None) -> Workflow:
    """Return the workflow that a mapping describes (formats: workflow). O(jobs + dependencies).

    Args:
        data: as read from the file, `schema` included.
        source: the file's name, for messages.
        profiles: see `read_workflow`.

    Raises:
        ConfigError: naming the key, what was found and what is allowed.
        InvalidJobError: see `read_workflow`.
    """
    return checked(from_source(source, _workflow, check_schema(data, "workflow", source), source, profiles))


def _workflow(data: dict[str, Any], source: str, profiles: Profiles | None) -> Workflow:
    reader = _Jobs(profiles)
    parts: dict[str, Any] = build(dict, {"name": workflow_name, "jobs": reader.jobs}, data, ("jobs",))
    warnings = default_warning(reader.unknown) if reader.unknown else ()
    return Workflow(parts.get("name", "workflow"), parts["jobs"], source, warnings)


def default_warning(jobs: list[str]) -> tuple[str, ...]:
    """Say which jobs rest on the default profile."""
    some = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
    assumed = DEFAULT_PROFILE.provenance.note
    return (f"{len(jobs)} of the jobs have no profile and rest on the default ({assumed}): {some}",)


def workflow_name(value: Any) -> str:
    """A name without '/', which parts workflow from job in a key."""
    given = name(value)
    if "/" in given:
        raise bad(found(given), "a name without '/'")
    return given


class Interned:
    """Makes equal profiles one object, and remembers what it has parsed."""

    def __init__(self) -> None:
        self.parsed: dict[str, Profile] = {}
        self.equal: dict[Profile, Profile] = {}

    def parse(self, value: Any) -> Profile:
        """The profile of a mapping or list; each spelling is validated once."""
        try:
            spelling = repr(value)
        except RecursionError:
            raise bad("nested too deep", "a profile") from None
        if spelling not in self.parsed:
            self.parsed[spelling] = self.one(parse_profile(value))
        return self.parsed[spelling]

    def one(self, profile: Profile) -> Profile:
        """The first profile seen that equals this one."""
        return self.equal.setdefault(profile, profile)


class _Jobs:
    """Reads the jobs of one file."""

    def __init__(self, profiles: Profiles | None) -> None:
        self.profiles = profiles
        self.interned = Interned()
        self.named: dict[str, Profile] = {}
        self.unknown: list[str] = []
        self.table: dict[str, Convert[Any]] = {
            "after": _after,
            "profile": self.profile,
            "command": _command,
            "walltime": above_zero(parse_duration),
            "nodes": whole(1),
            "memory": parse_size,
            "environment": _environment,
            "directory": _directory,
            "wait": choice(Wait),
        }

    def jobs(self, value: Any) -> tuple[Job, ...]:
        if not mapping(value):
            raise bad(found(value), "at least one job")
        return tuple(inside(shown(key), self.job, key, part) for key, part in value.items())

    def job(self, key: str, value: Any) -> Job:
        data, identity = keyed(value, self.table), name(key)
        if "profile" in data:
            return build(Job, self.table, data, id=identity)
        if "command" not in data:
            raise bad("neither profile nor command", "a job with a profile, a command, or both")
        self.unknown.append(identity)
        return build(Job, self.table, data, id=identity, profile=DEFAULT_PROFILE)

    def profile(self, value: Any) -> Profile:
        if not isinstance(value, str):
            if not isinstance(value, dict | list):
                raise bad(found(value), "an inline profile, or a name in the profile store")
            return self.interned.parse(value)
        if value not in self.named:
            profile = self.profiles(value) if self.profiles else None
            if profile is None:
                names: Iterable[str] = getattr(self.profiles, "names", tuple)()
                allowed = "a name in the profile store, or an inline profile"
                raise bad(f"no profile is named {value[:100]!r}{nearest(value, names)}", allowed)
            self.named[value] = self.interned.one(profile)
        return self.named[value]


def _after(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (name(value),)
    return tuple(dict.fromkeys(listed(name)(value)))


def _command(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        if not value.strip():
            raise bad(found(value), "a shell line, or a list of words")
        return ("/bin/sh", "-c", text(value))
    words = listed(word, least=1)(value)
    if not words[0]:
        raise bad(found(words[0]), "a program", key="[0]")
    return words


def _environment(value: Any) -> tuple[tuple[str, str], ...]:
    for key in mapping(value):
        if not _VARIABLE.fullmatch(key):
            raise bad("not the name of a variable", "letters, digits and '_'", key=shown(key))
    return tuple((key, inside(key, word, part)) for key, part in value.items())


def _directory(value: Any) -> str:
    if not text(value):
        raise bad(found(value), "a directory")
    return str(value)


def checked(workflow: Workflow) -> Workflow:
    """Return `workflow` if its graph is sound. O(jobs + dependencies), without importing a graph library.

    Raises:
        InvalidJobError: a duplicate job, an unknown dependency or a cycle.
    """
    waits = {job.id: len(set(job.after)) for job in workflow.jobs}
    followers: dict[str, list[str]] = {identity: [] for identity in waits}
    sound = bool(waits) and len(waits) == len(workflow.jobs)
    for job in workflow.jobs:
        for before in set(job.after):
            if before in followers:
                followers[before].append(job.id)
    ready = [identity for identity, count in waits.items() if not count]
    for identity in ready:
        for follower in followers[identity]:
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    if sound and len(ready) == len(waits):
        return workflow
    raise InvariantError(f"{workflow.source}: a graph with a fault passed: {workflow.dag}")

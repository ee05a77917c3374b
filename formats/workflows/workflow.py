"""Read workflows of every kind; read and write the workflow file (schema pilotfish/workflow/v1).

Rule: a workflow that is read here can be planned: its graph is sound, its profiles are known, and equal profiles are
one object. What is written reads back as the same jobs, to the last bit; profiles are written inline, without their
names and provenance. Text is quoted wherever YAML could read it as something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.model.job import DEFAULT_PROFILE, Job, PeerWait, Profile, Workflow, default_profile
from ..documents.document_errors import Collector, bad, found, from_source, shown
from ..documents.files import check_schema, decode, is_xml, parse_document, read_bytes
from ..documents.plausible import JobDoubts
from ..documents.quantities import Convert, above_zero, parse_duration, parse_size, whole
from ..documents.schema import build, choice, entries, listed, mapping, name, text, word
from ..documents.unpack import unpacked
from ..profile import dump_profile
from ..text import count
from .job_rules import VARIABLE
from .workflow_tasks import ProfilePool, Tasks, check_workflow, checked_tasks, default_warning, tasks_of, workflow_of

Profiles = Callable[[str], Profile | None]
KINDS = "a workflow of pilotfish (schema: pilotfish/workflow/v1), WfCommons WfFormat JSON, or Pegasus DAX XML"
#: Names without a profile that are reported one by one.
MOST_MISSING = 3
#: Words of other workflow managers and of Slurm -> the key of a job that they mean.
_ALIASES = dict.fromkeys(("depends_on", "dependencies", "dependency", "needs", "requires", "parents"), "after")
_ALIASES |= dict.fromkeys(("cmd", "run", "script", "exec", "executable"), "command")
_ALIASES |= dict.fromkeys(("time", "time_limit", "timelimit", "timeout"), "walltime")
_ALIASES |= dict.fromkeys(("mem", "ram"), "memory") | dict.fromkeys(("env", "variables"), "environment")
_ALIASES |= dict.fromkeys(("cwd", "chdir", "workdir", "working_directory", "dir"), "directory")


def read_workflow(path: str | Path, profiles: Profiles | None = None) -> Workflow:
    """Return the workflow in a file; its kind follows from its content.

    Args:
        path: our YAML or JSON, WfCommons WfFormat JSON, or Pegasus DAX; may be gzipped.
        profiles: profile name -> profile or None; with a method `names()`, errors suggest near matches.

    Raises:
        ConfigError: the file is unreadable or wrong; names file and key.
        InvalidJobError: a duplicate job, a cycle, or an unknown dependency that is the only error.
    """
    source = str(path)
    data = unpacked(read_bytes(path), source)
    if is_xml(data):
        from .dax import dax_tasks

        return workflow_of(dax_tasks(data, source))
    document = parse_document(decode(data, source), source)
    if "schema" in document or ("jobs" in document and "workflow" not in document):
        return parse_workflow(document, source, profiles)
    if "workflow" in document:
        from .wfcommons import wfcommons_tasks

        return workflow_of(wfcommons_tasks(document, source))
    raise ConfigError(source, "", "no workflow in it", KINDS)


def read_tasks(path: str | Path, profiles: Profiles | None = None) -> Tasks:
    """Return the tasks of a workflow as its file records them; arguments and errors as in `document_tasks`."""
    source = str(path)
    data = unpacked(read_bytes(path), source)
    if is_xml(data):
        from .dax import dax_tasks

        return checked_tasks(dax_tasks(data, source))
    return document_tasks(parse_document(decode(data, source), source), source, profiles)


def document_tasks(document: dict[str, Any], source: str, profiles: Profiles | None = None) -> Tasks:
    """Return the tasks of a document in WfFormat or in our own; arguments and errors as in `parse_workflow`.

    If `profiles` has a method `with_learned(workflow)`, jobs without a profile take those of past runs.
    """
    if "workflow" in document and "schema" not in document:
        from .wfcommons import wfcommons_tasks

        return checked_tasks(wfcommons_tasks(document, source))
    workflow, with_learned = parse_workflow(document, source, profiles), getattr(profiles, "with_learned", None)
    return tasks_of(with_learned(workflow) if with_learned else workflow)


def parse_workflow(data: dict[str, Any], source: str, profiles: Profiles | None = None) -> Workflow:
    """Return the workflow that a mapping describes. O(jobs + dependencies).

    Args:
        data: as read from the file, `schema` included.
        source: the file's name, for messages.
        profiles: see `read_workflow`.

    Raises:
        ConfigError: names the key, what was found and what is allowed.
        InvalidJobError: see `read_workflow`.
    """
    return check_workflow(from_source(source, _workflow, check_schema(data, "workflow", source), source, profiles))


def _workflow(data: dict[str, Any], source: str, profiles: Profiles | None) -> Workflow:
    reader, wrong = _Jobs(profiles), Collector()
    parts = wrong.read("", build, dict, {"name": workflow_name, "jobs": reader.jobs}, data, ("jobs",)) or {}
    reader.report_missing(wrong)
    reader.report_unknown(wrong)
    wrong.check()
    warnings = default_warning(reader.unknown) if reader.unknown else ()
    warnings += reader.doubts.sentences(source)
    return Workflow(parts.get("name", "workflow"), parts["jobs"], source, warnings)


def workflow_name(value: Any) -> str:
    """Return a name without '/', which separates workflow and job in a key. Raises ConfigError."""
    workflow = name(value)
    if "/" in workflow:
        raise bad(found(workflow), "a name without '/'")
    return workflow


class _Jobs:
    """Read the jobs of one file."""

    def __init__(self, profiles: Profiles | None) -> None:
        self.profiles = profiles
        self.interned = ProfilePool()
        self.named: dict[str, Profile | None] = {}
        self.missing: dict[str, list[str]] = {}
        self.unknown: list[str] = []
        self.after: dict[str, Any] = {}  # as it stands in the file
        self.doubts = JobDoubts()
        self.table: dict[str, Convert[Any]] = {
            "after": _after,
            "profile": self.profile,
            "command": _command,
            "walltime": above_zero(parse_duration),
            "nodes": whole(1),
            "memory": parse_size,
            "environment": _environment,
            "directory": _directory,
            "wait": choice(PeerWait),
        }

    def jobs(self, value: Any) -> tuple[Job, ...]:
        return tuple(entries(value, self.job, "at least one job").values())

    def job(self, key: str, value: Any) -> Job:
        self.after[key] = None
        data, identity = mapping(value), name(key)
        self.after[identity] = data.get("after")
        self.doubts.read_job(identity, data)
        if "profile" in data:
            profile = data["profile"]
            if isinstance(profile, str) and self._find(profile) is None:
                self.missing.setdefault(profile, []).append(identity)
        parts: dict[str, Any] = build(dict, self.table, data, aliases=_ALIASES)
        if not parts.keys() & {"profile", "command"}:
            raise bad("neither profile nor command", "a job with a profile, a command, or both")
        if "profile" not in parts:
            self.unknown.append(identity)
        return Job(identity, **{"profile": default_profile(parts.get("walltime")), **parts})

    def profile(self, value: Any) -> Profile:
        if not isinstance(value, str):
            if not isinstance(value, dict | list):
                raise bad(found(value), "an inline profile, or a name in the profile store")
            return self.interned.parse(value)
        return self._find(value) or DEFAULT_PROFILE

    def _find(self, profile_name: str) -> Profile | None:
        if profile_name not in self.named:
            profile = self.profiles(profile_name) if self.profiles else None
            self.named[profile_name] = profile and self.interned.one(profile)
        return self.named[profile_name]

    def report_missing(self, wrong: Collector) -> None:
        """Add an error for each name without a profile: a few names, then the number of the other jobs."""
        first_names = list(self.missing.items())[:MOST_MISSING]
        names: Iterable[str] = getattr(self.profiles, "names", tuple)() if first_names else ()
        for profile_name, jobs in first_names:
            problem = f"no profile is named {profile_name[:100]!r}{did_you_mean(profile_name, names)}"
            allowed = "a name in the profile store (`pilotfish profile run --name` adds one), or an inline profile"
            wrong.add(ConfigError("", f"jobs.{jobs[0]}.profile", problem, allowed, len(jobs) - 1))
        if more_jobs := sum(map(len, self.missing.values())) - sum(len(jobs) for _, jobs in first_names):
            wrong.add(bad(f"and {count(more_jobs, 'more job')} with names of profiles that do not exist", key="jobs"))

    def report_unknown(self, wrong: Collector) -> None:
        """Add an error for each job that waits for an unknown one, unless it is the only error of the file.

        The graph of the workflow reports a single one.
        """
        every = ((job, [after] if isinstance(after, str) else after) for job, after in self.after.items())
        unknown = [
            (job, before)
            for job, names in every
            for before in (names if isinstance(names, list) else ())
            if isinstance(before, str) and before not in self.after
        ]
        if wrong.errors or len(unknown) > 1:
            for job, before in unknown:
                hint = did_you_mean(before, self.after)
                wrong.add(bad(f"{before[:100]!r} is not a job of this workflow{hint}", key=f"jobs.{shown(job)}.after"))


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
    def variable(key: str, part: Any) -> str:
        if not VARIABLE.fullmatch(key):
            raise bad("not a variable name", "letters, digits and '_', not starting with a digit")
        return word(part)

    return tuple(entries(value, variable).items())


def _directory(value: Any) -> str:
    if not text(value):
        raise bad(found(value), "a directory")
    return str(value)


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
#: Words that other YAML readers take for a boolean or null.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: Keys of a job in the order in which they are written; its other fields belong to resource managers.
_KEYS = ("after", "nodes", "memory", "walltime", "command", "environment", "directory", "wait")


def dump_workflow(workflow: Workflow, notes: tuple[str, ...] = ()) -> str:
    """Return the text of a workflow file. O(jobs + dependencies).

    Args:
        workflow: the workflow to write.
        notes: comment lines at the top.
    """
    lines = [f"# {' '.join(note.split())}" for note in notes]
    lines += ["schema: pilotfish/workflow/v1", f"name: {_flow(workflow.name)}", "jobs:"]
    profiles: dict[Profile, str] = {}
    for job in workflow.jobs:
        lines.append(f"  {_flow(job.id)}:")
        lines += [f"    {key}: {_flow(value)}" for key, value in _changed_keys(job)]
        if job.profile not in profiles:
            profiles[job.profile] = _flow(dump_profile(job.profile))
        lines.append(f"    profile: {profiles[job.profile]}")
    return "\n".join(lines) + "\n"


def _changed_keys(job: Job) -> list[tuple[str, Any]]:
    """Return the keys whose values differ from the defaults."""
    defaults = {field.name: field.default for field in fields(Job)}
    values = [(key, getattr(job, key)) for key in _KEYS]
    return [(key, dict(value) if key == "environment" else value) for key, value in values if value != defaults[key]]


def _flow(value: Any) -> str:
    """Return a value in YAML flow style, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'

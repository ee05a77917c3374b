"""The workflow file (schema pilotfish/workflow/v1), written: the counterpart of `workflow`.

Rule: what is written is read back as the same jobs, to the last bit; each profile is written in place, so that its name
and where its numbers come from stay behind. Text is in quotes wherever it could be taken for something else.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from ..job import Job, Profile, Workflow
from .profile import dump_profile

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
#: What other readers of YAML take for a truth or for nothing.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: What a file says of a job, in this order; the rest belongs to resource managers.
_KEYS = ("after", "nodes", "memory", "walltime", "command", "environment", "directory", "wait")


def dump_workflow(workflow: Workflow, notes: tuple[str, ...] = ()) -> str:
    """The text of a workflow file. O(jobs + dependencies).

    Args:
        notes: lines of comment at the top.
    """
    lines = [f"# {' '.join(note.split())}" for note in notes]
    lines += ["schema: pilotfish/workflow/v1", f"name: {_flow(workflow.name)}", "jobs:"]
    profiles: dict[Profile, str] = {}
    for job in workflow.jobs:
        lines.append(f"  {_flow(job.id)}:")
        lines += [f"    {key}: {_flow(value)}" for key, value in _said(job)]
        if job.profile not in profiles:
            profiles[job.profile] = _flow(dump_profile(job.profile))
        lines.append(f"    profile: {profiles[job.profile]}")
    return "\n".join(lines) + "\n"


def _said(job: Job) -> list[tuple[str, Any]]:
    """What differs from the defaults."""
    defaults = {field.name: field.default for field in fields(Job)}
    values = [(key, getattr(job, key)) for key in _KEYS]
    return [(key, dict(value) if key == "environment" else value) for key, value in values if value != defaults[key]]


def _flow(value: Any) -> str:
    """A value in a line."""
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

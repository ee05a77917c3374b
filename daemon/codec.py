"""Workflows as JSON text for the journal and the socket, and the ids of submitted workflows.

Rule: pure; decoding what was encoded gives an equal workflow, but no text can say who owns a job. Text from outside is
checked here for types and ranges, and nowhere else. The daemon and the client on a login node form ids in the same way.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import secrets
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from ..formats.workflow_tasks import ProfilePool, check_graph
from ..simulate.errors import InvalidJobError
from ..simulate.model.job import DEFAULT_PROFILE, Distribution, Job, ThreadGroup, Workflow


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Workflow)


def encode(workflow: Workflow) -> str:
    """Return `workflow` as JSON text."""
    return json.dumps(dataclasses.asdict(workflow), separators=(",", ":"), default=sorted)


def decode(text: str | bytes) -> Workflow:
    """Return the workflow in `text`, checked.

    Raises:
        InvalidJobError: not JSON, a wrong type, a number out of range, or an invalid DAG.
    """
    from pydantic import ValidationError

    try:
        workflow: Workflow = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "workflow"
        raise InvalidJobError(f"workflow: {where}: {first['msg'].lower()}") from None
    for job in workflow.jobs:
        problem = _problem(job)
        if problem:
            raise InvalidJobError(f"{workflow.name}: job {job.id!r}: {problem}")
    interned = ProfilePool()
    jobs = tuple(dataclasses.replace(job, profile=interned.one(job.profile), owner=None) for job in workflow.jobs)
    return check_graph(dataclasses.replace(workflow, jobs=jobs))


def _problem(job: Job) -> str:
    """Return what is out of range in a job, or ""."""
    if not job.id or not job.id.isprintable():
        return "the id must be printable text"
    if job.nodes < 1:
        return f"nodes is {job.nodes} (allowed: 1 or more)"
    if not _within(job.memory, 0) or not _within(job.profile.memory, 0):
        return "memory must be a size of 0 or more bytes"
    if job.walltime is not None and not _within(job.walltime, 0, open_low=True):
        return f"walltime is {job.walltime} (allowed: seconds over 0)"
    if job.command is not None and (not job.command or any("\0" in part for part in job.command)):
        return "the command must be a list of at least one word, without NUL bytes"
    if any(not name or "=" in name or "\0" in name + value for name, value in job.environment):
        return "environment: a name must not be empty or hold '=', and no NUL bytes are allowed"
    if not job.profile.groups:
        return "profile: no threads"
    about = job.profile.provenance
    low, high = about.interval or (1.0, 1.0)
    if not (_within(low, 0, 1) and _within(high, 1)) or not _within(about.spread or 0.0, 0):
        return "profile: interval must be from 0..1 to 1 or more, spread 0 or more"
    return next(filter(None, map(_group_problem, job.profile.groups)), "")


def _group_problem(group: ThreadGroup) -> str:
    demand = group.service_demand
    values = demand.values if isinstance(demand, Distribution) else ()
    if group.count < 1:
        return f"profile: count is {group.count} (allowed: 1 or more)"
    if isinstance(demand, Distribution) and demand.dist == "empirical" and not values:
        return "profile: an empirical service_demand needs values"
    if not all(_within(value, 0) for value in values) or not _within(group.demand, 0, open_low=True):
        return "profile: service_demand must be seconds over 0"
    parts = [(group.utilisation, group.bandwidth), *((p.utilisation, p.bandwidth) for p in group.phases)]
    if not all(_within(u, 0, 1, open_low=True) and _within(b, 0) for u, b in parts):
        return "profile: utilisation must be over 0 and at most 1, bandwidth 0 or more"
    if group.phases and not math.isclose(sum(p.share for p in group.phases), 1.0, rel_tol=1e-6):
        return "profile: the shares of the phases must add up to 1"
    return ""


def _within(value: float, low: float, high: float = math.inf, *, open_low: bool = False) -> bool:
    return math.isfinite(value) and value <= high and (value > low if open_low else value >= low)


_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\.[a-z2-7]{6}")


def new_id(name: str) -> str:
    """Return a new id for a workflow of that name: easy to type, and random, so that no lost journal had it."""
    return _id(name, secrets.token_bytes(5))


def id_for(name: str, key: str) -> str:
    """Return the id of a workflow under an idempotency key, the same everywhere; the key itself if it is such an id.

    Args:
        name: of the workflow.
        key: chosen by the user.
    """
    if _ID.fullmatch(key) and key.rpartition(".")[0] == _word(name):
        return key
    return _id(name, hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:5])


def at_home(workflow: Workflow, directory: str) -> Workflow:
    """Return the workflow with every job's directory absolute, relative to where it was submitted."""
    jobs = tuple(
        dataclasses.replace(job, directory=str(PurePosixPath(directory) / (job.directory or "")))
        for job in workflow.jobs
    )
    return dataclasses.replace(workflow, jobs=jobs)


def asked_for(workflow: Workflow) -> list[Job]:
    """Return the jobs without their profiles, which may have been learned since."""
    return [dataclasses.replace(job, profile=DEFAULT_PROFILE) for job in workflow.jobs]


def _id(name: str, number: bytes) -> str:
    return f"{_word(name)}.{base64.b32encode(number).decode().lower()[:6]}"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "workflow"

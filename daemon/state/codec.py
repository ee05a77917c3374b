"""Workflows as JSON text for the journal and the socket, and the ids of submitted workflows.

Rule: pure; decoding what was encoded gives an equal workflow, but no text can say who owns a job. Text from outside is
checked here for types, and by the rules that hold for every reader (`formats.job_rules`). The daemon and the client on
a login node form ids alike.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import secrets
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from ...formats.documents.plain_values import plain
from ...formats.workflows.job_rules import LARGEST_WORD, LONGEST_TEXT, MOST_FACTS, name_problem
from ...formats.workflows.workflow_tasks import ProfilePool, check_workflow
from ...simulate.errors import InvalidJobError
from ...simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from .divided_work import Steps, finish

#: Jobs of a workflow that are made, or compared, in one step.
JOBS_AT_ONCE = 1000


@cache
def _decoder() -> Any:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(Workflow)
    validator: Any = type(adapter.validator)
    return validator(_fail_fast(adapter.core_schema))


def _fail_fast(schema: Any) -> Any:
    """Return a schema whose lists end at their first error, because a list of each error can be large."""
    if isinstance(schema, dict):
        quick = {"fail_fast": True} if schema.get("type") in ("list", "tuple", "set", "frozenset") else {}
        return {key: _fail_fast(part) for key, part in schema.items()} | quick
    return [_fail_fast(part) for part in schema] if isinstance(schema, list) else schema


def encode(workflow: Workflow) -> str:
    """Return `workflow` as JSON text; what has its default value is left out."""
    return json.dumps(plain(workflow, {}), separators=(",", ":"), default=sorted)


def decode(text: str | bytes, directory: str | None = None) -> Workflow:
    """Return the workflow in text from outside, checked: each job can be planned, and the graph is sound.

    Args:
        text: as `encode` makes it.
        directory: makes directories of jobs absolute, as `at_home` does; None = they stay as they are.

    Raises:
        InvalidJobError: not JSON, a wrong type, a number out of range, or an invalid DAG.
    """
    return check_submitted(decode_stored(text, directory))


def check_submitted(workflow: Workflow) -> Workflow:
    """Return a workflow from outside if its jobs can be planned, and its graph is sound. Raises InvalidJobError."""
    if problem := name_problem(workflow.name):
        raise InvalidJobError(f"workflow: the name {problem}")
    for job in workflow.jobs:
        if job.allowed is not None or job.apart or job.known_as or (job.base_environment, job.umask) != (None, None):
            names = "allowed, apart, known_as, base_environment and umask"
            raise InvalidJobError(f"{workflow.name}: job {job.id!r}: {names} cannot be submitted")
    if not 0 <= (workflow.umask or 0) <= 0o777:
        raise InvalidJobError(f"{workflow.name}: umask is {workflow.umask} (allowed: 0 to {0o777}, None)")
    _check_environment(workflow.base_environment or ())
    if len(workflow.warnings) > MOST_FACTS or len(workflow.source) > LONGEST_TEXT:
        raise InvalidJobError(f"{workflow.name}: more than {MOST_FACTS} warnings, or its source is too long")
    return check_workflow(workflow)


#: Bytes of an environment that is submitted; more is more than any program needs.
LARGEST_ENVIRONMENT = 2**18


def _check_environment(variables: Iterable[tuple[str, str]]) -> None:
    """Check the variables of a submitter. Raises InvalidJobError, which names a variable and never a value."""
    total = 0
    for name, value in variables:
        if not name or "=" in name or "\0" in name + value:
            raise InvalidJobError(f"environment: {name[:60]!r} is not a variable (allowed: text without NUL)")
        size = len(f"{name}={value}".encode(errors="surrogatepass"))
        if size > LARGEST_WORD:
            problem = f"environment: {name[:60]!r} has {size:,} bytes (allowed: {LARGEST_WORD:,})"
            raise InvalidJobError(f"{problem}; --export NONE or a list of names leaves it out")
        total += size + 1
    if total > LARGEST_ENVIRONMENT:
        problem = f"environment: found {total:,} bytes (allowed: {LARGEST_ENVIRONMENT:,})"
        raise InvalidJobError(f"{problem}; --export NONE or a list of names makes it smaller")


def decode_stored(text: str | bytes, directory: str | None = None) -> Workflow:
    """Return a workflow that the journal has; only its types are checked, because it was accepted once.

    The arguments are those of `decode`.

    Raises:
        InvalidJobError: not JSON, or a wrong type.
    """
    return finish(decode_steps(text, directory))


def decode_steps(text: str | bytes, directory: str | None = None) -> Steps[Workflow]:
    """Return the workflow that `decode_stored` returns, in steps: the text is read in the first one."""
    from pydantic import ValidationError

    try:
        workflow: Workflow = _decoder().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "workflow"
        raise InvalidJobError(f"workflow: {where}: {first['msg'].lower()}") from None
    interned, jobs = ProfilePool(), list[Job]()
    for at in range(0, len(workflow.jobs), JOBS_AT_ONCE):
        yield
        part = workflow.jobs[at : at + JOBS_AT_ONCE]
        absolute = _absolute(part, directory)
        jobs += (
            dataclasses.replace(job, profile=interned.one(job.profile), owner=None, directory=absolute[job.directory])
            for job in part
        )
    return dataclasses.replace(workflow, jobs=tuple(jobs))


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
    absolute = _absolute(workflow.jobs, directory)
    jobs = tuple(dataclasses.replace(job, directory=absolute[job.directory]) for job in workflow.jobs)
    return dataclasses.replace(workflow, jobs=jobs)


def _absolute(jobs: Iterable[Job], directory: str | None) -> dict[str | None, str | None]:
    """Return the absolute directory for each that a job names, itself if `directory` is None."""
    named = {job.directory for job in jobs}
    return {name: name if directory is None else str(PurePosixPath(directory) / (name or "")) for name in named}


def asked_for(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs without what may have changed since: their profiles, and the sizes of their inputs."""
    return [dataclasses.replace(job, profile=DEFAULT_PROFILE, inputs=()) for job in jobs]


def _id(name: str, number: bytes) -> str:
    return f"{_word(name)}.{base64.b32encode(number).decode().lower()[:6]}"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "workflow"

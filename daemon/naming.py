"""What a workflow is called once it was handed in, where its jobs run, and whether two are the same.

Rule: pure; whoever takes workflows in (the daemon, a login node) agrees on these.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import secrets
from pathlib import PurePosixPath

from ..simulate.job import DEFAULT_PROFILE, Job, Workflow

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\.[a-z2-7]{6}")


def new_id(name: str) -> str:
    """A name that a person can type and that was never used, also not in a journal that is gone."""
    return _id(name, secrets.token_bytes(5))


def id_for(name: str, key: str) -> str:
    """The name that a workflow has under a key, wherever it is asked for; the key itself if it is such a name."""
    if _ID.fullmatch(key) and key.rpartition(".")[0] == _word(name):
        return key
    return _id(name, hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:5])


def at_home(workflow: Workflow, directory: str) -> Workflow:
    """The workflow with every job's directory absolute, from where it was submitted."""
    jobs = tuple(
        dataclasses.replace(job, directory=str(PurePosixPath(directory) / (job.directory or "")))
        for job in workflow.jobs
    )
    return dataclasses.replace(workflow, jobs=jobs)


def asked_for(workflow: Workflow) -> list[Job]:
    """The jobs but for their profiles, which may have been learned since."""
    return [dataclasses.replace(job, profile=DEFAULT_PROFILE) for job in workflow.jobs]


def _id(name: str, number: bytes) -> str:
    return f"{_word(name)}.{base64.b32encode(number).decode().lower()[:6]}"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "workflow"

"""Job dependencies in Slurm's syntax: written for our own jobs, read for all.

Rule: pure. Only a job that starts once certain jobs have ended is planned ahead. Every other dependency (alternatives,
start or failure of another job, `singleton`, arrays) is left to Slurm, and the job is planned once it is resolved.
Source: sbatch(1) `--dependency` and squeue(1) `Dependency` of Slurm 22.05, which omits fulfilled ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLAUSE = re.compile(r"(?P<kind>afterok|afterany)(?P<jobs>(?::[0-9]{1,10}(?:\((?:unfulfilled|fulfilled)\))?)+)")
_JOB = re.compile(r":([0-9]{1,10})(\(fulfilled\))?")


def options(ids: Iterable[int]) -> list[str]:
    """Return options of `sbatch`: start when these jobs have completed, be cancelled when one of them cannot."""
    listed = ":".join(map(str, ids))
    return [f"--dependency=afterok:{listed}", "--kill-on-invalid-dep=yes"] if listed else []


def followed(text: str) -> tuple[int, ...] | None:
    """Return the ids of all jobs whose ends the job still waits for; None if it waits for anything else.

    The text is such as `afterok:12(unfulfilled),afterany:13(unfulfilled)`; "" gives ().
    """
    ids: list[int] = []
    for clause in filter(None, text.split(",")):
        match = _CLAUSE.fullmatch(clause)
        if not match:
            return None
        ids += [int(job) for job, fulfilled in _JOB.findall(match["jobs"]) if not fulfilled]
    return tuple(dict.fromkeys(ids))

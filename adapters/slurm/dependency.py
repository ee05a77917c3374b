"""What a job waits for, in Slurm's words: written for our own jobs, read of everybody's.

Rule: pure. Only what is surely understood is planned ahead: a job that starts once certain jobs have ended. Everything
else (alternatives, the start or the failure of another, `singleton`, arrays) is Slurm's to resolve, and the job is
planned from then on.
Source: sbatch(1) `--dependency` and squeue(1) `Dependency` of Slurm 22.05, which leaves out what is fulfilled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLAUSE = re.compile(r"(?P<kind>afterok|afterany)(?P<jobs>(?::\d+(?:\((?:unfulfilled|fulfilled)\))?)+)")
_JOB = re.compile(r":(\d+)(\(fulfilled\))?")


def options(ids: Iterable[int]) -> list[str]:
    """Options of `sbatch`: start once these jobs have completed, and be cancelled once one of them cannot."""
    listed = ":".join(map(str, ids))
    return [f"--dependency=afterok:{listed}", "--kill-on-invalid-dep=yes"] if listed else []


def followed(text: str) -> tuple[int, ...] | None:
    """Ids of the jobs whose ends the job still waits for, all of them; None where it waits for anything else.

    Args:
        text: such as `afterok:12(unfulfilled),afterany:13(unfulfilled)`; "" is ().
    """
    ids: list[int] = []
    for clause in filter(None, text.split(",")):
        found = _CLAUSE.fullmatch(clause)
        if not found:
            return None
        ids += [int(job) for job, fulfilled in _JOB.findall(found["jobs"]) if not fulfilled]
    return tuple(dict.fromkeys(ids))

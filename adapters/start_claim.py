"""Decide which job may run under a key: the first job that claims it, for ever.

A resource manager may carry out a submission minutes after its command gave up, when the same work has been submitted
again, and it cannot refuse the second job. So each job checks before it works: a symbolic link, in a directory that the
login node and the compute nodes share, names the one job that may run. Creating the link is atomic, over NFS too.

Rule: the client claims the key for the job that it has seen. A job that finds no claim makes its own. A job that finds
the claim of another job does nothing. A job whose work was cancelled ends as cancelled, so that no job follows it. A
requeued job has its own id again. If no link can be made or read, the job runs.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

#: Claims a key for no job: its work was cancelled.
NO_JOB = 0


def claim(file: Path, job: int) -> int:
    """Claim a key for a job; return the job that has it, which is another if that came first.

    Args:
        file: the link, one for each key.
        job: its id, or NO_JOB.
    """
    with suppress(OSError):
        os.symlink(str(job), file)
    try:
        return int(os.readlink(file))
    except (OSError, ValueError):
        return job


def guard(file: Path, job_id: str, manager: str, cancelled: str) -> str:
    """Return the shell command that ends a job unless it has the claim, with one line on stderr.

    Args:
        file: The link.
        job_id: The job's id, in words of the shell.
        manager: Name of the resource manager.
        cancelled: Commands that end a job whose work was cancelled.
    """
    link = shlex.quote(str(file))
    return (
        f'ln -s "{job_id}" {link} 2>/dev/null || '
        f'case "$(readlink {link})" in ""|"{job_id}") ;; {NO_JOB}) '
        f'echo "pilotfish: job {job_id} was cancelled before {manager} had it, and does nothing" >&2; '
        f"{cancelled} ;; *) "
        f'echo "pilotfish: job {job_id} was submitted twice and does nothing; see job $(readlink {link})" >&2; '
        "exit 0 ;; esac"
    )

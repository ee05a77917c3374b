"""What users may do with their own jobs: list, submit, move the begin time, cancel, each by one command.

Rule: it runs as the user and asks for that user's jobs alone, so a site's PrivateData holds here too. Submission keeps
the user's environment. A missing answer is never a refusal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable

from ..base import AdapterError
from .records import SlurmJob
from .submission import LONGEST_COMMENT, key_in
from .transport.command_transport import CommandTransport
from .transport.runner import CommandRunner, Runner
from .transport.sacct import of_ids
from .transport.squeue import queue

#: Job ids per command.
_AT_ONCE = 500


class OwnJobs:
    """Slurm as one user sees it. Every call raises AdapterError.

    Args:
        run: Runs commands.
        submit: Runs commands in the user's own environment.
        uid: User id; None: the current user.
    """

    def __init__(self, run: Runner, submit: Runner, uid: int | None = None) -> None:
        commands = CommandTransport(run)
        self._run, self._ended = run, commands.ended
        self.allocation = commands.allocation  #: returns the nodes and cores of a job that has begun
        self.time = commands.time  #: returns the controller's clock, epoch seconds; one `sdiag`
        self.submit = CommandTransport(submit).submit  #: submits a job by an argv and returns its id; one `sbatch`
        self.uid = os.getuid() if uid is None else uid

    def jobs(self) -> list[SlurmJob]:
        """Return the user's jobs in the queue and the ended ones still shown; one `squeue`."""
        return [job for job in queue().ask(self._run, f"--user={self.uid}") if job.uid == self.uid]

    def named(self, job: str) -> SlurmJob | None:
        """Return the user's job with this id, as users write it (`7`, `7_2`, `7+1`), if the queue shows it."""
        if not re.fullmatch(r"\d{1,10}(?:[_+]\d{1,7})?", job):
            return None
        try:
            shown = queue().ask(self._run, f"--user={self.uid}", f"--jobs={job}")
        except AdapterError as error:
            if error.transient:
                raise
            return None  # "Invalid job id specified": it has left the queue
        leader, plus, offset = job.partition("+")  # the parts of a heterogeneous job have ids in a row
        part = int(leader) + int(offset) if plus else None
        return next((found for found in shown if found.uid == self.uid and part in (None, found.id)), None)

    def ended(self, ids: Collection[int]) -> list[SlurmJob]:
        """Return how those of `ids` ended, if accounting answers; one `sacct`. Raises nothing."""
        try:
            found = self._ended(of_ids(ids))
        except AdapterError:
            return []
        return [job for job in found if job.uid == self.uid and job.state.ended]

    def begin(self, ids: Iterable[int], in_s: int) -> None:
        """Let waiting jobs begin in `in_s` seconds, 0: now; one `scontrol` per 500 jobs."""
        for some in _portions(ids):
            self._run(["scontrol", "update", f"JobId={some}", f"StartTime=now{f'+{in_s}' if in_s > 0 else ''}"])

    def cancel(self, ids: Iterable[int], *, waiting: bool = False) -> None:
        """Cancel jobs, or only those that have not begun; one `scancel` per 500 jobs."""
        which = ["--state=PENDING"] if waiting else []
        for some in _portions(ids):
            self._run(["scancel", *which, *some.split(",")])


def own_jobs(timeout_s: float) -> OwnJobs:
    """Return the jobs of the current user, by the Slurm commands of this machine."""
    return OwnJobs(CommandRunner(timeout_s), CommandRunner(timeout_s, as_user=True))


def by_key(jobs: Iterable[SlurmJob], known: Collection[int] = ()) -> dict[str, SlurmJob]:
    """Return jobs by the key in their comment.

    Args:
        jobs: Jobs of one user.
        known: Ids that are preferred where several jobs have one key; among others the last submitted is.
    """
    keyed = ((key_in(job.comment), job) for job in sorted(jobs, key=lambda job: (job.id in known, job.id)))
    return {key: job for key, job in keyed if key}


def too_long(comment: str) -> bool:
    """Return whether Slurm would refuse a comment for its length."""
    return len(comment.encode()) >= LONGEST_COMMENT


def _portions(ids: Iterable[int]) -> list[str]:
    listed = [str(number) for number in ids]
    return [",".join(listed[i : i + _AT_ONCE]) for i in range(0, len(listed), _AT_ONCE)]

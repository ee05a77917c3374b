"""What a user may do with jobs of their own: see, submit, move their begin, cancel, each by one command.

Rule: it asks as the user who runs it, for that user's jobs alone, so that a site's PrivateData holds here too.
Submitting takes the user's own surroundings along; an answer that did not come is never taken for a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from ..base import AdapterError
from .records import SlurmJob
from .runner import Commands, Runner
from .squeue import command_of, parse
from .submission import LONGEST_COMMENT, key_in
from .table import draw_mark
from .transport import ByCommands

#: Job ids in one command.
_AT_ONCE = 500


class OwnJobs:
    """Slurm as one user sees it. Every call raises AdapterError.

    Args:
        run, submit: what runs commands; `submit` in the user's own surroundings.
    """

    def __init__(self, run: Runner, submit: Runner, uid: int | None = None) -> None:
        self._run, self._commands, self._submitting = run, ByCommands(run), ByCommands(submit)
        self.uid = os.getuid() if uid is None else uid

    def jobs(self) -> list[SlurmJob]:
        """Those in the queue, also those that have ended and are still shown; one `squeue`."""
        mark = draw_mark()
        found = parse(self._run(command_of(mark, self.uid)), mark)
        return [job for job in found if job.uid == self.uid]

    def ended(self, ids: Collection[int]) -> list[SlurmJob]:
        """How those of `ids` ended, as far as accounting can be asked; one `sacct`. Raises nothing."""
        try:
            found = self._commands.ended(ids)
        except AdapterError:
            return []
        return [job for job in found if job.uid == self.uid and job.state.ended]

    def time(self) -> float:
        """The controller's clock, epoch seconds; one `sdiag`."""
        return self._commands.time()

    def submit(self, argv: Sequence[str]) -> int:
        """One `sbatch`; returns the job's id."""
        return self._submitting.submit(argv)

    def begin(self, ids: Iterable[int], in_s: int) -> None:
        """Let waiting jobs begin in so many seconds, 0: now; one `scontrol` for some hundreds of them."""
        for some in _portions(ids):
            self._run(["scontrol", "update", f"JobId={some}", f"StartTime=now{f'+{in_s}' if in_s > 0 else ''}"])

    def cancel(self, ids: Iterable[int], *, waiting: bool = False) -> None:
        """End jobs, or only those that have not begun; one `scancel` for some hundreds of them."""
        which = ["--state=PENDING"] if waiting else []
        for some in _portions(ids):
            self._run(["scancel", *which, *some.split(",")])


def own_jobs(timeout_s: float) -> OwnJobs:
    """The jobs of whoever runs this process, by Slurm's commands on this machine."""
    return OwnJobs(Commands(timeout_s), Commands(timeout_s, as_user=True))


def by_key(jobs: Iterable[SlurmJob]) -> dict[str, SlurmJob]:
    """Jobs by the key in their comment; of several under one key the last."""
    keyed = ((key_in(job.comment), job) for job in sorted(jobs, key=lambda job: job.id))
    return {key: job for key, job in keyed if key}


def too_long(comment: str) -> bool:
    """Whether Slurm would refuse a comment for its length."""
    return len(comment.encode()) >= LONGEST_COMMENT


def _portions(ids: Iterable[int]) -> list[str]:
    listed = [str(number) for number in ids]
    return [",".join(listed[i : i + _AT_ONCE]) for i in range(0, len(listed), _AT_ONCE)]

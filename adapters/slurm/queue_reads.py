"""The queue as Slurm showed it last, when that was, and which of its jobs must be evaluated again.

Rule: a job is evaluated again if the answer about it is another one, or if something else than the whole queue decided
its record, such as a read of the job alone. What was not evaluated to the end is evaluated at the next read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..manager.read_times import ReadTimes
from .records import SlurmJob
from .transport.differences import differences


class QueueReads(ReadTimes):
    """The last answer about the whole queue, as Slurm gave it; `clock` is monotonic, seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._answer: list[SlurmJob] = []
        self._jobs: dict[int, SlurmJob] = {}
        self._doubtful: set[int] = set()

    def doubt(self, jobs: Iterable[int]) -> None:
        """Let jobs be evaluated at the next read of the queue, even if the answer about them is the same."""
        self._doubtful.update(jobs)

    def renew(self, jobs: list[SlurmJob], recheck: Collection[int]) -> tuple[list[SlurmJob], set[int]]:
        """Take the whole queue; return the jobs to evaluate, and the ids of those that have gone. Then `note_whole`.

        Args:
            jobs: The answer.
            recheck: Ids of jobs to evaluate in any case.
        """
        new, removed = set[int](), set[int]()
        for before, after in differences(self._answer, jobs) if jobs is not self._answer else ():
            removed.update(job.id for job in self._answer[before])
            new.update(job.id for job in jobs[after])
            self._jobs |= {job.id: job for job in jobs[after]}
        removed -= new
        if len(self._jobs) - len(removed) != len(jobs):  # an id has come twice
            by_id = {job.id: job for job in jobs}
            new, removed = set(by_id), self._jobs.keys() - by_id.keys()
            self._jobs |= by_id
        for number in removed:
            del self._jobs[number]
        self._answer = jobs
        self._doubtful |= new | removed
        return [self._jobs[number] for number in self._jobs.keys() & {*self._doubtful, *recheck}], (
            self._doubtful - self._jobs.keys()
        )

    def note_whole(self) -> None:
        """Note that the whole queue was read and evaluated."""
        super().note_whole()
        self._doubtful.clear()

"""Finds jobs that Slurm resized because our node list reached them after they had begun.

Rule: a placement that Slurm refused for a job that has begun, or whose answer was lost, is in doubt for as long as
munge lets slurmctld carry it out. Meanwhile the job is read from time to time, and a change of its nodes is reported
once as a fault of ours.
Source: slurmctld 22.05 (`_update_job` sets the nodes first); munge(7): a credential is valid for 300 s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from ....simulate.model.snapshot import JobState
from ...base import AdapterError
from ..records import SlurmJob

log = logging.getLogger("pilotfish.slurm")
#: What the owner of a resized job reads.
RESIZED = "pilotfish changed its nodes after it had begun, by a fault; tell the administrators of the service"
#: Seconds for which a request may still be carried out, and seconds between two looks at a job.
UNDER_WAY_S, LOOK_EVERY_S = 310.0, 30.0


class ResizeWatch:
    """Looks at the jobs whose placement is in doubt.

    Args:
        resized: Asks Slurm whether a job was resized; raises AdapterError.
        clock: Monotonic clock, seconds.

    Attributes:
        resized: Jobs that were resized, by id.
    """

    def __init__(self, resized: Callable[[int], bool], clock: Callable[[], float]) -> None:
        self._ask, self._clock = resized, clock
        self._doubts: dict[int, tuple[float, float]] = {}  # job id -> when the doubt ends, when to look next
        self.resized: set[int] = set()

    def doubt(self, job: int) -> None:
        """Note a placement that may reach the job after it has begun."""
        now = self._clock()
        self._doubts[job] = (now + UNDER_WAY_S, now)

    def examine(self, jobs: Mapping[int, SlurmJob]) -> bool:
        """Examine one job that has begun; return whether a request was sent.

        Args:
            jobs: All jobs by id, as read now.
        """
        now = self._clock()
        for number, (end, due) in list(self._doubts.items()):
            job = jobs.get(number)
            if job is None or now > end:
                del self._doubts[number]
            elif job.state is not JobState.PENDING and now >= due:
                self._doubts[number] = (end, now + LOOK_EVERY_S)
                if job.state.ended:
                    del self._doubts[number]
                with suppress(AdapterError):
                    self._report(job)
                return True
        return False

    def _report(self, job: SlurmJob) -> None:
        if self._ask(job.id):
            self._doubts.pop(job.id, None)
            self.resized.add(job.id)
            log.error(
                "job %d began before our node list reached Slurm, which resized it to %s: please report this",
                job.id, ",".join(job.placed) or "other nodes",
            )  # fmt: skip

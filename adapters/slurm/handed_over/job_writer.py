"""Writes changes of jobs, each after reading the job again alone; a placement is such a change.

Rule: nothing is written to a job that has changed since the decision, so changes by its user stay. Nodes are written
only to a job that cannot begin, because Slurm would resize a job that has begun. A job that may begin is held back
first, by a command that Slurm refuses for a job that has begun; this pause is on record, so that the next daemon goes
on with it. After a missing answer nothing more is written; the next reads of the queue decide.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....simulate.model.snapshot import JobState
from ...base import NOT_SENT, AdapterError
from ..allocation import SiteAllocation
from ..records import SlurmJob
from ..transport.command_transport import Transport
from .job_update import LET_GO, OurChanges, came_too_late, hold_back, pin_fields, pin_for
from .ownership import hold_back_until, may_begin, ready
from .pin_record import Pin

#: Slurm's refusal of a change to another user's job, and seconds for which no such change is tried after it.
FOREIGN, FOREIGN_S = "Invalid user id", 60.0
#: Kinds of errors after which a change was surely not made, and will not be. A command that failed may have been killed
#: when it was done.
UNDONE = NOT_SENT | {"clock", "missing", "rights", "spawn"}
#: Kind of the error of a job whose begin time is neither the one that we read nor the one that we wrote.
MOVED = "moved"


class JobWriter:
    """Writes changes of jobs.

    Args:
        transport: Reads and writes.
        changes: Makes and records the changes.
        now: Returns the controller's clock, epoch seconds.
        clock: Monotonic clock, seconds.
        max_defer_s: Longest time that a job is kept after its submission, seconds.
        doubt: Called with the id of a job that a pin may reach after it has begun.

    Attributes:
        changes: The argument.
        recorder: What records the changes of a preview, in which nothing is written; None: they are written.
        allocation: What Slurm allocates to a job.
    """

    def __init__(
        self,
        transport: Transport,
        changes: OurChanges,
        now: Callable[[], float],
        clock: Callable[[], float],
        max_defer_s: float,
        doubt: Callable[[int], None],
    ) -> None:
        self._transport, self.changes, self._now, self._time = transport, changes, now, clock
        self._max_defer_s, self._doubt = max_defer_s, doubt
        self.recorder: Transport | None = None
        self.allocation = SiteAllocation()
        self._uid, self._foreign_until = os.getuid(), float("-inf")

    def read(self, number: int) -> SlurmJob:
        """Read one job. Raises AdapterError, `gone` if it has left the queue."""
        for job in self._transport.jobs([number]):
            if job.id == number:
                return self.allocation.of(self.changes.recognise(job, self._now))
        raise AdapterError(f"job {number} is no longer in the queue", kind="gone")

    def place(self, judged: SlurmJob, nodes: Sequence[str]) -> Pin | None:
        """Pin a job that waits and end what holds it back; return None if it began or ended before.

        Args:
            judged: The job, as it was found fit to start on the nodes.
            nodes: Node names.

        Raises:
            AdapterError: It was not pinned; transient: perhaps it was.
        """
        job, held_back = self.read_again(judged), False
        if job is not None and may_begin(job, self._now()):
            held_back = True
            job = self._hold_back(job)
        if job is None:
            return None
        pin = pin_for(job, nodes, self._now())
        self._record(job.id, pin)
        if may_begin(job, self._now()):  # Slurm, or the disk, took long
            self._record(job.id, _pause(job) if held_back else None)
            raise _refused(job, "it was bound too late; Slurm may start it")
        try:
            begun = not self.change(job, pin_fields(pin))
        except AdapterError as error:
            if error.kind in UNDONE:
                self._record(job.id, _pause(job) if held_back else None)
            else:
                self._doubt(job.id)
            raise
        if begun:
            self._doubt(job.id)
        return None if begun else pin

    def end_pause(self, job: SlurmJob) -> None:
        """Let a job begin that we held back and did not bind. Raises AdapterError."""
        if self.change(job, LET_GO):
            self._record(job.id, None)

    def change(self, job: SlurmJob, fields: Mapping[str, str]) -> bool:
        """Write fields of a job, in one command; return False if it began or ended before. Raises AdapterError."""
        if job.uid != self._uid and self._time() < self._foreign_until:
            raise self._foreign_error()
        try:
            (self.recorder or self._transport).update(job.id, fields)
        except AdapterError as error:
            if FOREIGN in f"{error} {error.stderr_tail}" and job.uid != self._uid:
                self._foreign_until = self._time() + FOREIGN_S
                raise self._foreign_error() from error
            if came_too_late(error, fields):
                return False
            raise
        return True

    def _hold_back(self, job: SlurmJob) -> SlurmJob | None:
        """Keep a job from beginning while it is bound; return it as it then is, None if it began or ended before."""
        until = hold_back_until(job, self._now(), self._max_defer_s)
        if until is None:
            raise _refused(job, "it may not be held back for longer: Slurm starts it")
        held_job = replace(job, begin=until)
        self._record(job.id, _pause(held_job))
        try:
            if not self.change(job, hold_back(until)):
                return None
        except AdapterError as error:
            if error.kind in UNDONE:
                self._record(job.id, None)
            raise
        if self.recorder is not None:
            return held_job
        try:
            return self.read_again(held_job)
        except AdapterError as error:
            if error.kind == MOVED:  # it is its user who holds it back
                self._record(job.id, None)
            raise

    def read_again(self, job: SlurmJob) -> SlurmJob | None:
        """Read a job once more, right before it is written; None: it began or ended.

        Raises:
            AdapterError: It changed, kind MOVED if that is its begin time; or it cannot be read.
        """
        current = self.read(job.id)
        if current.state is not JobState.PENDING:
            return None
        if current.begin != job.begin and not (_passed(current, self._now()) and _passed(job, self._now())):
            raise _refused(job, "its begin time was moved meanwhile", kind=MOVED)
        if _request(current) != _request(job):
            raise _refused(job, "it was changed meanwhile")
        return current

    def _record(self, job: int, pin: Pin | None) -> None:
        """Record a pin before it is set, or that a job has no pin; nothing in a preview. Raises AdapterError."""
        if self.recorder is None:
            self.changes.record.drop(job) if pin is None else self.changes.record.add(job, pin)

    def _foreign_error(self) -> AdapterError:
        why = f"Slurm lets user {self._uid} change only its own jobs; pilotfish must be an operator of Slurm"
        return AdapterError(f"{why} (see `pilotfish doctor`)", kind="rights")


def _passed(job: SlurmJob, now: float) -> bool:
    return job.begin is None or job.begin <= now


def _pause(job: SlurmJob) -> Pin:
    """Return the record of a job that is held back until its begin time, to be pinned next."""
    return Pin(job.uid, (), int(job.begin or 0.0))


def _request(job: SlurmJob) -> SlurmJob:
    """Return what a waiting job and its user ask for, without what Slurm alone changes."""
    priority = 0 if job.priority == 0 else 1
    reason = "" if ready(job) else job.reason
    return replace(
        job,
        reason=reason,
        priority=priority,
        begin=None,
        start=None,
        end=None,
        planned=(),
        tres=(),
        paused=False,
        unsettled=False,
    )


def _refused(job: SlurmJob, why: str, kind: str = "refused") -> AdapterError:
    return AdapterError(f"slurm/{job.id}: {why}", kind=kind)

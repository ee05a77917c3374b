"""The fields that pilotfish writes in Slurm, and how it recognises its own changes.

Rule: only the fields in ALLOWED, only of jobs that are handed over on a fresh read, and each change in one command, so
that it is never half done. Nodes are written only to jobs that cannot begin (see `ownership`). A node list that the
user set is never overwritten: a job that names its nodes is placed on exactly these.

Softer forms were tried on Slurm 22.05. With ExcNodeList, a job waits just as long if its node fails. Prefer lets Slurm
place the job elsewhere at once, but it takes features, so every node would need its own name as a feature, and it
overrides the features that the user asked for.
Source: scontrol(1) UPDATE; Slurm 22.05: an empty ReqNodeList clears it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ....formats.hostlist import fold
from ....simulate.errors import InvariantError
from ....simulate.model.snapshot import JobState
from ....simulate.slurm.time_min import minutes_of_prediction
from ...base import AdapterError
from ..records import SlurmJob
from .first_begins import FirstBegins
from .ownership import HOLD_BACK_S, is_held
from .pin_record import Pin, PinRecord

ALLOWED = frozenset(("ReqNodeList", "StartTime", "TimeMin"))
#: The fields that give a held job to Slurm for good.
LET_GO = {"StartTime": "now"}
#: Before a time in epoch seconds, in a text (Slurm's parse_time).
EPOCH = "uts"
#: Slurm's refusals of a change that came too late.
BEGUN = (
    "Job is no longer pending execution",
    "Job has already finished",
    "Job/step already completing or completed",
    "Invalid job id",
)
#: Slurm's refusal to clear the node list of a job that has begun.
BEGUN_WITH_NODES = "Invalid node name specified"
#: Seconds for which a job must be missing in the queue before what we did to it is forgotten.
GONE_S = 60.0


class OurChanges:
    """Makes our changes of jobs, and recognises them.

    Args:
        record: The pins that were set.
        begins: The begin times with which jobs were handed over.
        clock: Monotonic clock, seconds.
    """

    def __init__(
        self,
        record: PinRecord,
        begins: FirstBegins | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.record = record
        self._begins = begins or FirstBegins(None)
        self._clock = clock
        self._last_seen: dict[int, float] = {}  # when the queue had the jobs that are on record last
        self._retained_at = clock()
        self._recorded: set[int] = set()

    def recognise(self, job: SlurmJob, now: Callable[[], float]) -> SlurmJob:
        """Return a waiting job with the changes that we and its user made: `pinned` to `unsettled` of a record.

        Args:
            job: The job as read.
            now: Returns the controller's clock, epoch seconds.
        """
        if job.state is not JobState.PENDING:
            return job
        pin, let_go = self.record.get(job.id), self._begins.is_let_go(job)
        recognised = job
        if pin is not None and (pin.uid, set(pin.nodes)) == (job.uid, set(job.wanted)) and pin.nodes:
            recognised = replace(job, pinned=float(pin.time), own_nodes=pin.own)
        if paused := pin is not None and pin.uid == job.uid and not pin.nodes and job.begin == pin.time:
            recognised = replace(recognised, paused=now() < pin.time)
        moved = not paused and is_held(job, -math.inf) and self._begins.moved(job)
        if let_go or moved:
            recognised = replace(recognised, let_go=let_go, moved=moved)
        if (
            pin is not None
            and recognised.pinned is None
            and not recognised.paused
            and pin.uid == job.uid
            and now() < pin.time + HOLD_BACK_S
        ):
            return replace(recognised, unsettled=True)  # time alone settles it
        return recognised

    def unsure(self) -> set[int]:
        """Return the ids of jobs for which `recognise` may return something else than last time, as read the same."""
        before, self._recorded = self._recorded, {*self.record.jobs(), *self.record.damaged}
        return before | self._recorded

    def retain(self, jobs: Collection[int]) -> None:
        """Forget jobs that have not been in the queue for GONE_S. `jobs` are the whole queue, as Slurm shows it now."""
        now, ids = self._clock(), {*self.record.jobs(), *self.record.damaged, *self._begins.jobs()}
        last_seen = {job: now if job in jobs else self._last_seen.get(job, self._retained_at) for job in ids}
        self._last_seen = {job: at for job, at in last_seen.items() if now - at < GONE_S}
        self._retained_at = now
        self.record.retain(self._last_seen.keys())
        self._begins.retain(self._last_seen.keys())

    def unpin(self, job: SlurmJob) -> dict[str, str]:
        """Return the fields that undo our pin, {} if there is nothing to undo; Slurm then places the job."""
        return {} if job.pinned is None or job.own_nodes else {"ReqNodeList": ""}

    def note_let_go(self, job: SlurmJob) -> None:
        """Remember that a job was given to Slurm for good."""
        self._begins.note_let_go(job)


def with_our_pins(jobs: Iterable[SlurmJob], state_dir: Path | None, now: float) -> tuple[list[SlurmJob], str]:
    """Return jobs with the changes that we made, and the reason why these are not known, or "".

    Args:
        jobs: The jobs as read.
        state_dir: Directory of the record; None: unknown.
        now: Controller's clock, epoch seconds.
    """
    record, begins = PinRecord(state_dir, read_only=True), FirstBegins(state_dir, read_only=True)
    changes = OurChanges(record, begins)
    return [changes.recognise(job, lambda: now) for job in jobs], record.unread


def pin_for(job: SlurmJob, nodes: Sequence[str], now: float) -> Pin:
    """Return the pin of a job to these nodes at this time, epoch seconds."""
    return Pin(job.uid, tuple(nodes), int(now), set(nodes) == set(job.wanted))


def pin_fields(pin: Pin) -> dict[str, str]:
    """Return the fields that pin a job, which cannot begin, and let it start now."""
    return {**({} if pin.own else {"ReqNodeList": fold(pin.nodes)}), **LET_GO}


def let_go_fields(job: SlurmJob, expected_s: float | None) -> dict[str, str]:
    """Return the fields that give a held job to Slurm, with its predicted run time for Slurm's backfill.

    Args:
        job: The job; a TimeMin that its user set stays.
        expected_s: Its predicted run time, seconds; None: it gets no TimeMin.
    """
    limit = None if job.time_limit is None else job.time_limit / 60.0
    minutes = None if job.special else minutes_of_prediction(expected_s, limit)
    return {**LET_GO, **({} if minutes is None else {"TimeMin": str(minutes)})}


def came_too_late(error: AdapterError, fields: Mapping[str, str]) -> bool:
    """Return whether Slurm refused these fields because the job has begun or ended."""
    begun = (*BEGUN, BEGUN_WITH_NODES) if fields.get("ReqNodeList") == "" else BEGUN
    return any(words in error.stderr_tail for words in begun)


def hold_back(until: float) -> dict[str, str]:
    """Return the fields that keep a job from beginning before a time, epoch seconds, in Slurm's own notation."""
    return {"StartTime": f"{EPOCH}{until:.0f}"}


def allowed(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields if all of them may be written. Raises InvariantError."""
    if foreign := fields.keys() - ALLOWED:
        raise InvariantError(f"pilotfish does not write {', '.join(sorted(foreign))} of a job")
    return fields


def command(job: int, fields: Mapping[str, str]) -> list[str]:
    """Return the argv that changes these fields of a job."""
    allowed(fields)
    return ["scontrol", "update", f"JobId={job}", *(f"{name}={value}" for name, value in fields.items())]

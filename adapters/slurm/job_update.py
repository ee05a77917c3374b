"""The fields that pilotfish writes in Slurm, and how it recognises its own changes.

Rule: only the fields in ALLOWED, only of jobs that are handed over on a fresh read, and each change in one command, so
that it is never half done. Nodes are written only to jobs that cannot begin (see `ownership`). A pin leaves a mark in
AdminComment, which users cannot write, or, for an operator who is no administrator, at the end of Comment; every other
byte of the comment stays. A node list of the user's is never written: a job that names its nodes is placed on just
these.

Softer forms were tried on Slurm 22.05. ExcNodeList idles a job just as hard if its node fails. Prefer lets Slurm place
the job elsewhere at once, but it takes features, so every node would need its own name as a feature, and it overrides
the features that the user asked for.
Source: scontrol(1) UPDATE; Slurm 22.05: an empty ReqNodeList clears it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from ...formats.hostlist import fold
from ...simulate.errors import ConfigError, InvariantError
from ...simulate.model.snapshot import JobState
from ..base import AdapterError
from .first_begins import FirstBegins
from .marks import AHEAD_S, Marks, Pin, PinRecord, read_key
from .ownership import HOLD_BACK_S, is_held
from .records import SlurmJob
from .submission import LONGEST_COMMENT

ALLOWED = frozenset(("ReqNodeList", "StartTime", "AdminComment", "Comment"))
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
#: Bytes that a mark of ours takes, with the blank before it.
MARK_BYTES = 52


class MarkField(StrEnum):
    """The field that holds a mark."""

    ADMIN_COMMENT = "AdminComment"
    COMMENT = "Comment"

    def text(self, job: SlurmJob) -> str:
        """Return the content of the field."""
        return job.admin_comment if self is MarkField.ADMIN_COMMENT else job.comment


class OurChanges:
    """Makes our changes of jobs, and recognises them.

    Args:
        marks: Makes and recognises marks.
        record: The pins that were set.
        takes: Whether a job is handed over; only then a mark alone counts.
        field: Field for marks.
        begins: The begin times with which jobs were handed over.
        clock: Monotonic clock, seconds.
    """

    def __init__(
        self,
        marks: Marks,
        record: PinRecord,
        takes: Callable[[SlurmJob], bool],
        field: MarkField,
        begins: FirstBegins | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.marks, self.record, self.takes, self.field = marks, record, takes, field
        self._begins = begins or FirstBegins(None)
        self._clock, self._seen = clock, dict.fromkeys({*record.jobs(), *record.damaged}, clock())
        self._let_go: set[int] = set()
        self._known: dict[int, tuple[SlurmJob, Pin | None, SlurmJob]] = {}

    def recognise(self, job: SlurmJob, now: Callable[[], float]) -> SlurmJob:
        """Return a waiting job with what we, and its user, changed of it: `pinned` to `unsettled` of a record.

        Args:
            job: The job as read. The same result is returned for the same record.
            now: Returns the controller's clock, epoch seconds.
        """
        if job.state is not JobState.PENDING:
            if self.record.lost and self.record.get(job.id) is None:
                self._marked(job, now)  # it may be requeued
            return job
        pin, known = self.record.get(job.id), self._known.get(job.id)
        if known is not None and known[0] is job and known[1] is pin:
            return known[2]
        pin = pin or self._marked(job, now)
        let_go = job.id in self._let_go or bool(self._find(("let-go",), job, now)[0])
        full = not self._fits(job, MARK_BYTES)
        found = job
        if pin is not None and (pin.uid, set(pin.nodes)) == (job.uid, set(job.wanted)) and pin.nodes:
            found = replace(job, pinned=float(pin.time), own_nodes=pin.own)
        moved = is_held(job, -math.inf) and self._begins.moved(job)
        if let_go or full or moved:
            found = replace(found, let_go=let_go, full=full, moved=moved)
        if pin is not None and found.pinned is None and pin.uid == job.uid and now() < pin.time + HOLD_BACK_S:
            self._known.pop(job.id, None)  # time alone settles it
            return replace(found, unsettled=True)
        self._known[job.id] = job, self.record.get(job.id), found
        return found

    def retain(self, jobs: Collection[int]) -> None:
        """Forget jobs that have not been in the queue for GONE_S. `jobs` are the whole queue, as Slurm shows it now."""
        now = self._clock()
        seen = {job: at for job, at in self._seen.items() if now - at < GONE_S and job not in jobs}
        self._seen = seen | dict.fromkeys(jobs, now)
        self.record.retain(self._seen.keys())
        self.record.found_again()
        self._let_go &= self._seen.keys()
        self._begins.retain(self._seen.keys())
        self._known = {job: known for job, known in self._known.items() if job in jobs}

    def pin(self, job: SlurmJob, nodes: Sequence[str], now: float) -> dict[str, str]:
        """Return the fields that place a job, which cannot begin, on these nodes and let it start now.

        Args:
            job: The job, freshly read.
            nodes: Node names.
            now: Controller's clock, epoch seconds.
        """
        mine = pin_for(job, nodes, now)
        where = {} if mine.own else {"ReqNodeList": fold(nodes)}
        mark = self.marks.make(mine.kind, mine.time, job.id, job.uid, mine.nodes)
        return {**where, "StartTime": "now", self.field: self._with_mark(job, mark)}

    def unpin(self, job: SlurmJob) -> dict[str, str]:
        """Return the fields that undo our pin, {} if there is nothing to undo; Slurm then places the job."""
        if job.pinned is None:
            return {}
        where = {} if job.own_nodes else {"ReqNodeList": ""}
        texts = {field: self._without_mark(field.text(job), job) for field in MarkField}
        return {**where, **{field: text for field, text in texts.items() if text != field.text(job)}}

    def let_go(self, job: SlurmJob, now: float) -> dict[str, str]:
        """Return the fields that give a held job to Slurm for good, with a mark if there is room for one."""
        mark = self.marks.make("let-go", int(now), job.id, job.uid)
        text = self._with_mark(job, mark)
        return {"StartTime": "now", **({self.field: text} if _size(text) < LONGEST_COMMENT else {})}

    def note_let_go(self, job: int) -> None:
        """Remember a job that was given to Slurm, whatever becomes of its mark."""
        self._let_go.add(job)
        self._known.pop(job, None)

    def _with_mark(self, job: SlurmJob, mark: str) -> str:
        text = self._unmarked(job)
        return f"{text} {mark}" if text else mark

    def _unmarked(self, job: SlurmJob) -> str:
        return self._without_mark(self.field.text(job), job)

    def _without_mark(self, text: str, job: SlurmJob) -> str:
        return self.marks.without(text, job.id, job.uid, job.wanted)

    def _fits(self, job: SlurmJob, more: int) -> bool:
        return _size(self._unmarked(job)) + more < LONGEST_COMMENT

    def _marked(self, job: SlurmJob, now: Callable[[], float]) -> Pin | None:
        """Return the pin of a job by its mark, if the record cannot say, and record it."""
        if not (self.record.lost or job.id in self.record.damaged) or not self.takes(job):
            return None
        kind, time = self._find(("pin", "own"), job, now)
        if not kind:
            return None
        pin = Pin(job.uid, job.wanted, time, kind == "own")
        with suppress(AdapterError):  # the mark still says so
            self.record.add(job.id, pin)
        return pin

    def _find(self, kinds: Collection[str], job: SlurmJob, now: Callable[[], float]) -> tuple[str, int]:
        found = (self.marks.find(kinds, field.text(job), job.id, job.uid, job.wanted) for field in MarkField)
        return next(((kind, time) for kind, time in found if kind and time <= now() + AHEAD_S), ("", 0))


def with_our_pins(
    jobs: Iterable[SlurmJob], state_dir: Path | None, takes: Callable[[SlurmJob], bool], now: float
) -> list[SlurmJob]:
    """Return jobs with what we changed of them; without the right to read the state directory as they are.

    Args:
        jobs: The jobs as read.
        state_dir: Directory of the key and the record; None: unknown.
        takes: Whether a job is handed over.
        now: Controller's clock, epoch seconds.
    """
    try:
        key = read_key(state_dir, make=False)
    except ConfigError:
        key = b""
    record, begins = PinRecord(state_dir, read_only=True), FirstBegins(state_dir, read_only=True)
    changes = OurChanges(Marks(key), record, takes, MarkField.COMMENT, begins)
    return [changes.recognise(job, lambda: now) for job in jobs]


def pin_for(job: SlurmJob, nodes: Sequence[str], now: float) -> Pin:
    """Return the pin of a job to these nodes at this time, epoch seconds."""
    return Pin(job.uid, tuple(nodes), int(now), set(nodes) == set(job.wanted))


def came_too_late(error: AdapterError, fields: Mapping[str, str]) -> bool:
    """Return whether Slurm refused these fields because the job has begun or ended."""
    begun = (*BEGUN, BEGUN_WITH_NODES) if fields.get("ReqNodeList") == "" else BEGUN
    return any(words in error.stderr_tail for words in begun)


def hold_back(until: float) -> dict[str, str]:
    """Return the fields that keep a job from beginning before a time, epoch seconds, in Slurm's own notation."""
    return {"StartTime": f"{EPOCH}{until:.0f}"}


def _size(text: str) -> int:
    return len(os.fsencode(text))


def allowed(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields if all of them may be written. Raises InvariantError."""
    if foreign := fields.keys() - ALLOWED:
        raise InvariantError(f"pilotfish does not write {', '.join(sorted(foreign))} of a job")
    return fields


def command(job: int, fields: Mapping[str, str]) -> list[str]:
    """Return the argv that changes these fields of a job."""
    allowed(fields)
    return ["scontrol", "update", f"JobId={job}", *(f"{name}={value}" for name, value in fields.items())]

"""The reaper for Slurm: clears pins whose job did not start, and lets go of jobs that were held too long.

Rule: it shares no parser with the daemon and reads the few fields that it needs, row by row. A row, or a field of it,
that cannot be read says nothing about any other. It knows our pins from the record of pins. A job is read again,
alone, right before it is changed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ....formats.hostlist import expand, fold
from ....simulate.errors import ConfigError
from ....simulate.model.snapshot import JobState
from ...base import AdapterError, Reaped
from ..records import SlurmJob
from ..transport.command_transport import CommandTransport
from ..transport.runner import Runner
from .first_begins import FirstBegins
from .job_update import LET_GO, OurChanges, came_too_late
from .ownership import SlurmSelection, is_held, may_begin
from .pin_record import PinRecord

#: Longest text of a node list, characters; most nodes that the audit names.
LONGEST_LIST, MOST_NODES = 2**16, 100
FIELDS = (
    "JobID", "UserID", "ReqNodes", "Comment", "Partition", "QOS", "Account", "Feature", "SubmitTime",
    "EligibleTime", "RestartCnt",
)  # fmt: skip
_EMPTY = ("", "(null)", "N/A")


class Reaper:
    """Reads the waiting jobs, and clears overdue pins and ends overdue holds.

    Args:
        run: Runs a command and returns what it printed.
        selection: Jobs that are handed over.
        state_dir: Directory with the record of our pins.
        max_defer_s: Longest time that a job is kept after its submission, seconds.
        wall: Clock of this machine, epoch seconds.
    """

    def __init__(
        self,
        run: Runner,
        selection: SlurmSelection,
        state_dir: Path,
        max_defer_s: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._run, self._transport = run, CommandTransport(run, wall=wall)
        self._selection, self._max_defer_s = selection, max_defer_s
        record, begins = PinRecord(state_dir, read_only=True), FirstBegins(state_dir, read_only=True)
        self._record = PinRecord(state_dir)
        self._changes = OurChanges(record, begins)

    def reap(self, older_s: float, show: Callable[[Reaped], None], *, dry: bool) -> int:
        """Clear overdue pins, end overdue holds; return how many failed. Raises AdapterError if no job can be read.

        Args:
            older_s: Least age of a pin, and least time since the end of a hold, seconds.
            show: Called with each release.
            dry: Only show.
        """
        failed, offset = 0, self._transport.time() - time.monotonic()
        overdue = [job for job in self._waiting(offset).values() if self._fields(job, offset, older_s)]
        for late_job in sorted(overdue, key=lambda job: job.pinned is None):  # pins have no end
            try:
                job = self._waiting(offset, late_job.id).get(late_job.id)
                fields = self._fields(job, offset, older_s) if job is not None else None
                if job is None or fields is None:
                    continue  # it began, or was released, in between
                if not dry:
                    self._write(job, fields)
                show(_reaped(job))
            except (AdapterError, OSError, ValueError) as error:
                failed += 1
                show(_reaped(late_job, str(error)))
        return failed

    def _write(self, job: SlurmJob, fields: Mapping[str, str]) -> None:
        try:
            if fields:
                self._transport.update(job.id, fields)
        except AdapterError as error:
            if not came_too_late(error, fields):
                raise
        if job.pinned is not None:
            self._record.refresh()
            if self._record.get(job.id) == self._changes.record.get(job.id):  # the daemon set no other one meanwhile
                self._record.drop(job.id)

    def _fields(self, job: SlurmJob, offset: float, older_s: float) -> Mapping[str, str] | None:
        """Return the fields that release a job, None if it is not overdue."""
        now = time.monotonic() + offset
        if job.pinned is not None:
            return self._changes.unpin(job) if job.pinned < now - older_s else None
        is_held_back = not job.let_go and self._selection.takes(job) and is_held(job, now) and not may_begin(job, now)
        if is_held_back and job.submit is not None and job.submit + self._max_defer_s <= now - older_s:
            return LET_GO
        return None

    def _waiting(self, offset: float, only: int | None = None) -> dict[int, SlurmJob]:
        """Return the waiting jobs by id, with our changes; `only`: just the job with that id."""
        mark = f"@{secrets.token_hex(8)}@"
        form = ",".join(f"{field}:0{mark}" for field in FIELDS)

        def now() -> float:
            return time.monotonic() + offset

        filters = [] if only is None else [f"--jobs={only}"]
        try:
            printed = self._run(["squeue", "--noheader", "--all", "--states=pending", *filters, f"--Format={form}"])
        except AdapterError as error:
            if only is not None and "Invalid job id" in error.stderr_tail:
                return {}  # it is gone
            raise
        cells = printed.split(mark)
        if cells.pop().strip() or len(cells) % len(FIELDS):
            raise AdapterError("squeue: the table is cut off or garbled", kind="parse", argv=("squeue",))
        jobs = {}
        for values in zip(*[iter(cells)] * len(FIELDS), strict=True):
            try:
                row = dict(zip(FIELDS, values, strict=True))
                job = _job(row)
                job = self._changes.recognise(replace(job, wanted=self._wanted(job, _word(row["ReqNodes"]))), now)
            except Exception:  # a user's text: the other rows must be judged
                continue
            jobs[job.id] = job
        return jobs

    def _wanted(self, job: SlurmJob, text: str) -> tuple[str, ...]:
        """Return the nodes of a list that may be a pin of ours; () of any other, which is not expanded."""
        pin = self._changes.record.get(job.id)
        return () if pin is None else _nodes(text, len(pin.nodes))


def _reaped(job: SlurmJob, error: str = "") -> Reaped:
    """Return the release of a job as it was before, with the error, if any."""
    line = f"release slurm/{job.id}{error and f': {error}'}"
    facts = {"state": "pending", "nodes": fold(job.wanted[:MOST_NODES]), "held_until": job.begin}
    if job.pinned is not None:
        facts |= {"pinned_since": job.pinned, "held_until": None}
    before = {name: fact for name, fact in facts.items() if fact}
    why = "its pin did not become a start" if job.pinned is not None else "it was held long enough"
    return Reaped(line, f"slurm/{job.id}", job.uid, why, before, error)


def _job(row: Mapping[str, str]) -> SlurmJob:
    """Return what the reaper needs of a job. Raises ValueError if its id or its user cannot be read."""
    number, uid = _number(row["JobID"]), _number(row["UserID"])
    if number is None or uid is None:
        raise ValueError("a job without an id or a user")
    return SlurmJob(
        id=number,
        state=JobState.PENDING,
        uid=uid,
        account=_word(row["Account"]),
        qos=_word(row["QOS"]),
        partition=_word(row["Partition"]),
        features=_word(row["Feature"]),
        submit=_time(row["SubmitTime"]),
        begin=_time(row["EligibleTime"]),
        restarts=_number(row["RestartCnt"]) or 0,
        comment="" if row["Comment"] == "(null)" else row["Comment"],
    )


def _word(text: str) -> str:
    return "" if text.strip() in _EMPTY else text.strip()


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None


def _time(text: str) -> float | None:
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _nodes(text: str, limit: int) -> tuple[str, ...]:
    """Return the names of a node list, () if it is empty, unreadable, or has more than `limit` names."""
    try:
        return expand(text, limit) if 0 < len(text) <= LONGEST_LIST else ()
    except ConfigError:
        return ()

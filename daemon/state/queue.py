"""The queue: the jobs that were submitted or handed over to us, and how far each has come, in memory.

Rule: only a snapshot (or a user's cancel) changes a job's state. A job that the resource manager no longer shows is
UNKNOWN until its records say how it ended, and is never started again. Without such a record it counts as failed only
if no records are kept and it was missing for long, or if the records do not know it for very long. Pure: no files, no
clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

from ...formats.hostlist import with_cores
from ...simulate.model.capacity import memory_need
from ...simulate.model.job import Job, Profile, Workflow
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from .endings import ending
from .forecasts import JobForecast, Outlook
from .profile_labels import ProfileLabel

#: Records of ended jobs by key; None = the records do not know the job. A missing key was not answered.
Records = Mapping[str, JobView | None]
Shape = tuple[int, int, float, frozenset[str] | None]
#: Seconds before a job whose start failed is tried again: doubled each time, up to the last.
RETRY_S = (1.0, 60.0)
#: Snapshots in a row, and seconds, after which a missing job will not come back. The last one, seconds, holds if
#: records are kept and do not know the job: they may be far behind after a fault.
MISSED, MISSED_S, UNRECORDED_S = 10, 30.0, 900.0


def shape_of(job: Job) -> Shape:
    """Return what decides where a job fits: nodes, threads, bytes and allowed nodes."""
    return job.nodes, job.profile.threads, memory_need(job), job.allowed


@dataclass(slots=True)
class Entry:
    """A job in the queue.

    `key` is its name in the resource manager; `shape` decides where it fits; `planned` is the job for the planner, as
    it was made last; `labelled` is the profile that `label` describes; `outlook` is what the latest plan says of the
    job while it waits, not kept over a restart.

    Args:
        position: in its workflow, from 0.
        offered: its user handed it over through the resource manager: it is placed, and not submitted.
        forecast: at the decision to start it; `promised` is the first forecast of its finish time, `expected` the
            latest; `plain_end` is the first forecast of its end in the resource manager's own order.
        handed: the resource manager has taken it (its intent came true).
        ahead: the resource manager has it, or may have it, and it waits there for us to start it.
        cancel_wanted: a user asked for its end.
        attempts: starts that failed; `not_before` is when the next may be tried, epoch seconds.
        intent: row of the journalled intent that has no outcome yet; `refused` is the resource manager's error.
        since: when it was first submitted to the resource manager, if it was handed over; `held`: it waits for us
            alone; `waits` is why it must not start.
        let_go: why the resource manager alone decides about it again; "": it is ours (see `handed_over`). `released` is
            why we released it last, since when it was not placed.
        label: the profile of its latest forecast; None: it has no forecast.
        missed: in how many snapshots in a row it was missing, the first at `missed_since`.
        followed: other jobs wait until it has completed.
        suspended: it was seen suspended, so that its times say nothing about its run time; not kept over a restart.
        began: it was seen to run since its last start; not kept over a restart.
    """

    workflow: str
    job: Job
    position: int
    offered: bool = False
    state: JobState = JobState.PENDING
    nodes: tuple[str, ...] = ()
    start_time: float | None = None
    finish_time: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    forecast: JobForecast | None = None
    promised: float | None = None
    expected: float | None = None
    handed: bool = False
    ahead: bool = False
    cancel_wanted: bool = False
    attempts: int = 0
    not_before: float = 0.0
    intent: int | None = None
    refused: str = ""
    since: float | None = None
    plain_end: float | None = None
    held: bool = False
    waits: str = ""
    let_go: str = ""
    released: str = ""
    label: ProfileLabel | None = None
    missed: int = 0
    missed_since: float = 0.0
    followed: bool = False
    suspended: bool = False
    began: bool = False
    key: str = field(init=False)
    shape: Shape = field(init=False)
    planned: Job | None = field(init=False, default=None)
    labelled: Profile | None = field(init=False, default=None)
    outlook: Outlook | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.key = f"{self.workflow}/{self.job.id}"
        self.change(self.job)

    def change(self, job: Job) -> None:
        """Replace what the job asks for."""
        self.job, self.planned = job, None
        self.shape = shape_of(job)

    @property
    def waiting(self) -> bool:
        """True while it is still ours to start."""
        mine = self.state is JobState.PENDING and not self.handed and self.intent is None
        return mine and not self.cancel_wanted

    @property
    def name(self) -> str:
        """The name that its user gave it; "" if that is not known."""
        return dict(self.job.traits).get("executable", "")

    @property
    def partition(self) -> str:
        """The partition of Slurm or queue of OAR in which it was submitted; "" if it was not."""
        return dict(self.job.traits).get("queue", "")

    def show(self, view: JobView) -> bool:
        """Copy from a view how far the job has come; return whether that has changed. A waiting job has no start."""
        before = (self.state, self.nodes, self.start_time, self.finish_time, self.reason)
        begun = view.state is not JobState.PENDING
        self.state, self.nodes = view.state, view.nodes or (self.nodes if begun else ())
        if not begun:
            self.start_time = None
        elif view.start_time is not None:
            self.start_time = view.start_time
        if view.state.ended:
            self.finish_time, self.exit_code, self.signal = view.finish_time, view.exit_code, view.signal
        self.missed = 0
        return before != (self.state, self.nodes, self.start_time, self.finish_time, self.reason)

    def miss(self, now: float) -> float:
        """Note that a snapshot at `now` (epoch seconds) does not show the job; return for how long none has."""
        self.missed_since = self.missed_since if self.missed else now
        self.missed += 1
        return now - self.missed_since


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job: kind is started, ended, cancelled, lost, retry or seen; `text` explains it."""

    kind: str
    entry: Entry
    text: str


@dataclass(slots=True)
class Submission:
    """A workflow that was submitted to us under `id`, by the user with the uid `owner` (None = not known)."""

    offered: ClassVar[bool] = False  # whether its jobs stay in the resource manager's own queue
    id: str
    workflow: Workflow
    submit_time: float
    entries: dict[str, Entry] = field(default_factory=dict)
    successors: dict[str, list[str]] = field(default_factory=dict)
    owner: int | None = None
    let_go: dict[str, Entry] = field(default_factory=dict)  # jobs that were handed over and are no longer ours

    def __post_init__(self) -> None:
        base, umask = self.workflow.base_environment, self.workflow.umask
        for position, given_job in enumerate(self.workflow.jobs):
            job = given_job
            if base is not None or umask is not None:
                job = dataclasses.replace(given_job, base_environment=base, umask=umask)
            self.entries.setdefault(job.id, Entry(self.id, job, position, self.offered))
            for before in job.after:
                self.successors.setdefault(before, []).append(job.id)
        for name in self.successors.keys() & self.entries.keys():
            self.entries[name].followed = True

    @property
    def state(self) -> JobState:
        """COMPLETED if all jobs are; the worst state if all have ended; RUNNING once one has begun."""
        states = {entry.state for entry in self.entries.values()}
        if all(state.ended for state in states):
            order = (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED, JobState.COMPLETED)
            return next(state for state in order if state in states)
        return JobState.PENDING if states == {JobState.PENDING} else JobState.RUNNING

    @property
    def edges(self) -> int:
        """The number of dependencies between jobs."""
        return sum(map(len, self.successors.values()))

    @property
    def ended(self) -> bool:
        """True if all jobs have ended; mostly found out with the first one."""
        return all(entry.state.ended for entry in self.entries.values())

    def drop_ended(self) -> None:
        """Drop ended jobs that are not needed any more: none before the whole workflow has ended."""

    @property
    def exit_code(self) -> int | None:
        """None until the workflow has ended, 0 if every job completed, else 1."""
        state = self.state
        return None if not state.ended else int(state is not JobState.COMPLETED)


class Queue:
    """All workflows that have not ended; `dirty` holds the entries that the journal does not have yet."""

    def __init__(self) -> None:
        self.submissions: dict[str, Submission] = {}
        self.dirty: dict[str, Entry] = {}

    def add(self, submission: Submission) -> None:
        """Add a workflow."""
        self.submissions[submission.id] = submission

    def entries(self) -> Iterator[Entry]:
        """Yield every job, in the order of submission and file."""
        for submission in self.submissions.values():
            yield from submission.entries.values()

    def active(self) -> list[Entry]:
        """Return the jobs that have not ended."""
        pending = JobState.PENDING
        return [entry for entry in self.entries() if entry.state is pending or not entry.state.ended]

    def find(self, key: str) -> Entry | None:
        """Return the job of that key, None if it is not here."""
        workflow, _, job = key.partition("/")
        submission = self.submissions.get(workflow)
        return submission.entries.get(job) if submission else None

    def ready(self, entry: Entry) -> bool:
        """Return whether all predecessors have completed and nothing else keeps the job."""
        return not entry.waits and not self.unmet(entry)

    def unmet(self, entry: Entry) -> list[Entry]:
        """Return the predecessors that have not completed; one that is not followed any more does not count."""
        if not entry.job.after:
            return []
        others = self.submissions[entry.workflow].entries
        before = (others.get(name) for name in entry.job.after)
        return [other for other in before if other is not None and other.state is not JobState.COMPLETED]

    def as_planned(self, entry: Entry) -> Job:
        """Return the job for the planner: under its key, with its user, without dependencies that have completed."""
        after = tuple(before.key for before in self.unmet(entry))
        if entry.planned is None or entry.planned.after != after:
            owner = self.submissions[entry.workflow].owner if entry.job.owner is None else entry.job.owner
            entry.planned = dataclasses.replace(entry.job, id=entry.key, after=after, owner=owner)
        return entry.planned

    def missing(self, snapshot: Snapshot) -> dict[str, float]:
        """Return our jobs that may have been started and are not in a snapshot, with their submission times.

        A job cannot have been started before its submission to us (epoch seconds).
        """
        shown = snapshot.jobs.by_key
        return {
            entry.key: submission.submit_time
            for submission in self.submissions.values()
            for entry in chain(submission.entries.values(), submission.let_go.values())
            if (entry.handed or entry.ahead or submission.offered or (entry.intent is not None and not entry.refused))
            and not entry.state.ended
            and entry.key not in shown
        }

    def observe(self, snapshot: Snapshot, records: Records | None = None, late_s: float = 0.0) -> list[JobEvent]:
        """Update all jobs from a snapshot, and return what happened, also to successors of failed jobs. O(jobs).

        Args:
            snapshot: the jobs at this moment.
            records: of the jobs that are `missing`; None if the resource manager keeps no records.
            late_s: for how long a job whose submission was not answered is not submitted again, seconds.
        """
        views = snapshot.jobs.by_key
        events: list[JobEvent] = []
        for entry in self.active():
            view = views.get(entry.key)
            if view is None and (record := (records or {}).get(entry.key)):
                view = record if record.state.ended or record.restartable else None
            entry.ahead = view is not None and view.ahead
            if view is None or view.restartable:
                event = self._not_seen(entry, snapshot.time, view, records, late_s)
            else:
                event = self._seen(entry, view)
            if event:
                events.append(event)
        for event in list(events):
            if event.entry.state.ended and event.entry.state is not JobState.COMPLETED:
                events += self._cancel_descendants(event.entry, snapshot.time)
        self._touch(event.entry for event in events)
        return events

    def cancel(self, entries: Iterable[Entry], now: float, reason: str) -> list[JobEvent]:
        """Cancel waiting jobs, and mark running ones to be ended; return the events of those that ended by this.

        Args:
            entries: the jobs.
            now: epoch seconds.
            reason: of the cancellation.
        """
        events: list[JobEvent] = []
        for entry in entries:
            if entry.waiting and not entry.ahead:
                events.append(self._end_waiting(entry, now, reason))
                events += self._cancel_descendants(entry, now)
            elif not entry.state.ended:
                self._want_cancelled(entry, reason)
        self._touch(event.entry for event in events)
        return events

    def _want_cancelled(self, entry: Entry, reason: str) -> None:
        entry.cancel_wanted = True
        if entry.state is JobState.PENDING:
            entry.reason = reason
        self._touch([entry])

    def _touch(self, entries: Iterable[Entry]) -> None:
        self.dirty.update((entry.key, entry) for entry in entries)

    def _seen(self, entry: Entry, view: JobView) -> JobEvent | None:
        before = (entry.state, entry.nodes, entry.handed)
        entry.handed, entry.refused, entry.missed = True, "", 0
        entry.reason = view.reason or (entry.reason if entry.cancel_wanted else "")
        entry.state, entry.nodes = view.state, view.nodes or entry.nodes
        entry.began = entry.began or view.start_time is not None
        entry.suspended = entry.suspended or view.state in (JobState.SUSPENDED, JobState.RESUMING)
        entry.start_time = view.start_time if view.start_time is not None else entry.start_time
        if view.state.ended:
            entry.finish_time, entry.exit_code, entry.signal = view.finish_time, view.exit_code, view.signal
        if before == (entry.state, entry.nodes, entry.handed):
            return None
        if view.state.ended:
            return JobEvent("ended", entry, outcome(entry))
        if view.state is JobState.RUNNING and before[0] not in (JobState.SUSPENDED, JobState.RESUMING):
            return JobEvent("started", entry, f"runs on {with_cores(entry.nodes, view.cores)}")
        return JobEvent("seen", entry, f"is {view.state} in the resource manager")

    def _not_seen(
        self, entry: Entry, now: float, view: JobView | None, records: Records | None, late_s: float
    ) -> JobEvent | None:
        """Update a job that is not shown, or that (`view`) is shown as never begun and left alone."""
        unknown = view is not None or records is None or records.get(entry.key, entry) is None
        if (entry.intent is not None and (unknown or entry.refused)) or (view is not None and entry.handed):
            if view is None and not entry.refused and entry.miss(now) < late_s:
                return None  # its submission may still be carried out
            return self._start_failed(entry, now, view)
        if not entry.handed and entry.intent is None:
            cancelled = entry.cancel_wanted and not entry.ahead
            return self._end_waiting(entry, now, entry.reason or "cancelled before it started") if cancelled else None
        if not unknown:
            entry.missed = 0
            return self._lose(entry, now, records)
        missed_for_s = entry.miss(now)
        patience_s = MISSED_S if records is None else UNRECORDED_S
        if entry.missed < MISSED or missed_for_s < patience_s or entry.cancel_wanted:
            return self._lose(entry, now, records)
        entry.state, entry.finish_time = JobState.FAILED, now
        entry.reason = f"missing for {missed_for_s:.0f} s: it may have run, but how it ended is not known"
        return JobEvent("ended", entry, outcome(entry))

    def _lose(self, entry: Entry, now: float, records: Records | None) -> JobEvent | None:
        """Mark a job as UNKNOWN; one that was to be cancelled is given up."""
        record = (records or {}).get(entry.key)
        why = record.reason if record else "the resource manager does not show it any more"
        if entry.state is JobState.UNKNOWN and entry.cancel_wanted:
            return self._end_waiting(entry, now, "cancelled; the resource manager does not show it any more")
        if (entry.state, entry.reason) == (JobState.UNKNOWN, why):
            return None
        entry.state, entry.reason = JobState.UNKNOWN, why
        return JobEvent("lost", entry, why)

    def _start_failed(self, entry: Entry, now: float, view: JobView | None) -> JobEvent:
        """Put a job back whose start, as the snapshot shows, did not happen."""
        began, entry.began = entry.began, False
        entry.handed, why = False, view.reason if view else ""
        if entry.refused and not (view and (view.offered or view.ahead)):
            entry.state, entry.finish_time, entry.reason = JobState.FAILED, now, f"refused: {entry.refused}"
            return JobEvent("ended", entry, entry.reason)
        entry.state, entry.nodes, entry.start_time = JobState.PENDING, (), None
        failed = next((other for other in self.unmet(entry) if other.state.ended), None)
        if (entry.cancel_wanted or failed) and not entry.ahead:
            why = _follows(failed) if failed else entry.reason or "cancelled before it started"
            return self._end_waiting(entry, now, why)
        entry.not_before = now + min(RETRY_S[0] * 2**entry.attempts, RETRY_S[1])
        entry.attempts, entry.refused, entry.missed = entry.attempts + 1, "", 0
        failure = "the resource manager requeued it" if began else "its start did not happen"
        return JobEvent("retry", entry, f"{failure}{f' ({why})' if why else ''}; it is tried again")

    def _end_waiting(self, entry: Entry, now: float, reason: str) -> JobEvent:
        ended = max(now, self.submissions[entry.workflow].submit_time)  # before the first snapshot there is no time
        entry.state, entry.finish_time, entry.reason = JobState.CANCELLED, ended, reason
        return JobEvent("cancelled", entry, reason)

    def _cancel_descendants(self, entry: Entry, now: float) -> list[JobEvent]:
        submission, events = self.submissions[entry.workflow], list[JobEvent]()
        if submission.offered:
            return events
        reason = _follows(entry)
        stack = list(submission.successors.get(entry.job.id, ()))
        while stack:
            child = submission.entries[stack.pop()]
            if child.waiting and not child.ahead:
                events.append(self._end_waiting(child, now, reason))
            elif child.state is JobState.PENDING and not child.cancel_wanted:
                self._want_cancelled(child, reason)
            else:
                continue
            stack += submission.successors.get(child.job.id, ())
        return events


def _follows(entry: Entry) -> str:
    """Return why a job that waits for this one, which did not complete, never runs."""
    return f"{entry.job.id!r}, which it waits for, {outcome(entry)}"


def busy(entry: Entry) -> bool:
    """Return whether the job holds its nodes: it runs, may run, or was placed to run."""
    return entry.state.takes_nodes or (entry.handed and not entry.state.ended)


def outcome(entry: Entry) -> str:
    """Return how a job ended, in a few words."""
    return ending(entry.state, entry.exit_code, entry.signal, entry.reason)

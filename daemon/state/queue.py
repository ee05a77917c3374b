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
from ...simulate.model.job import Job, Workflow
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from .audit import DONE, LONGEST_TEXT, NOT_STARTED
from .job_stages import OURS, STAGE_OF, JobStage
from .queue_entry import Entry, outcome

#: Records of ended jobs by key; None = the records do not know the job. A missing key was not answered.
Records = Mapping[str, JobView | None]
#: Seconds before a job whose start failed is tried again: doubled each time, up to the last.
RETRY_S = (1.0, 60.0)
#: Snapshots in a row, and seconds, after which a missing job will not come back. The last one, seconds, holds if
#: records are kept and do not know the job: they may be far behind after a fault.
MISSED, MISSED_S, UNRECORDED_S = 10, 30.0, 900.0


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
    """All workflows that have not ended; `dirty` holds the entries that the journal does not have yet.

    `settled` holds the outcomes of intents that a snapshot has shown, by row of the journal.
    """

    def __init__(self) -> None:
        self.submissions: dict[str, Submission] = {}
        self.dirty: dict[str, Entry] = {}
        self.settled: dict[int, str] = {}

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
        return not entry.wait_reason and not (entry.job.after and self.unmet(entry))

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
            if (submission.offered or not (entry.stage is JobStage.WAITING or entry.refused))
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
            if view is None or view.restartable:
                if entry.stage in OURS and entry.stage is not (stage := _stage_of_waiting(view)):
                    entry.move(stage)
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
            if entry.stage is JobStage.WAITING and not entry.cancel_wanted:
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

    def _settle(self, entry: Entry, outcome: str) -> None:
        """Note the outcome of the entry's open intent, if it has one."""
        if entry.intent is not None:
            self.settled[entry.intent] = outcome

    def _touch(self, entries: Iterable[Entry]) -> None:
        self.dirty.update((entry.key, entry) for entry in entries)

    def _seen(self, entry: Entry, view: JobView) -> JobEvent | None:
        before, stage_before = (entry.state, entry.nodes, entry.taken), entry.stage
        self._settle(entry, DONE)
        entry.move(STAGE_OF[view.state], view.state)
        entry.nodes, entry.missed = view.nodes or entry.nodes, 0
        entry.reason = view.reason or (entry.reason if entry.cancel_wanted else "")
        entry.began = entry.began or view.start_time is not None
        entry.was_suspended = entry.was_suspended or entry.stage is JobStage.SUSPENDED
        entry.start_time = view.start_time if view.start_time is not None else entry.start_time
        if view.state.ended:
            entry.finish_time, entry.exit_code, entry.signal = view.finish_time, view.exit_code, view.signal
        if view.state.ended:
            return JobEvent("ended", entry, outcome(entry))
        if before == (entry.state, entry.nodes, entry.taken):
            return None
        if view.state is JobState.RUNNING and stage_before is not JobStage.SUSPENDED:
            return JobEvent("started", entry, f"runs on {with_cores(entry.nodes, view.cores)}")
        return JobEvent("seen", entry, f"is {view.state} in the resource manager")

    def _not_seen(
        self, entry: Entry, now: float, view: JobView | None, records: Records | None, late_s: float
    ) -> JobEvent | None:
        """Update a job that is not shown, or that (`view`) is shown as never begun and left alone."""
        unknown = view is not None or records is None or records.get(entry.key, entry) is None
        unsettled = entry.stage is JobStage.UNSETTLED
        if (unsettled and (unknown or entry.refused)) or (view is not None and entry.taken):
            if view is None and not entry.refused and entry.miss(now) < late_s:
                return None  # its submission may still be carried out
            return self._start_failed(entry, now, view)
        if entry.stage in OURS:
            cancelled = entry.cancel_wanted and entry.stage is JobStage.WAITING
            return self._end_waiting(entry, now, entry.reason or "cancelled before it started") if cancelled else None
        if not unknown:
            entry.missed = 0
            return self._lose(entry, now, records)
        missed_for_s = entry.miss(now)
        patience_s = MISSED_S if records is None else UNRECORDED_S
        if entry.missed < MISSED or missed_for_s < patience_s or entry.cancel_wanted:
            return self._lose(entry, now, records)
        why = f"missing for {missed_for_s:.0f} s: it may have run, but how it ended is not known"
        entry.end(JobState.FAILED, now, why)
        return JobEvent("ended", entry, outcome(entry))

    def _lose(self, entry: Entry, now: float, records: Records | None) -> JobEvent | None:
        """Mark a job as UNKNOWN; one that was to be cancelled is given up."""
        record = (records or {}).get(entry.key)
        why = record.reason if record else "the resource manager does not show it any more"
        if entry.state is JobState.UNKNOWN and entry.cancel_wanted:
            return self._end_waiting(entry, now, "cancelled; the resource manager does not show it any more")
        if (entry.state, entry.reason) == (JobState.UNKNOWN, why):
            return None
        entry.move(entry.stage if entry.stage is JobStage.UNSETTLED else JobStage.LOST, JobState.UNKNOWN)
        entry.reason = why
        return JobEvent("lost", entry, why)

    def _start_failed(self, entry: Entry, now: float, view: JobView | None) -> JobEvent:
        """Put a job back whose start, as the snapshot shows, did not happen."""
        began, entry.began = entry.began, False
        why, refused = view.reason if view else "", entry.refused
        self._settle(entry, f"refused: {refused}"[:LONGEST_TEXT] if refused else NOT_STARTED)
        if refused and not (view and (view.offered or view.ahead)):
            entry.end(JobState.FAILED, now, f"refused: {refused}")
            return JobEvent("ended", entry, entry.reason)
        entry.move(_stage_of_waiting(view))
        entry.nodes, entry.start_time = (), None
        failed = next((other for other in self.unmet(entry) if other.state.ended), None)
        if (entry.cancel_wanted or failed) and entry.stage is JobStage.WAITING:
            why = _follows(failed) if failed else entry.reason or "cancelled before it started"
            return self._end_waiting(entry, now, why)
        entry.not_before = now + min(RETRY_S[0] * 2**entry.attempts, RETRY_S[1])
        entry.attempts, entry.missed = entry.attempts + 1, 0
        failure = "the resource manager requeued it" if began else "its start did not happen"
        return JobEvent("retry", entry, f"{failure}{f' ({why})' if why else ''}; it is tried again")

    def _end_waiting(self, entry: Entry, now: float, reason: str) -> JobEvent:
        ended = max(now, self.submissions[entry.workflow].submit_time)  # before the first snapshot there is no time
        self._settle(entry, NOT_STARTED)
        entry.end(JobState.CANCELLED, ended, reason)
        return JobEvent("cancelled", entry, reason)

    def _cancel_descendants(self, entry: Entry, now: float) -> list[JobEvent]:
        submission, events = self.submissions[entry.workflow], list[JobEvent]()
        if submission.offered:
            return events
        reason = _follows(entry)
        stack = list(submission.successors.get(entry.job.id, ()))
        while stack:
            child = submission.entries[stack.pop()]
            if child.stage is JobStage.WAITING and not child.cancel_wanted:
                events.append(self._end_waiting(child, now, reason))
            elif child.state is JobState.PENDING and not child.cancel_wanted:
                self._want_cancelled(child, reason)
            else:
                continue
            stack += submission.successors.get(child.job.id, ())
        return events


def _stage_of_waiting(view: JobView | None) -> JobStage:
    """Return the stage of a job that is ours to start, as `view` shows it; None: it is not shown."""
    return JobStage.AHEAD if view is not None and view.ahead else JobStage.WAITING


def _follows(entry: Entry) -> str:
    """Return why a job that waits for this one, which did not complete, never runs."""
    return f"{entry.job.id!r}, which it waits for, {outcome(entry)}"

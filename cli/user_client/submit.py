"""Submit a whole workflow to a resource manager as its user, job by job, all jobs or none.

Rule: if jobs have begin times, no job can start before all are submitted: jobs without dependencies get a late begin
time (a lock), and are unlocked together at the end. Before a job is submitted, and after a lost answer, it is looked up
by its key; after a refusal, the jobs submitted before are cancelled. The jobs of a killed submission are found again by
the same submission. A job that the resource manager creates later finds its key claimed by another job, and does
nothing (see `start_claim`). A submission after one that was taken back has keys of its own: it waits for the jobs of
the earlier one that had begun, and counts no other.

Holds: a job may start by itself a grace time after its earliest possible start, so that without pilotfish a workflow
is late by about one grace time, not by one for each step. No hold exceeds `max_defer_seconds` after the earliest start
that the isolated run times of its predecessors allow (without predecessors: after its submission), nor a day.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from hashlib import sha256
from pathlib import Path

from ...adapters.base import AdapterError
from ...adapters.keys import plain_name
from ...adapters.start_claim import NO_JOB
from ...adapters.user_jobs import SubmissionRequest, UserJob, UserJobs, by_key
from ...daemon.state.profile_labels import has_default_profile
from ...formats.text import count
from ...simulate.errors import InvalidJobError, PilotfishError
from ...simulate.model.job import Job, Workflow
from ...simulate.model.snapshot import JobState
from ..service.daemon_client import EndUnknownError
from .settings import SubmissionSettings
from .submission_records import TAKEN_BACK, WHOLE, SubmissionRecord, parts_of

LONGEST_S = 86_400


def in_order(workflow: Workflow) -> list[Job]:
    """Return the jobs in an order that respects the dependencies. O(jobs + dependencies)."""
    order = TopologicalSorter({job.id: job.after for job in workflow.jobs}).static_order()
    return [workflow.jobs[workflow.index[name]] for name in order]


def guessed(workflow: Workflow) -> set[str]:
    """Return the jobs of unknown run time and all their successors: they get no forecast."""
    unknown: set[str] = set()
    for job in in_order(workflow):
        if has_default_profile(job) or unknown.intersection(job.after):
            unknown.add(job.id)
    return unknown


def earliest_starts(workflow: Workflow) -> dict[str, float]:
    """Return the earliest start of each job, seconds: the longest chain of run times; unknown ones count as 0."""
    start: dict[str, float] = {}
    end: dict[str, float] = {}
    for job in in_order(workflow):
        start[job.id] = max((end[before] for before in job.after), default=0.0)
        end[job.id] = start[job.id] + (0.0 if has_default_profile(job) else job.profile.isolated_time)
    return start


def holds(
    workflow: Workflow, expected: Mapping[str, float], key_of: Mapping[str, str], to: SubmissionSettings
) -> dict[str, int]:
    """Return the seconds from the submission of each job to its begin time.

    Args:
        workflow: the jobs.
        expected: job -> its start in a simulated plan, seconds from now.
        key_of: job -> its key, which staggers the holds so that they do not end together.
        to: the settings.
    """
    earliest, hold_of = earliest_starts(workflow), {}
    for name in workflow.index:
        stagger = int.from_bytes(sha256(key_of[name].encode()).digest()[:4]) % (to.stagger_seconds + 1)
        hold_s = math.ceil(max(expected.get(name, 0.0), earliest[name])) + to.grace_seconds + stagger
        hold_of[name] = min(hold_s, math.ceil(earliest[name]) + to.max_defer_seconds, LONGEST_S)
    return hold_of


#: Lock of jobs without dependencies, beyond their hold: seconds for all, and for each job.
LOCK_S, LOCK_EACH_S = 120, 0.5
#: Seconds for which a job is looked up after Slurm answers again: a frozen controller carries out requests late.
SETTLE_S = 10.0
#: Difference between the clocks of this machine and the controller from which begin times are corrected, seconds.
SKEW_S = 2.0
TRIES = 3


class NotKnownError(EndUnknownError):
    """It cannot be learned now whether a job was submitted."""


@dataclass
class Submitter:
    """Submits one workflow: `find_submitted`, then `submit`.

    Args:
        own: the user's jobs in the resource manager.
        record: the intent; it is kept up to date.
        to: the settings.
        say: prints one line.
        sleep: waits for some seconds.
        clock, wall: seconds, monotonic; epoch seconds of this machine.
    """

    own: UserJobs
    record: SubmissionRecord
    to: SubmissionSettings
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wall: Callable[[], float] = time.time
    _skew_s: float = 0.0
    _unsure: bool = False
    _existing: dict[str, UserJob] = field(default_factory=dict)
    _locked: dict[str, float] = field(default_factory=dict)
    _missing: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._jobs = in_order(self.record.workflow)
        self._lock_s = LOCK_S + math.ceil(LOCK_EACH_S * len(self._jobs)) if self.own.begins else 0

    def find_submitted(self) -> int:
        """Find the jobs that are submitted already; return their number. Changes nothing.

        Raises:
            AdapterError: the resource manager cannot be asked.
            InvalidJobError: the workflow cannot be submitted, or another one was under this key.
        """
        name = self.record.workflow.name
        for job in self._jobs:
            if job.command is None:
                raise InvalidJobError(f"{name}: job {job.id!r} has no command: it can only be planned")
            if self.own.is_too_long(self._request(job)):
                raise InvalidJobError(f"{name}: the name of job {job.id[:40]!r}... is too long for {self.own.manager}")
        self._skew_s = self._skew() if self.own.begins else 0.0
        queued = self._in_queue()
        name_of = {self.record.key_of(job.id): job.id for job in self._jobs}
        if foreign := sorted(queued.keys() - name_of.keys()):
            raise InvalidJobError(f"{foreign[0]} is in the queue, not in this workflow: the key was for another one")
        self._existing = {name_of[key]: job for key, job in queued.items()}
        missing = {number: name for name, number in self.record.ids.items() if name not in self._existing}
        self._existing |= {missing[job.id]: job for job in self.own.ended(missing)} if missing else {}
        self._missing = frozenset(self.record.ids.keys() - self._existing.keys())
        return len(self._existing)

    def submit(self) -> None:
        """Submit the other jobs.

        Raises:
            PilotfishError: a job was refused; what had been submitted was cancelled.
            NotKnownError: it could not be asked; some jobs may be there.
        """
        try:
            for job in self._jobs:
                if job.id in self._existing:
                    self._record_submitted(job, self._existing[job.id])
                elif job.id not in self.record.ids:
                    self.record.submitted(job.id, self._claimed(job, self._submit(job)))
            if self._unsure or self.record.earlier:
                self._drop_doubles()
            self._unlock()
        except (AdapterError, KeyboardInterrupt) as error:
            raise self._undone(error) from None
        self.record.reached(WHOLE)

    def _in_queue(self) -> dict[str, UserJob]:
        """Return the jobs of this workflow in the queue by key; of earlier submissions, those that have begun."""
        current, begun = dict[str, UserJob](), dict[str, UserJob]()
        for key, job in by_key(self.own.jobs(), set(self.record.ids.values())).items():
            workflow, earlier, name = parts_of(key)
            if workflow == self.record.id and earlier == self.record.earlier:
                current[key] = job
            elif workflow == self.record.id and job.state not in (JobState.PENDING, JobState.CANCELLED):
                begun[self.record.key_of(name)] = job
        return begun | current

    def _record_submitted(self, job: Job, submitted: UserJob) -> None:
        """Record a submitted job; if it is still locked, unlock it with the others."""
        self.record.submitted(job.id, self._claimed(job, submitted.id))
        if job.after or submitted.state is not JobState.PENDING or submitted.begin is None or submitted.submit is None:
            return
        if submitted.begin - submitted.submit - self.record.hold.get(job.id, 0) > SKEW_S:
            self._locked[job.id] = self.clock() - (self.wall() - self._skew_s - submitted.submit)

    def _submit(self, job: Job) -> int:
        """Submit one job; after a lost answer, look it up in the queue before the next try."""
        request = self._request(job, self._before(job))
        for attempt in range(1, TRIES + 1):
            self._locked |= {} if job.after or not self._lock_s else {job.id: self.clock()}
            try:
                return self.own.submit(request)
            except AdapterError as error:
                if not error.transient and error.kind != "parse":
                    raise _refused(job, str(error)) from None
                self._unsure = True
                self.say(f"{error}; looking up whether {job.id} was submitted")
                if submitted := self._look_for(self.record.key_of(job.id)):
                    return submitted.id
                if attempt == TRIES:
                    raise _refused(job, f"{error}, {TRIES} times") from None
        raise AssertionError

    def _claimed(self, job: Job, number: int) -> int:
        """Return the id of the job that may run: this one, unless an earlier submission of it has begun to.

        Raises AdapterError if the workflow was cancelled meanwhile.
        """
        winner = self.record.claim(job.id, number)
        if winner == NO_JOB:
            raise AdapterError(f"{self.record.id} was cancelled meanwhile", kind="refused")
        if winner != number:
            self._unsure = True  # the other is a double, which is cancelled before anything is unlocked
            self.say(f"{job.id} was submitted before, as job {winner}; job {number} is cancelled")
        return winner

    def _look_for(self, key: str) -> UserJob | None:
        """Return the job once there is an answer; None if it does not appear within SETTLE_S."""
        begin, answered = self.clock(), math.inf
        while True:
            try:
                job = self._in_queue().get(key)
                answered = min(answered, self.clock())
            except AdapterError as error:
                job, answered = None, math.inf
                if self.clock() - begin > self.to.patience_seconds:
                    progress = f"{len(self.record.ids)} of {count(len(self._jobs), 'job')} were"
                    raise NotKnownError(
                        f"whether {key} was submitted is not known; {progress}: {error} (the same command with "
                        f"`--key {self.record.key}` continues, `pilotfish cancel {self.record.id}` takes it back)"
                    ) from None
            if job or self.clock() - answered >= SETTLE_S:
                return job
            self.sleep(1.0)

    def _before(self, job: Job) -> list[int]:
        """Return the ids of the jobs that a job must wait for."""
        return [self.record.ids[name] for name in job.after if not self._completed(name)]

    def _request(self, job: Job, after: Sequence[int] = ()) -> SubmissionRequest:
        record, hold = self.record, self.record.hold.get(job.id, 0)
        begin = hold + (0 if job.after else self._lock_s)
        begin = max(1, round(begin - self._skew_s)) if begin else 0
        links = [record.claims / plain_name(name) for name in (job.id, *job.after)]
        return SubmissionRequest(
            job, record.key_of(job.id), hold, begin, after, output_files(record, job.id), links[0], links[1:],
            self.to.submit_options,
        )  # fmt: skip

    def _completed(self, name: str) -> bool:
        """Return whether a submitted job has completed; Slurm takes a forgotten job as completed."""
        submitted = self._existing.get(name)
        ended = self.record.ended.get(name, {}).get("state")
        state = submitted.state if submitted else JobState(ended) if ended else None
        if state is None and name in self._missing:
            raise AdapterError(f"{name}, for which others wait, has left the queue: how it ended is not known")
        if state is not None and state.ended and state is not JobState.COMPLETED:
            raise AdapterError(f"{name}, for which others wait, has ended ({state})", kind="refused")
        return state is JobState.COMPLETED

    def _drop_doubles(self) -> None:
        """Cancel what was submitted twice after a lost answer, or came late from an earlier submission."""
        ids = set(self.record.ids.values())
        of_workflow = [job for job in self.own.jobs() if parts_of(job.key)[0] == self.record.id]
        self.own.cancel([job.id for job in of_workflow if job.id not in ids and not job.state.ended], waiting=True)

    def _unlock(self) -> None:
        """Set the begin time of every locked job to that in its comment."""
        begins = defaultdict[int, list[int]](list)
        for name, submitted in self._locked.items():
            held = self.record.hold.get(name, 0)
            hold_s = max(1, round(held - (self.clock() - submitted) - self._skew_s)) if held else 0
            begins[hold_s].append(self.record.ids[name])
        try:
            for in_s, ids in sorted(begins.items()):
                self.own.begin(ids, in_s)
        except AdapterError as error:
            self.say(f"warning: all jobs are submitted, but may begin {self._lock_s} s later than they could: {error}")

    def _undone(self, error: AdapterError | KeyboardInterrupt) -> BaseException:
        """Cancel the submitted jobs; return the exception to raise."""
        record = self.record
        record.reached(TAKEN_BACK)  # first, so that the next submission does not count them after a kill
        text = str(error) or "interrupted"
        try:
            ids = {*record.ids.values(), *(job.id for job in self._in_queue().values())}
            self.own.cancel(ids, waiting=True)
            begun = [job.id for job in self.own.jobs() if job.id in ids and not job.state.ended]
        except AdapterError as problem:
            listed = " ".join(map(str, record.ids.values()))
            return NotKnownError(
                f"{text}; submitted jobs could not be cancelled: {problem} ({self.own.cancel_command} {listed})"
            )
        if ids:
            text += f"; taken back: {count(len(ids) - len(begun), 'job')}"
            text += f"; begun already: {', '.join(map(str, begun))}" if begun else "; none had begun"
        if isinstance(error, KeyboardInterrupt):
            self.say(text)
            return error
        return PilotfishError(text)

    def _skew(self) -> float:
        """Return the seconds by which this machine's clock is ahead of the controller's; 0 if small or unknown."""
        try:
            ahead = self.wall() - self.own.time() - 0.5
        except AdapterError as error:
            if error.transient or error.kind == "missing":
                raise
            return 0.0
        return ahead if abs(ahead) > SKEW_S else 0.0


def output_files(record: SubmissionRecord, job: str) -> tuple[Path, Path]:
    """Return the files of a job's stdout and stderr."""
    name = plain_name(job)
    return record.outputs / f"{name}.out", record.outputs / f"{name}.err"


def _refused(job: Job, reason: str) -> AdapterError:
    return AdapterError(f"job {job.id!r} is refused: {reason}", kind="refused")

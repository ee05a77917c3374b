"""A resource manager with users, played on a virtual clock: queue, nodes, holds, requeues, and accounting.

Rule: it stays in charge. It enforces the begin time of a job itself, starts every job that may start and fits, and
changes a job for an operator only while the job waits, and only as the operator has read it. Jobs take the time that
they ask for, and never slow each other. Users change their minds at any moment, and nodes die.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from pilotfish.simulate.model.capacity import Occupancy
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Job
from pilotfish.simulate.model.snapshot import JobState, NodeState

#: The word in a comment that hands a job over.
TAG = "pilotfish"


@dataclass(slots=True)
class QueuedJob:
    """One job of the manager.

    Args:
        number: its id.
        job: what was asked for; its isolated run time is how long it takes.
        key: of a job of our own; "" for a job of a user.
        hold_s: for how long its user holds it for us, seconds after its submission; None: not at all.
        begin: the earliest start, epoch seconds.
        user_held: its user holds it back, until further notice.
        pin: the nodes to which an operator bound it, since `pinned_at`.
        let_go: an operator gave it back for good.
        after: of one of our own that was submitted ahead: keys of the jobs that must have completed before.
        skipped: it did nothing, because one of these had not.
        version: grows with every change.
        starts: how often it began; `requeues`, how often the manager put it back into the queue.
    """

    number: int
    job: Job
    submit_time: float
    comment: str = ""
    key: str = ""
    hold_s: float | None = None
    begin: float = 0.0
    user_held: bool = False
    pin: tuple[str, ...] = ()
    pinned_at: float = 0.0
    let_go: bool = False
    after: tuple[str, ...] = ()
    skipped: bool = False
    state: JobState = JobState.PENDING
    nodes: tuple[str, ...] = ()
    start_time: float | None = None
    finish_time: float | None = None
    exit_code: int | None = None
    left_s: float = 0.0
    version: int = 0
    starts: int = 0
    requeues: int = 0

    @property
    def handed_over(self) -> bool:
        """Whether its user lets us choose its nodes."""
        return not self.key and not self.let_go and TAG in self.comment

    def held_for_us(self, now: float) -> bool:
        """Return whether nothing but a begin time that was set for us keeps the job from starting, epoch seconds."""
        ours = self.hold_s is not None and not self.requeues and self.begin == self.submit_time + self.hold_s
        return self.handed_over and ours and self.begin > now


@dataclass(frozen=True, slots=True)
class Change:
    """What an operator did to a job: the job before, and the fields written."""

    time: float
    before: QueuedJob
    fields: dict[str, object] = field(hash=False)


class SimulatedManager:
    """The manager; what it has survives any adapter.

    Args:
        cluster: its nodes.
        start_time: start of its clock, epoch seconds.
        pass_s: seconds from a change to the next pass of its scheduler.
        keep_s: seconds that an ended job stays in the queue.
        late_s: seconds until accounting knows that a job has ended.
        most_s: longest time for which a job may be held for us, seconds after its submission.
        requeue_s: seconds that a requeued job waits.
        exit_code: returns the exit code of a job that runs to its end.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        start_time: float = 0.0,
        pass_s: float = 1.0,
        keep_s: float = 20.0,
        late_s: float = 10.0,
        most_s: float = 60.0,
        requeue_s: float = 5.0,
        exit_code: Callable[[Job], int] = lambda job: 0,
    ) -> None:
        self.cluster, self.time = cluster, start_time
        self.pass_s, self.keep_s, self.late_s, self.most_s, self.requeue_s = pass_s, keep_s, late_s, most_s, requeue_s
        self.node_states = dict.fromkeys((node.name for node in cluster.nodes), NodeState.UP)
        self.away, self._exit_code = False, exit_code
        self.jobs: dict[int, QueuedJob] = {}
        self.changes: list[Change] = []
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._pass_at = math.inf
        self._numbers = itertools.count(1)

    # What its users do.

    def submit(self, job: Job, *, comment: str = TAG, hold_s: float | None = None) -> int:
        """Queue a job of a user; return its number.

        Args:
            job: what is asked for.
            comment: hands the job over if it contains TAG.
            hold_s: seconds for which it is held for us; None: it may start at once.
        """
        return self._add(QueuedJob(0, job, self.time, comment, hold_s=hold_s, begin=self.time + (hold_s or 0.0)))

    def change(self, number: int, **fields: object) -> None:
        """Change a waiting job for its user: comment, begin, user_held. Nothing happens to one that has begun.

        Args:
            number: of the job.
            fields: new values by field.
        """
        if self.jobs[number].state is JobState.PENDING:
            self._set(self.jobs[number], **fields)

    def cancel(self, number: int) -> None:
        """End a job."""
        record = self.jobs[number]
        if not record.state.ended:
            self._end(record, JobState.CANCELLED)

    def requeue(self, number: int) -> None:
        """Put a job that has begun back into the queue; a pin stays on it, as with real managers."""
        record = self.jobs[number]
        if record.state.takes_nodes:
            again = {"state": JobState.PENDING, "nodes": (), "start_time": None, "requeues": record.requeues + 1}
            self._set(record, **again, begin=self.time + self.requeue_s)

    def suspend(self, number: int) -> None:
        """Stop a running job, or let a stopped one go on."""
        record = self.jobs[number]
        if record.state is JobState.RUNNING:
            self._set(record, state=JobState.SUSPENDED, left_s=self._end_of(record) - self.time)
        elif record.state is JobState.SUSPENDED:
            self._set(record, state=JobState.RUNNING, left_s=record.left_s + self.time - (record.start_time or 0.0))

    def set_node(self, name: str, state: NodeState) -> None:
        """Change the state of a node; the jobs of one that is down are requeued.

        Args:
            name: of the node.
            state: its new state.
        """
        self.node_states[name] = state
        self._pass_at = min(self._pass_at, self.time + self.pass_s)
        if state is NodeState.DOWN:
            for record in list(self.jobs.values()):
                if name in record.nodes:
                    self.requeue(record.number)

    # What an operator does.

    def submit_once(self, key: str, job: Job, nodes: tuple[str, ...]) -> None:
        """Queue a job of our own for these nodes, or let one that waits for them start, once for each key.

        Args:
            key: that the manager keeps.
            job: what is asked for.
            nodes: where it is to run.
        """
        record = self.find(key)
        if record is None or record.skipped:
            self._add(QueuedJob(0, job, self.time, key=key, begin=self.time, pin=nodes))
        elif record.state is JobState.PENDING and not record.pin:
            self._set(record, begin=min(record.begin, self.time), pin=nodes)

    def submit_ahead(self, key: str, job: Job, after: tuple[str, ...], hold_s: float) -> None:
        """Queue a job of our own that waits for its nodes, once for each key.

        Args:
            key: that the manager keeps.
            job: what is asked for.
            after: keys of the jobs whose end it waits for.
            hold_s: seconds after which it may start anywhere.
        """
        record = self.find(key)
        if record is None or record.skipped:
            self._add(QueuedJob(0, job, self.time, key=key, begin=self.time + hold_s, after=after))

    def update(self, number: int, version: int, **fields: object) -> None:
        """Write fields of a waiting job as it was read; do nothing to one that has changed since, or has begun.

        Args:
            number: of the job.
            version: of the record that was read.
            fields: new values: begin, pin, pinned_at, let_go.
        """
        record = self.jobs[number]
        if record.state is JobState.PENDING and record.version == version:
            self.changes.append(Change(self.time, replace(record), fields))
            self._set(record, **fields)

    def find(self, key: str) -> QueuedJob | None:
        """Return the last job of our own of this key."""
        return next((record for record in reversed(self.jobs.values()) if record.key == key), None)

    def queue(self) -> list[QueuedJob]:
        """Return the jobs that its queue shows, as copies."""
        ended_after = self.time - self.keep_s
        return [replace(record) for record in self.jobs.values() if (record.finish_time or math.inf) > ended_after]

    def later(self, seconds: float, do: Callable[[], object]) -> None:
        """Carry a request out after a while, although its sender has given up.

        Args:
            seconds: from now.
            do: the request.
        """
        self._later.append((self.time + seconds, do))

    # Time.

    def advance(self, seconds: float) -> None:
        """Let time pass: jobs end, holds run out, and jobs start, each at its time."""
        target = self.time + seconds
        while (moment := min(self._moments(), default=math.inf)) <= target:
            self.time = max(self.time, moment)
            for request in [each for each in self._later if each[0] <= self.time]:
                self._later.remove(request)
                request[1]()
            for record in list(self.jobs.values()):
                if record.state is JobState.RUNNING and self._end_of(record) <= self.time:
                    self._finish(record)
            self._pass_at = math.inf
            self._schedule()
        self.time = target

    def _moments(self) -> Iterator[float]:
        """Yield when something happens by itself."""
        yield self._pass_at
        yield from (moment for moment, _ in self._later)
        for record in self.jobs.values():
            if record.state is JobState.RUNNING:
                yield self._end_of(record)
            elif record.state is JobState.PENDING and record.begin > self.time:
                yield record.begin

    def _schedule(self) -> None:
        """Start every job that may start and fits, in the order of submission."""
        taken = Occupancy(self.cluster)
        for record in self.jobs.values():
            if record.state.takes_nodes:
                taken.place(record.job, record.nodes)
        for record in self.jobs.values():
            if record.state is not JobState.PENDING or record.user_held or record.begin > self.time:
                continue
            before = [found for key in record.after if (found := self.find(key)) is not None]
            if not all(each.state.ended for each in before):
                continue
            if len(before) < len(record.after) or any(each.state is not JobState.COMPLETED for each in before):
                self._set(record, state=JobState.FAILED, finish_time=self.time, exit_code=121, skipped=True)
                continue
            among = record.pin or self.node_states
            free = [name for name in among if self.node_states[name] is NodeState.UP]
            fitting = [name for name in free if taken.obstacle(record.job, name) is None][: record.job.nodes]
            if len(fitting) == record.job.nodes:
                taken.place(record.job, fitting)
                started = {"state": JobState.RUNNING, "nodes": tuple(fitting), "start_time": self.time}
                self._set(record, **started, starts=record.starts + 1, left_s=_length(record.job))

    def _end_of(self, record: QueuedJob) -> float:
        return (record.start_time or 0.0) + record.left_s

    def _finish(self, record: QueuedJob) -> None:
        """End a job that has run for as long as it takes, or as it may."""
        if record.job.walltime is not None and record.job.walltime < record.job.profile.isolated_time:
            self._end(record, JobState.TIMEOUT)
        else:
            record.exit_code = self._exit_code(record.job)
            self._end(record, JobState.FAILED if record.exit_code else JobState.COMPLETED)

    def _end(self, record: QueuedJob, state: JobState) -> None:
        self._set(record, state=state, finish_time=self.time)

    def _add(self, record: QueuedJob) -> int:
        record.number = next(self._numbers)
        self.jobs[record.number] = record
        self._pass_at = min(self._pass_at, self.time + self.pass_s)
        return record.number

    def _set(self, record: QueuedJob, **fields: object) -> None:
        for name, value in fields.items():
            setattr(record, name, value)
        record.version += 1
        self._pass_at = min(self._pass_at, self.time + self.pass_s)


def _length(job: Job) -> float:
    return min(job.profile.isolated_time, math.inf if job.walltime is None else job.walltime)

"""A job in the queue: what was asked for, how far it has come, and what was forecast.

Rule: only `move` and `end` change the stage of a job, and only by a move that `job_stages` allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...simulate.model.capacity import memory_need
from ...simulate.model.job import Job, Profile
from ...simulate.model.snapshot import JobState, JobView
from .endings import ending
from .forecasts import JobForecast, Outlook
from .job_stages import OURS, TAKEN, JobStage, next_stage
from .profile_labels import ProfileLabel

Shape = tuple[int, int, float, frozenset[str] | None]


def shape_of(job: Job) -> Shape:
    """Return what decides where a job fits: nodes, threads, bytes and allowed nodes."""
    return job.nodes, job.profile.threads, memory_need(job), job.allowed


@dataclass(slots=True)
class Entry:
    """A job in the queue.

    `key` is its name in the resource manager; `shape` decides where it fits; `planned` is the job for the planner, as
    it was made last; `labelled` is the profile that `label` describes; `outlook` is what the latest plan says of the
    job while it waits, not kept over a restart.

    `stage` says how far the job has come; only `move` changes it. Facts that hold in several stages are fields of their
    own: `cancel_wanted` is a user's wish, `held` is the resource manager's, `was_suspended` and `began` are history,
    `offered` and `followed` never change.

    Args:
        position: in its workflow, from 0.
        offered: its user handed it over through the resource manager: it is placed, and not submitted.
        state: what the resource manager shows of it.
        forecast: at the decision to start it; `promised` is the first forecast of its finish time, `expected` the
            latest; `plain_end` is the first forecast of its end in the resource manager's own order.
        cancel_wanted: a user asked for its end.
        attempts: starts that failed; `not_before` is when the next may be tried, epoch seconds.
        intent: row of its intent in the journal while it is UNSETTLED, else None; `refused` is the resource manager's
            error.
        since: when it was first submitted to the resource manager, if it was handed over.
        held: the resource manager holds it for us, until a deadline.
        wait_reason: why it must not start; "": it may.
        let_go: why the resource manager alone decides about it again; "": it is ours (see `handed_over`). `released` is
            why we released it last, since when it was not placed.
        label: the profile of its latest forecast; None: it has no forecast.
        missed: in how many snapshots in a row it was missing, the first at `missed_since`.
        followed: other jobs wait until it has completed.
        was_suspended: it was seen suspended, so that its times say nothing about its run time; not kept over a restart.
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
    cancel_wanted: bool = False
    attempts: int = 0
    not_before: float = 0.0
    intent: int | None = None
    refused: str = ""
    since: float | None = None
    plain_end: float | None = None
    held: bool = False
    wait_reason: str = ""
    let_go: str = ""
    released: str = ""
    label: ProfileLabel | None = None
    missed: int = 0
    missed_since: float = 0.0
    followed: bool = False
    was_suspended: bool = False
    began: bool = False
    stage: JobStage = JobStage.WAITING
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
        return self.stage in OURS and not self.cancel_wanted

    @property
    def taken(self) -> bool:
        """True while the resource manager has it, and may have begun it."""
        return self.stage in TAKEN

    def move(self, stage: JobStage, state: JobState | None = None) -> None:
        """Go on to a stage, see `job_stages.MOVES`.

        Args:
            stage: the next one.
            state: what the resource manager shows now; None: the job waits.
        """
        state = state or JobState.PENDING
        self.stage = next_stage(self.key, self.stage, stage, state)
        if self.stage is not JobStage.UNSETTLED:
            self.intent, self.refused = None, ""
        if self.stage is stage:
            self.state = state

    def end(self, state: JobState, time: float, reason: str) -> None:
        """Note how the job ended, as we found out or decided.

        Args:
            state: one that has ended.
            time: epoch seconds.
            reason: shown to its user.
        """
        self.move(JobStage.ENDED, state)
        self.finish_time, self.reason = time, reason

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


def busy(entry: Entry) -> bool:
    """Return whether the job holds its nodes: it runs, may run, or was placed to run."""
    return entry.taken or entry.state.takes_nodes


def outcome(entry: Entry) -> str:
    """Return how a job ended, in a few words."""
    return ending(entry.state, entry.exit_code, entry.signal, entry.reason)

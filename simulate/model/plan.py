"""The plan: what a policy decided, as values, with the forecast of each decision and why it was taken."""

from __future__ import annotations

from dataclasses import dataclass, field

from .job import Job

#: With what probability a job ends within the times that a plan tells (see `Within`).
LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class Start:
    """Start `job` (known to the resource manager as `key`) on `nodes` now."""

    key: str
    job: Job
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job known as `key`: TERM, then KILL."""

    key: str


@dataclass(frozen=True, slots=True)
class Release:
    """Leave the job known as `key` to the resource manager again: take back its pin, which has not become a start, or
    let it go, because it is not to be kept any longer (`why`)."""

    key: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PowerOff:
    """Let these idle nodes be powered down; the resource manager wakes each when a job needs it."""

    nodes: tuple[str, ...]

    @property
    def key(self) -> str:
        """It is about no job."""
        return ""


Action = Start | Cancel | Release | PowerOff


@dataclass(frozen=True, slots=True)
class Rejection:
    """An action that no longer fits a fresh snapshot, and why. A normal outcome, counted."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The next best place for a job and by how many seconds it scored worse (policy's own score).

    Of a searched plan: by how much the whole would end later. Below zero only where the search's budget ended before
    it had asked about every job, or where it was not the makespan that it minimised.
    """

    nodes: tuple[str, ...]
    cost_s: float


@dataclass(frozen=True, slots=True)
class Within:
    """Times, in seconds from the start of the plan, between which a job ends with a probability of LEVEL, and between
    which its run time is, as far as what it needs is known, and if the contention model is right (see `spread`).
    """

    earliest: float
    latest: float
    shortest: float
    longest: float


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job's place and forecast; times in seconds from the start of the plan.

    contention_slowdown = run time / isolated_run_time on that node type, of a job under way that of what is left; at
    least 1. `within`: None where its needs are not known with an interval, or it was not asked for.
    """

    id: str
    nodes: tuple[str, ...]
    start_time: float
    finish_time: float
    isolated_run_time: float
    contention_slowdown: float
    energy_j: float | None = None
    why: RunnerUp | None = None
    within: Within | None = None


@dataclass(frozen=True)
class Plan:
    """A whole plan. `jobs` are in the workflow's order; `simulated_in` is seconds spent deciding and simulating;
    `makespan_within`: as `Within`, None where the needs of a job are not known with an interval."""

    workflow: str
    cluster: str
    policy: str
    seed: int
    makespan: float
    energy_j: float | None
    lower_bound: float
    simulated_in: float
    truncated: bool
    evaluations: int
    jobs: tuple[PlannedJob, ...]
    warnings: tuple[str, ...] = field(default=())
    makespan_within: tuple[float, float] | None = None

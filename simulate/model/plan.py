"""Plans: the decisions of a policy as values, each with its forecast and the reason for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from .job import Job

#: Probability that a job ends inside its prediction interval (see `PredictionInterval`).
LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class Submit:
    """Start `job`, one of our own, on `nodes` now; the resource manager stores `key` with it."""

    key: str
    job: Job
    nodes: tuple[str, ...]
    followed: bool = False  # other jobs of ours wait until it has completed


@dataclass(frozen=True, slots=True)
class SubmitAhead:
    """Hand `job`, one of our own, to the resource manager as `key`; it begins when a `Submit` chooses its nodes.

    `after` are the jobs that must have completed before, by key.
    """

    key: str
    job: Job
    after: tuple[tuple[str, Job], ...] = ()
    followed: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Let `job`, which its user handed over and the resource manager knows as `key`, start on `nodes` now."""

    key: str
    job: Job
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job known as `key`: TERM, then KILL."""

    key: str


@dataclass(frozen=True, slots=True)
class Release:
    """Give the job known as `key` back to the resource manager: remove a pin without a start, or end a hold."""

    key: str
    why: str = ""  # why the job is no longer held
    expected_s: float | None = None  # its predicted run time, seconds; None: nothing is known of it


@dataclass(frozen=True, slots=True)
class PowerOff:
    """Let these idle nodes be powered down; the resource manager wakes a node when a job needs it."""

    nodes: tuple[str, ...]
    key: ClassVar[str] = "power off"  # the action concerns no job


@dataclass(frozen=True, slots=True)
class PowerOn:
    """Let these nodes, which are powered down, be powered up before a job needs them."""

    nodes: tuple[str, ...]
    key: ClassVar[str] = "power on"  # the action concerns no job


#: What makes a job begin.
Start = Place | Submit
#: What switches nodes.
PowerSwitch = PowerOff | PowerOn
Action = Start | SubmitAhead | Cancel | Release | PowerSwitch


@dataclass(frozen=True, slots=True)
class Rejection:
    """An action that no longer fits a fresh snapshot, and the reason. A normal outcome, counted."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The next best nodes of a job and how many seconds worse they scored (the policy's own score).

    In a searched plan: how much later the whole plan would end. Negative only if the search's budget ended before every
    job was tried elsewhere, or if it did not minimise the makespan. None: the policy's score is not a time.
    """

    nodes: tuple[str, ...]
    cost_s: float | None


@dataclass(frozen=True, slots=True)
class PredictionInterval:
    """The prediction interval of a job's end and of its run time, at probability LEVEL.

    Times are seconds from the start of the plan. It covers the uncertainty of the job's needs, not that
    of the contention model (see `uncertainty`).
    """

    earliest: float
    latest: float
    shortest: float
    longest: float


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that is already running when a plan begins.

    `progress` is the share of its work that is done, [0, 1]; `elapsed_s` is the time since its start in seconds, below
    0 if its nodes still boot.
    """

    id: str
    nodes: tuple[str, ...]
    progress: float = 0.0
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """The start that a queue policy promises a waiting job, unless it decides otherwise until then.

    `start_time` is seconds from the start of the plan. The forecast may be earlier, because jobs may end before their
    limits.
    """

    nodes: tuple[str, ...]
    start_time: float


@dataclass(frozen=True, slots=True)
class Scored:
    """The place of a waiting job in the order of a model, at the beginning of a plan.

    Args:
        rank: in the order that decides, from 1.
        score: the least comes first; None: the job has waited for too long and goes first, or it has no score.
        features: the three that moved it most, the largest first: their names, and weight times the difference from
            the mean of the waiting jobs; below 0 moves it to the front.
        baseline: SPEC of the baseline.
        baseline_rank: in the order of the baseline, from 1.
        baseline_start_s: when the baseline would start it, seconds from the start of the plan; None: not known.
        doubt: why the baseline decides; "": the model does.
    """

    rank: int
    score: float | None
    features: tuple[tuple[str, float], ...]
    baseline: str
    baseline_rank: int
    baseline_start_s: float | None = None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """The nodes and forecast of one job; times in seconds from the start of the plan.

    contention_slowdown = run time / isolated_run_time on that node type, at least 1; for a running job, both are those
    of the rest of its work. `within` is None if the interval of its needs is unknown or was not requested. `late_s` is
    how much later than these times it is expected, because it and others take time to start (see `start_latency`).
    `scored` is set if a model orders the queue.
    """

    id: str
    nodes: tuple[str, ...]
    start_time: float
    finish_time: float
    isolated_run_time: float
    contention_slowdown: float
    energy_j: float | None = None
    why: RunnerUp | None = None
    within: PredictionInterval | None = None
    late_s: float = 0.0
    reserved: Reservation | None = None
    scored: Scored | None = None


@dataclass(frozen=True)
class Plan:
    """A whole plan.

    Args:
        jobs: in the order of the workflow.
        lower_bound: of the makespan, seconds; 0 = none is known.
        simulated_in: seconds spent on deciding and simulating.
        truncated: whether a time limit cut the search.
        evaluations: simulated runs.
        makespan_within: prediction interval of the makespan at LEVEL; None if the needs of a job are unknown.
        objective: what the policy minimised, "" for a policy with a criterion of its own.
        plain_finish_times: end of each job in the resource manager's own order, seconds, if the objective is one of
            QUEUE_KINDS.
        rejected: reasons why jobs are not planned, by id: a queue policy rejects the job, or a job that it waits for.
        waits: reasons why jobs do not start now, by id: a limit of power or energy keeps them from it, or the plan ends
            before them, and leaves them out.
        recheck_s: when the policy wants to decide again if nothing happens, seconds; inf = it does not.
        switches: the nodes that the policy switches now.
        forecast_by: the policy that forecasts what does not start now; "": the policy itself.
    """

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
    warnings: tuple[str, ...] = ()
    makespan_within: tuple[float, float] | None = None
    objective: str = "makespan"
    plain_finish_times: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)
    recheck_s: float = math.inf
    switches: tuple[PowerSwitch, ...] = ()
    forecast_by: str = ""

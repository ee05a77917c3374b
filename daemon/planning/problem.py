"""The planning problem, how to plan it, and what a plan starts now."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan, PlannedJob, RunningJob, Start
from ..state.queue import Entry

#: A planned start at or before this many seconds is a start now.
NOW_S = 1e-6


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan, as in `simulate.planning.planner.plan`.

    Args:
        time_limit: of a search, seconds; becomes `should_stop` when it begins.
        window: the most waiting jobs to consider, None = all.
    """

    policy: str = "lookahead"
    objective: str = "makespan"
    seed: int = 0
    budget: int | None = None
    time_limit: float | None = None
    should_stop: Callable[[], bool] | None = None
    window: int | None = None


@dataclass(frozen=True)
class Problem:
    """What is to be planned.

    Args:
        workflow: all jobs that are waiting or running, under their keys.
        running: those that run, ours or not.
        available: names of the nodes that may be used.
        startable: the jobs that may start now, by key.
        stuck: why a job fits no usable node, by key; it is not in the workflow.
        beyond: jobs were left out because there are too many.
    """

    workflow: Workflow
    running: tuple[RunningJob, ...]
    available: tuple[str, ...]
    startable: dict[str, Entry]
    stuck: dict[str, str]
    beyond: bool = False


Planner = Callable[[Problem, Cluster, Options], Plan]


def starts(plan: Plan, problem: Problem) -> list[tuple[Start, PlannedJob]]:
    """Return the jobs that the plan starts now, in the plan's order, each with its forecast."""
    return [
        (Start(planned.id, problem.startable[planned.id].job, planned.nodes), planned)
        for planned in plan.jobs
        if planned.start_time <= NOW_S and planned.id in problem.startable
    ]


def next_due(plan: Plan, problem: Problem) -> float:
    """Return after how many seconds the plan has drifted if nothing has happened by then; inf = never."""
    running = {job.id for job in problem.running}
    due = [
        planned.finish_time * 1.1 + 1.0 if planned.id in running else planned.start_time
        for planned in plan.jobs
        if planned.id in running or (planned.id in problem.startable and planned.start_time > NOW_S)
    ]
    return min(due, default=math.inf)

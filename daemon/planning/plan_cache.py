"""A planner that holds to one plan: the same mapping and order, however reality drifts.

Rule: a job starts on the plan's nodes as soon as its predecessors have really ended, there is room, no job
that the plan starts earlier on one of these nodes still waits, and what the plan let it wait for has really
ended.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from ..simulate.fits import Occupancy
from ..simulate.job import Job, Workflow
from ..simulate.plan import Plan, PlannedJob, Within
from ..simulate.platform import Cluster
from .planning import NOW_S, Options, Problem, Running
from .sequence import released_by, slack

_Named = TypeVar("_Named", Job, Running)


class FixedPlan:
    """Answers every planning problem of one workflow with `plan`, moved to the present.

    Args:
        prefix: of the plan's jobs in the queue; jobs without it are neighbours that take room.
        plan: of the whole workflow, made before the first job started.
        workflow: what it is a plan of.
        clock: seconds, of which differences count; read at the first question and at each later one.
        began: what the clock showed when the plan began; None = at the first question.
    """

    def __init__(
        self,
        prefix: str,
        plan: Plan,
        workflow: Workflow,
        clock: Callable[[], float],
        *,
        began: float | None = None,
    ) -> None:
        self.plan, self._prefix, self._clock = plan, prefix, clock
        self._released = {
            name: {job.id for job in jobs} for name, jobs in released_by(plan, workflow).items()
        }
        self._order = sorted(plan.jobs, key=lambda job: job.start_time)
        self._began = began

    def __call__(self, problem: Problem, cluster: Cluster, options: Options) -> Plan:
        """Return the rest of the plan; start times of 0 are starts now. O(jobs log jobs)."""
        now = self._clock()
        self._began = now if self._began is None else self._began
        elapsed = now - self._began
        keys = {job.id.removeprefix(self._prefix): job.id for job in self._ours(problem.workflow.jobs)}
        running = {job.id.removeprefix(self._prefix) for job in self._ours(problem.running)}
        starting = self._starting(problem, cluster, keys, running)
        jobs = [
            _moved(job, keys[job.id], elapsed, starting, running) for job in self._order if job.id in keys
        ]
        return dataclasses.replace(self.plan, jobs=tuple(jobs), simulated_in=0.0, evaluations=0)

    def _ours(self, jobs: Iterable[_Named]) -> list[_Named]:
        return [job for job in jobs if job.id.startswith(self._prefix)]

    def _starting(
        self, problem: Problem, cluster: Cluster, keys: dict[str, str], running: set[str]
    ) -> set[str]:
        taken = Occupancy(cluster)
        for job, there in zip(problem.workflow.jobs, _places(problem), strict=True):
            taken.place(job, there)
        front: dict[str, float] = {}
        starting: set[str] = set()
        for planned in self._order:
            if planned.id not in keys or planned.id in running:
                continue
            first = min(front.get(name, math.inf) for name in planned.nodes)
            if planned.start_time <= first + slack(first) and self._may_start(planned, problem, keys, taken):
                taken.place(problem.startable[keys[planned.id]].job, planned.nodes)
                starting.add(planned.id)
                continue
            for name in planned.nodes:
                front.setdefault(name, planned.start_time)
        return starting

    def _may_start(
        self, planned: PlannedJob, problem: Problem, keys: dict[str, str], taken: Occupancy
    ) -> bool:
        entry = problem.startable.get(keys[planned.id])
        if entry is None or any(name in keys for name in self._released.get(planned.id, ())):
            return False
        return all(taken.obstacle(entry.job, name) is None for name in planned.nodes)


def _places(problem: Problem) -> list[tuple[str, ...]]:
    where = {job.id: job.nodes for job in problem.running}
    return [where.get(job.id, ()) for job in problem.workflow.jobs]


def _moved(job: PlannedJob, key: str, elapsed: float, starting: set[str], running: set[str]) -> PlannedJob:
    run_time = job.finish_time - job.start_time
    if job.id in running:
        finish = max(0.0, job.finish_time - elapsed)
        return dataclasses.replace(job, id=key, start_time=0.0, finish_time=finish, within=_later(job, -elapsed))
    start = 0.0 if job.id in starting else max(job.start_time - elapsed, 2 * NOW_S)
    moved = _later(job, start - job.start_time)
    if moved and job.id in starting:  # when it starts is known by now
        moved = dataclasses.replace(moved, earliest=moved.shortest, latest=moved.longest)
    return dataclasses.replace(job, id=key, start_time=start, finish_time=start + run_time, within=moved)


def _later(job: PlannedJob, seconds: float) -> Within | None:
    if job.within is None:
        return None
    earliest, latest = (max(0.0, time + seconds) for time in (job.within.earliest, job.within.latest))
    return dataclasses.replace(job.within, earliest=earliest, latest=latest)

"""The last plan, followed until there is a better one.

Rule: if jobs completed as forecast, the next jobs of the last plan start at once, on its nodes and in its order, where
they still fit; the search follows. News ends a search only after such a start, and the result of a search that was
ended is discarded, so no plan depends on when news came: same snapshot and seed, same plan. Any other news (a
submission, a failure, a node) makes the last plan void. If nothing was searched, the plan is made again.

Rule of a fixed plan: a job starts on the plan's nodes as soon as its predecessors and the jobs that it waits for have
ended, the nodes have capacity, and no job that the plan starts earlier on one of these nodes still waits. Which jobs
these are is read from the plan's own times; times closer than 1e-9 (relative) are one instant.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from ...adapters.base import Adapter
from ...simulate.model.capacity import Occupancy
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import Plan, PlannedJob, PredictionInterval, RunningJob
from ...simulate.model.snapshot import JobState
from ..state.forecasts import NOW_S
from ..state.queue import JobEvent
from .problem import Options, Problem, starts


def slack(instant: float) -> float:
    """Return the seconds within which another time counts as the same instant; `instant` in seconds."""
    return 1e-9 * max(1.0, instant)


def released_by(plan: Plan, workflow: Workflow) -> dict[str, tuple[PlannedJob, ...]]:
    """Return, for each job that the plan starts later than its predecessors' ends, the jobs that it waits for.

    These are the jobs on its nodes that end at the moment it starts and began before it. Jobs that start as soon as
    their predecessors have ended, or that wait for no end, are absent. O((jobs + edges) log jobs).

    Args:
        plan: whose times decide.
        workflow: the planned workflow.
    """
    planned = {job.id: job for job in plan.jobs}
    leavers: dict[str, list[PlannedJob]] = {}
    for ended in sorted(plan.jobs, key=lambda job: job.finish_time):
        for name in ended.nodes:
            leavers.setdefault(name, []).append(ended)
    released = {}
    for job in workflow.jobs:
        if job.id not in planned:
            continue
        mine = planned[job.id]
        ready = max((planned[name].finish_time for name in job.after if name in planned), default=0.0)
        if mine.start_time > ready + slack(mine.start_time) and (releasing := _ending_at(mine, leavers)):
            released[job.id] = releasing
    return released


def _ending_at(job: PlannedJob, leavers: dict[str, list[PlannedJob]]) -> tuple[PlannedJob, ...]:
    low, high = job.start_time - slack(job.start_time), job.start_time + slack(job.start_time)
    ending: dict[str, PlannedJob] = {}
    for name in job.nodes:
        ended = leavers[name]
        for i in range(bisect_left(ended, low, key=lambda other: other.finish_time), len(ended)):
            if ended[i].finish_time > high:
                break
            if ended[i].start_time < job.start_time:
                ending[ended[i].id] = ended[i]
    return tuple(ending.values())


class FixedPlan:
    """Answers every planning problem of one workflow with `plan`, moved to the present.

    Args:
        prefix: of the plan's jobs in the queue; jobs without it are neighbours that use capacity.
        plan: of the whole workflow, made before the first job started.
        workflow: the planned workflow.
        clock: seconds, monotonic; read at every call.
        began: what the clock showed when the plan began; None = at the first call.
    """

    def __init__(
        self, prefix: str, plan: Plan, workflow: Workflow, clock: Callable[[], float], *, began: float | None = None
    ) -> None:
        self.plan, self._prefix, self._clock = plan, prefix, clock
        self._released = {name: {job.id for job in jobs} for name, jobs in released_by(plan, workflow).items()}
        self._order = sorted(plan.jobs, key=lambda job: job.start_time)
        self._began = began

    def __call__(self, problem: Problem, cluster: Cluster, options: Options) -> Plan:
        """Return the rest of the plan; start times of 0 are starts now. O(jobs log jobs)."""
        now = self._clock()
        self._began = now if self._began is None else self._began
        elapsed = now - self._began
        keys, running = self._ours(problem.workflow.jobs), set(self._ours(problem.running))
        starting = self._starting(problem, cluster, keys, running)
        moved = elapsed, options.latency_s, starting, running
        jobs = [_moved(job, keys[job.id], *moved) for job in self._order if job.id in keys]
        return dataclasses.replace(self.plan, jobs=tuple(jobs), simulated_in=0.0, evaluations=0, plain_finish_times={})

    def _ours(self, jobs: Iterable[Job | RunningJob]) -> dict[str, str]:
        """Return the key in the queue of each job of the plan, by its id there."""
        return {job.id.removeprefix(self._prefix): job.id for job in jobs if job.id.startswith(self._prefix)}

    def _starting(self, problem: Problem, cluster: Cluster, keys: dict[str, str], running: set[str]) -> set[str]:
        occupancy, where = Occupancy(cluster), {job.id: job.nodes for job in problem.running}
        for job in problem.workflow.jobs:
            occupancy.place(job, where.get(job.id, ()))
        front: dict[str, float] = {}
        starting: set[str] = set()
        for planned in self._order:
            if planned.id not in keys or planned.id in running:
                continue
            first = min(front.get(name, math.inf) for name in planned.nodes)
            if planned.start_time <= first + slack(first) and self._may_start(planned, problem, keys, occupancy):
                occupancy.place(problem.startable[keys[planned.id]].job, planned.nodes)
                starting.add(planned.id)
                continue
            for name in planned.nodes:
                front.setdefault(name, planned.start_time)
        return starting

    def _may_start(self, planned: PlannedJob, problem: Problem, keys: dict[str, str], occupancy: Occupancy) -> bool:
        entry = problem.startable.get(keys[planned.id])
        if entry is None or any(name in keys for name in self._released.get(planned.id, ())):
            return False
        return all(occupancy.obstacle(entry.job, name) is None for name in planned.nodes)


def _moved(
    job: PlannedJob, key: str, elapsed: float, latency_s: float, starting: set[str], running: set[str]
) -> PlannedJob:
    run_time = job.finish_time - job.start_time
    if job.id in running:
        elapsed_s = elapsed - job.late_s
        finish, within = max(0.0, job.finish_time - elapsed_s), _later(job, -elapsed_s)
        return dataclasses.replace(job, id=key, start_time=0.0, finish_time=finish, within=within, late_s=0.0)
    start = 0.0 if job.id in starting else max(job.start_time - elapsed, 2 * NOW_S)
    late_s = min(
        job.late_s, latency_s if job.id in starting else max(0.0, job.start_time + job.late_s - elapsed - start)
    )
    moved = _later(job, start - job.start_time)
    if moved and job.id in starting:  # when it starts is known by now
        moved = dataclasses.replace(moved, earliest=moved.shortest, latest=moved.longest)
    reserved = job.reserved and dataclasses.replace(job.reserved, start_time=job.reserved.start_time - elapsed)
    return dataclasses.replace(
        job, id=key, start_time=start, finish_time=start + run_time, within=moved, late_s=late_s, reserved=reserved
    )


def _later(job: PlannedJob, seconds: float) -> PredictionInterval | None:
    if job.within is None:
        return None
    earliest, latest = (max(0.0, time + seconds) for time in (job.within.earliest, job.within.latest))
    return dataclasses.replace(job.within, earliest=earliest, latest=latest)


class PlanCache:
    """The last plan, for as long as it is valid; `interrupted`: news has ended the search.

    Args:
        adapter: asked for news during a search.
        clock: seconds, monotonic.
    """

    def __init__(self, adapter: Adapter, clock: Callable[[], float]) -> None:
        self._adapter, self._clock = adapter, clock
        self._plan: FixedPlan | None = None
        self._served = self._void = self.interrupted = False

    def store(self, plan: Plan, problem: Problem) -> None:
        """Follow this plan, the result of a whole search, from now on, unless news has made it void already."""
        self._plan, self._served = None, False
        if plan.evaluations > 1 and not self._void:
            self._plan = FixedPlan("", plan, problem.workflow, self._clock, began=self._clock())

    def drop(self) -> None:
        """Forget the plan; the one that is being searched for is void, too."""
        self._plan, self._served, self._void = None, False, True

    def next(self, problem: Problem, cluster: Cluster, options: Options, events: Sequence[JobEvent]) -> Plan | None:
        """Return the plan moved to the present; None if it starts nothing now or is void.

        Args:
            problem: of this moment.
            cluster: the nodes to plan for.
            options: how to plan; another policy than the plan's voids it.
            events: what happened since the plan was made or last followed.
        """
        self._void = self.interrupted = False
        if self._plan is None or not events:
            return None
        as_forecast = all(event.entry.state in (JobState.RUNNING, JobState.COMPLETED) for event in events)
        if not as_forecast or self._plan.plan.policy != options.policy:
            self._plan, self._served = None, False
            return None
        plan = self._plan(problem, cluster, options)
        self._served = bool(starts(plan, problem))
        return plan if self._served else None

    def has_news(self) -> bool:
        """Return whether to end the running search for news; that happens once after each start from the cache."""
        notified = self._adapter.capabilities.events and self._adapter.fileno() is not None
        if self._served and not self.interrupted and notified:
            self.interrupted = self._adapter.wait(0.0)
            self._served = not self.interrupted
        return self.interrupted

"""Residents: running jobs that a plan takes as one, so that its time does not grow with the jobs that users let run.

Rule: few running jobs are planned with as they are: CROWD on each node, SHARED slots of jobs of several nodes that
leave room for others there, and FEW in all for a policy in Python, which is called at each end. Beyond, a resident
stands for jobs on one node. It has their threads and memory, and the mean of their other needs. It ends when the last
of them would end alone, rounded up to a grid: by a quarter or to 10 seconds at most (FINE); for a policy in Python by a
factor of two or to a minute at most (COARSE), and its limit is that of the last of them, rounded likewise. So without
contention no job ends earlier than by itself. What is free now is exact. A job that waits for one of its jobs waits for
the resident. A plan makes no new forecast of the jobs that residents stand for: their last one stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...simulate.arrays import Array
from ...simulate.model.capacity import memory_need
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Profile, Provenance, ThreadGroup, Workflow
from ...simulate.model.plan import RunningJob
from .plan_steps import in_steps
from .problem import SHARED, Problem

#: Running jobs on a node that are planned with as they are: a forecast of a node takes time with their square.
CROWD = 32
#: Running jobs that a policy in Python sees as they are, those without others on their several nodes left out.
FEW = 512
#: Times until which residents run, seconds.
FINE = np.cumprod([10.0, *[1.25] * 99])
COARSE = np.cumprod([60.0, *[2.0] * 31])


class _Need(NamedTuple):
    """Needs of a profile on each node; `utilisation` and `bandwidth` are sums over its threads."""

    threads: float
    utilisation: float
    bandwidth: float
    isolated_s: float
    guessed: bool
    origin: int  # position of its `measured_on`


def with_residents(
    problem: Problem, cluster: Cluster, *, in_python: bool, breathe: Callable[[], None] = lambda: None
) -> Problem:
    """Return the problem with residents in place of running jobs where these are too many. O(jobs and their nodes).

    Args:
        problem: what to plan.
        cluster: its nodes.
        in_python: whether the policy is called at each end.
        breathe: called between two steps, so that the caller can do other work.
    """
    table = _RunningJobs(problem, cluster, breathe)
    loose = table.loose(in_python=in_python)
    if not loose.any():
        return problem
    breathe()
    residents, resident_of = table.residents(loose, COARSE if in_python else FINE, in_python=in_python)
    jobs = list[Job]()
    for job in in_steps(problem.workflow.jobs, breathe):
        if job.id in resident_of:
            continue
        if not resident_of.keys().isdisjoint(job.after):
            after = dict.fromkeys(resident_of.get(name, name) for name in job.after)
            job = dataclasses.replace(job, after=tuple(after))
        jobs.append(job)
    breathe()
    workflow = Workflow(problem.workflow.name, (*jobs, *(job for job, _ in residents)))
    running = (*(run for run in problem.running if run.id not in resident_of), *(run for _, run in residents))
    return dataclasses.replace(problem, workflow=workflow, running=running)


class _RunningJobs:
    """The running jobs of a problem as columns, and the nodes of each: a slot is one node of one job."""

    def __init__(self, problem: Problem, cluster: Cluster, breathe: Callable[[], None]) -> None:
        self._cluster, self._breathe, self._ids = cluster, breathe, [run.id for run in problem.running]
        self._origins: dict[str | None, int] = {}
        jobs, index, place = problem.workflow.jobs, problem.workflow.index, cluster.index.__getitem__
        needs, rows, slots = dict[int, _Need](), list[tuple[float, ...]](), list[int]()
        for run in in_steps(problem.running, breathe):
            job = jobs[index[run.id]]
            if (need := needs.get(id(job.profile))) is None:
                need = needs[id(job.profile)] = self._need(job.profile)
            limit = need.isolated_s if job.walltime is None else job.walltime
            slots += map(place, run.nodes)
            rows.append(
                (len(run.nodes), memory_need(job), (1.0 - run.progress) * need.isolated_s, limit - run.elapsed_s, *need)
            )
        breathe()
        columns = np.array(rows, np.float64).reshape(-1, 4 + len(_Need._fields)).T
        size, self.memory, self.left_s, until, self.threads, self.utilisation, self.bandwidth, _, guessed, origin = (
            columns
        )
        self.latest_s = np.where(until > 0.0, until, np.maximum(-until, 1.0))  # see `backfill.latest_end`
        self.size, self.guessed, self.origin = size.astype(np.int64), guessed, origin.astype(np.int64)
        self.job, self.node = np.repeat(np.arange(len(rows)), self.size), np.array(slots, np.int64)

    def _need(self, profile: Profile) -> _Need:
        groups, origin = profile.groups, self._origins.setdefault(profile.measured_on, len(self._origins))
        return _Need(
            profile.threads,
            sum(group.count * group.mean_utilisation for group in groups),
            sum(group.count * group.mean_bandwidth for group in groups),
            profile.isolated_time,
            profile.provenance.source == "default",
            origin,
        )

    def loose(self, *, in_python: bool) -> Array:
        """Return which jobs residents stand for, bool [jobs]."""
        tied = (self.size > 1) & (self.threads < max(self._cluster.thread_limits, default=0))
        movable = tied | (self.size == 1)
        if in_python:
            return np.asarray(movable & (self.size[movable].sum() > FEW))
        loose = np.asarray(tied & (self.size[tied].sum() > SHARED))
        crowded = np.bincount(self.node, minlength=len(self._cluster.nodes)) > CROWD
        loose[self.job[crowded[self.node]]] = True
        return loose

    def residents(
        self, loose: Array, grid: Array, *, in_python: bool
    ) -> tuple[list[tuple[Job, RunningJob]], dict[str, str]]:
        """Return the residents, and the one on its first node of each job that residents stand for, by id."""
        level = np.searchsorted(grid, self.latest_s if in_python else self.left_s).clip(0, len(grid) - 1)
        slots = np.flatnonzero(loose[self.job])
        key = (self.node * len(grid) + level[self.job])[slots] * len(self._origins) + self.origin[self.job[slots]]
        order = np.argsort(key, kind="stable")
        slots, key = slots[order], key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        jobs, group = self.job[slots], np.repeat(np.arange(len(first)), np.diff(first, append=len(slots)))
        self._breathe()
        sums = [np.add.reduceat(column[jobs], first) for column in (self.threads, self.memory, self.utilisation,
                                                                  self.bandwidth, self.guessed)]  # fmt: skip
        last_s = np.maximum.reduceat(self.left_s[jobs], first)
        last_s = np.maximum(last_s, grid[np.searchsorted(grid, last_s).clip(0, len(grid) - 1)])
        limit_s = grid[level[jobs[first]]].tolist() if in_python else [None] * len(first)
        origins, profiles, residents = (
            [*self._origins],
            dict[tuple[object, ...], Profile](),
            list[tuple[Job, RunningJob]](),
        )
        columns = (self.node[slots[first]], *sums, last_s, self.origin[jobs[first]])
        rows = zip(*(column.tolist() for column in columns), limit_s, strict=True)
        for number, row in enumerate(in_steps(rows, self._breathe)):
            node, threads, memory, utilisation, bandwidth, guessed, seconds, origin, walltime = row
            need = threads, utilisation, bandwidth, seconds, origin, guessed > 0.0
            if (profile := profiles.get(need)) is None:
                share = min(1.0, utilisation / threads)
                threads_group = ThreadGroup(int(threads), seconds * share, share, bandwidth=bandwidth / threads)
                source = Provenance("default" if guessed else "predicted")
                profile = Profile((threads_group,), measured_on=origins[origin], provenance=source)
                profiles[need] = profile
            name = self._cluster.nodes[node].name
            job = Job(f"running jobs {number} of {name}", profile, memory=memory, walltime=walltime)
            residents.append((job, RunningJob(job.id, (name,))))
        self._breathe()
        resident_of: dict[str, str] = {}
        back = np.argsort(slots, kind="stable")  # by job, then by its nodes as it has them
        for job_number, row in zip(jobs[back].tolist(), group[back].tolist(), strict=True):
            resident_of.setdefault(self._ids[job_number], residents[row][0].id)
        return residents, resident_of

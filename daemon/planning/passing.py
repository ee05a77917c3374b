"""Releases of held jobs that the resource manager's own jobs would pass, because holding them only costs.

Rule: the resource manager starts its own waiting jobs as soon as nodes are free, so a held job gets a node only where
none of these fits. If one waits in its partition that needs no more nodes and no more cores than it, the held job waits
until its hold ends. So it is released at once, and waits in the resource manager's order, as without pilotfish. A wider
job that waits passes none: the nodes that are free do not suffice for it. The reason names no job, since its user may
not be allowed to see that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ...simulate.model.job import Job
from ...simulate.model.plan import Plan
from ...simulate.model.snapshot import JobState, JobView
from ..state.forecasts import NOW_S
from .problem import Problem

WHY = "a job that is not held waits in its partition{} and is no larger, so it would start first"
#: Nodes and cores of a job.
Size = tuple[int, int]


def passed(plan: Plan, problem: Problem, views: Iterable[JobView]) -> dict[str, str]:
    """Return why held jobs that do not start now are to be released, by key.

    O(views + held jobs x partitions x kept sizes of waiting jobs).

    Args:
        plan: made for `problem`.
        problem: what was planned.
        views: of all jobs of the resource manager.
    """
    later = {planned.id for planned in plan.jobs if planned.start_time > NOW_S}
    held = {key: entry.job for key, entry in problem.startable.items() if entry.held and key in later}
    smallest = _smallest(view for view in views if view.key not in problem.workflow.index) if held else {}
    reasons = dict[str, str]()
    for key, job in held.items():
        nodes, cores = _size(job)
        for partition in _partitions(job):
            if any(size[0] <= nodes and size[1] <= cores for size in smallest.get(partition, ())):
                reasons[key] = WHY.format(f" {partition}" if partition else "")
                break
    return reasons


def _smallest(views: Iterable[JobView]) -> dict[str, list[Size]]:
    """Return the sizes of the jobs that the resource manager may start itself at any time, by partition.

    Without those than which another is no larger; by nodes, then by cores, which decrease.
    """
    waiting = defaultdict[str, set[Size]](set)
    for view in views:
        if view.state is JobState.PENDING and not (view.offered or view.nodes or view.waits):
            for partition in _partitions(view.job):
                waiting[partition].add(_size(view.job))
    smallest = dict[str, list[Size]]()
    for partition, sizes in waiting.items():
        minima = smallest.setdefault(partition, [])
        for size in sorted(sizes):
            if not minima or size[1] < minima[-1][1]:
                minima.append(size)
    return smallest


def _partitions(job: Job) -> list[str]:
    return dict(job.traits).get("queue", "").split(",")


def _size(job: Job) -> Size:
    return job.nodes, job.nodes * sum(group.count for group in job.profile.groups)

"""Releases of held jobs that the resource manager's own jobs pass, because holding them only costs.

Rule: a held job has no place in the resource manager's queue. So while any job that is not held waits in its partition,
that one has the next free nodes, or has them reserved, whenever it was submitted and however large it is; the held jobs
wait until their holds end. They are released at once, and wait in the resource manager's order, as without pilotfish.
What starts now is placed nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...simulate.model.job import Job
from ...simulate.model.plan import Plan
from ...simulate.model.snapshot import JobState, JobView
from ..state.forecasts import NOW_S
from .problem import Problem

WHY = "a job that is not held waits in its partition{}, and would pass it"


def passed(plan: Plan, problem: Problem, views: Iterable[JobView]) -> dict[str, str]:
    """Return why held jobs that do not start now are to be released, by key. O(views + held jobs).

    The reasons name no other job, since a user may not be allowed to see it.

    Args:
        plan: made for `problem`.
        problem: what was planned.
        views: of all jobs of the resource manager.
    """
    later = {planned.id for planned in plan.jobs if planned.start_time > NOW_S}
    held = {key: entry.job for key, entry in problem.startable.items() if entry.held and key in later}
    if not held:
        return {}
    full = {
        partition
        for view in views
        if view.state is JobState.PENDING and not (view.offered or view.nodes or view.waits)
        if view.key not in problem.workflow.index
        for partition in _partitions(view.job)
    }
    reasons = dict[str, str]()
    for key, job in held.items():
        if shared := full.intersection(_partitions(job)):
            reasons[key] = WHY.format(f" {min(shared)}".rstrip())
    return reasons


def _partitions(job: Job) -> list[str]:
    return dict(job.traits).get("queue", "").split(",")

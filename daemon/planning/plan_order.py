"""What a plan implies about order: which job's end let another start.

Rule: read from the plan's own times; times closer than 1e-9 (relative) are one instant.
"""

from __future__ import annotations

from bisect import bisect_left

from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan, PlannedJob


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
        if mine.start_time > ready + slack(mine.start_time) and (found := _ending_at(mine, leavers)):
            released[job.id] = found
    return released


def _ending_at(job: PlannedJob, leavers: dict[str, list[PlannedJob]]) -> tuple[PlannedJob, ...]:
    low, high = job.start_time - slack(job.start_time), job.start_time + slack(job.start_time)
    found: dict[str, PlannedJob] = {}
    for name in job.nodes:
        ended = leavers[name]
        for i in range(bisect_left(ended, low, key=lambda other: other.finish_time), len(ended)):
            if ended[i].finish_time > high:
                break
            if ended[i].start_time < job.start_time:
                found[ended[i].id] = ended[i]
    return tuple(found.values())

"""What other programs took of the CPUs of a job while it ran.

Rule: rather too little than too much, because a run that others slowed down is not held against its forecast. Others
took at most what the job's threads waited for a core, and at most what its CPUs did beyond our own jobs. Jobs of ours
that still run count with all that they could have used.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...simulate.model.snapshot import JobView
from .job_profiles import measurement_of

#: Share of its time that others take from a job, from which on its run time says nothing about its forecast.
MUCH = 0.05


def taken_by_others(view: JobView, views: Iterable[JobView]) -> float | None:
    """Return the share of a job's run time for which others kept its threads from their cores, [0, 1]; None = unknown.

    Args:
        view: of the job, which has ended.
        views: of all jobs of ours that may have run on its CPUs.
    """
    usage, run = dict(view.usage), measurement_of(view)
    if run is None or run.waiting is None or "busy_seconds" not in usage:
        return None
    cpus, begin, end = _cpus(view), view.start_time or 0.0, view.finish_time or 0.0
    ours = usage["cpu_seconds"]
    for each in views:
        if each.key != view.key and (used := _used(each, begin, end)) and not cpus.isdisjoint(_cpus(each)):
            ours += used
    threads = run.threads * max(1, len(view.nodes))
    return min(run.waiting, max(0.0, usage["busy_seconds"] - ours) / (threads * run.wall_s), 1.0)


def _cpus(view: JobView) -> set[int]:
    return {cpu for own in view.cores for cpu in own}


def _used(view: JobView, begin: float, end: float) -> float:
    """Return the CPU seconds that a job of ours used between two times, at most; epoch seconds."""
    if view.start_time is None:
        return 0.0
    shared = min(end, end if view.finish_time is None else view.finish_time) - max(begin, view.start_time)
    if shared <= 0.0:
        return 0.0
    if view.finish_time is None:
        return shared * len(_cpus(view))
    lasted = max(view.finish_time - view.start_time, shared)
    return dict(view.usage).get("cpu_seconds", lasted * len(_cpus(view))) * shared / lasted

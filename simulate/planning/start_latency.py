"""Jobs that start some time after their nodes are free, because seeing that and starting the jobs takes time.

Rule: such a job takes its place on the node at once, and its threads run after an idle phase. So a search lets jobs run
together where waiting for an end would leave the cores idle. Forecasts are then made without these phases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ..model.job import Phase, Profile, ThreadGroup, Workflow

#: Utilisation of an idle thread; the model has no thread without any work.
IDLE = 1e-6


def delayed(workflow: Workflow, jobs: Collection[str], seconds: float) -> Workflow:
    """Return the workflow with an idle phase before the run of some jobs. O(jobs + profiles).

    Args:
        workflow: the jobs.
        jobs: ids of those that start later.
        seconds: by how much.
    """
    profiles: dict[int, Profile] = {}
    for job in workflow.jobs:
        if job.id in jobs and id(job.profile) not in profiles:
            profiles[id(job.profile)] = idling(job.profile, seconds)
    later = (
        dataclasses.replace(job, profile=profiles[id(job.profile)]) if job.id in jobs else job for job in workflow.jobs
    )
    return dataclasses.replace(workflow, jobs=tuple(later))


def idling(profile: Profile, before_s: float, after_s: float = 0.0) -> Profile:
    """Return the profile of a job that keeps its nodes for some time before and after its run, seconds."""
    groups = tuple(_idling(group, before_s, after_s) for group in profile.groups)
    return dataclasses.replace(profile, groups=groups)


def _idling(group: ThreadGroup, before_s: float, after_s: float) -> ThreadGroup:
    run_s = group.isolated_time
    whole_s = run_s + before_s + after_s
    phases = group.phases or (Phase(1.0, group.utilisation, group.bandwidth),)
    runs = [Phase(phase.share * run_s / whole_s, phase.utilisation, phase.bandwidth) for phase in phases]
    around = [Phase(seconds / whole_s, IDLE, 0.0) for seconds in (before_s, after_s)]
    phases = tuple(phase for phase in (around[0], *runs, around[1]) if phase.share > 0.0)
    demand = group.demand + IDLE * (before_s + after_s)
    return dataclasses.replace(group, service_demand=demand, phases=phases)

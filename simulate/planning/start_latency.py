"""Jobs that start some time after their nodes are free, because somebody has to see that and to start them.

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
    made: dict[int, Profile] = {}
    for job in workflow.jobs:
        if job.id in jobs and id(job.profile) not in made:
            groups = tuple(_after_idling(group, seconds) for group in job.profile.groups)
            made[id(job.profile)] = dataclasses.replace(job.profile, groups=groups)
    later = (
        dataclasses.replace(job, profile=made[id(job.profile)]) if job.id in jobs else job for job in workflow.jobs
    )
    return dataclasses.replace(workflow, jobs=tuple(later))


def _after_idling(group: ThreadGroup, seconds: float) -> ThreadGroup:
    run_s = group.isolated_time
    whole_s = run_s + seconds
    phases = group.phases or (Phase(1.0, group.utilisation, group.bandwidth),)
    runs = (Phase(phase.share * run_s / whole_s, phase.utilisation, phase.bandwidth) for phase in phases)
    demand = group.demand + IDLE * seconds
    return dataclasses.replace(group, service_demand=demand, phases=(Phase(seconds / whole_s, IDLE, 0.0), *runs))

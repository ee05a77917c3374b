"""Isolation: find the workflow that makes planning fail, and set it aside, so that all others are planned.

Rule: a workflow is set aside as a whole; a job of the resource manager is set aside alone. It stays set aside until it
has left the queue, the configuration is reloaded, or the daemon is restarted (which finds it again). Its waiting jobs
are not planned; its running jobs keep their nodes, and are planned with the default profile.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable

from ...simulate.model.job import DEFAULT_PROFILE, Job, Profile, Workflow
from ...simulate.model.snapshot import Snapshot
from ..state.queue import Queue
from .problem import Problem

log = logging.getLogger("pilotfish.cycle")


class Isolation:
    """The workflows that make planning fail; `reasons` is why, by workflow or key of a job.

    Args:
        queue: knows which job belongs to which workflow.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.reasons: dict[str, str] = {}

    def unit(self, key: str) -> str:
        """Return what is set aside together with a job: its workflow, or only itself."""
        workflow = key.partition("/")[0]
        submission = self._queue.submissions.get(workflow)
        return workflow if submission and not submission.offered else key

    def applied(self, problem: Problem) -> Problem:
        """Return the problem without what is set aside."""
        reasons = self.reasons
        if not reasons:
            return problem
        units = {job.id: self.unit(job.id) for job in problem.workflow.jobs}
        return _without(problem, {key for key, unit in units.items() if unit in reasons})

    def find_culprit(self, problem: Problem, why_not: Callable[[Problem], str]) -> str:
        """Find the workflow that makes planning fail next to all earlier ones, and set it aside. O(log n) plans.

        Args:
            problem: that cannot be planned.
            why_not: returns why a problem cannot be planned, or "".

        Returns:
            The workflow, or the key of a job; "" if planning fails whatever is left out.
        """
        units = list(dict.fromkeys(self.unit(job.id) for job in problem.workflow.jobs))

        def first(unit_count: int) -> Problem:
            left_out = set(units[unit_count:])
            return _without(problem, {job.id for job in problem.workflow.jobs if self.unit(job.id) in left_out})

        low, high, why = 0, len(units), why_not(problem)
        nothing = first(0).workflow
        control = dataclasses.replace(nothing, jobs=(*nothing.jobs, Job("control", DEFAULT_PROFILE)))
        if not why or why_not(dataclasses.replace(first(0), workflow=control)):
            return ""
        while high - low > 1:
            middle = (low + high) // 2
            if reason := why_not(first(middle)):
                high, why = middle, reason
            else:
                low = middle
        self.reasons[units[high - 1]] = f"planning fails with it: {why}"
        log.error("%s is set aside: planning fails with it: %s; all others are planned", units[high - 1], why)
        return units[high - 1]

    def prune(self, snapshot: Snapshot) -> None:
        """Forget what has left the queue and the snapshot."""
        if self.reasons:
            shown = {view.key for view in snapshot.jobs if not view.state.ended}
            self.reasons = {
                unit: why
                for unit, why in self.reasons.items()
                if unit in self._queue.submissions or unit in shown or self._queue.find(unit)
            }

    def split(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the reasons of those jobs that are set aside, by key."""
        if not self.reasons:
            return {}
        return {key: self.reasons[unit] for key in keys if (unit := self.unit(key)) in self.reasons}


def _without(problem: Problem, keys: Collection[str]) -> Problem:
    """Return the problem without these jobs and the jobs that wait for them; running ones get the default profile.

    O(jobs and their predecessors).
    """
    running = {job.id for job in problem.running}
    cut = {key for key in keys if key not in running}
    followers = dict[str, list[str]]()
    for job in problem.workflow.jobs:
        for name in job.after:
            followers.setdefault(name, []).append(job.id)
    pending = [*cut]
    while pending:
        pending += (new := [name for name in followers.pop(pending.pop(), ()) if name not in cut])
        cut.update(new)
    jobs = tuple(_plainly(job) if job.id in keys else job for job in problem.workflow.jobs if job.id not in cut)
    startable = {key: entry for key, entry in problem.startable.items() if key not in cut}
    return dataclasses.replace(problem, workflow=Workflow(problem.workflow.name, jobs), startable=startable)


def _plainly(job: Job) -> Job:
    """Return a running job with the default profile, on as many threads and with as much memory as it has."""
    (group,) = DEFAULT_PROFILE.groups
    plain = Profile((dataclasses.replace(group, count=job.profile.threads),), memory=job.profile.memory)
    return dataclasses.replace(job, profile=dataclasses.replace(plain, provenance=DEFAULT_PROFILE.provenance))

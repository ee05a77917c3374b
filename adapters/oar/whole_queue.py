"""OAR's whole queue as OAR's own schedulers see it, for forecasts of their decisions.

Rule: pure. A start is unknown if it depends on something that is not simulated: holds, sharing, moldable requests,
advance reservations that come before it. Users see the reason. Besteffort jobs, which OAR kills for any other job, take
no room from the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from ...simulate.model.observed_queue import ObservedJob, ObservedQueue
from ...simulate.model.snapshot import JobState
from .job_views import UNEVALUATED, last_of, state_of, states_by_node
from .records.requests import OarResources, name_of, request_of
from .records.world import OarJob, OarState

#: Types of jobs that wait for nothing but nodes, like a job without a type.
_PLAIN = ("idempotent", "expire=", "deadline=", "deploy", "cosystem")
#: What the schedulers with fair sharing note of a job that they have planned: less is earlier.
_KARMA = re.compile(r"\(Karma=(-?\d+\.\d+)")


def observed_queue(
    world: OarState,
    machine: OarResources,
    user: str,
    uid: Callable[[str], int | None],
    allowed: Callable[[str], frozenset[str] | None],
) -> ObservedQueue:
    """Return the queue in OAR's order. O(jobs x (log jobs + advance reservations)).

    Args:
        world: OAR at one moment.
        machine: Its resources.
        user: Name of our own user.
        uid: Returns the user id of a user's name.
        allowed: Returns the nodes that a user's property allows; None: not known yet.
    """
    last = last_of(world, user)
    states, evaluation = (
        states_by_node(machine, world.now),
        _QueueView(world, machine, {job.id: key for key, job in last.items()}),
    )
    order = sorted(last.items(), key=lambda item: evaluation.place(item[1]))
    queued_jobs = [evaluation.queued(key, job, uid(job.user), allowed) for key, job in order]
    usable = {name: (cores, 0.0) for name, cores in machine.cores.items() if states[name].takes_jobs}
    return ObservedQueue(world.now, queued_jobs, usable)


class _QueueView:
    """The part of a world on which its jobs depend.

    Args:
        world: OAR at one moment.
        machine: Its resources.
        keys: Key of each job that is shown, by its id.
    """

    def __init__(self, world: OarState, machine: OarResources, keys: dict[int, str]) -> None:
        self._world, self._machine, self._keys = world, machine, keys
        self._all = frozenset(machine.cores)
        # Fair share is that of a user and a project in a queue.
        noted = ((job, _KARMA.search(job.message)) for job in world.jobs)
        self._share = {(job.queue, job.user, job.project): float(karma[1]) for job, karma in noted if karma}
        reserved = [job for job in world.jobs if job.reservation != "None" and state_of(job)[0] is JobState.PENDING]
        #: Id of each advance reservation that has not begun, when it does, and its nodes; none: they are not known.
        self._reserved = [(job.id, self._planned(job), machine.assigned(self._resources(job))) for job in reserved]

    def place(self, job: OarJob) -> tuple[float, float, int]:
        """Return the place of a job in the queue: less is earlier."""
        queue = self._world.queues.get(job.queue)
        return -queue.priority if queue else 0, self._share.get((job.queue, job.user, job.project), 0.0), job.id

    def queued(
        self, key: str, job: OarJob, owner: int | None, allowed: Callable[[str], frozenset[str] | None]
    ) -> ObservedJob:
        """Return a job of the queue."""
        state, cores, start = state_of(job)[0], self._machine.assigned(job.resources), self._planned(job)
        nodes, per_node, odd = (len(cores), max(cores.values()), "") if cores else request_of(job, self._machine)
        waits, where = state is JobState.PENDING, frozenset[str]() if "besteffort" in job.types else frozenset(cores)
        unknown = (self._unknown(job) or odd) if waits else ""
        if waits and not unknown:
            may_use = allowed(job.properties) if job.properties else self._all
            where = may_use or where
            unknown = UNEVALUATED if may_use is None else self._in_the_way(job, where)
        return ObservedJob(
            key=key,
            state=state,
            name=name_of(job),
            owner=owner,
            account=job.project,
            queue=job.queue,
            nodes=nodes,
            cores=per_node,
            walltime=float(job.forms[0].walltime) if job.forms else None,
            submit_time=job.submitted,
            after=tuple(self._keys[number] for number in job.after if number in self._keys) if waits else (),
            where=where,
            start_time=None if waits else job.began or job.decided,
            finish_time=job.ended if state.ended else None,
            manager_start=start if waits and start is not None and start >= self._world.now else None,
            unknown=unknown,
        )

    def _planned(self, job: OarJob) -> float | None:
        """Return when OAR plans to start a waiting job, epoch seconds; None: it has not planned it."""
        return self._world.planned[job.id][0] if job.id in self._world.planned else job.decided

    def _resources(self, job: OarJob) -> tuple[int, ...]:
        return self._world.planned[job.id][1] if job.id in self._world.planned else ()

    def _unknown(self, job: OarJob) -> str:
        """Return why the start of a waiting job is not known whatever it asks for, or ""."""
        queue = self._world.queues.get(job.queue)
        if job.state == "Hold":
            return "its user holds it"
        if self._world.queues and (queue is None or queue.state != "Active"):
            return f"queue {job.queue} is disabled in OAR"
        if job.reservation != "None":
            return "it is an advance reservation"
        if "besteffort" in job.types:
            return "it is a besteffort job, and OAR starts any other job first"
        if odd := [kind for kind in job.types if not kind.startswith(_PLAIN)]:
            return f"it is of type {odd[0].partition('=')[0]}"
        lost = [number for number in job.after if number not in self._keys]
        return f"it depends on {lost[0]}" if lost else ""

    def _in_the_way(self, job: OarJob, where: frozenset[str]) -> str:
        """Return which advance reservation may be in the way of a waiting job, or "".

        One that begins after OAR's own plan has the job ended is not.
        """
        start = self._planned(job)
        end = math.inf if start is None else start + job.forms[0].walltime
        for number, begins, nodes in self._reserved:
            if (begins is None or begins < end) and (not nodes or not where.isdisjoint(nodes)):
                return f"the advance reservation {number} may be in its way"
        return ""

"""A queue policy as a mapping policy: it decides in plans and live, with the same calls as in a replay.

Rule: the policy sees what it sees in a replay: waiting jobs that are ready, running jobs with their latest ends, and
free cores, numbered over the usable nodes. It never sees a true run time or progress, and contention only in a
`forecast` that it asks for, by the profiles. Where a user gave no walltime, `walltime` is the isolated run time of the
job's profile on the slowest usable node, and the job says `predicted`. Contention, memory and domains act in the
simulation that carries the decisions out.
Rule of foresight: what starts now is decided as in a replay. What starts later is a forecast; it ends once the policy
has compared jobs with as many nodes as the request allows. That number is counted, so the plan is the same on any
machine. The jobs that wait then are left out, with the reason. They were among those that may start now, so none of
them can be left out for ever.
Which cores a job gets: see `queue_policies.node_resources`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ConfigError, PolicyError
from ..kernels.mapping import layout
from ..model.machine import core_powers, groups_of
from ..model.plan import Reservation
from ..queue_policies.easy_policy import Backfilling
from ..queue_policies.free_nodes import NodeLoads, NodeNeed
from ..queue_policies.interface import Forecast, QueuePolicy
from ..queue_policies.kept import Kept
from ..queue_policies.node_resources import NodeResources
from ..queue_policies.policy_calls import PolicyCalls
from ..queue_policies.queued_job import NodeJob, QueuedJob, Running
from ..queue_policies.reservations import Reserved
from .admission import fitting
from .compiled_queue import cores_of, expected_run_times, run_compiled
from .mapping_policies import Mapped, Request
from .node_loads import NodeMeter
from .search_moves import Candidate
from .simulation import Simulation

#: Why a job is not in a plan that a time limit ended.
TOO_FAR = "the plan took too long to reach it"
#: Why the start of a job is not in a plan with less foresight.
BEYOND = "its start is unknown, because so many jobs wait and run that the plan ends before it"
#: Time of a comparison with any number of nodes, in nodes; of a forecast, in such comparisons; and how many comparisons
#: of conservative backfilling, which makes many at once, take the time of one.
LOOK, FORECAST, AT_ONCE = 1000, 3, 4


class QueueMapping:
    """A mapping policy that asks a queue policy.

    Args:
        name: SPEC of the queue policy.
        make: makes a new policy from a seed; each plan has its own, because it runs ahead of what really happens.
        every_node: it compares all nodes of the cluster, so a plan must not leave any out.
        keep: returns what keeps what the policy must know from one plan to the next, and then makes the policies.
    """

    def __init__(
        self, name: str, make: Callable[[int], QueuePolicy], *, every_node: bool = False,
        keep: Callable[[], Kept] | None = None,
    ) -> None:  # fmt: skip
        self.name, self._make, self.every_node, self.keep = name, make, every_node, keep

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Run the whole workflow as the policy decides. Raises PolicyError."""
        try:
            policy = self._policy(simulation, request)
        except ConfigError as error:
            raise PolicyError(self.name, error.key, error.problem, error.allowed) from None
        except (Exception, SystemExit) as error:
            raise PolicyError(self.name, "as it was made", f"{type(error).__name__}: {error}") from error
        if type(policy) is Backfilling:
            reserved = run_compiled(simulation, policy, request.underway, request.submitted)
            if reserved is not None:
                return _mapped(simulation, self.name, reserved, {}, {})
        return self.run(simulation, request, policy)

    def run(self, simulation: Simulation, request: Request, policy: QueuePolicy) -> Mapped:
        """Run a workflow under the policy of one plan. Raises PolicyError."""
        return PlanRun(simulation, request, policy, self.name).run()

    def _policy(self, simulation: Simulation, request: Request) -> QueuePolicy:
        if self.keep is None:
            return self._make(request.seed)
        return (request.kept or self.keep()).policy(request.seed, request.now, simulation.cluster)


def _mapped(
    simulation: Simulation, name: str, reserved: Mapping[int, Reservation], rejected: Mapping[int, str],
    waits: Mapping[int, str],
) -> Mapped:  # fmt: skip
    """Return the run in the tables, of the policy of this name; its cores are not oversubscribed in repetitions."""
    world, cores = simulation.world, cores_of(simulation)
    energy = float(np.cumsum(world.nodes["energy"])[-1]) if world.count["powered"] else math.nan
    world.nodes["cap"] = np.where(cores >= 0.0, cores, world.nodes["cap"])
    makespan = float(np.fmax.reduce(world.jobs["finish"], initial=0.0))
    candidate, notes = Candidate.of(simulation, world.nodes["cap"]), _notes(simulation, name)
    return Mapped(makespan, energy, candidate, rejected=rejected, warnings=notes, reserved=reserved, waits=waits)


def _put_last(mapping: Candidate, simulation: Simulation, beyond: Sequence[int]) -> None:
    """Let jobs that have no place run after all others, on some nodes, so that they change no interval of a plan."""
    world = simulation.world
    jobs, first = world.jobs, world.jobs["place0"]
    last = int(np.argmax(np.where(jobs["state"] == layout.DONE, jobs["finish"], -1.0)))
    nodes_of = {cls: np.flatnonzero(fitting(world, world.classes[cls])) for cls in set(jobs["cls"][beyond].tolist())}
    for number in beyond:
        nodes = nodes_of[int(jobs["cls"][number])][: world.classes["nodes"][jobs["cls"][number]]]
        mapping.places[first[number] : first[number] + len(nodes)] = nodes
    mapping.keys[beyond], mapping.wait_for[beyond] = math.inf, last


def _notes(simulation: Simulation, name: str) -> tuple[str, ...]:
    lacking = [job.id for job in simulation.workflow.jobs if job.walltime is None]
    if not lacking:
        return ()
    names = f"{', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}"
    return (f"no walltime, so policy {name} decides by the predicted run time: {names}",)


class PlanRun(PolicyCalls):
    """One run of a workflow under a queue policy."""

    def __init__(self, simulation: Simulation, request: Request, policy: QueuePolicy, name: str) -> None:
        self.simulation, self.request, self.policy = simulation, request, policy
        self.waits: Mapping[int, str] = {}  # why the policy's limit keeps jobs from starting now
        self.cut = False  # a time limit ended the plan early
        self.beyond: list[int] = []  # the jobs that the plan ends before
        self.predicted = expected_run_times(simulation).tolist()
        simulation.reset()
        simulation.settle()
        world, cluster = simulation.world, simulation.cluster
        node_cores = cores_of(simulation)
        #: The usable nodes, as positions in the cluster; a policy knows them as 0, 1, ...
        self.usable = np.flatnonzero(node_cores >= 0.0)
        self.place_of = {node: place for place, node in enumerate(self.usable.tolist())}
        cores = node_cores[self.usable].astype(np.int64)
        names = tuple(cluster.nodes[i].name for i in self.usable.tolist())
        needs = [self._need_of(shape) for shape in world.classes]
        of = world.jobs["cls"].tolist()
        memory = world.nodes["memory"][self.usable]
        needed = [needs[cls] for cls in of]
        groups = groups_of(cluster, node_cores.clip(0).astype(np.int64).tolist())
        speeds = world.types["speed"][world.nodes["type"]][self.usable]
        self.places = NodeResources(cores, memory, speeds, names, needed, core_powers(cluster), groups)
        super().__init__(policy, name, self.places)
        self.rejected: dict[int, str] = {}
        self.meter: NodeMeter | None = None
        self.promised: dict[int, Reserved] = {}  # at the beginning of the plan
        self.wake_s = math.inf  # when it wants to decide again if nothing happens, seconds from the beginning
        self.shown = np.zeros(len(world.jobs), bool)
        waited = {name: submission.waited for submission in request.submitted for name in submission.jobs}
        self.waited = [waited.get(job.id, 0.0) for job in simulation.workflow.jobs]
        self._begin_underway()

    # --- what the policy sees ---
    def _need_of(self, shape: Any) -> NodeNeed:
        allowed = self.simulation.world.allowed[shape["places"]][self.usable] == 1 if shape["places"] >= 0 else None
        return NodeNeed(int(shape["threads"]), float(shape["memory"]), allowed)

    def _job(self, number: int, submit_time: float) -> NodeJob:
        job = self.simulation.workflow.jobs[number]
        expected, is_known = self.predicted[number], job.profile.provenance.source != "default"
        size = self.places.needs[number].cores * job.nodes
        if job.walltime is None:
            return NodeJob(number, job.id, size, expected, submit_time, job.owner, job.nodes, predicted=True)
        expected = expected if is_known else math.nan
        return NodeJob(number, job.id, size, job.walltime, submit_time, job.owner, job.nodes, expected=expected)

    def _begin_underway(self) -> None:
        jobs, elapsed = (
            self.simulation.world.jobs,
            {underway.id: underway.elapsed_s for underway in self.request.underway},
        )
        for number in np.flatnonzero(jobs["state"] == layout.RUNNING).tolist():
            self.shown[number] = True
            ids = self.simulation.world.placed[self.simulation.slots(number)].tolist()
            places = tuple(sorted(self.place_of[i] for i in ids if i in self.place_of))
            start = -elapsed.get(self.simulation.workflow.jobs[number].id, 0.0)
            job = self._job(number, start)
            running = Running(job, start, start + job.walltime, self.places.lowest_cores(job, places))
            self.places.hold_running(running, places)
            self.add_running(running)

    def _submit_ready(self) -> None:
        """Show the jobs that have become ready, in the order of submission; set those aside that can never start."""
        jobs = self.simulation.world.jobs
        ready = np.flatnonzero((jobs["blockers"] == 0) & (jobs["state"] < layout.RUNNING) & ~self.shown).tolist()
        self.shown[ready] = True
        for number in sorted(ready, key=lambda number: (-self.waited[number] if self.now <= 0.0 else 0.0, number)):
            job = self._job(number, -self.waited[number] if self.now <= 0.0 else self.now)
            if why := self.places.why_never(job):
                self.rejected[number] = why
            else:
                self.submit(job)

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast:
        """Return what would happen if a job started now on these nodes, by the profiles."""
        self.places.looks += FORECAST
        names = [self.snapshot.machine.names[node] for node in self.places.check_nodes(self, job, nodes, fewer=True)]
        remaining, slowdown, others, delay_s, crowding, alone = self.simulation.what_if(str(job.id), names)
        return Forecast(self.now + remaining, slowdown, others, delay_s, crowding, bool(alone))

    def node_loads(self) -> NodeLoads:
        """Return how busy the usable nodes are, by the profiles."""
        if self.meter is None:
            self.meter = NodeMeter(self.simulation.world, self.simulation.cluster, self.usable)
        return self.meter.read()

    # --- what it decides ---
    def begin(self, running: Running) -> None:
        """Start a job in the simulation."""
        names = self.snapshot.machine.names
        job = running.job
        self.simulation.start(str(job.id), [names[node] for node in self.places.held[job.number]])

    def reject(self, job: QueuedJob) -> None:
        """Note that a job never runs."""
        self.rejected[job.number] = f"policy {self.name} rejects it"

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        states = self.simulation.world.jobs["state"]
        if not 0 <= number < len(states):
            return "no such job was shown"
        if number in self.rejected:
            return "it was rejected"
        return {layout.RUNNING: "it is already running", layout.DONE: "it has ended"}.get(
            int(states[number]), "it is not submitted yet"
        )

    # --- the loop ---
    @property
    def work(self) -> int:
        """Comparisons of a job with a node that the policy has made so far, as much time as they take."""
        nodes: int = len(self.usable)
        return self.places.looks * (nodes + LOOK) + int(getattr(self.policy, "compared", 0)) // AT_ONCE

    def run(self) -> Mapped:
        """Run to the end. Raises PolicyError."""
        simulation, stop, foresight = self.simulation, self.request.should_stop, self.request.foresight
        most = math.inf
        while True:
            self.now = self.snapshot.time = float(simulation.world.clock["now"])
            self._end_what_ended()
            self._submit_ready()
            self.wake_at(self.now)
            if self.snapshot.submitted or self.snapshot.ended or self.woken:
                self.apply(self.call_policy(), self.now)
                while self.again:
                    simulation.breathe()
                    self.apply(self.call_policy(), self.now)
                simulation.breathe()
            if self.now <= 0.0:
                self.promised, waits = self.reserved, getattr(self.policy, "waits", {})
                self.waits = {number: why for number, why in waits.items() if number in self.waiting}
                self.wake_s = self.wakes[0] if self.wakes and self.waiting else math.inf
                most = math.inf if foresight is None else self.work + foresight
            wake = self.wakes[0] if self.wakes and self.waiting else math.inf
            upcoming = min(simulation.next_event, wake)
            if math.isinf(upcoming):
                return self._result()
            if stop is not None and stop():
                if self.request.kept is None or not self.request.may_reject:
                    raise self.error("", "a time limit or the end of the daemon came before all jobs were started")
                self.cut = True
                return self._end_early(TOO_FAR)
            if self.work > most:
                return self._end_early(BEYOND)
            simulation.advance(upcoming)

    def _end_early(self, why: str) -> Mapped:
        """Return what is decided so far; the jobs that have not started are left out.

        Args:
            why: the reason, for jobs that no limit keeps from starting now.
        """
        later = np.flatnonzero(self.simulation.world.jobs["state"] < layout.RUNNING).tolist()
        self.beyond = [number for number in later if number not in self.rejected]
        self.waits = {**dict.fromkeys(self.beyond, why), **self.waits}
        self.waiting.clear()
        while not math.isinf(self.simulation.next_event):
            self.simulation.advance(self.simulation.next_event)
        return self._result()

    def _end_what_ended(self) -> None:
        states = self.simulation.world.jobs["state"]
        for it in [it for it in self.running if states[it.job.number] == layout.DONE]:
            self.end(it)

    def _result(self) -> Mapped:
        """Return the run. Raises PolicyError if jobs still wait."""
        if self.waiting:
            raise self.waits_forever("nothing runs")
        simulation, jobs = self.simulation, self.simulation.world.jobs
        for number in set(np.flatnonzero(jobs["state"] != layout.DONE).tolist()) - {*self.beyond}:
            self.rejected.setdefault(number, "it waits for a job that is never started")
        if self.rejected and not self.request.may_reject:
            number, why = next(iter(sorted(self.rejected.items())))
            raise PolicyError(self.name, f"job {simulation.workflow.jobs[number].id!r}", f"it is never started: {why}")
        names = self.snapshot.machine.names
        reserved = {
            number: Reservation(tuple(names[node] for node in nodes), time)
            for number, (time, nodes) in self.promised.items()
        }
        mapped = _mapped(simulation, self.name, reserved, self.rejected, self.waits)
        if self.beyond:
            _put_last(mapped.mapping, simulation, self.beyond)
        return replace(mapped, recheck_s=self.wake_s, truncated=self.cut, beyond=self.beyond)

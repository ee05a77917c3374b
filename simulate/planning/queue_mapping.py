"""A queue policy as a mapping policy: it decides in plans and live, with the same calls as in a replay.

Rule: the policy sees what it sees in a replay: waiting jobs that are ready, running jobs with their latest ends, and
free cores, numbered over the usable nodes. It never sees a forecast of contention, a true run time or progress. Where a
user gave no walltime, `walltime` is the isolated run time of the job's profile on the slowest usable node, and the job
says `predicted`. Contention, memory and domains act in the simulation that carries the decisions out.
A queue policy does not oversubscribe: a job starts on free cores only, whatever the cluster allows. While a `Start`
without nodes fits nowhere, because what is free is spread over nodes, the job waits; for the rest of that call the
nodes on which it lacks least are kept free for it, so that smaller jobs do not pass it for ever.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import PolicyError
from ..kernels.mapping import layout
from ..replay.intervals import Interval, merge_intervals
from ..replay.machine import Machine
from ..replay.policy_calls import PolicyCalls
from ..replay.user_policy import FreeNodes, Job, Need, NodeJob, QueuePolicy, Running, Start
from .mapping_policies import Mapped, Request
from .search_moves import Candidate
from .simulation import Simulation


class QueueMapping:
    """A mapping policy that asks a queue policy.

    Args:
        name: SPEC of the queue policy.
        make: makes a new policy from a seed; each plan has its own, because it runs ahead of what really happens.
    """

    def __init__(self, name: str, make: Callable[[int], QueuePolicy]) -> None:
        self.name, self._make = name, make

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Run the whole workflow as the policy decides. Raises PolicyError."""
        try:
            policy = self._make(request.seed)
        except (Exception, SystemExit) as error:
            raise PolicyError(self.name, "as it was made", f"{type(error).__name__}: {error}") from error
        return _Run(simulation, request, policy, self.name).run()


class _Run(PolicyCalls):
    """One run of a workflow under a queue policy."""

    def __init__(self, simulation: Simulation, request: Request, policy: QueuePolicy, name: str) -> None:
        self.simulation, self.request = simulation, request
        isolated = simulation.isolated
        simulation.reset()
        simulation.settle()
        world, cluster = simulation.world, simulation.cluster
        limit = world.nodes["limit"]
        #: The usable nodes, as positions in the cluster; a policy knows them as 0, 1, ...
        self.usable = np.flatnonzero(limit >= 0.0)
        self.place_of = {node: place for place, node in enumerate(self.usable.tolist())}
        cores = np.minimum(world.types["cores"][world.nodes["type"]], limit)[self.usable].astype(np.int64)
        bounds = [0, *accumulate(cores.tolist())]
        nodes = tuple((first, end - 1) for first, end in pairwise(bounds))
        names = tuple(cluster.nodes[i].name for i in self.usable.tolist())
        super().__init__(
            policy, name, Machine(bounds[-1], powers=None, nodes=nodes, names=names), self._columns, self._free_nodes
        )
        self.nodes = nodes
        self.held: dict[int, tuple[int, ...]] = {}  # nodes of each running job
        self.memory = world.nodes["memory"][self.usable] * (1.0 + 1e-12)
        self.room = FreeNodes(cores.copy(), self.memory.copy(), self._need, lambda it: self.held[it.job.number])
        needs = [self._need_of(shape) for shape in world.classes]
        self.needs: list[Need] = [needs[cls] for cls in world.jobs["cls"].tolist()]
        kinds = isolated[:, np.unique(world.nodes["type"][self.usable])]
        self.predicted = np.where(np.isfinite(kinds), kinds, 0.0).max(axis=1, initial=0.0)[world.jobs["cls"]].tolist()
        self.rejected: dict[int, str] = {}
        self.kept_free: set[int] = set()
        self.shown = np.zeros(len(world.jobs), bool)
        waited = {name: each.waited for each in request.submitted for name in each.jobs}
        self.waited = [waited.get(job.id, 0.0) for job in simulation.workflow.jobs]
        self.empty = cores
        self._begin_underway()

    # --- what the policy sees ---
    def _need_of(self, shape: Any) -> Need:
        allowed = self.simulation.world.allowed[shape["places"]][self.usable] == 1 if shape["places"] >= 0 else None
        return Need(int(shape["threads"]), float(shape["memory"]), allowed)

    def _need(self, job: Job) -> Need:
        return self.needs[job.number]

    def _columns(self) -> dict[str, Array]:
        rows = [(job.number, job.size, job.walltime, job.submit_time) for job in self.waiting.values()]
        columns = np.array(rows).reshape(-1, 4).T
        return {"number": columns[0].astype(np.int64), "size": columns[1].astype(np.int64),
                "walltime": columns[2], "submit_time": columns[3]}  # fmt: skip

    def _free_nodes(self) -> FreeNodes:
        return self.room.copy()

    def _job(self, number: int, submit_time: float) -> NodeJob:
        job, predicted = self.simulation.workflow.jobs[number], self.simulation.workflow.jobs[number].walltime is None
        walltime = self.predicted[number] if job.walltime is None else job.walltime
        size = self.needs[number].cores * job.nodes
        return NodeJob(number, job.id, size, walltime, submit_time, job.owner, job.nodes, predicted)

    def _begin_underway(self) -> None:
        jobs, elapsed = self.simulation.world.jobs, {each.id: each.elapsed_s for each in self.request.underway}
        for number in np.flatnonzero(jobs["state"] == layout.RUNNING).tolist():
            self.shown[number] = True
            ids = self.simulation.world.placed[self.simulation.slots(number)].tolist()
            here = tuple(sorted(self.place_of[i] for i in ids if i in self.place_of))
            start = -elapsed.get(self.simulation.workflow.jobs[number].id, 0.0)
            job = self._job(number, start)
            self.held[number] = here
            self.room.take(job, here)
            self.add_running(Running(job, start, start + job.walltime, self._lowest_cores(job, here)))

    def _submit_ready(self) -> None:
        """Show the jobs that have become ready, in the order of submission; set those aside that can never start."""
        jobs = self.simulation.world.jobs
        ready = np.flatnonzero((jobs["blockers"] == 0) & (jobs["state"] < layout.RUNNING) & ~self.shown).tolist()
        self.shown[ready] = True
        for number in sorted(ready, key=lambda number: (-self.waited[number] if self.now <= 0.0 else 0.0, number)):
            job = self._job(number, -self.waited[number] if self.now <= 0.0 else self.now)
            need = self._need(job)
            if int(need.fits(self.empty, self.memory).sum()) < job.nodes:
                size = f"{need.cores} core{'s' * (need.cores > 1)} on each of {job.nodes} node{'s' * (job.nodes > 1)}"
                self.rejected[number] = f"it needs {size}, and a queue policy does not oversubscribe"
            else:
                self.submit(job)

    # --- what it decides ---
    def allocate(self, job: Job, decision: Start) -> tuple[Interval, ...] | None:
        """Take the cores of a start; None while it fits nowhere. Raises PolicyError."""
        if decision.resources is not None:
            given = self.allocate_requested(job, decision.resources)
            nodes = self._nodes_of(job, given)
            self._check(job, nodes)
        elif decision.nodes is not None:
            nodes = self._check(job, decision.nodes)
            given = self._lowest_cores(job, nodes)
        else:
            found = self.room.where(job, without=self.kept_free)
            if found is None:
                self._keep_free(job)
                return None
            nodes, given = found, self._lowest_cores(job, found)
        self.held[job.number] = nodes
        self.room.take(job, nodes)
        return given

    def _keep_free(self, job: Job) -> None:
        """Keep the nodes on which a job lacks least from the later starts of this call."""
        fits = self._need(job).fits(self.empty, self.room.memory)
        order = np.argsort(np.where(fits, -self.room.cores, 1), kind="stable")
        self.kept_free.update(order[: job.nodes].tolist())

    def _check(self, job: Job, nodes: Sequence[int]) -> tuple[int, ...]:
        """Return the nodes that a policy chose. Raises PolicyError if the job cannot start on them now."""
        allowed = f"{job.nodes} of the nodes 0 to {len(self.nodes) - 1}, different ones on which it fits now"
        need = self._need(job)
        fits = need.fits(self.room.cores, self.room.memory)
        try:
            chosen = tuple(index(node) for node in nodes)
        except Exception:
            raise self.error(job, f"its nodes are {nodes!r:.60}", allowed) from None
        distinct = len(set(chosen)) == len(chosen) == job.nodes
        if not distinct or not all(0 <= node < len(fits) and fits[node] for node in chosen):
            raise self.error(job, f"its nodes are {chosen!r:.60}", allowed)
        return chosen

    def _nodes_of(self, job: Job, given: tuple[Interval, ...]) -> tuple[int, ...]:
        """Return the nodes of these cores. Raises PolicyError if they are not spread evenly over the job's nodes."""
        firsts, cores = [first for first, _ in self.nodes], dict[int, int]()
        for first, last in given:
            while first <= last:
                node = bisect_right(firsts, first) - 1
                end = min(last, self.nodes[node][1])
                cores[node] = cores.get(node, 0) + end - first + 1
                first = end + 1
        each = self._need(job).cores
        if len(cores) != job.nodes or set(cores.values()) != {each}:
            found = ", ".join(f"{count} on {self.snapshot.machine.names[node]}" for node, count in cores.items())
            raise self.error(job, f"its cores are {found}", f"{each} on each of {job.nodes} nodes")
        return tuple(cores)

    def _lowest_cores(self, job: Job, nodes: Sequence[int]) -> tuple[Interval, ...]:
        """Take the lowest free cores of these nodes, fewer where a running job has more threads than cores."""
        found, each = list[Interval](), self._need(job).cores
        free, wanted = self.free.intervals, sorted(nodes)
        for low, high in (self.nodes[node] for node in wanted):
            left = each
            at = max(0, bisect_right(free, (low, math.inf)) - 1)
            while left and at < len(free) and free[at][0] <= high:
                first, last = max(low, free[at][0]), min(high, free[at][1])
                if first <= last:
                    last = min(last, first + left - 1)
                    found.append((first, last))
                    left -= last - first + 1
                at += 1
        merged = merge_intervals(found)
        assert not isinstance(merged, int), "cores of different nodes"
        self.free.allocate_these(merged)
        return tuple(merged)

    def begin(self, running: Running) -> None:
        """Start a job in the simulation."""
        names = self.snapshot.machine.names
        job = running.job
        self.simulation.start(str(job.id), [names[node] for node in self.held[job.number]])

    def reject(self, job: Job) -> None:
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
    def run(self) -> Mapped:
        """Run to the end. Raises PolicyError."""
        simulation, stop = self.simulation, self.request.should_stop
        while True:
            self.now = self.snapshot.time = float(simulation.world.clock[0])
            self._end_what_ended()
            self._submit_ready()
            while self.wakes and self.wakes[0] <= self.now:
                heappop(self.wakes)
                self.woken = True
            if self.snapshot.submitted or self.snapshot.ended or self.woken:
                decisions = self.call_policy()
                self.kept_free.clear()
                self.apply(decisions, self.now)
            wake = self.wakes[0] if self.wakes and self.waiting else math.inf
            upcoming = min(simulation.next_event, wake)
            if math.isinf(upcoming):
                return self._result()
            if stop is not None and stop():
                raise self.error("", "a time limit or the end of the daemon came before all jobs were started")
            simulation.advance(upcoming)

    def _end_what_ended(self) -> None:
        states = self.simulation.world.jobs["state"]
        for it in [it for it in self.running if states[it.job.number] == layout.DONE]:
            self.end(it)
            self.room.release(it)

    def _result(self) -> Mapped:
        """Return the run. Raises PolicyError if jobs still wait."""
        if self.waiting:
            first = next(iter(self.waiting.values()))
            others = f", like {len(self.waiting) - 1:,} others" if len(self.waiting) > 1 else ""
            raise self.error(first, f"it waits forever{others}: nothing runs")
        simulation, jobs = self.simulation, self.simulation.world.jobs
        for number in np.flatnonzero(jobs["state"] != layout.DONE).tolist():
            self.rejected.setdefault(number, "it waits for a job that is never started")
        if self.rejected and not self.request.may_reject:
            number, why = next(iter(sorted(self.rejected.items())))
            raise PolicyError(self.name, f"job {simulation.workflow.jobs[number].id!r}", f"it is never started: {why}")
        world = simulation.world
        energy = float(np.cumsum(world.nodes["energy"])[-1]) if world.count[layout.POWERED] else math.nan
        world.nodes["cap"][self.usable] = self.empty  # whoever runs the plan again does not oversubscribe either
        found = Candidate.of(simulation, world.nodes["cap"])
        makespan = float(np.fmax.reduce(jobs["finish"], initial=0.0))
        return Mapped(makespan, energy, found, rejected=self.rejected, warnings=self._notes())

    def _notes(self) -> tuple[str, ...]:
        lacking = [job.id for job in self.simulation.workflow.jobs if job.walltime is None]
        if not lacking:
            return ()
        some = f"{', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}"
        return (f"no walltime, so policy {self.name} decides by the predicted run time: {some}",)

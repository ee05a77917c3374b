"""States of machines, added to a world that calls a queue policy: switching, boots, and the consumed energy.

Rule: a job that gets resources which are off begins when they have booted; ends of switches are instants, ends of boots
are not. Resources that are being switched are not free. Where the machine has nodes, a node is switched as a whole: if
a job boots only a part of it, the rest is ready for others at the same time.
Energy is that of `energy`; the power of a phase counts for its latency only when that is over.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import numpy as np

from ...kernels.queue.power.tables import TO_IDLE, TO_OFF
from ...model.intervals import FreeResources, Interval, common, count_of, lowest, merge_intervals, without
from ...model.machine import Powers
from ...model.workload import Workload
from ...queue_policies.frozen import View
from ...queue_policies.interface import MachineStates, Start, Submit, Switch, Switching
from ...queue_policies.node_policy_calls import NodePolicyCalls
from ...queue_policies.policy_calls import PolicyCalls
from ...queue_policies.queued_job import QueuedJob, Running
from ..replay_result import CHANGE, SWITCH, Replayed
from .networked_jobs import NetworkedJobs
from .predicted_jobs import PredictedJobs, PredictedNetworkedJobs
from .rigid_jobs import RigidJobs

#: Joules of a running job above those of its idle resources, until a time.
Load = Callable[[float], float]


def is_powered(policy: object) -> bool:
    """Return whether a Python policy sees the states of machines."""
    return bool(getattr(policy, "powered", False))


class SwitchedMachines(PolicyCalls):
    """The part of a world that adds states of machines. It comes before the other world among the bases."""

    #: Of the other world.
    workload: Workload
    added: list[Submit]
    #: Set by `power_with`.
    powers: Powers
    off: FreeResources
    switching: list[Switching]
    booting: list[tuple[float, int, int, Running | None]]  # when, a running number, resources that boot, the job
    jobs_remain: Callable[[], bool]  # of the other world

    def power_with(self, powers: Powers, began: float) -> None:
        """Begin to keep states of machines: at first all are idle.

        Args:
            powers: power of a resource.
            began: seconds, when the replay begins.
        """
        self.powers, self.off, self.switching, self.booting = powers, FreeResources(0), [], []
        self.since = np.full(self.processors, began)
        self.taken: dict[int, tuple[float, int]] = {}  # of jobs that began later: when, and resources that booted
        self.changes: list[tuple[int, float, float, int]] = []
        self.switched: list[tuple[int, float, float, int, int]] = []
        self.numbered, self.instant, self.measured, self.joules = 0, began, began, 0.0
        self.computing = self.coming = self.going = 0  # resources that compute, are being switched on, and off
        self.loads: dict[int, tuple[Running, Load]] = {}  # running jobs that do not compute all the time
        self.spared = 0.0  # joules that such jobs have not consumed
        shown = self.since.view()
        shown.setflags(write=False)
        self.snapshot.states = MachineStates(View(self.off.intervals), View(self.switching), [], shown, self.energy)

    # --- what a world says of its machines ---
    def machines_of(self, resources: Iterable[Interval]) -> list[Interval]:
        """Return the resources of all machines that have some of these; here each is a machine."""
        return list(resources)

    def hold(self, resources: Iterable[Interval], *, free: bool) -> None:
        """Note that whole machines became free, or no longer are."""

    def clock_to(self, now: float) -> None:
        """Set the clock of the world to a time at which nothing ends, or just before what ends."""

    def place(self, job: QueuedJob, decision: Start) -> Start:
        """Return a start without places with places, such that machines that are on come first."""
        if decision.nodes is not None and tuple(decision.nodes) != (0,):
            return decision
        chosen = lowest(without(self.free.intervals, self.off.intervals), job.size)
        return replace(decision, resources=chosen + lowest(self.off.intervals, job.size - count_of(chosen)))

    # --- events ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event. Jobs whose machines have booted before that begin."""
        while True:
            ready = self.booting[0][0] if self.booting else math.inf
            switched = self.switching[0].until if self.switching else math.inf
            time: float = super().next_time(min(before, ready, switched))  # type: ignore[misc]
            if not self.jobs_remain():
                return time
            time = min(time, switched, *self.wakes[:1])
            if ready >= min(time, before):
                return time
            self._boot(ready)

    def advance_to(self, now: float) -> None:
        """Process the ends of boots and of switches, then the ends of jobs, then all submissions."""
        self._boot(now)
        self._measure(now)
        self.instant = now
        while self.switching and self.switching[0].until <= now:
            self._end_switch(self.switching.pop(0), now)
        super().advance_to(now)  # type: ignore[misc]

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        assert self.snapshot.states is not None
        changed: bool = super().has_changed()
        return changed or bool(self.snapshot.states.switched and self.jobs_remain())

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        states = self.snapshot.states
        assert states is not None
        states.consumed = self.joules
        found = super().call_policy()
        states.switched = []
        return found

    def energy(self) -> float:
        """Return the joules until the present instant. O(running jobs that do not compute all the time)."""
        return self.joules - self.spared - sum(self._spared(*each) for each in self.loads.values())

    def _spared(self, running: Running, load: Load) -> float:
        """Return the joules that a job has not consumed because it does not compute all the time."""
        watts = (self.powers.computing - self.powers.idle) * count_of(running.resources)
        return watts * (self.instant - running.start_time) - load(self.instant)

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job; None: it computes on all its resources all the time."""
        size, has, began = self.size_of(running), self.powers, running.start_time
        if work := self._column(running, "work"):
            lift, slope = np.full(size, has.least - has.idle), np.full(size, has.computing - has.least)
            return lambda now: float(work.joules(np.array([now - began]), lift, slope)[0])
        computes = self._column(running, "computes") is not False
        if computes and size == count_of(running.resources):
            return None
        watts = (has.computing - has.idle) * size * computes
        return lambda now: watts * (now - began)

    def size_of(self, running: Running) -> int:
        """Return how many resources a job uses."""
        return count_of(running.resources)

    def _column(self, running: Running, name: str) -> Any:
        """Return a job's value in a further column; the workload or the policy submitted it. None = not known."""
        row, known = running.job.number, len(self.workload)
        if row >= known:
            return self.added[row - known].more.get(name)
        return self.workload.more[name].item(row) if name in self.workload.more else None

    def _measure(self, now: float) -> None:
        """Add the energy until now, as if jobs computed all the time."""
        has = self.powers
        others = self.computing + self.coming + self.going + self.off.count
        watts = (
            has.computing * self.computing + has.on_w * self.coming + has.off_w * self.going
            + (has.off or 0.0) * self.off.count + has.idle * (self.processors - others)
        )  # fmt: skip
        if now > self.measured:
            self.joules += watts * (now - self.measured)
            self.measured = now

    def _end_switch(self, done: Switching, now: float) -> None:
        assert self.snapshot.states is not None
        many = count_of(done.resources)
        if done.on:
            self.coming -= many
            for first, last in done.resources:
                self.since[first : last + 1] = now
        else:
            self.going -= many
            self.off.release(done.resources)
        self.free.release(done.resources)
        self.hold(done.resources, free=True)
        self.snapshot.states.switched.append(done)

    def _boot(self, now: float) -> None:
        """Let the jobs begin whose machines have booted by now."""
        while self.booting and (ready := self.booting[0][0]) <= now:
            self._measure(ready)
            _, _, many, running = heappop(self.booting)
            self.coming -= many
            if running is not None:
                self.clock_to(ready)
                self._run(running)

    def _wait_for_boot(self, ready: float, many: int, running: Running | None) -> None:
        self.coming += many
        self.numbered += 1
        heappush(self.booting, (ready, self.numbered, many, running))

    def _run(self, running: Running) -> None:
        self.computing += count_of(running.resources)
        super().begin(running)  # type: ignore[safe-super]
        if (load := self.load_of(running)) is not None:
            self.loads[running.job.number] = running, load

    def end(self, ended: Running) -> None:
        """Take a running job away and free its resources."""
        self.computing -= count_of(ended.resources)
        if varies := self.loads.pop(ended.job.number, None):
            self.spared += self._spared(*varies)
        for first, last in ended.resources:
            self.since[first : last + 1] = self.instant
        super().end(ended)

    # --- decisions ---
    def allocate(self, job: QueuedJob, decision: Start) -> tuple[Interval, ...] | None:
        """Take the resources of a start, and boot those that are off. Raises PolicyError."""
        if self.off.count and decision.resources is None and job.size <= self.free.count:
            decision = self.place(job, decision)
        given = super().allocate(job, decision)  # type: ignore[safe-super]
        if given is None:
            return None
        now, since = self.now, self.since
        boots = common(self.machines_of(given), self.off.intervals) if self.off.count else []
        if boots:
            self.ready = now + self.powers.on_s
            self.off.allocate_these(boots)
            for first, last in boots:
                since[first : last + 1] = self.ready
                self.switched.append((TO_IDLE, now, self.ready, first, last))
        else:
            self.ready = max((float(since[first : last + 1].max()) for first, last in given), default=now)
        booted = count_of(common(given, boots))
        if boots or self.ready > now:
            self.taken[job.number] = now, booted
        if rest := count_of(boots) - booted:
            self.changes.append((TO_IDLE, now, self.ready, rest))
            self._wait_for_boot(self.ready, rest, None)
        for first, last in given:
            since[first : last + 1] = math.inf
        return given

    def begin(self, running: Running) -> None:
        """Let a job run that has its resources, when they have booted."""
        if running.start_time > self.now:
            self._wait_for_boot(running.start_time, self.taken[running.job.number][1], running)
        else:
            self._run(running)

    def switch(self, decision: Switch) -> None:
        """Switch machines on or off. Raises PolicyError."""
        if self.powers.off is None or (self.powers.together > 1 and not self.snapshot.machine.nodes):
            allowed = "machines whose power when off is known; nodes as resources, or cores of nodes that jobs share"
            raise self.error("", "it switches machines", allowed)
        wanted, on, now = self.valid_intervals("", decision.resources), bool(decision.on), self.now
        if without(self.machines_of(wanted), wanted):
            raise self.error("", f"it switches the resources {wanted!r:.60}", "whole nodes")
        if on and (wrong := self.off.allocate_these(wanted)) is not None:
            raise self.error("", f"it switches resource {wrong} on", "resources that are off")
        if not on and (wrongs := common(wanted, self.off.intervals)):
            raise self.error("", f"it switches resource {wrongs[0][0]} off", "resources that are on")
        if (busy := self.free.allocate_these(wanted)) is not None:
            raise self.error("", f"it switches resource {busy}", "free resources")
        if not wanted:
            return
        self.hold(wanted, free=False)
        many, until = count_of(wanted), now + (self.powers.on_s if on else self.powers.off_s)
        kind = TO_IDLE if on else TO_OFF
        for first, last in wanted:
            self.since[first : last + 1] = math.inf
            self.switched.append((kind, now, until, first, last))
        if on:
            self.coming += many
        else:
            self.going += many
        insort(self.switching, Switching(tuple(wanted), on, until), key=attrgetter("until"))
        self.changes.append((kind, now, until, many))

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        done: Replayed = super().result(instants, seconds)  # type: ignore[misc]
        taken, booted = done.start_time.copy(), np.zeros(len(done.start_time), np.int64)
        for number, (time, many) in self.taken.items():
            taken[number], booted[number] = time, many
        return replace(
            done, taken_time=taken, booted=booted, changes=np.array(self.changes, CHANGE),
            switched=np.array(self.switched, SWITCH),
        )  # fmt: skip


class PoweredNodes(SwitchedMachines, NodePolicyCalls):
    """The part of a world of nodes that adds states of nodes."""

    def machines_of(self, resources: Iterable[Interval]) -> list[Interval]:
        """Return the cores of all nodes that have some of these."""
        whole = merge_intervals({self.nodes[node] for node in self.nodes_with(resources)})
        assert not isinstance(whole, int), "nodes are different resources"
        return whole

    def size_of(self, running: Running) -> int:
        """Return how many cores a job uses."""
        return int(self.workload.size[running.job.number])

    def hold(self, resources: Iterable[Interval], *, free: bool) -> None:
        """Note that whole nodes became free, or no longer are."""
        for node in self.nodes_with(resources):
            self.room.cores[node] = self.empty[node] if free else 0

    def place(self, job: QueuedJob, decision: Start) -> Start:
        """Return a start without places on nodes, such that nodes that are on come first."""
        if decision.nodes is not None:
            return decision
        off = np.zeros(len(self.nodes), bool)
        off[self.nodes_with(self.off.intervals)] = True
        found = self.room.where(job, without=self.kept_free, rank=off)
        return decision if found is None else replace(decision, nodes=found)


def joules_of(loop: Any, number: int, now: float) -> float:
    """Return the joules of a job with a program above those of its idle resources, until a time."""
    course = loop.world.courses[number]
    watts = course["lift"] + course["rise"] * course["speed"]
    return float(course["joules"] + watts * (now - course["since"] + course["lag"]))


class PoweredJobs(SwitchedMachines, RigidJobs):
    """Rigid jobs on machines with states."""


class PoweredPredictedJobs(SwitchedMachines, PredictedJobs):
    """Jobs with predicted run times on machines with states."""


class PoweredNetworkedJobs(SwitchedMachines, NetworkedJobs):
    """Jobs on a network of machines with states."""

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job; None: it computes on all its resources all the time."""
        number = running.job.number
        return partial(joules_of, self, number) if self.is_on_network(number) else super().load_of(running)


class PoweredPredictedNetworkedJobs(PoweredNetworkedJobs, PredictedNetworkedJobs):
    """Jobs with predicted run times on a network of machines with states."""

"""The states of machines: switching, boots, and the consumed energy.

Rule: a job that gets resources which are off begins when they have booted; ends of switches are instants, ends of boots
are not. Resources that are being switched are not free. Where the machine has nodes, a node is switched as a whole: if
a job boots only a part of it, the rest is ready for others at the same time.
Energy is that of `energy`; the power of a phase counts for its latency only when that is over.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from operator import attrgetter

import numpy as np

from ..kernels.queue.power.tables import TO_IDLE, TO_OFF
from ..model.intervals import FreeResources, Interval, common, count_of, without
from ..model.machine import Powers
from ..queue_policies.frozen import View
from ..queue_policies.interface import MachineStates, Switch, Switching
from ..queue_policies.queued_job import QueuedJob, Running
from .replay_result import CHANGE, SWITCH, Replayed
from .simulated_world import SimulatedWorld
from .world_parts import Load, Part


class MachinePower(Part):
    """The part of a world that keeps states of machines: at first all are idle.

    Args:
        powers: power of a resource.
        began: seconds, when the replay begins.
    """

    def __init__(self, powers: Powers, began: float) -> None:
        self._powers, self._off, self._switching = powers, FreeResources(0), list[Switching]()
        self._resting: list[tuple[float, int]] = []  # when resources have booted that no job takes, and how many
        self._taken: dict[int, tuple[float, int]] = {}  # of jobs that began later: when, and resources that booted
        self._changes: list[tuple[int, float, float, int]] = []
        self._switched: list[tuple[int, float, float, int, int]] = []
        self._instant, self._measured, self._joules = began, began, 0.0
        self._computing = self._coming = self._going = 0  # resources that compute, are being switched on, and off
        self._loads: dict[int, tuple[Running, Load]] = {}  # running jobs that do not compute all the time
        self._spared = 0.0  # joules that such jobs have not consumed

    def join(self, world: SimulatedWorld) -> None:
        """Become a part of a world."""
        self._world = world
        self._since = np.full(world.processors, self._instant)
        shown = self._since.view()
        shown.setflags(write=False)
        self._states = MachineStates(View(self._off.intervals), View(self._switching), [], shown, self.energy)
        world.snapshot.states = self._states

    # --- the clock ---
    def next_time(self, before: float) -> float:
        """Return the time of the next end of a switch."""
        return self._switching[0].until if self._switching else math.inf

    def silent_time(self) -> float:
        """Return when the next resources have booted that no job takes."""
        return self._resting[0][0] if self._resting else math.inf

    def pass_silently(self, now: float) -> None:
        """Count the resources that have booted and that no job takes."""
        while self._resting and self._resting[0][0] <= now:
            ready, resting = heappop(self._resting)
            self._measure(ready)
            self._coming -= resting

    def advance(self, now: float) -> None:
        """Process the ends of switches."""
        self._measure(now)
        self._instant = now
        while self._switching and self._switching[0].until <= now:
            self._end_switch(self._switching.pop(0), now)

    def _end_switch(self, switch: Switching, now: float) -> None:
        resources = count_of(switch.resources)
        if switch.on:
            self._coming -= resources
            for first, last in switch.resources:
                self._since[first : last + 1] = now
        else:
            self._going -= resources
            self._off.release(switch.resources)
        self._world.free.release(switch.resources)
        self._world.resources.withdraw(switch.resources, back=True)
        self._states.switched.append(switch)

    def has_changed(self) -> bool:
        """Return whether machines have been switched since the last call."""
        return bool(self._states.switched)

    # --- the calls of the policy ---
    def before_call(self) -> None:
        """Show the energy until now."""
        self._states.consumed = self._joules

    def after_call(self) -> None:
        """Begin to note the machines that are switched."""
        self._states.switched = []

    def switch(self, decision: Switch) -> bool:
        """Switch machines on or off. Raises PolicyError."""
        world, powers = self._world, self._powers
        if powers.off is None or (powers.together > 1 and not world.snapshot.machine.nodes):
            allowed = "machines whose power when off is known; nodes as resources, or cores of nodes that jobs share"
            raise world.error("", "it switches machines", allowed)
        resources, on, now = world.valid_intervals("", decision.resources), bool(decision.on), world.now
        if without(world.resources.machines_of(resources), resources):
            raise world.error("", f"it switches the resources {resources!r:.60}", "whole nodes")
        if on and (awake := self._off.allocate_these(resources)) is not None:
            raise world.error("", f"it switches resource {awake} on", "resources that are off")
        if not on and (asleep := common(resources, self._off.intervals)):
            raise world.error("", f"it switches resource {asleep[0][0]} off", "resources that are on")
        if (busy := world.free.allocate_these(resources)) is not None:
            raise world.error("", f"it switches resource {busy}", "free resources")
        if resources:
            self._begin_switch(resources, now, on=on)
        return True

    def _begin_switch(self, resources: list[Interval], now: float, *, on: bool) -> None:
        self._world.resources.withdraw(resources)
        number, until = count_of(resources), now + (self._powers.on_s if on else self._powers.off_s)
        kind = TO_IDLE if on else TO_OFF
        for first, last in resources:
            self._since[first : last + 1] = math.inf
            self._switched.append((kind, now, until, first, last))
        if on:
            self._coming += number
        else:
            self._going += number
        insort(self._switching, Switching(tuple(resources), on, until), key=attrgetter("until"))
        self._changes.append((kind, now, until, number))

    # --- the jobs ---
    def last_choice(self) -> FreeResources | None:
        """Return the resources that are off: a job gets those that are on first."""
        return self._off if self._off.count else None

    def ready_time(self, job: QueuedJob, given: Sequence[Interval]) -> float:
        """Boot the resources of a start that are off; return when all of them are ready, seconds."""
        now, since = self._world.now, self._since
        boots, booted = list[Interval](), 0
        if self._off.count:
            boots = common(self._world.resources.machines_of(given), self._off.intervals)
            booted = count_of(common(given, boots))
        if boots:
            ready = now + self._powers.on_s
            self._off.allocate_these(boots)
            for first, last in boots:
                since[first : last + 1] = ready
                self._switched.append((TO_IDLE, now, ready, first, last))
        else:
            ready = max((float(since[first : last + 1].max()) for first, last in given), default=now)
        if boots or ready > now:
            self._taken[job.number] = now, booted
            self._coming += booted * (ready > now)
        if boots and (resting := count_of(boots) - booted):
            self._changes.append((TO_IDLE, now, ready, resting))
            self._coming += resting
            heappush(self._resting, (ready, resting))
        for first, last in given:
            since[first : last + 1] = math.inf
        return ready

    def begin(self, running: Running) -> None:
        """Note that a job computes."""
        self._measure(running.start_time)
        taken_at, booted = self._taken.get(running.job.number, (math.inf, 0))
        self._coming -= booted * (running.start_time > taken_at)
        count = count_of(running.resources)
        self._computing += count
        if (load := self._load_of(running, count)) is not None:
            self._loads[running.job.number] = running, load

    def end(self, ended: Running) -> None:
        """Note that the resources of a job are idle."""
        self._computing -= count_of(ended.resources)
        if load := self._loads.pop(ended.job.number, None):
            self._spared += self._spared_by(*load)
        for first, last in ended.resources:
            self._since[first : last + 1] = self._instant

    def withdrawn(self, resources: Sequence[Interval]) -> None:
        """Note that resources are neither idle nor off; they draw idle power."""
        self._off.allocate_these(common(resources, self._off.intervals))
        for first, last in resources:
            self._since[first : last + 1] = math.inf

    def given_back(self, resources: Sequence[Interval], now: float) -> None:
        """Note that resources are idle from now on."""
        for first, last in resources:
            self._since[first : last + 1] = now

    # --- energy ---
    def energy(self) -> float:
        """Return the joules until the present instant. O(running jobs that do not compute all the time)."""
        return self._joules - self._spared - sum(self._spared_by(*load) for load in self._loads.values())

    def _spared_by(self, running: Running, load: Load) -> float:
        """Return the joules that a job has not consumed because it does not compute all the time."""
        watts = (self._powers.computing - self._powers.idle) * count_of(running.resources)
        return watts * (self._instant - running.start_time) - load(self._instant)

    def _load_of(self, running: Running, count: int) -> Load | None:
        """Return the load of a job; None: it computes on all its resources all the time."""
        if (load := self._world.load_of(running)) is not None:
            return load
        size, powers, began = self._world.size_of(running), self._powers, running.start_time
        if work := self._world.value_of(running.job.number, "work"):
            lift, slope = np.full(size, powers.least - powers.idle), np.full(size, powers.computing - powers.least)
            joules: Callable[..., np.ndarray] = work.joules
            return lambda now: float(joules(np.array([now - began]), lift, slope)[0])
        computes = self._world.value_of(running.job.number, "computes") is not False
        if computes and size == count:
            return None
        watts = (powers.computing - powers.idle) * size * computes
        return lambda now: watts * (now - began)

    def _measure(self, now: float) -> None:
        """Add the energy until now, as if jobs computed all the time."""
        powers = self._powers
        others = self._computing + self._coming + self._going + self._off.count
        watts = (
            powers.computing * self._computing + powers.on_w * self._coming + powers.off_w * self._going
            + (powers.off or 0.0) * self._off.count + powers.idle * (self._world.processors - others)
        )  # fmt: skip
        if now > self._measured:
            self._joules += watts * (now - self._measured)
            self._measured = now

    # --- the result ---
    def report(self, done: Replayed) -> Replayed:
        """Return the result with the switches, and when jobs took the resources that then booted."""
        taken_time, booted = done.start_time.copy(), np.zeros(len(done.start_time), np.int64)
        for number, (time, resources) in self._taken.items():
            taken_time[number], booted[number] = time, resources
        changes, switched = np.array(self._changes, CHANGE), np.array(self._switched, SWITCH)
        return replace(done, taken_time=taken_time, booted=booted, changes=changes, switched=switched)

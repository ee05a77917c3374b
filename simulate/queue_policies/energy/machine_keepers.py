"""Parts that switch machines off and on, for the Python form of EASY and strict order.

Rule: those of `kernels.queue.power.shutdown`. Machines that the first waiting job needs stay on. How many machines are
kept off is decided at periods only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from ...arrays import Array
from ...kernels.queue.power.inertia import next_turn
from ..interface import QueueView, Switch
from .power_policies import Inertial, Opportunistic, Proportional
from .switched_machines import Machines

#: Returns the first of some machines that can be switched off until a time without delaying the first waiting job.
Spare = Callable[[Array, float], Array]


class Shutdown:
    """Switches off what has been idle for long.

    Args:
        options: the part; None switches nothing.
    """

    #: A machine that is due within so many seconds is due; more than 0 where clocks are rounded.
    rounding_s = 0.0

    def __init__(self, options: Opportunistic | None) -> None:
        self._t_idle = options.t_idle if options is not None else math.inf

    def is_due(self, now: QueueView, seen: float) -> bool:
        """Return whether a machine has become idle for long enough since a time, seconds."""
        if self._t_idle == math.inf or now.states is None:
            return False
        due = now.states.idle_since + self._t_idle
        return bool(((due <= now.time) & (due > seen)).any())

    def _due(self, now: QueueView, machines: Machines) -> Array:
        """Return when each idle machine is to be switched off, seconds."""
        assert now.states is not None
        return machines.idle_since(now.states)[machines.idle] + self._t_idle

    def decide(self, now: QueueView, machines: Machines, off_s: float, spare: Spare) -> Iterator[Switch]:
        """Switch off the idle machines that are due; the highest numbers if not all can be spared."""
        if self._t_idle == math.inf:
            return
        tired = machines.idle[self._due(now, machines) <= now.time + self.rounding_s]
        if len(chosen := spare(tired[::-1], now.time + off_s)):
            machines.remove(chosen)
            yield Switch(machines.resources(np.sort(chosen)), on=False)

    def next_time(self, now: QueueView, machines: Machines) -> float:
        """Return when the next machine is due, seconds."""
        if self._t_idle == math.inf:
            return math.inf
        later = self._due(now, machines)
        return float(later[later > now.time + self.rounding_s].min(initial=math.inf))


class MachineKeeper(ABC):
    """Keeps a number of machines off, and decides at periods how many.

    Args:
        options: the part.
        machines: number of machines.
        began: begin of the first period, seconds.
    """

    #: Number of the next period.
    number = 0

    def __init__(self, options: Proportional | Inertial, machines: int, began: float) -> None:
        self.kept = np.zeros(machines, bool)
        self._options, self._began, self._switches_on, self._due, self._switched = options, began, False, 0, 0

    def next_time(self) -> float:
        """Return the time of the next decision, seconds."""
        return self._began + self.number * self._options.period

    def resume(self, elapsed_s: float, kept: Array, rounding_s: float) -> None:
        """Go on with a clock that was set back; see `SavingBackfilling.resume`."""
        self._began, self.kept = self._began - elapsed_s, kept
        if 0.0 < self.next_time() <= rounding_s:
            self._began -= self.next_time()

    def passes_at(self, now: float) -> bool:
        """Return whether jobs may start because a period begins."""
        return self._options.passes == "period" and self.next_time() <= now

    def arrive(self, now: float) -> None:  # noqa: B027 - a part may take no notice
        """Note that time has passed, before anything happens now."""

    def leave(self, now: float, free: int, ends: list[tuple[float, int]], load: float) -> None:  # noqa: B027
        """Note what the decisions of a call leave behind.

        Args:
            now: seconds.
            free: free resources, without those that are kept off.
            ends: when resources become free, and how many, in the order of time.
            load: resource-seconds of all waiting jobs.
        """

    @abstractmethod
    def _turn(self, machines: Machines) -> None:
        """Decide how many machines are to be switched on or off."""

    def decide(self, now: QueueView, machines: Machines, spare: Spare) -> Iterator[Switch]:
        """Decide if a period begins, and switch what is due as far as possible."""
        if self.next_time() <= now.time:
            while self.next_time() <= now.time:
                self.number += 1
            self._turn(machines)
        if self._due and self._switches_on:
            chosen = machines.held[: self._due]
            self.kept[chosen] = False
            if len(chosen):
                yield Switch(machines.resources(chosen), on=True)
            self._note(len(chosen))
        elif self._due:
            candidates = np.concatenate([machines.off[::-1], machines.idle[::-1]])[: self._due]
            chosen = spare(candidates, math.inf)
            self.kept[chosen] = True
            idle = chosen[np.isin(chosen, machines.idle)]
            machines.remove(chosen)
            if len(idle):
                yield Switch(machines.resources(idle), on=False)
            self._note(len(chosen))
        if self._options.switches == "now":
            self._due = 0

    def _note(self, switched: int) -> None:
        self._due, self._switched = self._due - switched, self._switched + switched


class KeepShare(MachineKeeper):
    """Proportional shutdown."""

    _options: Proportional

    def _turn(self, machines: Machines) -> None:
        count = len(self.kept)
        usable = math.floor(self._options.rho * count)
        self._due = max(count - usable - int(np.count_nonzero(self.kept)), 0)


class KeepByLoad(MachineKeeper):
    """Inertial shutdown, by the liquid load horizon: the time in which all waiting work could be done."""

    _options: Inertial
    number = 1

    def __init__(self, options: Inertial, machines: int, began: float) -> None:
        super().__init__(options, machines, began)
        self._last_time, self._horizon, self._summed, self._mean = began, 0.0, 0.0, 0.0
        self._free, self._ends, self._load = 0, list[tuple[float, int]](), 0.0

    def resume(self, elapsed_s: float, kept: Array, rounding_s: float) -> None:
        """Go on with a clock that was set back; see `SavingBackfilling.resume`."""
        super().resume(elapsed_s, kept, rounding_s)
        self._last_time -= elapsed_s
        self._ends = [(end - elapsed_s, size) for end, size in self._ends]

    def arrive(self, now: float) -> None:
        """Add the horizon since the last call, by the trapezoidal rule."""
        if now > self._last_time:
            self._summed += (self._horizon + self._horizon_at(now)) * 0.5 * (now - self._last_time)
        self._last_time = now

    def leave(self, now: float, free: int, ends: list[tuple[float, int]], load: float) -> None:
        """Note what the decisions of a call leave behind, see `MachineKeeper`."""
        self._free, self._ends, self._load = max(free, 0), ends, load
        self._horizon = self._horizon_at(now)

    def _horizon_at(self, now: float) -> float:
        load, free, time = self._load, self._free, now
        if load <= 0:
            return 0.0
        for end, size in self._ends:
            if end > time:
                if free * (end - time) >= load:
                    break
                load -= free * (end - time)
                time = end
            free += size
        return time + load / free - now if free else math.inf

    def _turn(self, machines: Machines) -> None:
        options, mean, before, last = self._options, self._summed / self._options.period, self._mean, self._switched
        self._mean, self._summed, self._switched = mean, 0.0, 0
        doubles = options.growth == "double"
        self._switches_on, number = next_turn(mean, before, options.v_ub, self._switches_on, last, doubles)
        if options.switches == "now":
            most = len(machines.held) if self._switches_on else len(machines.off) + len(machines.idle)
        else:
            kept_count = int(np.count_nonzero(self.kept))
            most = kept_count if self._switches_on else len(self.kept) - kept_count
        self._due = min(number, most)

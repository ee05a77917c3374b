"""Power caps and energy budgets for policies in Python.

Rule: those of `kernels.queue.power.budget`. A cap blocks resources from its begin to its end. Of a budget, no start may
let the balance fall below 0 before all jobs that run then have ended, by conservative estimates of power and by
walltimes; at each stage the balance is corrected by what was really consumed, where that is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...kernels.queue.power.tables import TIE
from ...model.machine import Machine, Powers, equal_powers
from ..interface import MachineStates
from .power_policies import EnergyBudget, PowerCap, ReducePC

Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Use:
    """The use of resources by a job."""

    size: int
    begin: float
    end: float


class NoLimit:
    """No limit of power or energy."""

    #: Resources that are blocked now, and when they no longer are.
    blocked = 0
    end = math.inf

    def update(self, time: float, states: MachineStates | None = None) -> bool:
        """Bring the limit up to date. Return whether jobs may start for that.

        Args:
            time: now, seconds.
            states: of the machines; a budget needs what they have consumed.
        """
        return False

    def next_time(self) -> float:
        """Return when the limit must be updated at the latest, seconds."""
        return math.inf

    def changes(self) -> tuple[float, ...]:
        """Return when the number of allowed resources changes, seconds; ascending."""
        return ()

    def allowed(self, times: Array) -> Array:
        """Return how many resources jobs may use at these times [times]."""
        return np.full(len(times), math.inf)

    def forbids(self, size: int) -> bool:
        """Return whether a job of that size can never start."""
        return False

    def allows(self, now: float, running: list[Use], job: Use, head: Use | None) -> bool:
        """Return whether a job may start now.

        Args:
            now: seconds.
            running: the running jobs.
            job: the job, from now on.
            head: the first waiting job from its reservation on, if that is another.
        """
        return True

    def reserved(self, now: float, running: list[Use], size: int, walltime: float, time: float) -> float:
        """Return when a job can start, at `time`, when it has resources, or later, seconds."""
        return time

    def note(self, running: list[Use]) -> None:
        """Note the jobs that run after the decisions of a call."""


class Cap(NoLimit):
    """A power cap.

    Args:
        limit: its options.
        window: begin and end, seconds.
        powers: estimated power of a resource.
        resources: number of resources.
    """

    def __init__(self, limit: PowerCap, window: Window, powers: Powers, resources: int) -> None:
        self._begin, self.end = window
        self._allowed, self._resources, self._begun = limit.allowed(powers, resources), resources, False

    def forbids(self, size: int) -> bool:
        """Return whether a job of that size can never start: it is above a cap that never ends."""
        return self.end == math.inf and size > self._allowed

    def update(self, time: float, states: MachineStates | None = None) -> bool:
        """Block resources, or free them. Return whether jobs may start for that."""
        begun, blocked = self._begun, self.blocked
        self._begun = begun or time >= self._begin
        self.blocked = self._resources - self._allowed if self._begun and time < self.end else 0
        return self._begun != begun or self.blocked != blocked

    def next_time(self) -> float:
        """Return when the cap begins or ends, seconds."""
        if not self._begun:
            return self._begin
        return self.end if self.blocked else math.inf

    def changes(self) -> tuple[float, ...]:
        """Return when the cap begins and ends, seconds."""
        return self._begin, self.end

    def allowed(self, times: Array) -> Array:
        """Return how many resources jobs may use at these times [times]."""
        return np.where((times >= self._begin) & (times < self.end), self._allowed, self._resources)


class Budget(NoLimit):
    """An energy budget, `energybud` or `reducepc`.

    Args:
        limit: its options.
        window: begin and end, seconds.
        powers: estimated power of a resource.
        resources: number of resources.
    """

    def __init__(self, limit: EnergyBudget, window: Window, powers: Powers, resources: int) -> None:
        self._begin, self._end = window
        self._stage_s, self._reduces = limit.stage, isinstance(limit, ReducePC)
        lasts = self._end - self._begin
        budget = limit.budget.absolute(resources * powers.budget_computing * lasts)
        self._rate, self._tie = budget / lasts, TIE * budget
        self._idle = resources * powers.budget_idle
        self._extra = powers.budget_computing - powers.budget_idle
        self._credit, self._credited, self._used = 0.0, self._begin, 0
        self._stage, self._consumed_before = 0, 0.0

    def _holds(self, now: float) -> bool:
        return self._begin <= now < self._end

    def _time_of(self, stage: int) -> float:
        return min(self._begin + stage * self._stage_s, self._end)

    def next_time(self) -> float:
        """Return the time of the next stage, seconds; the last is the end of the window."""
        ended = self._stage and self._time_of(self._stage - 1) >= self._end
        return math.inf if ended else self._time_of(self._stage)

    def update(self, time: float, states: MachineStates | None = None) -> bool:
        """Add what has accrued; at a stage, correct it by what was consumed. Return whether it is a stage."""
        until = min(time, self._end)
        if until > self._credited:
            self._credit += (self._rate - (self._idle + self._extra * self._used)) * (until - self._credited)
            self._credited = until
        first = self._stage
        while self.next_time() <= time:
            self._stage += 1
        if self._stage == first:
            return False
        if states is not None:
            if first == 0:
                self._consumed_before = states.consumed
            consumed = states.consumed - self._consumed_before
            self._credit = self._rate * (until - self._begin) - consumed
        return True

    def note(self, running: list[Use]) -> None:
        """Note the jobs that run after the decisions of a call."""
        self._used = sum(each.size for each in running)

    def allows(self, now: float, running: list[Use], job: Use, head: Use | None) -> bool:
        """Return whether a job may start now, see `NoLimit`."""
        if not self._holds(now):
            return True
        if head is None:
            return self._affords(now, [*running, job], now)
        if not self._reduces:
            return self._affords(now, [*running, job, head], now)
        held = self._extra * head.size * max(0.0, min(head.end, self._end) - head.begin)
        less = held / (head.begin - now) if head.begin > now else 0.0
        return self._affords(now, [*running, job], now, less, head.begin)

    def reserved(self, now: float, running: list[Use], size: int, walltime: float, time: float) -> float:
        """Return when there are resources and energy for a job: `time`, or the first stage after it."""

        def affords(start: float) -> bool:
            return self._affords(now, [*running, Use(size, start, start + walltime)], start)

        if not self._holds(now) or time >= self._end or affords(time):
            return time
        low = int((time - self._begin) / self._stage_s) + 1
        high = int((self._end - self._begin) / self._stage_s) + 1
        while low < high:
            middle = (low + high) // 2
            if affords(self._time_of(middle)):
                high = middle
            else:
                low = middle + 1
        return self._time_of(low)

    def _affords(self, now: float, users: list[Use], since: float, less: float = 0.0, until: float = 0.0) -> bool:
        """Return whether the balance stays at 0 or above.

        Args:
            now: seconds.
            users: jobs that run, now or later.
            since: from when on the balance counts, seconds.
            less: watts that are set aside until `until`.
            until: seconds.
        """
        sizes = np.array([each.size for each in users])
        begins, ends = (np.array([getattr(each, name) for each in users]) for name in ("begin", "end"))
        end = min(self._end, float(ends.max()))
        times = np.unique(np.concatenate([[now, end, until], begins, ends]))
        times = times[(times >= now) & (times <= end)]
        if not len(times):
            return True
        order = np.argsort(begins), np.argsort(ends)
        came, went = (np.concatenate([[0], np.cumsum(sizes[each])]) for each in order)
        used = came[np.searchsorted(begins[order[0]], times, "right")]
        used = used - went[np.searchsorted(ends[order[1]], times, "right")]
        rises = self._rate - (self._idle + self._extra * used) - np.where(times < until, less, 0.0)
        balance = self._credit + np.concatenate([[0.0], np.cumsum(rises[:-1] * np.diff(times))])
        return bool((balance[times >= since] >= -self._tie).all())


def limit_on(machine: Machine, limit: PowerCap | EnergyBudget | None, window: Window | None) -> NoLimit:
    """Return a limit of a machine.

    Args:
        machine: the machine; its power must be known.
        limit: its options; None: there is no limit.
        window: begin and end, seconds; None: it is empty.
    """
    if limit is None or window is None:
        return NoLimit()
    kind = Budget if isinstance(limit, EnergyBudget) else Cap
    return kind(limit, window, equal_powers(machine.powers), machine.processors)  # type: ignore[arg-type]

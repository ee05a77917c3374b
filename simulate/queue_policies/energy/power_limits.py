"""Power caps and energy budgets for policies in Python.

Rule: those of `kernels.queue.power.budget`. A cap blocks resources from its begin to its end. Under a budget, no start
may let the balance fall below 0 before all jobs that run then have ended, by conservative estimates of power and by
walltimes; at each stage the balance is corrected by what was really consumed, where that is known.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...arrays import Array, Row
from ...kernels.queue.power.tables import BUDGET, CAP, REDUCED, TIE
from ...model.intervals import count_of
from ...model.machine import Machine, Powers, equal_powers
from ..interface import MachineStates, QueueView
from .power_policies import EnergyBudget, PowerCap

Window = tuple[float, float]
#: Share of the time since the begin of a plan within which it has no other stage.
SPARSE = 0.1


@dataclass(frozen=True, slots=True)
class Use:
    """The use of resources by a job."""

    size: int
    begin: float
    end: float


class NoLimit:
    """No limit of power or energy. Of a limit that holds, a copy is made for each plan, see `seen_from`."""

    #: Resources that are blocked now.
    blocked = 0
    begin, end = -math.inf, math.inf  #: seconds
    #: What it allows on average; of a budget also what is left of it, joules.
    watts = math.inf
    balance: Any = None

    @property
    def consumed(self) -> Any:
        """Return what has been consumed of a budget since its begin, joules; None: it is none."""
        return None

    def resume(self, consumed: float, until: float) -> None:
        """Go on with what was consumed of a budget from its begin until then, joules and seconds."""

    def write(self, count: Row, clock: Row) -> None:
        """Write the limit into the tables of a kernel."""

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

    def blocks(self, now: QueueView) -> int:
        """Return how many of the free resources it blocks at a call."""
        return self.blocked

    def largest(self, time: float = math.inf) -> float:
        """Return the largest size of a job that can ever start, from a time on, seconds; infinite: any can."""
        return math.inf

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

    def seen_from(self, origin: float) -> Self:
        """Return a copy whose times count from `origin`, seconds."""
        limit = copy(self)
        limit.begin, limit.end = self.begin - origin, self.end - origin
        return limit


class Cap(NoLimit):
    """A power cap.

    Args:
        limit: its options.
        window: begin and end, seconds.
        powers: estimated power of a resource.
        resources: number of resources.

    Attributes:
        begin: seconds.
        end: seconds.
        watts: the cap.
        usable: resources that jobs may use while it holds.
    """

    def __init__(self, limit: PowerCap, window: Window, powers: Powers, resources: int) -> None:
        self.begin, self.end = window
        self.watts = limit.cap.absolute(resources * powers.budget_computing)
        self.usable, self._resources, self._begun = limit.allowed(powers, resources), resources, False

    def largest(self, time: float = math.inf) -> float:
        """Return the largest size of a job that can ever start: that below a cap that has begun and never ends."""
        return self.usable if time >= self.begin and self.end == math.inf else math.inf

    def update(self, time: float, states: MachineStates | None = None) -> bool:
        """Block resources, or free them. Return whether jobs may start for that."""
        begun, blocked = self._begun, self.blocked
        self._begun = begun or time >= self.begin
        self.blocked = self._resources - self.usable if self._begun and time < self.end else 0
        return self._begun != begun or self.blocked != blocked

    def blocks(self, now: QueueView) -> int:
        """Return how many of the free resources it blocks at a call.

        In a plan, the machine has the usable nodes only; jobs may also run on others.
        """
        if not (self.blocked and now.machine.nodes):
            return self.blocked
        elsewhere = sum(run.job.size - count_of(run.resources) for run in now.running)
        blocked: int = max(0, self.blocked + now.machine.processors + elsewhere - self._resources)
        return blocked

    def next_time(self) -> float:
        """Return when the cap begins or ends, seconds."""
        if not self._begun:
            return self.begin
        return self.end if self.blocked else math.inf

    def changes(self) -> tuple[float, ...]:
        """Return when the cap begins and ends, seconds."""
        return self.begin, self.end

    def allowed(self, times: Array) -> Array:
        """Return how many resources jobs may use at these times [times]."""
        return np.where((times >= self.begin) & (times < self.end), self.usable, self._resources)

    def write(self, count: Row, clock: Row) -> None:
        """Write the limit into the tables of a kernel."""
        count["limit"], count["allowed"], clock["begin"], clock["end"] = CAP, self.usable, self.begin, self.end


class Budget(NoLimit):
    """An energy budget, `energybud` or `reducepc`.

    Args:
        limit: its options.
        window: begin and end, seconds.
        powers: estimated power of a resource.
        resources: number of resources.

    Attributes:
        begin: seconds.
        end: seconds.
        credited: until when energy has accrued and been consumed, seconds.
        balance: what has accrued until then less what was consumed, joules.
        watts: what accrues.
        idle, extra: estimated watts of all resources when idle, and what one that computes adds.
        tie: joules that count as 0.
        stage_s: seconds between two corrections.
        reduces: it is `reducepc`.
    """

    balance: float

    def __init__(self, limit: EnergyBudget, window: Window, powers: Powers, resources: int) -> None:
        self.begin, self.end = window
        self.stage_s, self.reduces = limit.stage, limit.reduces
        lasts = self.end - self.begin
        budget = limit.budget.absolute(resources * powers.budget_computing * lasts)
        self.watts, self.tie = budget / lasts, TIE * budget
        self.idle = resources * powers.budget_idle
        self.extra = powers.budget_computing - powers.budget_idle
        self.balance, self.credited, self._used = 0.0, self.begin, 0
        self._stage, self._consumed_before = 0, 0.0
        self._reserved, self._plan_begin = math.inf, None  # type: float, float | None
        self._running_uses: tuple[list[Use], Array] = [], np.zeros((0, 3))  # the running jobs of a pass, as an array
        #: Of a pass, as long as no job starts: the running jobs, their number, the head, and when the balance is least.
        self._least: tuple[list[Use], int, Use | None, float, float] | None = None

    @property
    def consumed(self) -> float:
        """Return what has been consumed since the begin, joules."""
        return self.watts * (self.credited - self.begin) - self.balance

    def resume(self, consumed: float, until: float) -> None:
        """Go on with what was consumed from the begin until then, joules and seconds."""
        self.credited = until
        self.balance = self.watts * (until - self.begin) - consumed
        self._pass_stages(until)

    def account(self, until: float, computed: float) -> None:
        """Add what accrues until then, at most until the end, less what is consumed by estimates.

        Args:
            until: seconds.
            computed: for how many seconds resources have computed since `credited`, over all resources.
        """
        if until > self.credited:
            self.balance += (self.watts - self.idle) * (until - self.credited) - self.extra * computed
            self.credited = until
            self._pass_stages(until)

    def seen_from(self, origin: float) -> Self:
        """Return a copy whose times count from `origin`, seconds."""
        limit = super().seen_from(origin)
        limit.credited = self.credited - origin
        limit._plan_begin = 0.0
        return limit

    def write(self, count: Row, clock: Row) -> None:
        """Write the limit into the tables of a kernel."""
        count["limit"], clock["begin"], clock["end"] = REDUCED if self.reduces else BUDGET, self.begin, self.end
        clock["rate"], clock["tie"], clock["stage_s"] = self.watts, self.tie, self.stage_s
        clock["base"], clock["extra"] = self.idle, self.extra

    def _holds(self, now: float) -> bool:
        return self.begin <= now < self.end

    def _time_of(self, stage: int) -> float:
        return min(self.begin + stage * self.stage_s, self.end)

    def next_time(self) -> float:
        """Return the time of the next stage, seconds; the last is the end of the window.

        In a plan, no stage corrects the balance. So it has those at which a job is reserved, and the further ahead, the
        fewer of the others.
        """
        ended = self._stage and self._time_of(self._stage - 1) >= self.end
        if ended or self._plan_begin is None:
            return math.inf if ended else self._time_of(self._stage)
        ahead = self.credited + SPARSE * (self.credited - self._plan_begin)
        stage = max(self._stage, math.ceil((ahead - self.begin) / self.stage_s))
        return min(self._time_of(stage), self._reserved if self._reserved > self.credited else math.inf)

    def _pass_stages(self, now: float) -> None:
        while self._time_of(self._stage) <= now and not (self._stage and self._time_of(self._stage - 1) >= self.end):
            self._stage += 1

    def update(self, time: float, states: MachineStates | None = None) -> bool:
        """Add what has accrued; at a stage, correct it by what was consumed. Return whether it is a stage."""
        until = min(time, self.end)
        if until > self.credited:
            self.balance += (self.watts - (self.idle + self.extra * self._used)) * (until - self.credited)
            self.credited = until
        first = self._stage
        self._pass_stages(time)
        if self._stage == first:
            return False
        if states is not None and self._plan_begin is None:
            if first == 0:
                self._consumed_before = states.consumed
            consumed = states.consumed - self._consumed_before
            self.balance = self.watts * (until - self.begin) - consumed
        return True

    def note(self, running: list[Use]) -> None:
        """Note the jobs that run after the decisions of a call."""
        self._used = sum(use.size for use in running)

    def allows(self, now: float, running: list[Use], job: Use, head: Use | None) -> bool:
        """Return whether a job may start now, see `NoLimit`."""
        if not self._holds(now):
            return True
        reserved, less, until = list[Use](), 0.0, 0.0
        if head is not None and not self.reduces:
            reserved = [head]
        elif head is not None:
            held = self.extra * head.size * max(0.0, min(head.end, self.end) - head.begin)
            less, until = held / (head.begin - now) if head.begin > now else 0.0, head.begin
        entry = self._least
        if entry is None or entry[0] is not running or entry[1:3] != (len(running), head):
            times, balance = self._course(now, running, reserved, less, until)
            least = int(np.argmin(balance)) if len(times) else -1
            time, joules = (float(times[least]), float(balance[least])) if least >= 0 else (now, math.inf)
            entry = self._least = running, len(running), head, time, joules
        if entry[4] - self.extra * job.size * (min(entry[3], job.end) - now) < -2.0 * self.tie:
            return False  # most jobs, without a look at the other times
        return self._affords(now, running, [*reserved, job], now, less, until)

    def reserved(self, now: float, running: list[Use], size: int, walltime: float, time: float) -> float:
        """Return when there are resources and energy for a job: `time`, or the first stage after it."""

        def affords(start: float) -> bool:
            return self._affords(now, running, [Use(size, start, start + walltime)], start)

        self._reserved = time
        if not self._holds(now) or time >= self.end or affords(time):
            return time
        low = int((time - self.begin) / self.stage_s) + 1
        high = int((self.end - self.begin) / self.stage_s) + 1
        while low < high:
            middle = (low + high) // 2
            if affords(self._time_of(middle)):
                high = middle
            else:
                low = middle + 1
        self._reserved = self._time_of(low)
        return self._reserved

    def _affords(
        self, now: float, running: list[Use], more: list[Use], since: float, less: float = 0.0, until: float = 0.0
    ) -> bool:
        """Return whether the balance stays at 0 or above.

        Args:
            now: seconds.
            running: jobs that run.
            more: jobs that run now or later.
            since: from when on the balance counts, seconds.
            less: watts that are set aside until `until`.
            until: seconds.
        """
        times, balance = self._course(now, running, more, less, until)
        return bool((balance[times >= since] >= -self.tie).all())

    def _course(
        self, now: float, running: list[Use], more: list[Use], less: float, until: float
    ) -> tuple[Array, Array]:
        """Return the times at which the slope of the balance changes, and the balance then; see `_affords`."""
        if self._running_uses[0] is not running or len(self._running_uses[1]) != len(running):
            self._running_uses = running, np.array([(use.size, use.begin, use.end) for use in running]).reshape(-1, 3)
        others = np.array([(use.size, use.begin, use.end) for use in more]).reshape(-1, 3)
        sizes, begins, ends = np.concatenate([self._running_uses[1], others]).T
        end = min(self.end, float(ends.max(initial=now)))
        times = np.unique(np.concatenate([[now, end, until], begins, ends]))
        times = times[(times >= now) & (times <= end)]
        if not len(times):
            return times, times
        order = np.argsort(begins), np.argsort(ends)
        came, went = (np.concatenate([[0], np.cumsum(sizes[places])]) for places in order)
        used = came[np.searchsorted(begins[order[0]], times, "right")]
        used = used - went[np.searchsorted(ends[order[1]], times, "right")]
        rises = self.watts - (self.idle + self.extra * used) - np.where(times < until, less, 0.0)
        return times, self.balance + np.concatenate([[0.0], np.cumsum(rises[:-1] * np.diff(times))])


def limit_on(machine: Machine, limit: PowerCap | EnergyBudget | None, window: Window | None) -> NoLimit:
    """Return a limit of a machine.

    Args:
        machine: the machine; its power must be known.
        limit: its options; None: there is no limit.
        window: begin and end, seconds, of a budget both finite; None: it is empty.
    """
    if limit is None or window is None:
        return NoLimit()
    kind: Any = Budget if limit.is_budget else Cap
    cap_or_budget: NoLimit = kind(limit, window, equal_powers(machine.powers), machine.processors)
    return cap_or_budget

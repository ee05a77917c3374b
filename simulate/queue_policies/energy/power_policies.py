"""Parts that are added to a policy to save power or energy.

Rule: this module defines options only. The kernels in `kernels.queue.power` implement them for EASY and strict order;
for other policies, see `power_limits` and `policy_specs.goes_with`.
Source: thesis of Poquet (2017), chapters 6 (limits) and 7 (switching machines off).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...arrays import Row
from ...errors import ConfigError
from ...kernels.queue.power.tables import INERTIAL, PROPORTIONAL, TIE
from ...model.machine import Powers
from ...model.workload import Workload
from ..policy_options import Amount, Date, amount, choice, moment, number

_BEGIN = "begin of the limit: seconds of the trace, live since 1970 (default: its first submission, live now)"
_END = "end of the limit, likewise (default: the last submission; a cap on dependent jobs, or live, has none)"


@dataclass(frozen=True, slots=True)
class Opportunistic:
    """Switch off machines that have been idle for longer than t_idle, and boot them when a job needs them."""

    source: ClassVar = "Poquet 2017, 7.3.2"
    t_idle: float = number(0.0, 0.0, math.inf, "idle seconds before a machine is switched off")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that holds from `begin` to `end`."""

    #: Whether it may have no end.
    endless: ClassVar[bool] = False
    #: Whether it limits energy, not power.
    is_budget: ClassVar[bool] = False
    begin: float = moment(-math.inf, _BEGIN)
    end: float = moment(math.inf, _END)

    def is_set(self) -> bool:
        """Return whether it begins or ends at a given time."""
        return math.isfinite(self.begin) or math.isfinite(self.end)

    def refuse_dates(self) -> None:
        """Raise ConfigError if it begins or ends at a date, which a trace does not have."""
        for name, time in (("begin", self.begin), ("end", self.end)):
            if isinstance(time, Date):
                problem = f"'{time}' is a date, and the times of a trace are not"
                raise ConfigError("policy", name, problem, "seconds of the trace")

    def window(self, workload: Workload) -> tuple[float, float] | None:
        """Return begin and end of the limit for a workload, within its first and last submission; None if empty.

        If jobs have dependencies, the last submission is not known. Then a missing `end` is infinite, or a ConfigError
        if the limit needs an end.
        """
        self.refuse_dates()
        if not len(workload):
            return None
        begin = max(self.begin, float(workload.submit_time[0]))
        if workload.dependencies is None:
            end = min(self.end, float(workload.submit_time[-1]))
        elif math.isinf(end := self.end) and not self.endless:
            why = "missing: a budget needs an end, because jobs have dependencies and the last submission is not known"
            raise ConfigError("policy", "end", why, "end=SECONDS")
        return (begin, end) if end > begin else None


@dataclass(frozen=True, slots=True)
class PowerCap(Limit):
    """Power cap: do not start a job that would raise the estimated power of the machine above the cap."""

    source: ClassVar = "Poquet 2017, 6.5.2"
    endless: ClassVar = True
    cap: Amount = amount("watts, or a share of the power of all resources computing (60%)")  # noqa: RUF009

    def allowed(self, powers: Powers, resources: int) -> int:
        """Return how many resources of a machine may compute; amounts that differ by rounding are the same."""
        watts = self.cap.absolute(resources * powers.budget_computing) * (1.0 + TIE)
        above, extra = watts - resources * powers.budget_idle, powers.budget_computing - powers.budget_idle
        return resources if above >= extra * resources else max(0, math.floor(above / extra)) if extra > 0.0 else 0

    def refusal(self, powers: Powers, resources: int) -> ConfigError | None:
        """Return an error that names the least possible cap if it always lets no resource compute, else None.

        A cap that begins or ends may do so: no job starts while it holds.

        Args:
            powers: estimated power of a resource.
            resources: number of resources.
        """
        if self.is_set() or self.allowed(powers, resources) > 0 or resources == 0:
            return None
        full = resources * powers.budget_computing
        exact = (resources - 1) * powers.budget_idle + powers.budget_computing
        least = f"{_up(100.0 * exact / full)}%" if self.cap.share else f"{_up(exact)} W"
        setting = f"cap={self.cap}" + ("" if self.cap.share else " W")
        problem = f"{setting} is less than idle nodes and one core that computes take ({least}): no job could start"
        return ConfigError("policy", "", problem, f"{least} or more")


@dataclass(frozen=True, slots=True)
class EnergyBudget(Limit):
    """energyBud: energy accrues at a constant rate; a job starts once enough has accrued for its whole walltime."""

    source: ClassVar = "Poquet 2017, 6.4"
    is_budget: ClassVar[bool] = True
    #: Whether the energy of the first waiting job is set aside from what accrues until its start.
    reduces: ClassVar[bool] = False
    budget: Amount = amount("joules, or a share of the energy of all resources computing all the time (60%)")  # noqa: RUF009
    stage: float = number(600.0, 1.0, math.inf, "seconds between two measurements of the consumed energy")

    def is_hopeless(self, powers: Powers, resources: int, lasts: float) -> bool:
        """Return whether no job could ever start, because at most what idle resources draw accrues.

        Where a job draws no more than idle resources do, that much is enough.

        Args:
            powers: estimated power of a resource; none is ever switched off.
            resources: number of resources.
            lasts: from the begin of the budget to its end, seconds.
        """
        idle, full = (resources * watts * lasts for watts in (powers.budget_idle, powers.budget_computing))
        budget = self.budget.absolute(full)
        return budget <= idle * (1.0 + TIE) if full > idle else budget < idle * (1.0 - TIE)

    def refusal(self, powers: Powers, resources: int, lasts: float, what: str = "nodes") -> ConfigError | None:
        """Return an error that names the least possible budget if it is hopeless, else None.

        Args:
            powers: estimated power of a resource.
            resources: number of resources.
            lasts: from the begin of the budget to its end, seconds.
            what: the name of the resources.
        """
        if not self.is_hopeless(powers, resources, lasts):
            return None
        idle, full = (resources * watts * lasts for watts in (powers.budget_idle, powers.budget_computing))
        exact = idle / full if self.budget.share else idle
        least = f"{_up(100.0 * exact)}%" if self.budget.share else f"{_up(exact)} J"
        setting = f"budget={self.budget}" + ("" if self.budget.share else " J")
        less = self.budget.value < exact * (1.0 - TIE)
        problem = f"{setting} is {'less than' if less else 'only what'} idle {what} take alone"
        problem += f" ({least}): no job could start" if less else ": no job could start"
        return ConfigError("policy", "", problem, f"more than {least}" if full > idle else f"{least} or more")


def _up(value: float) -> str:
    """Return a number of 4 digits that is not below a value, 0 or more."""
    if value <= 0.0:
        return "0"
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits * (1.0 - TIE)) / 10.0**digits:.12g}"


@dataclass(frozen=True, slots=True)
class ReducePC(EnergyBudget):
    """reducePC: as energybud, but the first waiting job's energy is set aside from what accrues until its start."""

    source: ClassVar = "Poquet 2017, 6.4.4"
    reduces: ClassVar[bool] = True


SWITCHES = {"later": "switch the remaining machines as soon as possible", "now": "do not switch the remaining machines"}
GROWTHS = {"plus-one": "one machine more than last time", "double": "twice as many machines as last time"}
PASSES = {"event": "at submissions and job ends", "period": "also at each period"}


@dataclass(frozen=True, slots=True)
class Proportional:
    """Keep a share of the machines on and switch the others off, unless a job needs more."""

    source: ClassVar = "Poquet 2017, 7.4.2"
    #: Whether it decides by the load.
    by_load: ClassVar[bool] = False
    rho: float = number(0.9, 0.0, 1.0, "share of the machines that stays on")
    period: float = number(300.0, 1.0, math.inf, "seconds between two decisions")
    switches: str = choice("later", SWITCHES, "if not all machines can be switched at once")
    passes: str = choice("event", PASSES, "when jobs can start")

    def write(self, count: Row, clock: Row) -> None:
        """Write what it alone has into the tables of a kernel."""
        count["keeper"], count["usable"] = PROPORTIONAL, math.floor(self.rho * int(count["machine"]))


@dataclass(frozen=True, slots=True)
class Inertial:
    """Adapt the number of machines that are off to the liquid load horizon: the time that the queue would take."""

    source: ClassVar = "Poquet 2017, 7.4.3"
    by_load: ClassVar[bool] = True
    v_ub: float = number(1e4, 0.0, math.inf, "liquid load horizon above which machines are switched on, seconds")
    period: float = number(120.0, 1.0, math.inf, "seconds between two decisions")
    growth: str = choice("double", GROWTHS, "how many machines are switched while the horizon keeps its direction")
    switches: str = choice("later", SWITCHES, "if not all machines can be switched at once")
    passes: str = choice("event", PASSES, "when jobs can start")

    def write(self, count: Row, clock: Row) -> None:
        """Write what it alone has into the tables of a kernel."""
        count["keeper"], count["period"] = INERTIAL, 1
        count["doubles"], clock["bound"] = self.growth == "double", self.v_ub

"""What EASY is combined with to save energy, or to live with less of it.

Rule: options only; what they mean is done by the kernels in `kernels.batch.powered`.
Source: thesis of Poquet (2017), chapters 6 (limits) and 7 (machines that are off).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ConfigError
from ..workload import Workload
from .options import Amount, amount, choice, number

_BEGIN = "seconds of the trace at which it begins (default: its first submission)"
_END = "seconds of the trace at which it ends (default: its last submission)"


@dataclass(frozen=True, slots=True)
class Opportunistic:
    """Machines that have been idle for longer than t_idle are switched off, and used again when needed."""

    source: ClassVar = "Poquet 2017, 7.3.2"
    t_idle: float = number(0.0, 0.0, math.inf, "seconds that a machine is idle before it is switched off")


@dataclass(frozen=True, slots=True)
class Limit:
    """What holds from `begin` to `end`."""

    begin: float = number(-math.inf, -math.inf, math.inf, _BEGIN)
    end: float = number(math.inf, -math.inf, math.inf, _END)

    def window(self, workload: Workload) -> tuple[float, float] | None:
        """When it holds for a workload: from its first to its last submission at most; None: never.

        Raises:
            ConfigError: when the last of jobs that wait for others is submitted nobody knows, nor says an end.
        """
        if not len(workload):
            return None
        begin = max(self.begin, float(workload.submit_time[0]))
        if workload.dependencies is None:
            end = min(self.end, float(workload.submit_time[-1]))
        elif math.isinf(end := self.end):
            why = "missing: jobs wait for others, so that it is not known when the last is submitted"
            raise ConfigError("policy", "end", why, "end=SECONDS")
        return (begin, end) if end > begin else None


@dataclass(frozen=True, slots=True)
class PowerCap(Limit):
    """No job starts that lifts the estimated power of the machine above the cap."""

    source: ClassVar = "Poquet 2017, 6.5.2"
    cap: Amount = amount("watts, or a share of what all resources draw when they compute (60%)")  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class EnergyBudget(Limit):
    """energyBud: energy comes bit by bit; a job starts once there is enough of it for its whole walltime."""

    source: ClassVar = "Poquet 2017, 6.4"
    budget: Amount = amount("joules, or a share of what all resources take when they compute all the time (60%)")  # noqa: RUF009
    stage: float = number(600.0, 1.0, math.inf, "seconds between two measurements of what was consumed")


@dataclass(frozen=True, slots=True)
class ReducePC(EnergyBudget):
    """reducePC: as energybud, but what is kept for the first that waits is taken from what comes until its start."""

    source: ClassVar = "Poquet 2017, 6.4.4"


SWITCHES = {
    "later": "what cannot be switched at once is switched as soon as it can be",
    "now": "what cannot be switched at once is not",
}
GROWTHS = {"plus-one": "one machine more than last time", "double": "twice as many machines as last time"}
PASSES = {"event": "jobs start when one is submitted or ends", "period": "and at the periods, too"}


@dataclass(frozen=True, slots=True)
class Proportional:
    """Only a share of the machines is used, unless a job needs more; the others are off."""

    source: ClassVar = "Poquet 2017, 7.4.2"
    rho: float = number(0.9, 0.0, 1.0, "share of the machines that is used")
    period: float = number(300.0, 1.0, math.inf, "seconds between two decisions")
    switches: str = choice("later", SWITCHES, "if not all can be switched at once")
    passes: str = choice("event", PASSES, "when jobs start")


@dataclass(frozen=True, slots=True)
class Inertial:
    """The number of machines that are off follows how long the queue would take: it goes on while that goes the way."""

    source: ClassVar = "Poquet 2017, 7.4.3"
    v_ub: float = number(1e4, 0.0, math.inf, "seconds of liquid load horizon from which on machines are switched on")
    period: float = number(120.0, 1.0, math.inf, "seconds between two decisions")
    growth: str = choice("double", GROWTHS, "how many are switched when it goes on")
    switches: str = choice("later", SWITCHES, "if not all can be switched at once")
    passes: str = choice("event", PASSES, "when jobs start")

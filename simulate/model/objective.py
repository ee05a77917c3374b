"""The objective of a search: makespan, energy, their product, a weighted mix, or how long the users of a queue wait."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ConfigError, did_you_mean

KINDS = ("makespan", "energy", "edp", "mix", "turnaround", "slowdown")
#: The kinds that judge each submission by itself; for a single workflow both are its makespan.
QUEUE_KINDS = ("turnaround", "slowdown")
#: Bound of the bounded slowdown, seconds (Feitelson and Rudolph 1998).
TAU_S = 10.0


@dataclass(frozen=True, slots=True)
class Submitted:
    """Jobs that were submitted together: their user waits until the last of them has ended.

    Args:
        jobs: their ids.
        waited: seconds since the submission.
        plain_end: when the last would have ended in the resource manager's own order, as forecast at first; seconds
            from now. None: not forecast yet.
        weight: how much its wait counts, above 0.
    """

    jobs: tuple[str, ...]
    waited: float = 0.0
    plain_end: float | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Objective:
    """One of KINDS; in "mix", `weight` (0..1) is the share of makespan and energy has the rest."""

    kind: str = "makespan"
    weight: float = 0.5

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Parse one of KINDS, or "mix:WEIGHT". Raises ConfigError."""
        kind, _, rest = text.partition(":")
        if kind not in KINDS or (rest and kind != "mix"):
            problem = f"{text!r} is not an objective{did_you_mean(kind, KINDS)}"
            allowed = "makespan, turnaround, slowdown, energy, edp, mix or mix:WEIGHT"
            raise ConfigError("objective", "", problem, allowed)
        if not rest:
            return cls(kind)
        try:
            weight = float(rest)
        except ValueError:
            weight = math.nan
        if not 0.0 <= weight <= 1.0:
            raise ConfigError("objective", "mix", f"weight {rest!r}", "a number from 0 (energy) to 1 (makespan)")
        return cls(kind, weight)

    @property
    def needs_energy(self) -> bool:
        """True if it needs the power of all nodes."""
        return self.kind in ("energy", "edp", "mix")

    def value(self, makespan: float, energy_j: float, reference: tuple[float, float] = (1.0, 1.0)) -> float:
        """Return the number to minimise; for QUEUE_KINDS that of one workflow alone, its makespan.

        Args:
            makespan: seconds.
            energy_j: joules.
            reference: (seconds, joules) of the plan that a mix is relative to.
        """
        if not self.needs_energy:
            return makespan
        if self.kind == "energy":
            return energy_j
        if self.kind == "edp":
            return energy_j * makespan
        return self.weight * makespan / reference[0] + (1.0 - self.weight) * energy_j / reference[1]

    def __str__(self) -> str:
        return f"mix:{self.weight:g}" if self.kind == "mix" else self.kind

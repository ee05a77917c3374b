"""The objective of a search: makespan, energy, their product, or a weighted mix relative to a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ConfigError, did_you_mean

KINDS = ("makespan", "energy", "edp", "mix")


@dataclass(frozen=True, slots=True)
class Objective:
    """One of KINDS; in "mix", `weight` (0..1) is the share of makespan and energy has the rest."""

    kind: str = "makespan"
    weight: float = 0.5

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Parse "makespan", "energy", "edp" or "mix:WEIGHT". Raises ConfigError."""
        kind, _, rest = text.partition(":")
        if kind not in KINDS or (rest and kind != "mix"):
            problem = f"{text!r} is not an objective{did_you_mean(kind, KINDS)}"
            raise ConfigError("objective", "", problem, "makespan, energy, edp, mix or mix:WEIGHT")
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
        """Whether it needs the power of all nodes."""
        return self.kind != "makespan"

    def value(self, makespan: float, energy_j: float, reference: tuple[float, float] = (1.0, 1.0)) -> float:
        """Return the number to minimise.

        Args:
            makespan: seconds.
            energy_j: joules.
            reference: (seconds, joules) of the plan that a mix is relative to.
        """
        if self.kind == "makespan":
            return makespan
        if self.kind == "energy":
            return energy_j
        if self.kind == "edp":
            return energy_j * makespan
        return self.weight * makespan / reference[0] + (1.0 - self.weight) * energy_j / reference[1]

    def __str__(self) -> str:
        return f"mix:{self.weight:g}" if self.kind == "mix" else self.kind

"""What a search minimises: makespan, energy, their product, or a weighted mix of both relative to a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import ConfigError

KINDS = ("makespan", "energy", "edp", "mix")


@dataclass(frozen=True, slots=True)
class Objective:
    """One of KINDS; `weight` (0..1) is makespan's share in "mix", energy has the rest."""

    kind: str = "makespan"
    weight: float = 0.5

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Read "makespan", "energy", "edp" or "mix:WEIGHT"; raises ConfigError."""
        kind, _, rest = text.partition(":")
        if kind not in KINDS or (rest and kind != "mix"):
            raise ConfigError(
                "objective", "", f"{text!r} is not an objective", "makespan, energy, edp, mix or mix:WEIGHT"
            )
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
        """Whether nodes of unknown power make it meaningless."""
        return self.kind != "makespan"

    def value(self, makespan: float, energy_j: float, reference: tuple[float, float] = (1.0, 1.0)) -> float:
        """The number to minimise; `reference` is (seconds, joules) of the plan that a mix is measured against."""
        if self.kind == "makespan":
            return makespan
        if self.kind == "energy":
            return energy_j
        if self.kind == "edp":
            return energy_j * makespan
        return self.weight * makespan / reference[0] + (1.0 - self.weight) * energy_j / reference[1]

    def __str__(self) -> str:
        return f"mix:{self.weight:g}" if self.kind == "mix" else self.kind

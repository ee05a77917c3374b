"""What users ask for, where a model says only how long jobs run.

Rule: a walltime is a whole number of seconds, 1 or more; drawn after all else, so that asking otherwise changes no job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from .draws import Generator

Array = npt.NDArray[Any]
ALLOWED = "exact, factor:A:B with 0 < A <= B <= 1000, or round"
MOST_FACTOR = 1000.0
_MINUTE, _DAY = 60.0, 86400.0
#: What people type, seconds; beyond a day, whole days.
USUAL = _MINUTE * np.array([5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080, 1440])
#: The least share of its walltime that a job uses, in `round`.
LEAST_USE = 0.1


@dataclass(frozen=True, slots=True)
class Walltimes:
    """How walltimes follow from run times.

    Args:
        kind: exact: the run time. factor: the run time times a factor that is uniform in [least, most]. round: a job
            uses a uniform share, LEAST_USE to 1, of what is then rounded up to the next usual value.

    Source: of `round`: run time over walltime is spread evenly (Mu'alem and Feitelson 2001), and most users type one of
        some twenty round values (Tsafrir, Etsion and Feitelson 2005).
    """

    kind: str = "round"
    least: float = 1.0
    most: float = 1.0

    def of(self, run_time: Array, draw: Generator) -> Array:
        """A walltime for each run time, seconds."""
        if self.kind == "round":
            return rounded(run_time / draw.uniform(LEAST_USE, 1.0, len(run_time)))
        if self.kind == "factor":
            run_time = run_time * draw.uniform(self.least, self.most, len(run_time))
        return np.maximum(np.ceil(run_time), 1.0)

    def __str__(self) -> str:
        return f"factor:{self.least!r}:{self.most!r}" if self.kind == "factor" else self.kind


def rounded(times: Array) -> Array:
    """Each rounded up to what people type. O(times)."""
    place = np.searchsorted(USUAL, times)
    days = np.ceil(times / _DAY) * _DAY
    return np.where(place < len(USUAL), USUAL[np.minimum(place, len(USUAL) - 1)], days)


def parse_walltimes(text: str) -> Walltimes:
    """`exact`, `factor:A:B` or `round`. Raises ConfigError."""
    kind, *numbers = text.split(":")
    if kind in ("exact", "round") and not numbers:
        return Walltimes(kind)
    if kind == "factor" and len(numbers) == 2:
        try:
            least, most = (float(number) for number in numbers)
        except ValueError:
            least = most = math.nan
        if 0.0 < least <= most <= MOST_FACTOR:
            return Walltimes(kind, least, most)
    raise ConfigError("walltime", "", f"{text!r}", ALLOWED)

"""The wait of a held job for its placement, from its submission or from the moment when its nodes are free.

Rule: each job of a replay has a delay of its own, drawn from a sample. Each replay first draws the measurements again,
with replacement, so that an interval over replays holds what few measurements leave open.
Source: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array


@dataclass(frozen=True, slots=True)
class StartDelay:
    """A distribution of delays.

    Args:
        seconds: a sample of them, one or more, each 0 or more.
        measured: number of starts or submissions that it rests on; 0: it was not measured.
        source: where it comes from, in words.
    """

    seconds: tuple[float, ...] = (0.0,)
    measured: int = 0
    source: str = ""

    @property
    def mean_s(self) -> float:
        """Return the mean, seconds."""
        return float(np.mean(self.seconds))

    @property
    def within_s(self) -> tuple[float, float]:
        """Return the interval of 80 %, seconds."""
        low, high = np.quantile(self.seconds, (0.1, 0.9)).tolist()
        return low, high

    def drawn(self, jobs: int, seed: int) -> Array:
        """Return the delay of each job in a replay, seconds [jobs], the same each time for a seed."""
        draw = np.random.default_rng((seed, len(self.seconds)))
        sample = draw.choice(self.seconds, self.measured) if self.measured else np.array(self.seconds)
        return np.asarray(draw.choice(sample, jobs))


#: Jobs are placed at once.
NO_DELAY = StartDelay()

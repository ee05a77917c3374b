"""What all models draw from, and the work that they bring.

Rule: one generator for a workload, and numbers whose sums are exact, so that what is drawn is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Generator = np.random.Generator
#: Times between submissions are whole multiples of 1 / TICKS s, so that no machine adds them up otherwise.
TICKS = 1024.0


def generator(seed: int) -> Generator:
    """The generator of a seed, 0 or above (PCG64, whatever numpy's default may become)."""
    return np.random.Generator(np.random.PCG64(seed))


def at_most(most: float, count: int, draw_for: Callable[[Array], Array]) -> Array:
    """`count` values of which none is above `most`: those that were are drawn again.

    Args:
        draw_for: gives a value for each of these places.
    """
    values, places = np.empty(count), np.arange(count)
    while len(places):
        drawn = draw_for(places)
        values[places] = drawn
        places = places[drawn > most]
    return values


def instants(gaps: Array) -> Array:
    """When each comes, seconds, if these times are between them and the first begins at 0."""
    return np.cumsum(np.rint(gaps * TICKS)) / TICKS


def span_for(load: float, size: Array, run_time: Array, machine: int) -> float:
    """Seconds in which these jobs must have come to offer that load: their work / (machine x seconds).

    Source: the Parallel Workloads Archive, m_lublin99.c, "load".
    """
    return float((size * run_time).sum()) / (machine * load)

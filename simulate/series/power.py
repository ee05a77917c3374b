"""Power and energy over time, from the energy that was consumed until each time.

Rule: power is what the energy grows by, whatever the file says of watts, so that both always agree; nan where nothing
was measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .run import Energy

Array = npt.NDArray[Any]


def joules_at(energy: Energy, times: Array) -> Array:
    """Energy consumed until each of the times; nan outside of what was measured."""
    if not len(energy.time):
        return np.full(len(times), np.nan)
    found = np.interp(times, energy.time, energy.joules)
    found[(times < energy.time[0]) | (times > energy.time[-1])] = np.nan
    return found


def watts_over(energy: Energy, edges: Array) -> Array:
    """Mean power between each two neighbouring edges, over the part of it that was measured."""
    if not len(energy.time):
        return np.full(len(edges) - 1, np.nan)
    inside = np.clip(edges, energy.time[0], energy.time[-1])
    long = np.diff(inside)
    grown = np.diff(np.interp(inside, energy.time, energy.joules))
    watts = np.full(len(long), np.nan)
    np.divide(grown, long, out=watts, where=long > 0)
    return watts

"""The power of jobs on a network over time, as the kernels log it.

Rule: a kernel writes a row when the power of a job changes, and pauses when its log must be emptied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.queue.network.tables import POWER

#: Fewest rows of a kernel's log.
_ROWS = 1 << 15


def log_rows(running: int, *, kept: bool) -> Array:
    """Return the log of a kernel.

    Args:
        running: the most jobs that run at once.
        kept: False: nothing is logged.
    """
    return np.zeros(max(_ROWS, 4 * running + 4) if kept else 0, POWER)


class PowerLog:
    """All rows of a replay, in the order in which they were logged.

    Args:
        kept: False: nothing is logged.
    """

    def __init__(self, *, kept: bool) -> None:
        self._kept, self._parts = kept, list[Array]()

    def empty(self, world: Any) -> None:
        """Take the rows out of the log of a kernel."""
        if self._kept and (row_count := int(world.solver["logged"])):
            self._parts.append(world.power_log[:row_count].copy())
            world.solver["logged"] = 0

    def empty_full(self, world: Any) -> bool:
        """Empty the log of a kernel that may have paused because of it. Return whether it had."""
        full = self._kept and 2 * int(world.solver["logged"]) > len(world.power_log)
        if full:
            self.empty(world)
        return full

    def rows(self) -> Array | None:
        """Return the rows, of POWER; None if nothing is logged."""
        return np.concatenate([np.zeros(0, POWER), *self._parts]) if self._kept else None


def joules_at(rows: Array, times: Array) -> Array:
    """Return the joules until each of the times, seconds, of rows of POWER. O((rows + times) log (rows + times))."""
    changes = np.concatenate([rows["begin"], rows["until"]])
    moments, where = np.unique(np.concatenate([changes, times]), return_inverse=True)
    watts = np.bincount(where[: len(changes)], np.concatenate([rows["watts"], -rows["watts"]]), len(moments))
    joules = np.concatenate([[0.0], np.cumsum(np.cumsum(watts)[:-1] * np.diff(moments))])
    return np.asarray(joules[where[len(changes) :]])

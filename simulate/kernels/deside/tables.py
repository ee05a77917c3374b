"""Tables of the interval world: where its threads sit, beside the tables of the simulation (NumPy alone)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .block import Block
from .layout import FLOAT, INT

_FLOATS, _INTS = "clock rate", "thread0 threads lane0 lanes busy queued asleep link"
#: One row a job. `clock`: core-seconds that each of its busy threads has had; `busy`: threads that want a
#: core; `queued`, `asleep`: sizes of its two heaps; `link`: next job on the node.
SEAT = np.dtype([(x, FLOAT) for x in _FLOATS.split()] + [(x, INT) for x in _INTS.split()])
#: One row a job's phase: its threads that have not ended, and those that want a core.
LANE = np.dtype([("alive", INT), ("busy", INT)])
#: One row a thread: demand left in its phase; this interval's busy and idle part, dilation, first clock.
THREAD = np.dtype(
    [(x, FLOAT) for x in ("rem", "busy", "idle", "m", "begin")]
    + [(x, INT) for x in ("job", "group", "phase")]
    + [("random", np.uint64)]
)


class Intervals(Block):
    """Tables of an interval run, beside those of the simulation."""

    layout: ClassVar = {
        "seats": (SEAT, 1),
        "lanes": (LANE, 1),
        "threads": (THREAD, 1),
        "fresh": (INT, 1),  # threads whose busy part begins at this event
        "keys": (FLOAT, 2),  # [2, threads]: heaps by job: clock of a busy part's end, time of a sleep's end
        "ids": (INT, 2),
        "order": (INT, 1),  # jobs in the order of starting
        "sigma": (FLOAT, 1),  # jitter of each thread group
    }

"""State tables of the interval simulation, in addition to those of the fluid simulation (needs NumPy only)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT

_FLOATS, _INTS = "clock rate", "thread0 threads lane0 lanes busy queued asleep link"
#: One row per job. `clock`: core-seconds that each of its busy threads has had; `busy`: threads that need a core;
#: `queued`, `asleep`: sizes of its two heaps; `link`: next job on the node.
SEAT = np.dtype([(x, FLOAT) for x in _FLOATS.split()] + [(x, INT) for x in _INTS.split()])
#: One row per phase of a job: its threads that have not ended, and those that need a core.
LANE = np.dtype([("alive", INT), ("busy", INT)])
#: One row per thread: demand left in its phase; the interval's busy and idle part, dilation and first clock.
THREAD = np.dtype(
    [(x, FLOAT) for x in ("rem", "busy", "idle", "m", "begin")]
    + [(x, INT) for x in ("job", "group", "phase")]
    + [("random", np.uint64)]
)


class Intervals(Block):
    """Additional tables of an interval simulation."""

    layout: ClassVar = {
        "seats": (SEAT, 1),
        "lanes": (LANE, 1),
        "threads": (THREAD, 1),
        "fresh": (INT, 1),  # threads whose busy part begins at this event
        "keys": (FLOAT, 2),  # [2, threads]: heaps by job: clock at a busy part's end, time of an idle part's end
        "ids": (INT, 2),
        "order": (INT, 1),  # jobs in the order of starting
        "sigma": (FLOAT, 1),  # jitter of each thread group
    }

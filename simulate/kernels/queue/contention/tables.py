"""Tables of a replay with contention (NumPy alone).

Words: a *processor* is the cores that share a memory channel; a task's *work* is its time alone, in seconds on the
slowest processor of the machine, its *demand* what it would move there alone; *speed* is how much work a core does in
a second. A core belongs to a job from the job's start to its end; its task may have ended before.
Units: seconds, bytes, bytes/s, watts, joules.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...block import Block
from ...layout import FLOAT, INT
from ..tables import HELD

JOB = np.dtype(
    [(name, FLOAT) for name in ("submit", "work", "wall", "demand", "start", "finish", "joules")]
    + [(name, INT) for name in ("size", "memory", "rank", "task0", "left", "state", "overran")],
    align=True,
)
NODE = np.dtype(
    [(name, FLOAT) for name in ("watts", "since", "share")]
    + [(name, INT) for name in ("first", "last", "cores", "free", "memory", "running")],
    align=True,
)
#: `flops`: what a core gives at present; `busy`: core-seconds that tasks ran; `awake`: seconds that one did at least;
#: `share`: what one task's part in the watts that are common to all has come to.
PROCESSOR = np.dtype(
    [
        (name, FLOAT)
        for name in (
            "speed", "bandwidth", "remote", "b", "c", "da", "db", "dc", "dd", "n_max", "d_weight", "per_core", "common",
            "idle_share", "demand", "flops", "since", "busy", "awake", "share",
        )
    ]
    + [(name, INT) for name in ("node", "first", "last", "free", "running", "contention")],
    align=True,
)  # fmt: skip
#: What runs on a core: how much work was left at `since`, at which rate it goes, and when it is to end; `until`: when
#: its job's walltime is over; `common`: the shares of its processor and node when it began.
CORE = np.dtype(
    [(name, FLOAT) for name in ("left", "rate", "since", "end", "until", "demand", "common")]
    + [(name, INT) for name in ("job", "task", "processor")],
    align=True,
)
#: A task: its core, and when it ended.
TASK = np.dtype([("end", FLOAT), ("core", INT)], align=True)

WAITS, RUNS, ENDED, REJECTED = range(4)
DONE, PAUSED = range(2)
#: A core is free; its task has ended, its job has not.
FREE_CORE, IDLE_CORE = -1, -2
# How a resource is chosen.
RANDOM, GFLOPS, CORES, MEMORY, BANDWIDTH, POWER, ORDERED_NODE, RANDOM_NODE = range(8)
# Cells of `count`, of which NEXT is the same in all replays; DRAWS: 1 where the next job is drawn; RULE: how resources
# are chosen.
NEXT, RUNNING, FREE, WAITING, TASKS, INSTANTS, DRAWS, RULE, CELLS = range(9)
NOW, CLOCKS = range(2)


class Contended(Block):
    """All that such a replay knows."""

    layout: ClassVar = {
        "jobs": (JOB, 1),
        "ranked": (INT, 1),  # rank -> job
        "nodes": (NODE, 1),
        "order": (INT, 1),  # the nodes as a rule puts them
        "processors": (PROCESSOR, 1),
        "cores": (CORE, 1),
        "tasks": (TASK, 1),
        "queue": (INT, 1),  # ranks of the jobs that wait: a heap, or in no order where the next is drawn
        "ends": (FLOAT, 1),  # when a processor's next task ends
        "next_end": (INT, 1),  # tournaments: the processor that wins is in cell 1
        "scores": (FLOAT, 1),  # of a processor, the smallest is chosen; infinite: it has no free core
        "best": (INT, 1),
        "count": (INT, 1),
        "clock": (FLOAT, 1),
        "random": (np.dtype("u8"), 1),
        **HELD,
    }

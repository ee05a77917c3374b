"""State tables of a replay with contention (needs NumPy only).

Terms: a *processor* is the cores that share a memory channel; a task's *work* is its run time alone on the slowest
processor of the machine, its *demand* the bandwidth that it uses there alone; *speed* is work per second of a core. A
core belongs to a job from the job's start to its end, even if its task has ended before.
Units: seconds, bytes, bytes/s, watts, joules.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...block import Block
from ...mapping.layout import FLOAT, INT, row_dtype
from ..tables import HELD

#: `key`: what the next job has least of, if that is known at the submission only.
JOB = row_dtype("submit work wall demand start finish joules key", "size memory rank task0 left state overran")
NODE = row_dtype("watts since share", "first last cores free memory running")
#: `flops`: present mean speed of a core; `busy`: core seconds with a task; `awake`: seconds with at least one task;
#: `share`: joules of the common power that one task has accrued since the beginning; `end_place`, `score_place`:
#: positions in the heaps.
PROCESSOR = row_dtype(
    "speed bandwidth remote b c da db dc dd n_max d_weight per_core common idle_share demand flops since busy awake "
    "share",
    "node first last free running contention end_place score_place",
)
#: The task of a core: work left at `since`, its rate and its end; `until`: end of its job's walltime; `common`: shares
#: of its processor and node when it began.
CORE = row_dtype("left rate since end until demand common", "job task processor")
#: A task: its end and its core.
TASK = row_dtype("end", "core")

#: A core is free; or its task has ended, but its job has not.
FREE_CORE, IDLE_CORE = -1, -2
# Resource rules.
RANDOM, GFLOPS, CORES, MEMORY, BANDWIDTH, POWER, ORDERED_NODE, RANDOM_NODE = range(8)
#: `picks`: how the next job is found; `rule`: the resource rule; `released`: jobs in the table `released`; `blocked`:
#: cores that a power cap keeps free.
COUNT = row_dtype("", "total next running free waiting tasks instants picks rule released blocked")
CLOCK = row_dtype("now", "")
#: State of the stream of random draws.
RANDOM_STATE = np.dtype([("state", np.uint64)])
BY_RANK, DRAWN, BY_KEY = range(3)
# Operations of `pairs_loop.call`.
REPLAY, STEP, DECIDE, START = range(4)


class Contended(Block):
    """State of a replay with contention."""

    layout: ClassVar = {
        "jobs": (JOB, 1),
        "ranked": (INT, 1),  # rank -> job
        "nodes": (NODE, 1),
        "order": (INT, 1),  # nodes in the order of the rule
        "processors": (PROCESSOR, 1),
        "cores": (CORE, 1),
        "tasks": (TASK, 1),
        "queue": (INT, 1),  # ranks of the waiting jobs: a heap, or unordered unless the next is by rank
        "ends": (FLOAT, 1),  # heap of the processors by the next end of a task
        "next_end": (INT, 1),
        "scores": (FLOAT, 1),  # heap of the processors by score, the smallest is chosen; infinite without a free core
        "best": (INT, 1),
        "demands": (FLOAT, 1),  # scratch: demand of each task of a processor
        "count": (COUNT, 0),
        "clock": (CLOCK, 0),
        "random": (RANDOM_STATE, 0),
        **HELD,
    }

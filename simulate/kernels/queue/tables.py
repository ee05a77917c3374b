"""Tables of a replay (NumPy alone).

Words: an *instant* is a time at which jobs end or are submitted; a *piece* is a run of neighbouring resources that a
job has; a job's *rank* is its place in the queue's order, which is fixed before the run; where jobs wait for others,
it is so but for equals, whose ranks are given as they are submitted.
Units: seconds; resources are numbered from 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..layout import FLOAT, INT

#: One row a job; `piece0`, `pieces`: its resources, in the table `pieces`.
JOB = np.dtype(
    [(name, FLOAT) for name in ("submit", "run", "wall", "start", "finish")]
    + [(name, INT) for name in ("size", "rank", "piece0", "pieces", "state")],
    align=True,
)
#: First and last resource.
PIECE = np.dtype([("first", np.int32), ("last", np.int32)])
#: A job that runs: until when at the latest, how many resources, which job.
END = np.dtype([("time", FLOAT), ("size", INT), ("job", INT)], align=True)
#: What waits below a node of the tree: the smallest size, and the shortest walltime.
LEAST = np.dtype([("wall", FLOAT), ("size", INT)], align=True)

#: Of jobs that wait for others; where none does, these are empty.
HELD = {
    "unmet": (INT, 1),  # how many a job still waits for
    "followers": (INT, 1),  # who waits for each job, one job's behind the other's
    "follower0": (INT, 1),  # where each job's begin; the last cell is the end
    "released": (INT, 1),  # who waits no more and is to be submitted now: a heap of rows from cell 1 on; 0: how many
    "given": (INT, 1),  # of the ranks that equals have in common, from the first on: how many are given
}

WAITS, RUNS, ENDED, REJECTED = range(4)
#: Answers of a run: the trace is done; more room for pieces is wanted; as many instants as asked for have passed.
DONE, GROW, PAUSED = range(3)
#: Children of a node of the tree.
WIDTH = 16
#: A size that nothing has: nobody waits here.
NOBODY = np.iinfo(np.int64).max

# Cells of `count`; IN_TURN: ranks are in the order of submission; ORDER: 0, or how the
# queue is sorted in each pass; FILLS: 1 where jobs may go before one that waits; DECIDED: jobs that are to start when
# the decision is carried out; NEWS: 1 where something has happened since the last.
(
    NEXT,
    RUNNING,
    FIRST_END,
    FREE,
    HEAD,
    SPARE,
    RESERVED,
    PIECES,
    LOWEST,
    WAITING,
    MACHINE,
    INSTANTS,
    IN_TURN,
    ORDER,
    FILLS,
    DECIDED,
    NEWS,
    CELLS,
) = range(18)
# Of conservative backfilling: slices of the profile; rows of `sets` that are free; how resources are chosen; slices
# that have been counted in their blocks.
SLICES, FREE_SETS, ALLOCATION, STRICT, SURVEYED, ALL_CELLS = range(CELLS, CELLS + 6)
BASIC, CONTIGUOUS, LOCAL = range(3)
# Cells of `clock`; DUE: when the next that waits has its place; FREED: until when places were left in the last pass;
# BEGAN: the first submission; TAKES: seconds that a decision does; BUSY: when the one that is being taken is carried
# out, or infinite.
NOW, RESERVATION, DUE, FREED, BEGAN, TAKES, BUSY, CLOCKS = range(8)

#: A job with its place: until when it may have it; a row of `sets`, whose words between these hold its resources. Its
#: rank is whatever the queue is sorted by; of equals the first that was submitted is first.
PLACED = np.dtype(
    [(name, JOB.fields[name][0] if name != "rank" else FLOAT) for name in JOB.names or ()]
    + [("until", FLOAT), ("set_row", INT), ("low_word", INT), ("high_word", INT)],
    align=True,
)
#: How few and how many are free in a block of slices, and how many slices that is.
EXTENT = np.dtype([("least", INT), ("most", INT)], align=True)
SPAN = 16
#: From `time` on so many resources are free; `users`: jobs that begin or end there.
SLICE = np.dtype([("time", FLOAT), ("free", INT), ("users", INT)], align=True)


class Replay(Block):
    """All that a replay knows."""

    layout: ClassVar = {
        "jobs": (JOB, 1),
        "ranked": (INT, 1),  # rank -> job
        "pieces": (PIECE, 1),
        "free": (np.dtype("u8"), 1),  # a bit a resource
        "heap_time": (FLOAT, 1),  # jobs that run, by their end
        "heap_job": (INT, 1),
        "ends": (END, 1),  # the same by their walltime's end, ascending from `count[FIRST_END]` on
        "least": (LEAST, 1),  # the tree, level by level from the leaves (one a rank)
        "levels": (INT, 1),  # where each level begins; the last cell is the end
        "decided": (INT, 1),  # jobs that are to start
        "queue": (INT, 1),  # where the order changes: the jobs that wait, and their scores
        "scores": (FLOAT, 1),
        "count": (INT, 1),
        "clock": (FLOAT, 1),
        **HELD,
    }


class RichReplay(Block):
    """The same, where jobs may wait for others, and decisions take time."""

    layout: ClassVar = Replay.layout


class Reserving(Block):
    """All that a replay knows in which every job that waits has its place."""

    layout: ClassVar = {
        "jobs": (PLACED, 1),
        "pieces": (PIECE, 1),
        "heap_time": (FLOAT, 1),
        "heap_job": (INT, 1),
        "queue": (INT, 1),
        "slices": (SLICE, 1),
        "blocks": (EXTENT, 1),  # of so many slices each
        "sets": (np.dtype("u8"), 2),  # [rows, words]: what a job has
        "free_sets": (INT, 1),
        "free": (np.dtype("u8"), 1),  # a bit a resource: what is free in a hole; with BASIC: what is free now
        "groups": (PIECE, 1),  # clusters of the machine
        "count": (INT, 1),
        "clock": (FLOAT, 1),
        **HELD,
    }


def tree_levels(leaves: int) -> list[int]:
    """Where each level of a tree over so many ranks begins, and the end; whole blocks each."""
    levels, size = [0], leaves
    while True:
        blocks = -(-size // WIDTH)
        levels.append(levels[-1] + blocks * WIDTH)
        if blocks <= 1:
            return levels
        size = blocks

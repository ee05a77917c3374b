"""State tables of a replay (needs NumPy only).

Terms: an *instant* is a time at which jobs end or are submitted; a *piece* is an interval of resources of one job; a
job's *rank* is its position in the order of the queue, fixed before the run. If jobs have dependencies, ties are
resolved at submission.
Units: seconds; resources are numbered from 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT, LEAST, extended, row_dtype

#: One row per job; `piece0`, `pieces`: first row and number of its resources in the table `pieces`.
JOB = row_dtype("submit run wall start finish", "size rank piece0 pieces state")
#: First and last resource.
PIECE = np.dtype([("first", np.int32), ("last", np.int32)])
#: A running job: its latest end (by walltime), its number of resources, its row.
END = row_dtype("time", "size job")

#: Tables of dependencies; empty if no job has any.
HELD = {
    "unmet": (INT, 1),  # number of unmet dependencies of each job
    "followers": (INT, 1),  # dependent jobs, grouped by the job that they depend on
    "follower0": (INT, 1),  # first follower of each job; the last cell is the end
    "delays": (FLOAT, 1),  # of each follower: seconds from the end of the job that it depends on
    "at_any_end": (INT, 1),  # of each follower: 1 if it does not matter how that job ends
    "eligible": (FLOAT, 1),  # [jobs]: when the dependencies that are met, and their delays, are over
    "released": (INT, 1),  # heap of jobs whose dependencies are all met, by the time of their submission
    "released_at": (FLOAT, 1),
    "released_place": (INT, 1),  # [jobs]
    "given": (INT, 1),  # for the lowest rank of each group of ties: how many ranks have been assigned
}

#: A job with a predicted run time: its walltime, and how often its expected end was corrected while it ran.
EXPECTED = row_dtype("limit", "corrections")
#: Seconds by which the expected end of a job that outlasts it is moved, the first time, the second time, ...; together
#: more than any run time. Up to 100 h these are those of Tsafrir, Etsion and Feitelson (IEEE TPDS 18(6), 2007).
INCREMENTS_S = (
    *(60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0, 180000.0),
    *(360000.0 * 2.0**k for k in range(33)),
)  # fmt: skip

WAITS, RUNS, ENDED, REJECTED = range(4)
#: Return codes of a run: the trace is done; the tables must grow; the requested number of instants has passed. GOES_ON:
#: none of these.
DONE, GROW, PAUSED, GOES_ON = range(4)
#: Children of a node of the tree.
WIDTH = 16
#: Size of an empty leaf: larger than any job.
NO_JOB = np.iinfo(np.int64).max

#: `total`: number of jobs, the first rows; `in_turn`: 1 if ranks are in the order of submission; `order`: 0, or the
#: order by which the queue is sorted in each pass; `fills`: 1 if the policy backfills; `decided`: jobs that start when
#: the pending decision is applied; `news`: 1 if something has happened since the last decision; `lowest`: the first
#: word of `free` that may be non-empty; `released`, `unlearned`: jobs in the tables `released` and `ended`.
COUNT = row_dtype(
    "",
    "total next running first_end free head spare reserved pieces waiting machine instants in_turn order fills decided "
    "news lowest released unlearned",
)
#: `began`: first submission; `takes`: seconds that a decision takes; `busy`: when the pending decision is applied, or
#: infinite.
CLOCK = row_dtype("now reservation began takes busy", "")
#: Of conservative backfilling: first slice of the profile, and the row after its last; free rows of `sets`; the variant
#: of the allocation; jobs in the table `crossing`. `due`: start of the next reservation; `freed`: latest end of the
#: reservations vacated in the last pass.
RESERVING_COUNT = extended(COUNT, ints=("first_slice", "slices", "free_sets", "allocation", "strict", "crossing"))
RESERVING_CLOCK = extended(CLOCK, ("due", "freed"))
BASIC, CONTIGUOUS, LOCAL = range(3)

#: A job with its reservation: its latest end, and the row and word range of `sets` that hold its resources. The rank is
#: the sort key of the queue; ties are in the order of submission.
PLACED = np.dtype(
    [(name, JOB[name] if name != "rank" else FLOAT) for name in JOB.names or ()]
    + [("until", FLOAT), ("set_row", INT), ("low_word", INT), ("high_word", INT)],
    align=True,
)
#: Slices that a search compares in one step; `spare` has as many more cells than there are rows.
SPAN = 64


class Replay(Block):
    """State of a replay under EASY or strict order."""

    layout: ClassVar = {
        "jobs": (JOB, 1),
        "ranked": (INT, 1),  # rank -> job
        "pieces": (PIECE, 1),
        "free": (np.dtype("u8"), 1),  # one bit per resource
        "heap_time": (FLOAT, 1),  # heap of running jobs by their end
        "heap_job": (INT, 1),
        "ends": (END, 1),  # running jobs by the end of their walltimes, ascending from row `count.first_end` on
        "least": (LEAST, 1),  # the tree, level by level from the leaves (one per rank)
        "levels": (INT, 1),  # first cell of each level; the last cell is the end
        "decided": (INT, 1),  # jobs that start when the pending decision is applied
        "queue": (INT, 1),  # for orders that change with time: the waiting jobs, and their scores
        "scores": (FLOAT, 1),
        "count": (COUNT, 0),
        "clock": (CLOCK, 0),
        "expected": (EXPECTED, 1),  # of each job; empty if walltimes are used. `wall` is nan until a job is predicted
        "ended": (INT, 1),  # jobs that have ended since the last prediction
        **HELD,
    }


#: Features of a job under a learned order, units of a network, and numbers of a unit: its bias, the weight of each
#: feature, and the weight of what the unit gives.
FEATURE_COUNT, HIDDEN = 10, 6
UNIT = FEATURE_COUNT + 2
#: x * ROUND - (x * ROUND - x) is x rounded to 40 bits (Veltkamp's splitting).
ROUND = 8193.0
#: Beyond, the rational tanh is -1 or 1.
STEEP = 3.0
#: What the score of a job under a learned order rests on, see `learned_score`; `user`: row of `lately`, -1: not known.
TRAITS = row_dtype("wall size expected wall_floor expected_floor", "user")
#: The run times of a user's last two jobs that ended, seconds; the same twice after the first.
LATELY = row_dtype("last before", "ended")


class RichReplay(Block):
    """The same for jobs with dependencies or predicted run times, decisions that take time, or a learned order."""

    layout: ClassVar = {
        **Replay.layout,
        "learned": (FLOAT, 1),  # weights of the order, then the longest wait, seconds; empty if it is not learned
        "filling": (FLOAT, 1),  # the same of the jobs behind a reservation; empty if they have no order of their own
        "features": (FLOAT, 1),  # of the job whose scores are computed
        "fill_scores": (FLOAT, 1),  # [jobs], as `scores`; empty as `filling` is
        "traits": (TRAITS, 1),  # [jobs], likewise
        "lately": (LATELY, 1),  # [users], likewise
    }


#: Rows of `ranked` in use; entries of the log; jobs that have ended.
STEPWISE_COUNT = extended(COUNT, ints=("ranks", "logged", "ended"))
#: Cells of `asked`. What the caller writes: the request, its job and the number of chosen jobs or intervals; resources
#: that are not needed at the reservation; whether instants at which no job fits are left out, see `count.instants`.
QUESTION, JOB_ASKED, MANY, SPARE, SKIPS = range(5)
#: What the caller reads: free resources, ranks, entries of the log, jobs that have ended, and whether `pieces` must
#: grow before more jobs start.
FREE, RANKS, LOGGED, ENDS, FULL = range(5, 10)
#: Cells of `times`: the time; the latest to advance to; the reservation, nan if it is to be found.
NOW, UNTIL, RESERVATION = range(3)
#: Requests. ADVANCE starts the chosen jobs first, and answers whether there is a next instant.
ADVANCE, START, START_ON, REJECT, KILL, RESERVE, BACKFILL = range(7)
CHOSEN = -1  # state of a job that would start


class Stepwise(Block):
    """State of a replay under a policy in Python."""

    layout: ClassVar = {
        **Replay.layout,
        "count": (STEPWISE_COUNT, 0),
        "chosen": (INT, 1),  # jobs that start now, or would in answer to a question
        "log": (INT, 1),  # each start as the job, each end as -1 - job
        "asked": (INT, 1),
        "times": (FLOAT, 1),
    }


#: `rank`: position in the order of the queue; `kind`: which classes of resources it may have, a row of `may`.
CLASSED = row_dtype("submit run wall start", "size rank kind")


class Classed(Block):
    """State of a replay under EASY in which each job may have some classes of resources only."""

    layout: ClassVar = {
        "jobs": (CLASSED, 1),
        "may": (INT, 2),  # [kinds, classes]: 1 if jobs of a kind may have resources of a class
        "held": (INT, 2),  # [jobs, classes]: how many resources a job has, or had
        "free": (INT, 1),  # how many of each class are free now
        "later": (INT, 1),  # how many are free when the reservation begins, without those of the head
        "heap_time": (FLOAT, 1),
        "heap_job": (INT, 1),
        "ends": (END, 1),
        "queue": (INT, 1),  # waiting jobs by rank
        "count": (COUNT, 0),
        "clock": (CLOCK, 0),
        **HELD,
    }


class Reserving(Block):
    """State of a replay under conservative backfilling."""

    layout: ClassVar = {
        "jobs": (PLACED, 1),
        "pieces": (PIECE, 1),
        "heap_time": (FLOAT, 1),
        "heap_job": (INT, 1),
        "queue": (INT, 1),
        "times": (FLOAT, 1),  # the profile: begin of each slice
        "spare": (np.dtype(np.int32), 1),  # number of free resources in each slice
        "users": (np.dtype(np.int32), 1),  # number of jobs that begin or end at the begin of each slice
        "sets": (np.dtype("u8"), 2),  # [rows, words]: resources of a job, one bit each
        "free_sets": (INT, 1),
        "free": (np.dtype("u8"), 1),  # one bit per resource: free in the gap examined; with BASIC: free now
        "crossing": (END, 1),  # jobs that have resources in the gap examined last; `time`: minus their ends
        "groups": (PIECE, 1),  # clusters of the machine
        "count": (RESERVING_COUNT, 0),
        "clock": (RESERVING_CLOCK, 0),
        **HELD,
    }


def tree_levels(leaves: int) -> list[int]:
    """Return the first cell of each level of a tree over `leaves` ranks, and the end. Levels are whole blocks."""
    levels, size = [0], leaves
    while True:
        blocks = -(-size // WIDTH)
        levels.append(levels[-1] + blocks * WIDTH)
        if blocks <= 1:
            return levels
        size = blocks

"""The tables of worlds in which a policy orders the queue of EASY backfilling, job by job (needs NumPy only).

Rule: a copy plays episodes: so many consecutive jobs of a trace, on an empty machine. The jobs of all traces lie in one
table, and an episode stays in its trace.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT, NARROW, row_dtype

BYTE, SEEN = np.dtype("u1"), np.dtype("f4")
#: What a policy decides: which job is next in the queue, and behind the reservation; the latter alone; whether the next
#: job starts now or waits.
ORDER, FILL, INSPECT = range(3)
#: What a job's start costs: its bounded slowdown, its wait in seconds.
BSLD, WAIT = range(2)
#: How `call` begins: the action of each copy; a new episode in each; one in each copy whose last had no decision.
STEP, RESET, AGAIN = range(3)
#: Columns of a job and of the machine as the policy sees them.
JOB_COLUMNS, MACHINE_COLUMNS = 6, 6
#: `key`: what a rule sorts the queue by, the least first; `long`, `wide`: the limit and the size as the policy sees
#: them; `user`: row of `last_run`, -1: not known.
QUEUED_JOB = row_dtype("submit run wall key long wide", "size user")
#: `longest`: time that is seen as 1, logarithmic; `pause`: how long a wait lasts at most; `patience`: how long a job is
#: made to wait in all; seconds. `episode`: jobs of an episode; `warm`: how many of them come before those that count;
#: `rows`: jobs that are visible.
ORDER_SETTINGS = row_dtype("longest pause patience", "processors episode warm rows decides objective")
#: `owed`: rewards since the last step; `reservation`: of `head`, the first job that does not fit, -1: none yet in this
#: pass; `spare`: processors that it leaves then; `wake`: end of a wait; `held`: the job that waits for it, -1: none;
#: `begin`: first row of the episode in the table of jobs; `next`: the next submission, from 0; `passes`: 1 in a pass;
#: `chosen`: place in the queue of the job that is asked about, -1: none; `shown`: rows of the last observation.
ORDER_COPY = row_dtype(
    "time total owed reservation wake", "begin next queued running free spare head held passes chosen shown"
)


class OrderCopies(Block):
    """Copies of the world, and what policies see of them."""

    layout: ClassVar = {
        "jobs": (QUEUED_JOB, 1),
        "settings": (ORDER_SETTINGS, 0),
        "copies": (ORDER_COPY, 1),
        "queue": (NARROW, 2),  # [copies, jobs]: jobs of the episode in the order of submission
        "heap_time": (FLOAT, 2),  # [copies, jobs]: ends
        "heap_job": (INT, 2),
        "end_time": (FLOAT, 2),  # [copies, jobs]: ends of the limits of running jobs, ascending
        "end_job": (INT, 2),
        "starts": (FLOAT, 2),  # [copies, jobs]: when each started, seconds
        "expected": (FLOAT, 2),  # [copies, jobs]: expected run time when each was submitted, seconds
        "promise": (FLOAT, 2),  # [copies, jobs]: the earliest reservation that each had
        "waited": (FLOAT, 2),  # [copies, jobs]: how long each was made to wait
        "last_run": (FLOAT, 2),  # [copies, users]: run time of the last job that ended, nan: none
        "run_before": (FLOAT, 2),  # [copies, users]: of the one before it, or the same
        "upcoming": (INT, 1),  # [copies]: `begin` of the next episode
        "action": (INT, 1),  # [copies]: row of the job; the number of rows: wait
        "seen_jobs": (SEEN, 2),  # [copies, rows x JOB_COLUMNS]
        "seen_machine": (SEEN, 2),  # [copies, MACHINE_COLUMNS]
        "mask": (BYTE, 2),  # [copies, rows + 1]
        "reward": (FLOAT, 1),  # [copies]
        "done": (BYTE, 1),  # [copies]: 1: the step ended an episode, and the observation is of the next one
        "idle": (BYTE, 1),  # [copies]: 1: the episode that began had no decision
        "last_machine": (SEEN, 2),  # [copies, MACHINE_COLUMNS]: at the end of the last episode
        "last_total": (FLOAT, 1),  # [copies]: sum of its rewards
    }

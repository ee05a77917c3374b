"""The tables of worlds in which each decision starts one job on one node, and of networks (needs NumPy only).

Rule: a copy plays episodes: so many consecutive jobs of a trace, on an empty machine. The jobs of all traces lie in one
table, and an episode stays in its trace.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT, NARROW, row_dtype

BYTE, SEEN = np.dtype("u1"), np.dtype("f4")
#: When a decision is due: a visible job fits; the largest waiting job fits; one chosen job fits, the one with the
#: smallest key or one that is drawn.
ANY, LARGEST, KEYED, DRAWN = range(4)
#: What a job's start costs: bounded slowdown, slowdown, wait in seconds.
BSLD, SLD, WAIT = range(3)
#: Rows that a network scores at once.
LANES = 64
#: Columns of a job and of a node as the policy sees them.
JOB_COLUMNS, NODE_COLUMNS = 4, 3
#: `run`: on the slowest node, seconds; `wall`: the requested time; `key`: see KEYED; `long`, `wide`: the requested time
#: and the size as the policy sees them.
TRACE_JOB = row_dtype("submit run wall key long wide", "size")
#: `speed`: in any unit; `large`, `fast`: processors and speed as the policy sees them.
PAIR_NODE = row_dtype("speed large fast", "processors")
#: `patience`: wait that is seen as 1, seconds; `slowest`: least `speed`; `episode`: jobs of an episode; `warm`: how
#: many of them come before those that count; `rows`: jobs that are visible.
PAIR_SETTINGS = row_dtype("patience slowest", "episode warm rows due objective")
#: `begin`: first row of its episode in the table of jobs; `next`: the next submission, from 0; `chosen`: place in the
#: queue of the job that has to fit, -1: none; `shown`: rows of the last observation; `total`: rewards so far.
COPY = row_dtype("time total", "begin next queued running started chosen shown")


class PairCopies(Block):
    """Copies of the world, and what policies see of them."""

    layout: ClassVar = {
        "jobs": (TRACE_JOB, 1),
        "nodes": (PAIR_NODE, 1),
        "settings": (PAIR_SETTINGS, 0),
        "copies": (COPY, 1),
        "queue": (NARROW, 2),  # [copies, jobs]: jobs of the episode in the order of submission
        "free": (NARROW, 2),  # [copies, nodes]: processors
        "heap_time": (FLOAT, 2),  # [copies, jobs]: ends
        "heap_job": (INT, 2),
        "place": (NARROW, 2),  # [copies, jobs]: the node of each job that started
        "starts": (FLOAT, 2),  # [copies, jobs]: when each started, seconds
        "upcoming": (INT, 1),  # [copies]: `begin` of the next episode
        "draw": (FLOAT, 1),  # [copies]: from [0, 1), see DRAWN
        "action": (INT, 1),  # [copies]: row of the job x nodes + node
        "seen_jobs": (SEEN, 2),  # [copies, rows x JOB_COLUMNS]
        "seen_nodes": (SEEN, 2),  # [copies, nodes x NODE_COLUMNS]
        "mask": (BYTE, 2),  # [copies, rows x nodes]
        "reward": (FLOAT, 1),  # [copies]
        "done": (BYTE, 1),  # [copies]: 1: the step ended an episode, and the observation is of the next one
        "last_nodes": (SEEN, 2),  # [copies, nodes x NODE_COLUMNS]: at the end of the last episode
        "last_total": (FLOAT, 1),  # [copies]: sum of its rewards
    }


class ScoredRows(Block):
    """A network and rows that it scores."""

    layout: ClassVar = {
        "widths": (INT, 1),  # of the input and of each layer
        "numbers": (FLOAT, 1),  # of each output of each layer in turn: its bias, then the weight of each input
        "rows": (FLOAT, 2),  # [columns, rows]
        "scores": (FLOAT, 1),  # [rows]
        "inputs": (FLOAT, 2),  # [widest layer, LANES]: what a layer takes
        "sums": (FLOAT, 2),  # [widest layer, LANES]: what it gives, before the bend
    }

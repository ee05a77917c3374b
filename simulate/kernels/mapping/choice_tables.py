"""The tables of copies of a world in which each decision is the choice of a pair of rules (needs NumPy only).

Rule: each copy has the tables of a fluid simulation of its own; these hold what all copies share and what policies see.
The jobs of all workloads lie in one table, and an episode is one workload.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from .layout import FLOAT, INT, row_dtype

BYTE, SEEN = np.dtype("u1"), np.dtype("f4")
#: What a decision costs: seconds, joules, joules times seconds until the next one.
MAKESPAN, ENERGY, ENERGY_DELAY = range(3)
#: What a policy sees: the queue; also the nodes and processors; also the cores.
MINIMAL, SMALL, NORMAL = range(3)
#: Requests of a job that a policy sees (time, cores, memory, volume), and points of their distribution.
REQUESTS, POINTS = 4, 5
#: Columns of a core.
CORE_COLUMNS = 3
#: What begins an episode, in place of an action.
BEGIN = -1
#: `job`: row of `keys`, 0: a random job; `resource`: code of `task_rules`, -1: start nothing.
CHOICE = row_dtype("", "job resource")
#: `watts`: of the machine without its processors; `sensitivity`: relative change of the queue that is seen as 0 or 1;
#: `one`: 1: an action starts one job; `always`: 1: a decision is due at each instant at which a job may start.
CHOICE_SETTINGS = row_dtype("watts sensitivity", "objective level one always")
#: `since`: time of the last decision; `spent`: joules since then; `begin`, `total`, `joules`: of the episode;
#: `first`: its first row in the table of jobs; `rule`, `resource`: of the last action that started jobs;
#: `queued`: jobs that waited at the last decision.
CHOICE_COPY = row_dtype("since spent begin total joules", "first rule resource queued")


class RuleChoices(Block):
    """The tables that copies share, and those that policies see."""

    layout: ClassVar = {
        "settings": (CHOICE_SETTINGS, 0),
        "actions": (CHOICE, 1),
        "keys": (FLOAT, 2),  # [rules for jobs, jobs]: the job with the smallest key is the next
        "level_of": (INT, 2),  # [REQUESTS, jobs]: which entry of `levels` a request is
        "levels": (FLOAT, 2),  # [REQUESTS, width]: values that requests have, ascending, as they are seen
        "copies": (CHOICE_COPY, 1),
        "trees": (INT, 2),  # [copies, REQUESTS x width]: Fenwick trees that count the waiting jobs of each level
        "reward": (FLOAT, 1),  # [copies]
        "seen": (SEEN, 2),  # [copies, size of the observation]
        "mask": (BYTE, 2),  # [copies, actions]
    }

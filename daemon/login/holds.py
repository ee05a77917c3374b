"""For how long each job of a workflow waits for pilotfish, if nobody comes.

Rule: a job may begin by itself a grace after the moment at which it could have begun anyway, so that without pilotfish
a whole workflow is late by about one grace, not by one for each step. No hold is longer than `max_defer_seconds` after
the earliest moment that the isolated run times of what it waits for allow (of a job that waits for nothing: after its
submission), and none is longer than a day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from graphlib import TopologicalSorter
from hashlib import sha256

from ...simulate.job import Job, Workflow
from ..learned import rests_on_default
from .model import Settings

LONGEST_S = 86_400


def in_order(workflow: Workflow) -> list[Job]:
    """The jobs, each after those that it waits for. O(jobs + dependencies)."""
    order = TopologicalSorter({job.id: job.after for job in workflow.jobs}).static_order()
    return [workflow.jobs[workflow.index[name]] for name in order]


def guessed(workflow: Workflow) -> set[str]:
    """The jobs of which nobody knows how long they take, and all that wait for one: nothing is foretold of them."""
    found: set[str] = set()
    for job in in_order(workflow):
        if rests_on_default(job) or found.intersection(job.after):
            found.add(job.id)
    return found


def earliest_starts(workflow: Workflow) -> dict[str, float]:
    """Seconds before which no job can start: the longest chain of isolated run times; what nobody knows counts as 0."""
    start: dict[str, float] = {}
    end: dict[str, float] = {}
    for job in in_order(workflow):
        start[job.id] = max((end[before] for before in job.after), default=0.0)
        known = 0.0 if rests_on_default(job) else job.profile.isolated_time
        end[job.id] = start[job.id] + known
    return start


def holds(workflow: Workflow, expected: Mapping[str, float], key_of: Mapping[str, str], to: Settings) -> dict[str, int]:
    """Seconds from the submission of each job to its begin time.

    Args:
        expected: seconds from now until each job starts in a simulated plan, where there is one.
        key_of: the jobs' keys, by which they are staggered so that holds do not all end in one moment.
    """
    earliest = earliest_starts(workflow)
    return {
        job.id: _hold(max(expected.get(job.id, 0.0), earliest[job.id]), earliest[job.id], key_of[job.id], to)
        for job in workflow.jobs
    }


def _hold(expected_s: float, earliest_s: float, key: str, to: Settings) -> int:
    stagger = int.from_bytes(sha256(key.encode()).digest()[:4]) % (to.stagger_seconds + 1)
    wanted = math.ceil(expected_s) + to.grace_seconds + stagger
    return min(wanted, math.ceil(earliest_s) + to.max_defer_seconds, LONGEST_S)

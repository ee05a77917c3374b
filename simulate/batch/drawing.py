"""How many resources of each kind a job has, and what they draw, on machines whose resources may differ.

Rule: a kind is what resources draw; jobs that only wait draw as idle resources do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .powers import Mixed, Powers
from .replay import Replayed

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Watts; a column for each kind of resource.

    Args:
        idle: of the whole machine when it is idle.
        extra: [kinds], that a resource draws more when it computes.
        counts: [jobs, kinds], resources that draw as computing ones; 0 for jobs that only wait.
        jobs_idle: of each job's resources when they are idle.
    """

    idle: float
    extra: Array
    counts: Array
    jobs_idle: Array


def drawing(replayed: Replayed, powers: Powers | Mixed) -> Drawing:
    """See above. O(jobs x kinds + pieces x kinds + resources)."""
    kinds, each, counts = _counts(replayed, powers)
    idle, full = (np.array([getattr(kind, name) for kind in kinds]) for name in ("idle", "computing"))
    jobs = replayed.workload
    computes = np.asarray(jobs.more.get("computes", np.ones(len(jobs), bool)), bool)
    return Drawing(float(each @ idle), full - idle, np.where(computes[:, None], counts, 0), counts @ idle)


def _counts(replayed: Replayed, powers: Powers | Mixed) -> tuple[list[Powers], Array, Array]:
    """The kinds, how many resources there are of each, and how many each job has."""
    if isinstance(powers, Powers):
        return [powers], np.array([replayed.machine]), replayed.workload.size[:, None]
    kinds = list(dict.fromkeys(kind for _, kind in powers.runs))
    upto = np.zeros((replayed.machine + 1, len(kinds)), np.int64)  # how many there are before each resource
    which = np.repeat([kinds.index(kind) for _, kind in powers.runs], [many for many, _ in powers.runs])
    np.cumsum(which[:, None] == np.arange(len(kinds)), axis=0, out=upto[1:])
    counts = np.zeros((len(replayed.workload), len(kinds)), np.int64)
    owner = np.repeat(np.arange(len(counts)), replayed.piece_count)
    place = np.arange(len(owner)) + np.repeat(
        replayed.piece0 - np.cumsum(replayed.piece_count) + replayed.piece_count, replayed.piece_count
    )
    mine = replayed.pieces[place]
    np.add.at(counts, owner, upto[mine["last"].astype(np.int64) + 1] - upto[mine["first"]])
    return kinds, upto[-1], counts

"""The orders of a queue: which of the jobs that wait comes first.

Rule: of equals the one that was submitted first, then the one that stands first in the file. Orders that a job's own
numbers decide are ranks, known before the run; those that look at the time waited are sorted anew in each pass. Where
jobs wait for others it is not known before who of equals is first, nor what f1 says: that is told at submission.
Source: thesis of Poquet (2017); for wfp3, unicep and f1 the papers on them that RLScheduler compares with (Tang et al.
2009; Carastan-Santos and de Camargo 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..workload import Workload

Array = npt.NDArray[Any]

#: What each order puts first.
ORDERS = {
    "fcfs": "first come, first served",
    "sjf": "shortest requested time first",
    "smallest": "fewest resources first",
    "largest": "most resources first",
    "wfp3": "largest (wait / walltime)^3 x size first",
    "unicep": "largest wait / (log2(max(size, 2)) x walltime) first",
    "f1": "smallest log10(walltime) x size + 870 log10(submit) first, from 1 s on",
    "random": "in an order drawn from the seed",
}
#: Orders that change with time, as kernels know them.
CHANGING = {"wfp3": 1, "unicep": 2}
#: The order that looks at when a job is submitted.
SUBMITTED = {"f1": 3}


def _f1(jobs: Workload, seed: int) -> Array:
    since = jobs.submit_time - (jobs.submit_time[0] if len(jobs) else 0.0)
    return np.log10(np.maximum(jobs.walltime, 1.0)) * jobs.size + 870.0 * np.log10(np.maximum(since, 1.0))


_KEYS: dict[str, Callable[[Workload, int], Array]] = {
    "sjf": lambda jobs, seed: jobs.walltime,
    "smallest": lambda jobs, seed: jobs.size,
    "largest": lambda jobs, seed: -jobs.size,
    "f1": _f1,
    "random": lambda jobs, seed: np.random.default_rng(seed).permutation(len(jobs)),
}


def told_later(jobs: Workload, order: str) -> int:
    """How kernels know an order that cannot be told before the run; 0: it can."""
    return CHANGING.get(order, 0) if jobs.dependencies is None else (CHANGING | SUBMITTED).get(order, 0)


def ranks(jobs: Workload, order: str, seed: int) -> Array:
    """The rank of each job, its place in the workload where the order is told later; see `ranked_by`."""
    if order not in _KEYS or told_later(jobs, order):
        return np.zeros(len(jobs), np.int64) if jobs.dependencies is not None else np.arange(len(jobs))
    return ranked_by(jobs, _KEYS[order](jobs, seed))


def ranked_by(jobs: Workload, keys: Array) -> Array:
    """The rank of each job, the smallest key first; where jobs wait for others, the first of those that a job and its
    equals have in common. O(jobs log jobs)."""
    places, ranked = np.arange(len(jobs)), np.argsort(keys, kind="stable")
    if jobs.dependencies is not None:
        same = np.append(False, keys[ranked][1:] == keys[ranked][:-1])[: len(jobs)]
        places = np.maximum.accumulate(np.where(same, 0, places))
    found = np.empty(len(jobs), np.int64)
    found[ranked] = places
    return found

"""Orders of the queue for compiled policies: as ranks of the jobs, or as the code of what a kernel sorts by.

Rule: ties are broken by submission, then by position in the file. Orders that depend only on a job's own numbers are
ranks, computed before the run; orders that depend on the waiting time are sorted in each pass. For jobs with
dependencies, ties and the order f1 depend on the submit time, so they are resolved at submission.
Source: thesis of Poquet (2017); wfp3, unicep: Tang et al. (2009); f1: Carastan-Santos and de Camargo (2017).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..model.workload import Workload
from .learned_order import LearnedOrder, OrderFile

#: Orders of the queue.
ORDERS = {
    "fcfs": "first come, first served",
    "sjf": "shortest requested time first",
    "smallest": "fewest resources first",
    "largest": "most resources first",
    "wfp3": "largest (wait / walltime)^3 x size first",
    "unicep": "largest wait / (log2(max(size, 2)) x walltime) first",
    "f1": "smallest log10(walltime) x size + 870 log10(submit) first; times of at least 1 s",
    "random": "random order, drawn from the seed",
}
#: Orders that change with time, with their codes in the kernels.
CHANGING = {"wfp3": 1, "unicep": 2}
#: The order that depends on the submit time, with its code.
SUBMITTED = {"f1": 3}
#: The order that depends on nothing but the walltime, with its code; used if run times are predicted.
BY_WALLTIME = {"sjf": 4}
#: The code of a learned order, which changes with time.
LEARNED = 5


def f1_keys(walltime: Array, size: Array, since: Array) -> Array:
    """Return the keys of the order f1 [jobs]; the smallest comes first.

    Args:
        walltime: seconds [jobs].
        size: resources [jobs].
        since: submit times, seconds after the first of all jobs [jobs].
    """
    return np.log10(np.maximum(walltime, 1.0)) * size + 870.0 * np.log10(np.maximum(since, 1.0))


def static_keys(order: str, walltime: Array, size: Array, since: Array, seed: int) -> Array:
    """Return the keys of an order that does not change with time [jobs]; the smallest comes first.

    Args:
        order: a key of ORDERS that is not in CHANGING.
        walltime: seconds [jobs].
        size: resources [jobs].
        since: submit times, seconds after the first of all jobs [jobs].
        seed: of the random order.
    """
    if order == "f1":
        return f1_keys(walltime, size, since)
    if order == "random":
        return np.random.default_rng(seed).permutation(len(size))
    keys: Array = {"fcfs": since, "sjf": walltime, "smallest": size, "largest": -size}[order]
    return keys


def dynamic_order(jobs: Workload, order: str | OrderFile | LearnedOrder, *, predicted: bool = False) -> int:
    """Return the kernels' code of an order that must be evaluated during the run; 0 if ranks suffice.

    Args:
        jobs: the workload.
        order: a key of ORDERS, or a learned order.
        predicted: walltimes are replaced by predictions, which are not known before the run.
    """
    if not isinstance(order, str):
        return LEARNED
    late = SUBMITTED | BY_WALLTIME if predicted else {} if jobs.dependencies is None else SUBMITTED
    return (CHANGING | late).get(order, 0)


def ranks(jobs: Workload, order: str | OrderFile | LearnedOrder, seed: int, *, predicted: bool = False) -> Array:
    """Return the rank of each job; its position in the workload if the order is evaluated during the run.

    Args:
        jobs: the workload.
        order: a key of ORDERS, or a learned order.
        seed: seed of the random order.
        predicted: see `dynamic_order`.
    """
    if not isinstance(order, str) or order == "fcfs" or dynamic_order(jobs, order, predicted=predicted):
        return np.zeros(len(jobs), np.int64) if jobs.dependencies is not None else np.arange(len(jobs))
    since = jobs.submit_time - (jobs.submit_time[0] if len(jobs) else 0.0)
    return ranked_by(jobs, static_keys(order, jobs.walltime, jobs.size, since, seed))


def ranked_by(jobs: Workload, keys: Array) -> Array:
    """Return the rank of each job by ascending key. O(jobs log jobs).

    If jobs have dependencies, jobs with equal keys share the lowest of their ranks.

    Args:
        jobs: the workload.
        keys: [jobs].
    """
    places, ranked = np.arange(len(jobs)), np.argsort(keys, kind="stable")
    if jobs.dependencies is not None:
        same = np.append(False, keys[ranked][1:] == keys[ranked][:-1])[: len(jobs)]
        places = np.maximum.accumulate(np.where(same, 0, places))
    job_ranks = np.empty(len(jobs), np.int64)
    job_ranks[ranked] = places
    return job_ranks

"""The objectives of training, which are to be small, and the numbers of a verdict.

Rule: bounded slowdown counts run times of at least TAU_S. Jobs that never start are left out; a run that leaves a job
that others start out is not comparable, and `metrics` says how many started.
Source: D. Feitelson, "Metrics for parallel job scheduling and their convergence" (JSSPP 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..simulate.arrays import Array
from ..simulate.world.replay_result import Replayed

#: Run times below count as this long, seconds.
TAU_S = 10.0


def metrics(replayed: Replayed, counts: Array | None = None) -> dict[str, float]:
    """Return the numbers of a replay: bounded slowdowns, and waits in seconds; nan where no job started.

    Args:
        replayed: the replay.
        counts: whether each job counts [jobs]; None: all do.
    """
    waits = replayed.start_time - replayed.workload.submit_time
    started = ~np.isnan(waits) if counts is None else ~np.isnan(waits) & counts
    if not started.any():
        return dict.fromkeys(("bsld", "median_bsld", "wait", "p95_wait", "longest_wait"), math.nan) | {"jobs": 0.0}
    waits, runs = waits[started], (replayed.finish_time - replayed.start_time)[started]
    slowdowns = np.maximum((waits + runs) / np.maximum(runs, TAU_S), 1.0)
    return {
        "jobs": float(started.sum()), "bsld": float(slowdowns.mean()), "median_bsld": float(np.median(slowdowns)),
        "wait": float(waits.mean()), "p95_wait": float(np.quantile(waits, 0.95)), "longest_wait": float(waits.max()),
    }  # fmt: skip


#: Objectives of training: the number that is to be small, of `metrics`.
OBJECTIVES: dict[str, Callable[[dict[str, float]], float]] = {
    "bsld": lambda numbers: numbers["bsld"],
    "wait": lambda numbers: numbers["wait"] + 1.0,
    "mix": lambda numbers: math.sqrt(numbers["bsld"] * (numbers["wait"] + 1.0)),
}

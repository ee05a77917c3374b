"""The gain of a learned policy over its baseline on a site's own jobs, with an interval over days.

Rule: both replay the same jobs. A ratio is that of `evaluation`, the mean over all jobs under the model over that under
the baseline; here of the jobs as they came, in place of shaken copies. Its interval of 95 % is of a bootstrap over the
days of submission. Days pass their queues on, so that it is a little too narrow where the queue is never empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from ..simulate.world.replay_result import Replayed
from .evaluation import DRAWS, LEVEL
from .objectives import OBJECTIVES, metrics
from .traces import Trace

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class DayGain:
    """A model against its baseline.

    Args:
        days: on which jobs that start under both were submitted.
        jobs: those jobs.
        moved: how many of them start at another time.
        ratios: by objective, the ratio and the ends of its interval; below 1 is better.
        longest_wait: under the model over that under the baseline.
    """

    days: int
    jobs: int
    moved: int
    ratios: dict[str, tuple[float, float, float]]
    longest_wait: float


def day_gain(trace: Trace, learned: Replayed, baseline: Replayed) -> DayGain:
    """Compare two replays of a trace, over the jobs of it that count. O(days x jobs).

    Args:
        trace: the jobs.
        learned: their replay under the model.
        baseline: their replay under its baseline; at least one job that counts starts in both.
    """
    sides = (learned, baseline)
    starts = ~np.isnan(learned.start_time) & ~np.isnan(baseline.start_time)
    both = starts if trace.counts is None else starts & trace.counts
    day = np.floor((trace.jobs.submit_time - trace.jobs.submit_time.min()) / DAY_S).astype(int)
    days = np.unique(day[both])
    numbers = [[metrics(side, both & (day == one)) for one in days] for side in sides]
    draws = np.random.default_rng(0).multinomial(len(days), [1.0 / len(days)] * len(days), DRAWS)
    weights = np.concatenate([np.ones((1, len(days))), draws])  # how often each day counts: once, then as it is drawn
    means = [_means(rows, weights) for rows in numbers]
    ratios = dict[str, tuple[float, float, float]]()
    for name, value in OBJECTIVES.items():
        first, second = (np.array([value(row) for row in rows]) for rows in means)
        tail = (1.0 - LEVEL) / 2.0
        low, high = np.quantile((first / second)[1:], (tail, 1.0 - tail))
        ratios[name] = float(first[0] / second[0]), float(low), float(high)
    longest = [max(row["longest_wait"] for row in rows) + 1.0 for rows in numbers]
    moved = int((learned.start_time[both] != baseline.start_time[both]).sum())
    return DayGain(len(days), int(both.sum()), moved, ratios, longest[0] / longest[1])


def _means(days: list[dict[str, float]], weights: Array) -> list[dict[str, float]]:
    """Return the means over the jobs of days, one set of means for each row of weights.

    Args:
        days: the `metrics` of each day.
        weights: how often each day counts [rows, days].
    """
    jobs = np.array([day["jobs"] for day in days])
    columns = {name: weights @ (jobs * [day[name] for day in days]) / (weights @ jobs) for name in ("bsld", "wait")}
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(one.tolist() for one in columns.values()), strict=True)
    ]

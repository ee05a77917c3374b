"""The gain of a learned policy over its baseline on a site's own jobs, day by day.

Rule: both replay the same jobs. A ratio is the geometric mean over the days of submission of a day's number under the
model over that under the baseline, and its interval of 95 % is of a bootstrap over the days. Days pass their queues on,
so that the interval is a little too narrow where the queue is never empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..simulate.world.replay_result import Replayed
from .evaluation import interval
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
    logs = {name: [np.log([value(row) for row in rows]) for rows in numbers] for name, value in OBJECTIVES.items()}
    longest = [max(row["longest_wait"] for row in rows) + 1.0 for rows in numbers]
    return DayGain(
        len(days), int(both.sum()), int((learned.start_time[both] != baseline.start_time[both]).sum()),
        {name: interval((first - second)[None])[:3] for name, (first, second) in logs.items()},
        longest[0] / longest[1],
    )  # fmt: skip

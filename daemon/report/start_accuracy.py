"""Errors of the forecasts of starts of the resource manager's jobs: of ours, and of the resource manager's own.

Rule: the first forecast for a job counts. The two are compared by the first snapshot that has both.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..state.recorded_outcome import QueueRecord

#: Errors up to which starts are counted, seconds.
WITHIN_S = (60.0, 600.0)


@dataclass(frozen=True, slots=True)
class StartAccuracy:
    """The errors of some forecasts of starts.

    Args:
        by: who made them: `pilotfish`, or `manager`, and `compared` where both are known.
        jobs: their number.
        within: share of starts within each of WITHIN_S of the forecast.
        median_s: median error without its sign, seconds.
        bias_s: median error, seconds; above 0 if jobs started later than forecast.
        inside: share of starts inside their prediction interval; None: not counted.
        width: median width of the intervals, over the time from the forecast to the start (under 1 s: 1 s); None: not
            counted.
    """

    by: str
    compared: bool
    jobs: int
    within: tuple[float, ...]
    median_s: float
    bias_s: float
    inside: float | None = None
    width: float | None = None


def start_errors(record: QueueRecord) -> dict[tuple[str, bool], float]:
    """Return the errors of the forecasts of a job that has begun, seconds, by maker and whether both are compared."""
    if record.start_time is None:
        return {}
    forecast_starts = {
        ("pilotfish", False): record.said_start,
        ("pilotfish", True): record.compared_start,
        ("manager", True): record.manager_start,
    }
    return {who: record.start_time - start for who, start in forecast_starts.items() if start is not None}


def start_accuracy(records: Iterable[QueueRecord]) -> list[StartAccuracy]:
    """Return the accuracy of each kind of forecast that there is."""
    errors = dict[tuple[str, bool], list[float]]()
    intervals = list[tuple[bool, float]]()
    for record in records:
        for who, error in start_errors(record).items():
            errors.setdefault(who, []).append(error)
        start, forecast_at, early, late = record.start_time, record.said_time, record.said_early, record.said_late
        if start is not None and forecast_at is not None and early is not None and late is not None:
            intervals.append((early - 1.0 <= start <= late + 1.0, (late - early) / max(start - forecast_at, 1.0)))
    accuracies = []
    for who, group_errors in errors.items():
        sizes = [abs(error) for error in group_errors]
        within = tuple(sum(size <= most for size in sizes) / len(sizes) for most in WITHIN_S)
        inside = width = None
        if who == ("pilotfish", False) and intervals:
            inside = sum(held for held, _ in intervals) / len(intervals)
            width = statistics.median(ratio for _, ratio in intervals)
        middle = statistics.median(sizes), statistics.median(group_errors)
        accuracies.append(StartAccuracy(*who, len(group_errors), within, *middle, inside, width))
    return sorted(accuracies, key=lambda group: (group.compared, group.by != "pilotfish"))


def starts_to_dict(records: Sequence[QueueRecord]) -> dict[str, Any]:
    """Return the accuracy of starts and the jobs as a mapping for JSON."""
    return {
        "within_s": list(WITHIN_S),
        "groups": [asdict(group) for group in start_accuracy(records)],
        "jobs": [asdict(record) for record in records],
    }

"""Phases of a run from the histories of similar threads and of the job's memory traffic: pure arithmetic.

Rule: phases never contradict their group: their mean utilisation is the group's. Changes that are too frequent to be
phases, or too small, leave one utilisation. Change points are the optimal split under a penalty, not a greedy one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.model.job import Phase
from ..probes.thread_history import ThreadHistory

Array = npt.NDArray[np.float64]
#: A further piece must explain this many times log(n) of variance in each column: its place and level are two
#: parameters (Yao, Statistics & Probability Letters 1988), and successive readings are not independent.
PENALTY = 4.0
#: Median absolute difference of neighbours / standard deviation of normal noise: sqrt(2) * 0.6745.
DIFFERENCE_TO_SIGMA = 0.9539
#: Most parts into which a run is cut to find changes; with fewer than the second none are searched.
MOST_CELLS, FEWEST_CELLS = 400, 8
#: Phases whose utilisations differ by less than this are merged ...
ALIKE = 0.10
#: ... if also their traffic on a core differs by less than this, relative to the mean.
ALIKE_RATE = 0.30
#: Weight of a change by the whole mean traffic, as a change of utilisation, in the search.
RATE_WORTH = 0.3
#: A part on cores for a smaller share of its time has no measurable traffic.
LITTLE = 0.02
#: A phase lasts at least this many cells, and this share of the run.
LEAST_CELLS, LEAST_SHARE = 3, 0.02
#: More phases than this are a rhythm, reported as one utilisation.
MOST_PHASES = 16
#: Standard deviation of a reading from inexact sampling times.
NOISE = 0.03
#: Least utilisation of a phase: even a sleeping thread has work.
LOWEST = 1e-3
#: Rows of the table of parts: core time (s), isolated time (s), bytes moved by the whole job, and its core time (s).
_ON, _FREE, _MOVED, _TOTAL = range(4)


Span = tuple[float, float, Sequence[ThreadHistory]]


def change_points(values: Any, weights: Any = None, *, noise: float = 0.0, least: int = 1) -> list[int]:
    """Return the indices at which a new level begins, ascending, without 0. O(n^2), n up to some thousands.

    Optimal partitioning of weighted squared errors around each piece's mean. Noise is estimated from the differences of
    neighbours, so that a few large changes do not count as noise.

    Args:
        values: n readings, or n rows of several readings.
        weights: n weights >= 0, such as durations; None = equal.
        noise: lower bound of the noise's standard deviation, > 0 if readings can be equal.
        least: fewest readings of a piece, >= 1.

    Source: Jackson et al., IEEE Signal Processing Letters 12(2), 2005.
    """
    rows = np.asarray(values, np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    count = len(rows)
    weight = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if count < 2 * least or weight.sum() <= 0:
        return []
    weight = weight * (count / weight.sum())
    deviation = np.median(np.abs(np.diff(rows, axis=0)), axis=0) / DIFFERENCE_TO_SIGMA
    scaled = rows / np.maximum(deviation, max(noise, 1e-12))
    penalty = PENALTY * math.log(count) * scaled.shape[1]
    return _partition(scaled - scaled.mean(axis=0), weight, penalty, least)


def _partition(rows: Array, weight: Array, penalty: float, least: int) -> list[int]:
    """Return the beginnings of the pieces that minimise error + penalty * pieces."""
    count = len(rows)
    mass = np.concatenate([[0.0], np.cumsum(weight)])
    first = np.vstack([np.zeros(rows.shape[1]), np.cumsum(weight[:, None] * rows, axis=0)])
    second = np.concatenate([[0.0], np.cumsum((weight[:, None] * rows**2).sum(axis=1))])
    cost, begin = np.full(count + 1, np.inf), np.zeros(count + 1, np.int64)
    cost[0] = -penalty
    for end in range(least, count + 1):
        at = slice(0, end - least + 1)
        sums = ((first[end] - first[at]) ** 2).sum(axis=1)
        error = second[end] - second[at] - sums / np.maximum(mass[end] - mass[at], 1e-12)
        total = cost[at] + error + penalty
        begin[end] = int(np.argmin(total))
        cost[end] = total[begin[end]]
    ends, end = list[int](), int(begin[count])
    while end > 0:
        ends.append(end)
        end = int(begin[end])
    return ends[::-1]


def phases(
    lanes: Iterable[Span],
    utilisation: float,
    step_s: float,
    traffic: ThreadHistory | None = None,
    whole: Sequence[ThreadHistory] = (),
) -> tuple[Phase, ...]:
    """Return the phases of similar threads, none if they behave the same all along.

    Args:
        lanes: (begin, end, histories) of each thread, or of threads that ran one after another, seconds.
        utilisation: their mean utilisation over isolated time, (0, 1], which the phases keep.
        step_s: time between readings.
        traffic: bytes that the whole job had moved at its readings, in place of core time; threads are assumed to move
            alike while on a core. Without it phases have no bandwidth.
        whole: with traffic, the histories of all threads of the job.
    """
    spans = [lane for lane in lanes if lane[2] and lane[1] > lane[0]]
    if not spans:
        return ()
    shortest = min(end - begin for begin, end, _ in spans)
    cells = min(MOST_CELLS, int(shortest / max(step_s, 1e-9)))
    if cells < FEWEST_CELLS:
        return ()
    table = _table(spans, cells, traffic, whole)
    if not table[_ON].any():
        return ()
    least = max(LEAST_CELLS, math.ceil(LEAST_SHARE * cells))
    columns = np.column_stack([_levels(table), *([_rates(table) * RATE_WORTH] if table[_MOVED].any() else [])])
    starts = [0, *change_points(columns, table[_FREE], noise=NOISE, least=least)]
    if len(starts) > MOST_PHASES:
        return ()
    pieces = _merged(np.add.reduceat(table, starts, axis=1))
    return _as_phases(pieces, utilisation) if pieces.shape[1] > 1 else ()


def _table(
    spans: Sequence[Span], cells: int, traffic: ThreadHistory | None, all_histories: Sequence[ThreadHistory]
) -> Array:
    """Return the table of parts: the spans of all lanes are cut into equal parts, and these added."""
    table = np.zeros((4, cells))
    for begin, end, histories in spans:
        grid = np.linspace(begin, end, cells + 1)
        used, waited = np.diff(_sum(histories, grid))
        table[_ON] += used
        table[_FREE] += np.maximum((end - begin) / cells - waited, used)
        if traffic is not None:
            table[_MOVED] += np.diff(traffic.at(grid)[0])
            table[_TOTAL] += np.diff(_sum(all_histories, grid)[0])
    return table


def _sum(histories: Sequence[ThreadHistory], grid: Array) -> Array:
    return sum((np.vstack(history.at(grid)) for history in histories), np.zeros((2, len(grid))))


def _levels(table: Array) -> Array:
    return np.asarray(np.minimum(1.0, table[_ON] / np.maximum(table[_FREE], 1e-12)))


def _rates(table: Array) -> Array:
    """Return a thread's traffic on a core in each part, relative to the mean; 1 for parts with hardly any core time."""
    moved, core_time = table[_MOVED], table[_TOTAL]
    busy_parts = core_time > LITTLE * table[_FREE]
    mean = moved.sum() / max(core_time.sum(), 1e-12)
    return np.where(busy_parts & (mean > 0), moved / np.maximum(core_time, 1e-12) / max(mean, 1e-300), 1.0)


def _merged(pieces: Array) -> Array:
    """Merge similar neighbours, the most similar first."""
    pieces = pieces[:, pieces[_FREE] > 0]
    while pieces.shape[1] > 1:
        gaps = np.maximum(np.abs(np.diff(_levels(pieces))) / ALIKE, np.abs(np.diff(_rates(pieces))) / ALIKE_RATE)
        i = int(np.argmin(gaps))
        if gaps[i] >= 1:
            break
        pieces = np.add.reduceat(pieces, [j for j in range(pieces.shape[1]) if j != i + 1], axis=1)
    return pieces


def _as_phases(pieces: Array, utilisation: float) -> tuple[Phase, ...]:
    """Return phases with that mean utilisation, none if they differ too little."""
    shares, rates = pieces[_FREE] / pieces[_FREE].sum(), _rates(pieces)
    levels = _with_mean(shares, _levels(pieces), utilisation)
    if np.ptp(levels) < ALIKE and np.ptp(rates) < ALIKE_RATE:
        return ()
    mean = pieces[_MOVED].sum() / max(pieces[_TOTAL].sum(), 1e-12)
    parts = zip(shares.tolist(), levels.tolist(), (rates * mean).tolist(), strict=True)
    return tuple(Phase(share, level, rate) for share, level, rate in parts)


def _with_mean(shares: Array, levels: Array, utilisation: float) -> Array:
    """Return levels scaled to that mean, and moved towards it until they fit into (0, 1]."""
    away = (levels * utilisation / float(shares @ levels) - utilisation).tolist()
    lowest = min(LOWEST, utilisation)
    room = [(1.0 - utilisation) / gap for gap in away if gap > 0]
    room += [(utilisation - lowest) / -gap for gap in away if gap < 0]
    keep = min([1.0, *room])
    return np.array([min(1.0, max(lowest, utilisation + keep * gap)) for gap in away])

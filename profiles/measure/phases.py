"""From the courses of threads that are alike, and of the job's memory traffic, to the phases of their run: pure
arithmetic.

Rule: phases say nothing else than the group does: their mean utilisation is the group's. What changes too often to be
told as phases is a rhythm, and what hardly changes is none: both have one utilisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..simulate.job import Phase
from .changepoints import change_points
from .course import Course

Array = npt.NDArray[np.float64]
#: Parts into which a run is cut at the most to look for changes; fewer than FEWEST are not looked at.
MOST_CELLS, FEWEST_CELLS = 400, 8
#: Phases that differ by less than this in utilisation are one.
ALIKE = 0.10
#: And so are those of which one moves less than this more or less on a core, by the mean.
ALIKE_RATE = 0.30
#: What a change of all of the mean traffic weighs as one of utilisation, for telling it from noise.
RATE_WORTH = 0.3
#: Share of its time below which a part was on cores for too short to tell what it moves.
LITTLE = 0.02
#: A phase lasts at least so many cells, and this share of the run.
LEAST_CELLS, LEAST_SHARE = 3, 0.02
#: More phases than this are a rhythm.
MOST_PHASES = 16
#: Standard deviation of one reading that says nothing: when a probe looks is not exact.
NOISE = 0.03
#: The least utilisation of a phase: a thread that only sleeps still has its work to do.
LOWEST = 1e-3

Span = tuple[float, float, Sequence[Course]]


def phases(
    lanes: Iterable[Span],
    utilisation: float,
    step_s: float,
    traffic: Course | None = None,
    whole: Sequence[Course] = (),
) -> tuple[Phase, ...]:
    """Return the phases of threads that are alike, none if they behave the same all along.

    Args:
        lanes: (begin, end, courses) of each thread, or of threads that came one after another, seconds.
        utilisation: their mean utilisation over isolated time, (0, 1]; the phases have it, too.
        step_s: time between readings.
        traffic: what the whole job had moved from and to memory at its readings, bytes in place of core time; its
            threads are taken to move alike while they are on a core. Without it phases have no bandwidth.
        whole: the courses of all threads of the job, with traffic.
    """
    spans = [lane for lane in lanes if lane[2] and lane[1] > lane[0]]
    if not spans:
        return ()
    shortest = min(end - begin for begin, end, _ in spans)
    cells = min(MOST_CELLS, int(shortest / max(step_s, 1e-9)))
    if cells < FEWEST_CELLS:
        return ()
    table = np.vstack([_times(spans, cells), _moved(spans, cells, traffic, whole)])
    if not table[_ON].any():
        return ()
    least = max(LEAST_CELLS, math.ceil(LEAST_SHARE * cells))
    columns = np.column_stack([_levels(table), *([_rates(table) * RATE_WORTH] if table[_MOVED].any() else [])])
    starts = [0, *change_points(columns, table[_FREE], noise=NOISE, least=least)]
    if len(starts) > MOST_PHASES:
        return ()
    pieces = _merged(np.add.reduceat(table, starts, axis=1))
    return _as_phases(pieces, utilisation) if pieces.shape[1] > 1 else ()


#: Rows of a table of what threads did in each part of a run: on a core (s), without the waiting (s), bytes moved by the
#: whole job, and its time on cores (s).
_ON, _FREE, _MOVED, _WHOLE = range(4)


def _times(spans: Sequence[Span], cells: int) -> Array:
    """Core time, and isolated time, of all lanes in each equal part of their spans."""
    on, free = np.zeros(cells), np.zeros(cells)
    for begin, end, courses in spans:
        grid = np.linspace(begin, end, cells + 1)
        used, waited = np.diff(_sum(courses, grid))
        on += used
        free += np.maximum((end - begin) / cells - waited, used)
    return np.vstack([on, free])


def _moved(spans: Sequence[Span], cells: int, traffic: Course | None, whole: Sequence[Course]) -> Array:
    """Bytes that the job moved, and its core time, in each of these parts."""
    found = np.zeros((2, cells))
    for begin, end, _ in spans if traffic is not None else ():
        grid = np.linspace(begin, end, cells + 1)
        assert traffic is not None
        found += np.diff(np.vstack([traffic.at(grid)[0], _sum(whole, grid)[0]]))
    return found


def _sum(courses: Sequence[Course], grid: Array) -> Array:
    return sum((np.vstack(course.at(grid)) for course in courses), np.zeros((2, len(grid))))


def _levels(table: Array) -> Array:
    """The utilisation of each part."""
    levels: Array = np.minimum(1.0, table[_ON] / np.maximum(table[_FREE], 1e-12))
    return levels


def _rates(table: Array) -> Array:
    """What a thread moves on a core, in each part, by its mean; 1 where next to none was on one."""
    moved, whole = table[_MOVED], table[_WHOLE]
    seen = whole > LITTLE * table[_FREE]
    mean = moved.sum() / max(whole.sum(), 1e-12)
    rates: Array = np.where(seen & (mean > 0), moved / np.maximum(whole, 1e-12) / max(mean, 1e-300), 1.0)
    return rates


def _merged(pieces: Array) -> Array:
    """The pieces with neighbours that are alike taken together, the most alike first."""
    pieces = pieces[:, pieces[_FREE] > 0]
    while pieces.shape[1] > 1:
        gaps = np.maximum(np.abs(np.diff(_levels(pieces))) / ALIKE, np.abs(np.diff(_rates(pieces))) / ALIKE_RATE)
        i = int(np.argmin(gaps))
        if gaps[i] >= 1:
            break
        pieces = np.add.reduceat(pieces, [j for j in range(pieces.shape[1]) if j != i + 1], axis=1)
    return pieces


def _as_phases(pieces: Array, utilisation: float) -> tuple[Phase, ...]:
    """Phases of that mean utilisation, none where they differ by too little."""
    shares, rates = pieces[_FREE] / pieces[_FREE].sum(), _rates(pieces)
    levels = _with_mean(shares, _levels(pieces), utilisation)
    if np.ptp(levels) < ALIKE and np.ptp(rates) < ALIKE_RATE:
        return ()
    mean = pieces[_MOVED].sum() / max(pieces[_WHOLE].sum(), 1e-12)
    parts = zip(shares.tolist(), levels.tolist(), (rates * mean).tolist(), strict=True)
    return tuple(Phase(share, level, rate) for share, level, rate in parts)


def _with_mean(shares: Array, levels: Array, utilisation: float) -> Array:
    """Levels scaled to that mean, and drawn towards it as far as they leave (0, 1]."""
    away = (levels * utilisation / float(shares @ levels) - utilisation).tolist()
    lowest = min(LOWEST, utilisation)
    room = [(1.0 - utilisation) / gap for gap in away if gap > 0]
    room += [(utilisation - lowest) / -gap for gap in away if gap < 0]
    keep = min([1.0, *room])
    drawn: Array = np.array([min(1.0, max(lowest, utilisation + keep * gap)) for gap in away])
    return drawn

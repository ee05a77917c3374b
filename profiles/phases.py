"""From the courses of threads that are alike to the phases of their run: pure arithmetic.

Rule: phases say nothing else than the group does: their mean utilisation is the group's. What changes too often to be
told as phases is a rhythm, and what hardly changes is none: both have one utilisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

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
#: A phase lasts at least so many cells, and this share of the run.
LEAST_CELLS, LEAST_SHARE = 3, 0.02
#: More phases than this are a rhythm.
MOST_PHASES = 16
#: Standard deviation of one reading that says nothing: when a probe looks is not exact.
NOISE = 0.03
#: The least utilisation of a phase: a thread that only sleeps still has its work to do.
LOWEST = 1e-3

Span = tuple[float, float, Sequence[Course]]


def phases(lanes: Iterable[Span], utilisation: float, step_s: float) -> tuple[Phase, ...]:
    """Return the phases of threads that are alike, none if they behave the same all along.

    Args:
        lanes: (begin, end, courses) of each thread, or of threads that came one after another, seconds.
        utilisation: their mean utilisation over isolated time, (0, 1]; the phases have it, too.
        step_s: time between readings.
    """
    spans = [lane for lane in lanes if lane[2] and lane[1] > lane[0]]
    if not spans:
        return ()
    shortest = min(end - begin for begin, end, _ in spans)
    cells = min(MOST_CELLS, int(shortest / max(step_s, 1e-9)))
    if cells < FEWEST_CELLS:
        return ()
    on, free = _cells(spans, cells)
    if not on.any():
        return ()
    level = on / np.maximum(free, 1e-12)
    least = max(LEAST_CELLS, math.ceil(LEAST_SHARE * cells))
    starts = [0, *change_points(level, free, noise=NOISE, least=least)]
    if len(starts) > MOST_PHASES:
        return ()
    pieces = _merged(np.add.reduceat(on, starts), np.add.reduceat(free, starts))
    return _with_mean(pieces, utilisation) if len(pieces) > 1 else ()


def _cells(spans: Sequence[Span], cells: int) -> tuple[Array, Array]:
    """Core time, and isolated time, of all lanes in each equal part of their spans."""
    on, free = np.zeros(cells), np.zeros(cells)
    for begin, end, courses in spans:
        grid = np.linspace(begin, end, cells + 1)
        sums = [course.at(grid) for course in courses]
        used = np.diff(sum((each[0] for each in sums), np.zeros(cells + 1)))
        waited = np.diff(sum((each[1] for each in sums), np.zeros(cells + 1)))
        on += used
        free += np.maximum((end - begin) / cells - waited, used)
    return on, free


def _merged(on: Array, free: Array) -> list[tuple[float, float]]:
    """(isolated time, utilisation) of each piece, neighbours that are alike taken together, the most alike first."""
    pieces = [(float(o), float(f)) for o, f in zip(on, free, strict=True) if f > 0]
    while len(pieces) > 1:
        gaps = [abs(a[0] / a[1] - b[0] / b[1]) for a, b in pairwise(pieces)]
        i = min(range(len(gaps)), key=gaps.__getitem__)
        if gaps[i] >= ALIKE:
            break
        pieces[i : i + 2] = [(pieces[i][0] + pieces[i + 1][0], pieces[i][1] + pieces[i + 1][1])]
    return [(f, min(1.0, o / f)) for o, f in pieces]


def _with_mean(pieces: Sequence[tuple[float, float]], utilisation: float) -> tuple[Phase, ...]:
    """Phases of that mean utilisation: levels are scaled to it, and drawn towards it as far as they leave (0, 1]."""
    lasting = sum(free for free, _ in pieces)
    shares = [free / lasting for free, _ in pieces]
    mean = sum(share * level for share, (_, level) in zip(shares, pieces, strict=True))
    away = [level * utilisation / mean - utilisation for _, level in pieces]
    lowest = min(LOWEST, utilisation)
    keep = min(
        1.0,
        *((1.0 - utilisation) / gap for gap in away if gap > 0),
        *((utilisation - lowest) / -gap for gap in away if gap < 0),
    )
    if keep * (max(away) - min(away)) < ALIKE:
        return ()
    levels = [min(1.0, max(lowest, utilisation + keep * gap)) for gap in away]
    return tuple(Phase(share, level, 0.0) for share, level in zip(shares, levels, strict=True))

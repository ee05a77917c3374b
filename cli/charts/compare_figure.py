"""Runs side by side: the numbers by which policies are compared, and how long jobs waited.

Rule: bars begin at 0, so that their lengths compare; a number that is not known has no bar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...simulate.batch.metrics import TAU_S
from ...simulate.series.figures import Figures, distribution, figures
from ..render.text import fit, joules
from .panels import Array, Bars, Curve, Panel, Part, Picture
from .units import of_times
from .views import Shown, View, headline

#: Cells of a name beside its bar.
_LONGEST = 26
_TICKS = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36000.0, "10 h"),
          (86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"))  # fmt: skip
Words = Callable[[Sequence[float]], list[str]]


def spell(values: Sequence[float]) -> list[str]:
    """Times in one unit: `1.19 hours`, `432 hours`."""
    unit = of_times(values)
    return [f"{digits(value / unit.size)} {unit.name}" for value in values]


def digits(value: float) -> str:
    """Three digits, and never fewer than are before the point: `4.25`, `66,502`."""
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


#: Title, number, and how such numbers are written.
_METRICS: tuple[tuple[str, Callable[[Figures], float | None], Words], ...] = (
    ("mean waiting", lambda found: found.mean_waiting, spell),
    ("mean slowdown", lambda found: found.mean_bounded_slowdown, lambda values: list(map(digits, values))),
    ("utilisation", lambda found: found.utilisation, lambda values: [f"{100 * value:.1f} %" for value in values]),
    ("energy", lambda found: found.joules, lambda values: list(map(joules, values))),
    ("makespan", lambda found: found.makespan, spell),
)


def compare(view: View) -> Picture:
    """A small panel for each number with a bar for each run, and the distributions of waiting time."""
    window = view.x if view.asked else None
    found = [figures(each.run, window) for each in view.shown]
    bars = [_bars(title, view.shown, [of(each) for each in found], words) for title, of, words in _METRICS]
    waited = [_waits(each, window) for each in view.shown]
    high = 0.34 * len(view.shown) + 0.3
    rows = [[panel for panel in bars if panel is not None], [_distribution(view.shown, waited)]]
    rows = [row for row in rows if row]
    notes = f"slowdown: bounded by {TAU_S:g} s"
    return Picture(headline("Comparison", view.shown), rows, notes, shared=False, height=6.0 + high)


def _bars(title: str, shown: Sequence[Shown], values: Sequence[float | None], words: Words) -> Panel | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    said = iter(words(known))
    part = Bars(
        [fit(each.label, _LONGEST) for each in shown],
        [each.colour for each in shown],
        [float("nan") if value is None else value for value in values],
        ["unknown" if value is None else next(said) for value in values],
    )
    return Panel(title, "", [part], (0.0, max(known) or 1.0), height=0.34 * len(shown) + 0.3)


def _waits(shown: Shown, window: tuple[float, float] | None) -> Array:
    jobs = (shown.run if window is None else shown.run.within(*window)).jobs
    waits: Array = np.maximum((jobs.start - jobs.submit)[jobs.ran], 0.0)
    return waits


def _distribution(shown: Sequence[Shown], waited: Sequence[Array]) -> Panel:
    """The share of the jobs that waited no longer than a time, from a second on."""
    longest = max((float(values.max()) for values in waited if len(values)), default=0.0)
    right = next((at for at, _ in _TICKS[1:] if at >= longest), longest)
    parts: list[Part] = []
    for each, values in zip(shown, waited, strict=True):
        if not len(values):
            continue
        x, y = distribution(np.maximum(values, 1.0))
        at_once = np.count_nonzero(values <= 1.0) / len(values)
        y = np.concatenate([[at_once], y, [1.0]]) * 100.0
        parts.append(Curve(each.label, each.colour, np.concatenate([[1.0], x, [right]]), y, stairs=True))
    marks = [mark for mark in _TICKS if mark[0] <= right]
    return Panel(
        "", "% of the jobs", parts, (1.0, right), "waited no longer than", (0.0, 102.0), None, marks,
        log=True, height=4.2, empty="" if any(map(len, waited)) else "no job ran",
    )  # fmt: skip

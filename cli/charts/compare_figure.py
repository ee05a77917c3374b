"""A comparison of replays: the figures of merit as bars, and the distribution of waiting times.

Rule: bars begin at 0, so that their lengths compare. An unknown value has no bar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...formats.text import fit, joules
from ...simulate.replay.metrics import TAU_S
from ...simulate.results.figures import RunMetrics, distribution, figures
from .figure import Axis, Bars, Figure, Line, Panel, Series, bars_panel
from .replay_figures import FigureView, Shown, about
from .scales import common_time_unit

_LONGEST, _ACROSS = 22, 3
_MARKS = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36000.0, "10 h"),
          (86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"))  # fmt: skip
Words = Callable[[Sequence[float]], list[str]]


def spelled(times: Sequence[float]) -> list[str]:
    """Return times (s) in one unit: `1.19 hours`, `432 hours`."""
    unit = common_time_unit(times)
    return [f"{digits(time / unit.size)} {unit.name}" for time in times]


def digits(value: float) -> str:
    """Return three digits, or all that are before the point: `4.25`, `66,502`."""
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def waiting_marks(longest: float) -> list[tuple[float, str]]:
    """Return the marks of a logarithmic axis of waiting times up to `longest` seconds."""
    return [mark for mark in _MARKS if mark[0] <= longest]


#: Title, value, and how such values are written.
_METRICS: tuple[tuple[str, Callable[[RunMetrics], float | None], Words], ...] = (
    ("mean waiting time", lambda found: found.mean_waiting, spelled),
    ("mean slowdown", lambda found: found.mean_bounded_slowdown, lambda values: list(map(digits, values))),
    ("utilisation", lambda found: found.utilisation, lambda values: [f"{100 * value:.1f} %" for value in values]),
    ("energy", lambda found: found.joules, lambda values: list(map(joules, values))),
    ("makespan", lambda found: found.makespan, spelled),
)


def compare(view: FigureView) -> Figure:
    """Return a panel of bars for each figure of merit, and the distribution of waiting times."""
    window = view.x if view.asked else None
    values = [figures(item.run, window) for item in view.shown]
    bars = [_bars(title, view.shown, [of(facts) for facts in values], words) for title, of, words in _METRICS]
    panels = [panel for panel in bars if panel is not None]
    rows = [panels[i : i + _ACROSS] for i in range(0, len(panels), _ACROSS)]
    rows.append([_distribution(view.shown, window)])
    notes = [f"slowdown: bounded by {TAU_S:g} s"]
    height = 3.3 + (0.24 * len(view.shown) + 0.55) * (len(rows) - 1)
    return Figure("Comparison", rows, about(view.shown), notes, shared=False, height=height)


def _bars(title: str, shown: Sequence[Shown], values: Sequence[float | None], words: Words) -> Panel | None:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    texts = iter(words(numbers))
    bars = Bars(
        [fit(run.label, _LONGEST) for run in shown],
        [run.colour for run in shown],
        [float("nan") if value is None else value for value in values],
        ["unknown" if value is None else next(texts) for value in values],
    )
    return bars_panel(bars, title, 0.24)


def _distribution(shown: Sequence[Shown], window: tuple[float, float] | None) -> Panel:
    """The share of jobs that waited at most some time, from a second on."""
    each_jobs = [(item.run if window is None else item.run.within(*window)).jobs for item in shown]
    waits = [np.maximum((jobs.start - jobs.submit)[jobs.ran], 0.0) for jobs in each_jobs]
    longest = max((float(values.max()) for values in waits if len(values)), default=0.0)
    right = max(10.0, 1.1 * longest)
    series: list[Series] = []
    for item, values in zip(shown, waits, strict=True):
        if not len(values):
            continue
        x, y = distribution(np.maximum(values, 1.0))
        at_once = np.count_nonzero(values <= 1.0) / len(values)
        y = np.concatenate([[at_once], y, [1.0]]) * 100.0
        series.append(Line(item.label, item.colour, np.concatenate([[1.0], x, [right]]), y, item.dash, stairs=True))
    x_axis = Axis("waiting time, at most", 1.0, right, log=True, marks=waiting_marks(right))
    return Panel(
        x_axis, Axis("jobs (%)", 0.0, 102.0), series,
        height=1.9, empty="" if any(map(len, waits)) else "no job ran",
    )  # fmt: skip

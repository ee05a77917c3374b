"""The card of a canary as one page: its text, the means of both groups, and the intervals of their differences.

Rule: the page loads nothing from the network. The figures show the numbers of the text; what is not known is not drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..charts.colours import INK, QUIET, series_style
from ..charts.figure import Axis, Bars, Boxes, Figure, GanttRow, Panel, Series, Strokes, bars_panel
from .card_page import page_of
from .card_text import slowdown_words, time_words
from .group_card import show_comparison, verdict_of

if TYPE_CHECKING:
    from ...daemon.canary.comparison import GroupComparison
    from ...simulate.results.group_contrast import GroupContrast


def comparison_page(comparison: GroupComparison) -> str:
    """Return the card of a canary as an HTML page."""
    return page_of(lambda screen: show_comparison(screen, comparison), comparison_figure(comparison))


def comparison_figure(comparison: GroupComparison) -> Figure:
    """Return the figures of the card of a canary."""
    contrasts = {name: one for name, one in comparison.measures.items() if one is not None}
    bars = [_bars(name, contrast) for name, contrast in contrasts.items()]
    rows = [bars[place : place + 2] for place in range(0, len(bars), 2)]
    intervals = _intervals({name: one for name, one in contrasts.items() if one.control > 0.0})
    rows += [[intervals]] if intervals else []
    verdict = verdict_of("turnaround", comparison.measures["turnaround"], comparison.hold_s)
    notes = ["a bar is the 95 % interval of canary minus control, and its stroke the difference: below 0 is a gain"]
    height = sum(2.0 * max(panel.height for panel in row) + 0.45 for row in rows) + 1.0
    return Figure("The canary", rows, f"turnaround: {verdict}", notes, shared=False, height=height)


def _bars(name: str, contrast: GroupContrast) -> Panel:
    words = slowdown_words if name == "slowdown" else time_words
    lengths = [contrast.control, max(0.0, contrast.canary)]
    bars = Bars(["control", "canary"], [QUIET, series_style(0)[0]], lengths, [words(one) for one in lengths])
    return bars_panel(bars, f"mean {name}", 0.12)


def _intervals(contrasts: dict[str, GroupContrast]) -> Panel | None:
    """Return the differences as shares of the control group's mean, a row a measure; None: none has an interval."""
    shown = [(name, one, one.low, one.high) for name, one in contrasts.items() if one.low is not None]
    if not shown:
        return None
    scale = np.array([100.0 / one.control for _, one, _, _ in shown])
    begins, ends = (np.array([row[place] for row in shown], float) * scale for place in (2, 3))
    middles = np.array([one.difference for _, one, _, _ in shown]) * scale
    bottom, count = np.arange(len(shown), dtype=float)[::-1], float(len(shown))
    low, high = min(0.0, begins.min()), max(0.0, ends.max())
    margin = 0.04 * (high - low) or 1.0
    names, order = np.array([name for name, *_ in shown], object), np.arange(len(shown))
    drawn: list[Series] = [
        Boxes("", begins, ends, bottom + 0.15, bottom + 0.85, order * 0, [series_style(0)[0]], order, names,
              labelled=False),
        Strokes("", INK, middles, bottom + 0.05, bottom + 0.95),
        Strokes("", QUIET, np.zeros(1), np.zeros(1), np.full(1, count)),
    ]  # fmt: skip
    rows = [GanttRow(str(name), below, below + 1.0) for name, below in zip(names, bottom.tolist(), strict=True)]
    x = Axis("canary minus control (% of the control group's mean)", low - margin, high + margin)
    return Panel(x, Axis("", 0.0, count), drawn, "difference", 0.205 * count, rows=rows)

"""The Gantt chart as PNG, drawn by matplotlib, which is an extra.

Rule: matplotlib is imported when a PNG is drawn and not before, and its absence is one clear sentence.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from .chart import Bar, Chart, colour_at, ink_on, ticks
from .extras import demand
from .figure import save
from .text import clean, count, fit, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCHES = 12.8
_LABEL_CELLS = 140  # cells of the labels' font across the plot


def demand_matplotlib() -> None:
    """Raise PilotfishError if matplotlib is not installed."""
    demand("matplotlib", "a PNG", ", or ask for .svg or .html")


def png(chart: Chart, path: Path, subtitle: str = "") -> None:
    """Draw the chart into the file `path`, 1280 pixels wide at least. O(bars).

    Raises:
        PilotfishError: matplotlib is not installed. OSError: the file cannot be written.
    """
    demand_matplotlib()
    from matplotlib.figure import Figure

    lanes = sum(row.lanes for row in chart.rows) + 0.4 * len(chart.rows)
    figure = Figure(figsize=(_INCHES, min(40.0, 1.9 + max(1.0, 0.27 * lanes))), dpi=150)
    axes = figure.add_axes((0.1, 0.55 / figure.get_figheight(), 0.87, 1 - 1.65 / figure.get_figheight()))
    _bars(axes, chart)
    _frame(axes, chart)
    _head(figure, chart, subtitle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without some glyph of a name
        save(figure, path)


def _bars(axes: Axes, chart: Chart) -> None:
    from matplotlib.colors import to_hex

    height = min(11.0, 400.0 / max(1, sum(row.lanes for row in chart.rows)) + 4)
    top = 0.0
    middles: list[float] = []
    for row in chart.rows:
        axes.axhspan(
            top,
            top + row.lanes + 0.4,
            color="#f3f6f9" if len(middles) % 2 == 0 else "#e9eef3",
            lw=0,
            zorder=0,
        )
        middles.append(top + (row.lanes + 0.4) / 2)
        for critical in (False, True):
            bars = [bar for bar in row.bars if bar.critical == critical]
            axes.barh(
                [top + 0.65 + bar.lane for bar in bars],
                [max(bar.job.finish_time - bar.job.start_time, chart.end / 2000) for bar in bars],
                left=[bar.job.start_time for bar in bars],
                height=0.88,
                color=[_rgb(chart.colour(bar.job.contention_slowdown)) for bar in bars],
                edgecolor="#111827" if critical else "white",
                linewidth=[_outline(bar, chart) for bar in bars],
                zorder=3 if critical else 2,
            )
        for bar in row.bars:
            name = clean(bar.job.id)
            room = int((bar.job.finish_time - bar.job.start_time) / chart.end * _LABEL_CELLS) - 1
            if height >= 6 and room >= min(6, width(name)):
                ink = to_hex(ink_on(chart.colour(bar.job.contention_slowdown)))
                x, y = bar.job.start_time + chart.end / 300, top + 0.67 + bar.lane
                axes.text(
                    x,
                    y,
                    fit(name, room),
                    va="center",
                    fontsize=min(8, height),
                    color=ink,
                    zorder=4,
                    parse_math=False,
                )
        top += row.lanes + 0.4
    axes.set_ylim(top, 0)
    step = max(1, len(middles) // 80)
    names = [fit(clean(row.node), 14) for row in chart.rows]
    axes.set_yticks(middles[::step], names[::step], fontsize=9, parse_math=False)


def _outline(bar: Bar, chart: Chart) -> float:
    """Points; a bar that is hardly wider than its outline would be nothing but that."""
    if not bar.critical:
        return 0.6
    points = (bar.job.finish_time - bar.job.start_time) / chart.end * _INCHES * 0.87 * 72
    return min(1.2, max(0.2, points / 5))


def _rgb(colour: tuple[int, int, int]) -> tuple[float, float, float]:
    red, green, blue = colour
    return red / 255, green / 255, blue / 255


def _frame(axes: Axes, chart: Chart) -> None:
    marks = ticks(chart.end, 12)
    axes.set_xlim(0, chart.end * 1.001)
    axes.set_xticks([t for t, _ in marks], [label for _, label in marks], fontsize=9, color="#5b6878")
    axes.grid(axis="x", color="#cdd6df", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labeltop=sum(row.lanes for row in chart.rows) > 30)
    for side in axes.spines.values():
        side.set_visible(False)


def _head(figure: Figure, chart: Chart, subtitle: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    high = figure.get_figheight()
    title = f"{fit(clean(chart.plan.workflow), 44)} on {fit(clean(chart.plan.cluster), 20)}"
    figure.text(0.02, 1 - 0.36 / high, title, fontsize=15, weight="bold", color="#1f2a37", parse_math=False)
    figure.text(0.02, 1 - 0.66 / high, clean(subtitle), fontsize=9.5, color="#5b6878", parse_math=False)
    colours = LinearSegmentedColormap.from_list("heat", [_rgb(colour_at(i / 20)) for i in range(21)])
    bar = figure.colorbar(
        ScalarMappable(LogNorm(1, chart.hottest), colours),
        cax=figure.add_axes((0.79, 1 - 0.46 / high, 0.18, 0.09 / high)),
        orientation="horizontal",
    )
    bar.set_ticks(
        [1, chart.hottest**0.5, chart.hottest],
        labels=["1", f"{chart.hottest**0.5:.3g}", f"{chart.hottest:g}"],
    )
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=8, length=0, colors="#5b6878")
    bar.outline.set_visible(False)
    figure.text(0.79, 1 - 0.3 / high, "slowdown by contention", fontsize=8.5, color="#5b6878")
    note = f"outlined: critical chain ({count(len(chart.chain), 'job')})"
    figure.text(0.79, 1 - 0.86 / high, note, fontsize=8.5, color="#5b6878")

"""A picture drawn by matplotlib: SVG or PNG.

Rule: places are reckoned here, not by trial, so that the pixels of a chart are known before it is drawn. However many
jobs there are, an SVG has one path a colour, or one image.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..render.figure import save
from . import marks
from .palette import GRID, INK, QUIET
from .panels import Panel, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches, and pixels an inch.
WIDE, DPI = 12.0, 150
_LEFT, _RIGHT, _BOTTOM, _GAP = 0.95, 0.3, 0.62, 0.34
_TITLED = 0.24  # inches that the title of a panel takes
_LINE = 0.25
#: Pixels of a chart as wide as the sheet.
COLUMNS = round((WIDE - _LEFT - _RIGHT) * DPI)
_STYLE: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"], "font.size": 10, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": QUIET, "xtick.color": QUIET, "ytick.color": QUIET, "axes.linewidth": 0.8,
    "svg.fonttype": "none", "svg.hashsalt": "pilotfish", "text.parse_math": False, "axes.unicode_minus": False,
}  # fmt: skip


def draw(picture: Picture, path: Path) -> None:
    """Draw a picture into a file, .svg or .png. Raises OSError."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without some glyph of a name
        figure = Figure(figsize=(WIDE, picture.height), dpi=DPI)
        for row, (top, high) in enumerate(_rows(picture, _head(figure, picture))):
            _row(figure, picture, row, top, high)
        save(figure, path)


def _head(figure: Figure, picture: Picture) -> float:
    """Title, notes and legend; returns the inches that they take."""
    high, top = picture.height, 0.22
    figure.text(_LEFT / WIDE, 1 - top / high, picture.title, fontsize=13, weight="bold", va="top")
    top += 0.34
    if picture.notes:
        figure.text(_LEFT / WIDE, 1 - top / high, picture.notes, color=QUIET, va="top")
        top += _LINE + 0.05
    handles = marks.legend(panel for row in picture.rows for panel in row)
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(len(handles), int((WIDE - _LEFT - _RIGHT) / (0.55 + 0.085 * longest))))
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(_LEFT / WIDE, 1 - (top - 0.06) / high),
            ncols=columns, frameon=False, borderaxespad=0.0, borderpad=0.0, handlelength=1.6, columnspacing=1.5,
            labelspacing=0.45,
        )  # fmt: skip
        top += _LINE * -(-len(handles) // columns)
    return top + 0.1


def _rows(picture: Picture, head: float) -> list[tuple[float, float]]:
    """Top and height of each row of panels, inches from the top."""
    titles = [_TITLED if any(panel.title for panel in row) else 0.0 for row in picture.rows]
    lower = [_BOTTOM if picture.x_title(row) else _GAP for row in range(len(picture.rows))]
    shares = [max(panel.height for panel in row) for row in picture.rows]
    room = picture.height - head - sum(titles) - sum(lower)
    found, top = [], head
    for titled, below, share in zip(titles, lower, shares, strict=True):
        high = room * share / sum(shares)
        found.append((top + titled, high))
        top += titled + high + below
    return found


def _row(figure: Figure, picture: Picture, row: int, top: float, high: float) -> None:
    panels = picture.rows[row]
    left = max(_LEFT, marks.room(panels[0]))
    wide = (WIDE - left - _RIGHT - _GAP * (len(panels) - 1)) / len(panels)
    for i, panel in enumerate(panels):
        at = (left + i * (wide + _GAP)) / WIDE, 1 - (top + high) / picture.height
        axes = figure.add_axes((*at, wide / WIDE, high / picture.height))
        _frame(axes, panel)
        axes.set_xlabel(picture.x_title(row))
        for part in panel.parts:
            marks.draw(axes, panel, part, round(wide * DPI), round(high * DPI), first=i == 0)
        if panel.y is not None:
            axes.set_ylim(panel.y[0], panel.y[1] if panel.y[1] is not None else max(axes.dataLim.y1 * 1.05, 1.0))
        if panel.empty:
            axes.text(0.5, 0.5, panel.empty, transform=axes.transAxes, ha="center", va="center", color=QUIET)


def _frame(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

    unit = panel.unit.size if panel.unit else 1.0
    if panel.log:
        axes.set_xscale("log")
    axes.set_xlim(panel.x[0] / unit, panel.x[1] / unit)
    axes.set_ylabel(panel.y_title)
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=10, weight="bold", pad=5)
    axes.xaxis.set_minor_locator(NullLocator())
    if panel.marks:
        axes.set_xticks([at for at, _ in panel.marks], [words for _, words in panel.marks])
    elif panel.unit:
        steps = [1, 2, 5, 10] if panel.unit.name == "days" else [1, 2, 3, 6, 10]
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, steps=steps))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10], integer=panel.whole))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

"""The static backend: a figure as SVG, PNG or PDF, drawn by Matplotlib.

Rule: sizes are computed here, not found by trial, so the pixels of a chart are known before it is drawn. However many
jobs there are, a chart has one path per colour, or one image. The same figure gives the same bytes.
"""

from __future__ import annotations

import textwrap
import warnings
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import NullLocator

from ...formats.text import fit, width
from . import rectangles
from .colours import DASHES, GRID, INK, QUIET, STRIPE, ink_on
from .figure import Area, Bars, Boxes, ColourBar, Figure, LegendEntry, Line, Panel, Points, Strokes
from .scales import Array

#: Inches, and pixels per inch. Text of 9.5 points is 5.4 points high in a column of 3.5 inches.
WIDTH, DPI = 6.2, 200
_FONT, _SMALL, _NAME = 9.5, 8.5, 7.5
_RIGHT, _BOTTOM, _GAP, _TITLE, _LINE, _ROW = 0.28, 0.48, 0.16, 0.22, 0.165, 0.195
#: Inches of a character of the small font, on average.
_CHAR = 0.072
#: Columns of a function of time.
COLUMNS = round((WIDTH - 0.8) * DPI)
_STYLE: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"], "font.size": _FONT, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": QUIET, "xtick.color": QUIET, "ytick.color": QUIET, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "axes.linewidth": 0.7, "xtick.labelsize": _SMALL, "ytick.labelsize": _SMALL,
    "svg.fonttype": "none", "svg.hashsalt": "pilotfish", "pdf.fonttype": 42, "text.parse_math": False,
    "axes.unicode_minus": False,
}  # fmt: skip


def picture(figure: Figure, form: str) -> bytes:
    """Return a figure as a file of the form `svg`, `png` or `pdf`."""
    drawn = BytesIO()
    dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without a glyph of some name
        build(figure).savefig(drawn, format=form, metadata=dateless.get(form, {}))
    return drawn.getvalue()


def build(figure: Figure) -> Sheet:
    """Return the Matplotlib figure."""
    with rc_context(_STYLE):
        sheet = Sheet(figsize=(WIDTH, figure.height), dpi=DPI)
        head = _head(sheet, figure)
        for row, (top, high) in enumerate(_rows(figure, head)):
            _row(sheet, figure, row, top, high)
    return sheet


def _head(sheet: Sheet, figure: Figure) -> float:
    """Draw title, notes, legend and colour bar; return the inches that they take."""
    high, margin, top = figure.height, 0.1 / WIDTH, 0.1
    if figure.title:
        sheet.text(margin, 1 - top / high, fit(figure.title, 70), fontsize=11, weight="bold", va="top")
        top += _TITLE
    for text in (figure.about, *figure.notes):
        for line in textwrap.wrap(text, round((WIDTH - 0.2) / _CHAR)):
            sheet.text(margin, 1 - top / high, line, fontsize=_SMALL, color=QUIET, va="top")
            top += _LINE
    lines = 0
    if entries := figure.legend():
        longest = max(width(entry.label) for entry in entries)
        room = WIDTH - 0.2 - (1.9 if figure.bar else 0.0)
        columns = max(1, min(len(entries), int(room / (0.45 + _CHAR * longest))))
        lines = -(-len(entries) // columns)
        top += 0.06
        sheet.legend(
            handles=[_handle(entry) for entry in entries], loc="upper left", fontsize=_SMALL, ncols=columns,
            bbox_to_anchor=(margin, 1 - top / high), frameon=False, borderaxespad=0.0, borderpad=0.0,
            handlelength=1.8, columnspacing=1.4, labelspacing=0.4,
        )  # fmt: skip
    if figure.bar:
        _colour_bar(sheet, figure.bar, top, high)
        lines = max(lines, 2)
    return top + _ROW * lines + 0.12


def _colour_bar(sheet: Sheet, bar: ColourBar, top: float, high: float) -> None:
    axes = sheet.add_axes((1 - (_RIGHT + 1.6) / WIDTH, 1 - (top + 0.25) / high, 1.5 / WIDTH, 0.1 / high))
    sheet.text(1 - (_RIGHT + 1.6) / WIDTH, 1 - top / high, bar.label, fontsize=_SMALL, va="top")
    scale = ScalarMappable(LogNorm(1, bar.high), ListedColormap(bar.colours))
    scale_bar = sheet.colorbar(scale, axes, orientation="horizontal")
    middle = bar.high**0.5
    scale_bar.set_ticks([1, middle, bar.high], labels=["1", f"{middle:.3g}", f"{bar.high:g}"])
    scale_bar.ax.minorticks_off()
    scale_bar.ax.tick_params(length=0, pad=2)
    scale_bar.outline.set_visible(False)


def _rows(figure: Figure, head: float) -> list[tuple[float, float]]:
    """Return top and height of each row of panels, inches from the top."""
    titles = [_TITLE if any(panel.title for panel in row) else 0.0 for row in figure.rows]
    lower = [_BOTTOM if figure.x_label(row) else _GAP for row in range(len(figure.rows))]
    shares = [max(panel.height for panel in row) for row in figure.rows]
    room = max(figure.height - head - sum(titles) - sum(lower), 0.2 * len(shares))
    places, top = [], head
    for title, below, share in zip(titles, lower, shares, strict=True):
        places.append((top + title, room * share / sum(shares)))
        top += title + places[-1][1] + below
    return places


def _row(sheet: Sheet, figure: Figure, row: int, top: float, high: float) -> None:
    panels = figure.rows[row]
    bars = panels[0].of(Bars)
    across = max(len(other_row) for other_row in figure.rows if other_row[0].of(Bars)) if bars else len(panels)
    lefts = [_left_margin(panel, first=i == 0) for i, panel in enumerate(panels)]
    if len(panels) == 1 and not bars:  # axes below each other are aligned
        lefts = [
            max(
                _left_margin(other_row[0], first=True)
                for other_row in figure.rows
                if len(other_row) == 1 and not other_row[0].of(Bars)
            )
        ]
    lefts += [0.1] * (across - len(panels))
    wide = (WIDTH - sum(lefts) - _RIGHT * across) / across
    at = 0.0
    for i, panel in enumerate(panels):
        at += lefts[i]
        axes = sheet.add_axes((at / WIDTH, 1 - (top + high) / figure.height, wide / WIDTH, high / figure.height))
        _frame(axes, panel, wide, high)
        axes.set_xlabel(figure.x_label(row) if figure.shared else panel.x.label, labelpad=2)
        axes.tick_params(labelbottom=not figure.shared or row == len(figure.rows) - 1)
        for series in panel.series:
            _draw(axes, panel, series, wide, high, named=i == 0)
        low, right = panel.x_range
        if bars := panel.of(Bars):  # with room for their words
            words = _CHAR * (max(map(width, bars[0].words), default=0) + 1.5)
            right *= wide / max(wide - words, 0.25 * wide)
        axes.set_xlim(low, right)
        axes.set_ylim(*panel.y_range)
        if panel.empty:
            axes.text(0.5, 0.5, panel.empty, transform=axes.transAxes, ha="center", va="center", color=QUIET)
        at += wide + _RIGHT


def _left_margin(panel: Panel, *, first: bool) -> float:
    """Inches left of the axes: for tick labels, or names, and the axis label."""
    if bars := panel.of(Bars):
        return 0.2 + _CHAR * max((width(name) for name in bars[0].names), default=0) if first else 0.1
    labels = [row.name for row in panel.rows] or [label for _, label in panel.y_ticks(6)]
    return 0.2 + _CHAR * min(16, max(map(width, labels), default=0)) + (0.18 if panel.y.label else 0.0)


def _frame(axes: Axes, panel: Panel, wide: float, high: float) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(length=2.5, pad=2.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if panel.x.log:
        axes.set_xscale("log")
    if panel.y.log:
        axes.set_yscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=_SMALL, weight="bold", pad=3)
    if panel.of(Bars):
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        return
    axes.set_ylabel(panel.y.label, labelpad=3)
    x = panel.x_ticks(max(2, int(wide / 0.62)))
    axes.set_xticks([at for at, _ in x], [label for _, label in x])
    axes.grid(color=GRID, linewidth=0.6, axis="x" if panel.rows or panel.of(Boxes) else "both")
    if panel.rows:
        _named_rows(axes, panel, high)
        return
    y = panel.y_ticks(max(2, min(6, int(high / 0.25))))
    axes.set_yticks([at for at, _ in y], [label for _, label in y])


def _named_rows(axes: Axes, panel: Panel, high: float) -> None:
    """Stripes and names of the rows; where rows are lower than text, only some names."""
    inches = high / max(panel.y_range[1], 1e-9)
    last, ticks = -1.0, []
    for number, row in enumerate(reversed(panel.rows)):
        if number % 2 == 0:
            axes.axhspan(row.low, row.high, color=STRIPE, lw=0, zorder=0)
        if ((middle := (row.low + row.high) / 2) - last) * inches >= 0.14 or last < 0:
            ticks.append((middle, fit(row.name, 16)))
            last = middle
    axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _draw(axes: Axes, panel: Panel, series: Any, wide: float, high: float, *, named: bool) -> None:
    """Draw a series on axes of so many inches; `named`: bars have their names on the left."""
    x = panel.x.place
    if isinstance(series, Line):
        thin: dict[str, Any] = {"lw": 0.8, "alpha": 0.6, "zorder": 3} if panel.rows else {"lw": 1.3}
        axes.plot(x(series.x), series.y, color=series.colour, drawstyle="steps-post" if series.stairs else "default",
                  dashes=DASHES[series.dash] or (None, None), **thin)  # fmt: skip
    elif isinstance(series, Area):
        alpha = 0.25 if series.faint else 1.0
        axes.fill_between(x(series.x), series.low, series.high, step="post", color=series.colour, alpha=alpha, lw=0)
    elif isinstance(series, Points):
        if series.error is not None:
            axes.errorbar(x(series.x), series.y, yerr=series.error, fmt="none", ecolor=series.colour, capsize=2.5, lw=1)
        dense = len(series.x) > 60
        axes.plot(x(series.x), series.y, "o", color=series.colour, ms=2 if dense else 3.5, alpha=0.45 if dense else 1,
                  mew=0)  # fmt: skip
    elif isinstance(series, Boxes):
        _boxes(axes, panel, series, wide, high)
    elif isinstance(series, Strokes):
        at = x(series.x)
        points = np.stack([at, series.low, at, series.high], axis=1).reshape(-1, 2)
        _path(axes, points, 2, edgecolor=series.colour, facecolor="none", linewidth=1.0, capstyle="butt")
    else:
        _bars(axes, series, named=named)


def _boxes(axes: Axes, panel: Panel, boxes: Boxes, wide: float, high: float) -> None:
    (begin, end), (floor, top) = panel.x_range, panel.y_range
    if len(boxes) > rectangles.FEW:
        image = rectangles.cells(panel, boxes, round(wide * DPI), round(high * DPI))
        axes.imshow(image, extent=(begin, end, floor, top), aspect="auto", interpolation="none", zorder=1)
    pixel = (end - begin) / wide / 100, (top - floor) / high / 100
    begins, ends = (np.clip(panel.x.place(x), begin, end) for x in (boxes.left, boxes.right))
    ends, upper = _apart(begins, ends, pixel[0]), _apart(boxes.low, boxes.high, pixel[1])
    lower = boxes.low + (np.minimum(2 * pixel[1], 0.12) if panel.rows else 0.0)
    corners = np.stack([begins, lower, ends, lower, ends, upper, begins, upper, begins, lower], axis=1)
    for number in np.unique(boxes.fill).tolist() if len(boxes) <= rectangles.FEW else ():
        _path(axes, corners[boxes.fill == number].reshape(-1, 2), 5, facecolor=boxes.colours[number], edgecolor="none")
    if boxes.strong is not None:
        lines = (ends - begins)[boxes.strong] / pixel[0] / 100 * 72  # points
        lane = 72 * high / (top - floor) if panel.rows else 72.0
        narrow = float(min(1.3, lane / 5, max(0.3, np.median(lines) / 4))) if len(lines) else 0.3
        points = corners[boxes.strong].reshape(-1, 2)
        _path(axes, points, 5, facecolor="none", edgecolor=INK, linewidth=narrow, zorder=3)
    if boxes.labelled and len(boxes) <= rectangles.FEW:
        for i, name in rectangles.names(panel, boxes, wide, high, (_CHAR * 0.92, 0.12)):
            ink = ink_on(boxes.colours[boxes.fill[i]])
            axes.text((begins[i] + ends[i]) / 2, (boxes.low[i] + boxes.high[i]) / 2, name, ha="center",
                      va="center_baseline", fontsize=_NAME, color=ink, zorder=4, clip_on=True)  # fmt: skip
    for span in panel.x.time.breaks if panel.x.time else ():
        low, up = panel.x.place(span).tolist()
        axes.axvspan(low, up, color="white", alpha=0.55, lw=0, zorder=5)
        axes.text((low + up) / 2, (floor + top) / 2, "//", ha="center", va="center", weight="bold", zorder=6)


def _apart(begin: Array, end: Array, pixel: float) -> Array:
    """Return ends of rectangles with a pixel between neighbours where there is room; none is below a pixel."""
    ends: Array = np.maximum(end - np.minimum(pixel, 0.2 * (end - begin)), begin + pixel)
    return ends


def _path(axes: Axes, points: Array, corners: int, *, zorder: float = 2, **style: Any) -> None:
    """Draw closed (5 corners) or open (2) lines as one path."""
    last = Path.CLOSEPOLY if corners == 5 else Path.LINETO
    codes = np.tile([Path.MOVETO, *[Path.LINETO] * (corners - 2), last], len(points) // corners)
    if len(points):
        axes.add_patch(PathPatch(Path(points, codes), zorder=zorder, **style))


def _bars(axes: Axes, bars: Bars, *, named: bool) -> None:
    places = np.arange(len(bars.names))[::-1]
    axes.barh(places, np.nan_to_num(bars.values), color=bars.colours, height=0.62)
    for place, value, words in zip(places, bars.values, bars.words, strict=True):
        axes.annotate(words, (float(np.nan_to_num(value)), place), (3, 0), textcoords="offset points",
                      va="center_baseline", fontsize=_SMALL)  # fmt: skip
    axes.set_yticks(places, bars.names if named else [""] * len(places))
    axes.tick_params(axis="y", length=0)


def _handle(entry: LegendEntry) -> Artist:
    if entry.kind in ("area", "faint", "boxes"):
        return Patch(color=entry.colour, alpha=0.25 if entry.kind == "faint" else 1.0, lw=0, label=entry.label)
    if entry.kind == "outline":
        return Patch(facecolor="none", edgecolor=INK, lw=1.2, label=entry.label)
    if entry.kind == "line":
        dashes: Any = (0, DASHES[entry.dash]) if DASHES[entry.dash] else "-"
        return Line2D([], [], color=entry.colour, lw=1.3, ls=dashes, label=entry.label)
    marker, size = ("|", 9) if entry.kind == "stroke" else ("o", 4)
    return Line2D([], [], color=entry.colour, ls="none", marker=marker, ms=size, label=entry.label)

"""The terminal backend: a figure as lines of text.

Rule: no line is wider than asked for, whatever the names contain, and all of it is legible without colour.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from rich.style import Style
from rich.text import Text

from ...formats.text import clean, count, fit, pad, width
from .colours import INK, ink_on
from .figure import Area, Bars, Boxes, ColourBar, Figure, GanttRow, Line, Panel, Points
from .rectangles import LEAST_NAME, busy_cells, raster_rows
from .scales import Array

MAX_ROWS, MAX_LANES = 32, 4
#: With more rows than this there is no room for lines that count the jobs not drawn.
_COUNTED_ROWS = 16
#: Lines of a panel, and of a raster.
_HIGH, _RASTER = 10, 16


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters to draw with.

    Args:
        ascii_only: all of them are ASCII.
        full, last: inside a bar, its last cell. thin: a bar of one cell.
        shades: cells from nearly idle to busy. layers, marks: signs of layers, and of lines.
    """

    ascii_only: bool
    first: str
    full: str
    last: str
    thin: str
    side: str
    corner: str
    floor: str
    tick: str
    shades: str
    layers: str
    marks: str
    cut: str

    def fit(self, text: str, cells: int) -> str:
        """Return a text that is safe to print, in at most `cells` cells."""
        return fit(clean(text, ascii_only=self.ascii_only), cells, ascii_only=self.ascii_only)

    def line(self, text: str, cells: int, style: str = "") -> Text:
        """Return a text as a line of at most `cells` cells."""
        return Text(self.fit(text, cells), style)


_BLOCKS = Glyphs(False, "█", "█", "▌", "▌", "│", "└", "─", "┴", "░▒▓█", "█▓▒░·", "●○◆◇■□▲△*", "⫽")
_ASCII = Glyphs(True, "[", "=", "]", "|", "|", "+", "-", "+", ".:=#", "#=+:.", "*o+x@%&$~", "/")
_PLAIN = Style()
#: Later series are drawn over earlier ones.
_ORDER: dict[type[Any], int] = {Area: 0, Line: 1, Points: 2}


class _Canvas:
    """One line of cells; a wide character fills its cell and leaves the next one empty."""

    def __init__(self, cells: int) -> None:
        self._cells = [(" ", _PLAIN)] * cells

    def put(self, at: int, text: str, style: Style = _PLAIN) -> None:
        for character in text:
            size = width(character)
            self._cells[at : at + size] = [(character, style), ("", style)][:size]
            at += size

    def append_to(self, line: Text) -> Text:
        for style, cells in groupby(self._cells, itemgetter(1)):
            line.append("".join(character for character, _ in cells), style)
        line.rstrip()
        return line


def draw(
    figure: Figure, cells: int, *, ascii_only: bool = False, colour: bool = False, headed: bool = True
) -> list[Text]:  # fmt: skip
    """Return a figure as lines of at most `cells` cells. O(data + lines * cells).

    Args:
        figure: what to draw.
        cells: width of the terminal, >= 30.
        ascii_only: draw with ASCII, names included.
        colour: the terminal shows colours; adds the scale of colours.
        headed: begin with title, notes and legend.
    """
    glyphs = _ASCII if ascii_only else _BLOCKS
    signs = _signs(figure, glyphs)
    legend = (f"{signs[entry.label]} {entry.label}" for entry in figure.legend() if entry.label in signs)
    heads = (figure.title, figure.about, *figure.notes, *legend) if headed else figure.notes
    notes = [glyphs.line(text, cells) for text in heads if text]
    lines = notes if headed else []
    for panel in figure.panels():
        lines += [Text("")] * headed + _panel(panel, cells, glyphs, signs)
    if not headed:
        lines += notes
    if colour and figure.bar:
        lines.append(_colour_bar(figure.bar, cells))
    return lines


def _signs(figure: Figure, glyphs: Glyphs) -> dict[str, str]:
    """The sign of each label, the same in all panels."""
    marks, layers = cycle(glyphs.marks), cycle(glyphs.layers)
    kinds = {"line": marks, "point": marks, "area": layers, "boxes": layers}
    return {entry.label: next(kinds[entry.kind]) for entry in figure.legend() if entry.kind in kinds}


def _panel(panel: Panel, cells: int, glyphs: Glyphs, signs: dict[str, str]) -> list[Text]:
    if panel.rows:
        return _gantt(panel, cells, glyphs)
    head = [glyphs.line(panel.title, cells, "bold")] if panel.title else []
    if panel.empty:
        return [*head, glyphs.line(panel.empty, cells)]
    if bars := panel.of(Bars):
        return [*head, *_bars(bars[0], cells, glyphs)]
    high = raster_rows(panel, _RASTER) if panel.of(Boxes) else _HIGH
    labels = _y_labels(panel, high)
    margin = max(map(width, labels.values()), default=0)
    plot = cells - margin - 2
    canvases = _raster(panel, plot, high, glyphs) if panel.of(Boxes) else _plot(panel, plot, glyphs, signs)
    if panel.y.label:
        head.append(glyphs.line(f"{' ' * (margin + 1)}{panel.y.label}", cells))
    for i, canvas in enumerate(canvases):
        head.append(canvas.append_to(Text(f"{labels.get(i, ''):>{margin}} {glyphs.side}")))
    label = glyphs.line(f"{' ' * (margin + 2)}{panel.x.label}", cells)
    return [*head, *_axis(panel, plot, margin, glyphs), label]


def _y_labels(panel: Panel, lines: int) -> dict[int, str]:
    """Labels of the y axis by their line from the top."""
    places = ((round(_down(panel, at) * lines - 0.5), label) for at, label in panel.y_ticks(lines // 3))
    return {min(max(line, 0), lines - 1): label for line, label in places}


def _raster(panel: Panel, plot: int, lines: int, glyphs: Glyphs) -> list[_Canvas]:
    """Resources over time; a darker cell is busier, and an empty one is idle."""
    share, touched, _ = busy_cells(panel, panel.of(Boxes)[0], plot, lines)
    level = np.minimum((share * len(glyphs.shades)).astype(int), len(glyphs.shades) - 1)
    canvases = [_Canvas(plot) for _ in range(lines)]
    for row, column in np.argwhere(touched).tolist():
        canvases[lines - 1 - row].put(column, glyphs.shades[level[row, column]])
    return canvases


def _plot(panel: Panel, plot: int, glyphs: Glyphs, signs: dict[str, str]) -> list[_Canvas]:
    """Areas, lines and points on a grid of cells, points on top."""
    canvases = [_Canvas(plot) for _ in range(_HIGH)]
    low, high = panel.y_range

    def line_of(value: float) -> int:
        return min(max(int(_down(panel, value) * _HIGH), 0), _HIGH - 1) if math.isfinite(value) else -1

    for series in sorted(panel.series, key=lambda series: _ORDER.get(type(series), 0)):
        style = Style(color=getattr(series, "colour", INK))
        if isinstance(series, Area) and not series.faint:
            bounds = (_sampled(panel, plot, series.x, y, stairs=True) for y in (series.low, series.high))
            for column, (bottom, top) in enumerate(zip(*bounds, strict=True)):
                for line in range(_HIGH):
                    if bottom <= high - (line + 0.5) / _HIGH * (high - low) < top:
                        canvases[line].put(column, signs[series.label], style)
        elif isinstance(series, Line):
            before = -1
            for column, value in enumerate(_sampled(panel, plot, series.x, series.y, stairs=series.stairs)):
                if (at := line_of(value)) >= 0:
                    joined = range(min(at, before + 1), max(at, before - 1) + 1) if before >= 0 else (at,)
                    for line in joined:
                        canvases[line].put(column, signs.get(series.label, glyphs.marks[0]), style)
                before = at
        elif isinstance(series, Points):
            for column, value in zip(_columns(panel, series.x, plot), series.y.tolist(), strict=True):
                if column >= 0 and low <= value <= high:
                    canvases[line_of(value)].put(column, signs[series.label], style)
    return canvases


def _down(panel: Panel, value: float) -> float:
    """Return a place on the y axis as a share of its length from the top."""
    low, high = panel.y_range
    if panel.y.log:
        low, high, value = math.log(low), math.log(high), math.log(max(value, low))
    return (high - value) / (high - low)


def _across(panel: Panel, places: Any, plot: int) -> Array:
    """Return places on the x axis in columns, 0 to `plot`."""
    begin, end = panel.x_range
    if panel.x.log:
        begin, end, places = math.log(begin), math.log(end), np.log(np.maximum(places, begin))
    positions: Array = (places - begin) / (end - begin) * plot
    return positions


def _columns(panel: Panel, x: Any, plot: int) -> list[int]:
    at = np.floor(_across(panel, panel.x.place(x), plot) + 1e-6)
    return list(map(int, np.minimum(at, plot - 1)))


def _sampled(panel: Panel, plot: int, x: Array, y: Array, *, stairs: bool) -> list[float]:
    """The value of a line in the middle of each column, nan outside of it."""
    if not len(x):
        return [math.nan] * plot
    begin, end = panel.x_range
    x, share = panel.x.place(x), (np.arange(plot) + 0.5) / plot
    at = begin * (end / begin) ** share if panel.x.log else begin + (end - begin) * share
    values = y[np.searchsorted(x, at, "right") - 1] if stairs else np.interp(at, x, y)
    return list(map(float, np.where((at >= x[0]) & (at <= x[-1]), values, math.nan)))


def _bars(bars: Bars, cells: int, glyphs: Glyphs) -> list[Text]:
    """A line for each bar: its name, the bar, its value in words."""
    margin = min(max(map(width, bars.names), default=0), cells // 3)
    words = max(map(width, bars.words), default=0)
    plot = max(cells - margin - words - 3, 1)
    most = max(np.nanmax(bars.values, initial=0.0), 1e-300)
    lines = []
    for name, colour, value, text in zip(bars.names, bars.colours, bars.values, bars.words, strict=True):
        long = 0 if math.isnan(value) else max(round(value / most * plot), int(value > 0))
        line = Text(f"{pad(glyphs.fit(name, margin), margin)} {glyphs.side}")
        line.append(glyphs.full * long, Style(color=colour)).append(f" {text}").truncate(cells)
        lines.append(line)
    return lines


def _gantt(panel: Panel, cells: int, glyphs: Glyphs) -> list[Text]:
    """A row for each node, with a few lanes of bars in it."""
    boxes: Boxes = panel.of(Boxes)[0]
    names = [clean(row.name, ascii_only=glyphs.ascii_only) for row in panel.rows]
    margin = min(max(map(width, names), default=0), max(8, cells // 6))
    plot = cells - margin - 2
    limit = min(MAX_LANES, max(1, MAX_ROWS // max(1, len(panel.rows))))
    begins = _columns(panel, boxes.left, plot)
    ends = np.round(_across(panel, panel.x.place(boxes.right), plot)).astype(int).tolist()
    cuts = [_columns(panel, span, plot) for span in (panel.x.time.breaks if panel.x.time else ())]
    of_row = np.searchsorted([-row.high for row in panel.rows], -boxes.high, "right") - 1
    order = np.lexsort((boxes.right, boxes.left))
    counted, lines = len(panel.rows) <= _COUNTED_ROWS, list[Text]()
    for number, (row, name) in enumerate(zip(panel.rows[:MAX_ROWS], names, strict=False)):
        bars = [(int(row.high - boxes.high[i]), i) for i in order[of_row[order] == number].tolist()]
        canvases = _lanes(row, bars, begins, ends, boxes, plot, limit, glyphs)
        for first, last in cuts:
            for canvas in canvases:
                canvas.put((first + last) // 2, glyphs.cut)
        for i, canvas in enumerate(canvases if counted else canvases[:limit]):
            head = pad(glyphs.fit(name if i == 0 else "", margin), margin)
            lines.append(canvas.append_to(Text(f"{head} {glyphs.side}")))
    lines += _axis(panel, plot, margin, glyphs)
    hidden = any(row.high - row.low > limit for row in panel.rows)
    if counted and hidden:
        lines.append(glyphs.line("digits: how many more jobs run there at that time; + stands for 10 or more", cells))
    missing = [count(len(panel.rows) - MAX_ROWS, "further node")] if len(panel.rows) > MAX_ROWS else []
    if hidden and not counted:
        missing.append(f"jobs that share a node with {limit} others" if limit > 1 else "jobs that share a node")
    if missing:
        lines.append(glyphs.line(f"not drawn: {', '.join(missing)}; --plot FILE shows all", cells))
    return lines


def _lanes(
    row: GanttRow, bars: Sequence[tuple[int, int]], begins: Sequence[int], ends: Sequence[int], boxes: Boxes, plot: int,
    limit: int, glyphs: Glyphs,
) -> list[_Canvas]:  # fmt: skip
    """The lanes of a row; where there are more than `limit`, a last line counts the jobs that are not drawn."""
    high = round(row.high - row.low)
    lanes = [_Canvas(plot) for _ in range(min(high, limit))]
    if high > limit:
        bars = _longest(bars, boxes, limit)
    lane_ends, hidden = [0] * len(lanes), np.zeros(plot, int)
    for lane, i in bars:
        begin = begins[i]
        finish = max(begin + 1, min(plot, ends[i]))
        if lane >= limit:
            hidden[begin:finish] += 1
        elif (begin := max(begin, lane_ends[lane])) < finish:
            _bar(lanes[lane], begin, finish, boxes, i, glyphs)
            lane_ends[lane] = finish
    if high > limit:
        lanes.append(_Canvas(plot))
        for column in np.flatnonzero(hidden).tolist():
            lanes[-1].put(column, str(hidden[column]) if hidden[column] < 10 else "+", Style(dim=True))
    return lanes


def _longest(bars: Sequence[tuple[int, int]], boxes: Boxes, limit: int) -> list[tuple[int, int]]:
    """Return jobs in order of start with lanes; of those that run at one time, the `limit` longest get a lane below it.

    A longer job takes the lane of a shorter one; others fill the gaps that are left, or have the lane `limit`.
    O(jobs * limit * log jobs), and the moves of sorted lists.
    """
    lane_of = dict.fromkeys((i for _, i in bars), limit)
    last: list[int | None] = [None] * limit
    long = boxes.right - boxes.left
    for i in lane_of:
        free = (n for n, box in enumerate(last) if box is None or boxes.right[box] <= boxes.left[i])
        if (lane := next(free, None)) is None:
            shortest = min((box for box in last if box is not None), key=lambda box: float(long[box]))
            if long[i] <= long[shortest]:
                continue
            lane, lane_of[shortest] = lane_of[shortest], limit
        lane_of[i], last[lane] = lane, i
    drawn = [[i for i, lane in lane_of.items() if lane == n] for n in range(limit)]
    begins, ends = ([[float(side[i]) for i in lane] for lane in drawn] for side in (boxes.left, boxes.right))
    for i in sorted((i for i, lane in lane_of.items() if lane == limit), key=lambda i: -float(long[i])):
        begin, end = float(boxes.left[i]), float(boxes.right[i])
        for n in range(limit):
            place = bisect_left(begins[n], begin)
            if (not place or ends[n][place - 1] <= begin) and (place == len(begins[n]) or end <= begins[n][place]):
                begins[n].insert(place, begin)
                ends[n].insert(place, end)
                lane_of[i] = n
                break
    return [(lane, i) for i, lane in lane_of.items()]


def _bar(canvas: _Canvas, begin: int, finish: int, boxes: Boxes, i: int, glyphs: Glyphs) -> None:
    colour = boxes.colours[boxes.fill[i]]
    block = Style(color=colour)
    if finish - begin == 1:
        canvas.put(begin, glyphs.thin, block)
        return
    canvas.put(begin, glyphs.first + glyphs.full * (finish - begin - 2) + glyphs.last, block)
    name = clean(str(boxes.names[boxes.job[i]]), ascii_only=glyphs.ascii_only)
    room = finish - begin - 2
    if room >= min(LEAST_NAME, width(name)):
        strong = boxes.strong is not None and bool(boxes.strong[i])
        canvas.put(begin + 1, glyphs.fit(name, room), Style(color=ink_on(colour), bgcolor=colour, bold=strong))


def _axis(panel: Panel, plot: int, margin: int, glyphs: Glyphs) -> list[Text]:
    floor, labels = _Canvas(plot), _Canvas(plot + 1)
    floor.put(0, glyphs.floor * plot)
    free = 0
    for x, label in panel.x_ticks(max(2, plot // 12), spelled=bool(panel.rows)):
        at = min(plot - 1, round(float(_across(panel, x, plot))))
        if at:
            floor.put(at, glyphs.tick)
        start = max(0, min(at - len(label) // 2, plot - len(label)))
        if start >= free:
            labels.put(start, label)
            free = start + len(label) + 1
    return [floor.append_to(Text(" " * (margin + 1) + glyphs.corner)), labels.append_to(Text(" " * (margin + 2)))]


def _colour_bar(bar: ColourBar, cells: int) -> Text:
    line = Text(f"  {bar.label} 1 ")
    for i in range(16):
        line.append("█", Style(color=bar.colours[round(i / 15 * (len(bar.colours) - 1))]))
    line.append(f" {bar.high:g}")
    bold = "   bold: critical chain"
    return line.append(bold) if line.cell_len + len(bold) <= cells else line

"""The Gantt chart in a terminal: a row for each node, a few lanes in it, blocks with the jobs' names.

Rule: no line is wider than asked for, whatever the names are made of, and it reads without colour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text

from ...simulate.formats.hostlist import fold
from .chart import Bar, Chart, Row, colour_at, ink_on, ticks
from .text import clean, count, fit, pad, width

MAX_ROWS = 32
MAX_LANES = 4
_COUNTED_ROWS = 16  # with more nodes than this there is no room for lines that count what is not drawn
_LEAST_LABEL = 5


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters to draw with: `full` inside a bar, `last` its last cell, `thin` a bar of one cell."""

    first: str
    full: str
    last: str
    thin: str
    side: str
    corner: str
    floor: str
    tick: str


_BLOCKS = Glyphs("█", "█", "▌", "▌", "│", "└", "─", "┴")
_ASCII = Glyphs("[", "=", "]", "|", "|", "+", "-", "+")
_PLAIN = Style()


@dataclass(slots=True)
class _Canvas:
    """One line of cells; a wide character fills its cell and leaves the next one empty."""

    cells: int
    characters: list[str] = field(init=False)
    styles: list[Style] = field(init=False)

    def __post_init__(self) -> None:
        self.characters, self.styles = [" "] * self.cells, [_PLAIN] * self.cells

    def put(self, at: int, text: str, style: Style = _PLAIN) -> None:
        for character in text:
            size = width(character)
            if size == 0:
                continue
            self.characters[at : at + size] = [character, *[""] * (size - 1)]
            self.styles[at : at + size] = [style] * size
            at += size

    def append_to(self, line: Text) -> Text:
        start = 0
        for i in range(1, self.cells + 1):
            if i == self.cells or self.styles[i] != self.styles[start]:
                line.append("".join(self.characters[start:i]), self.styles[start])
                start = i
        line.rstrip()
        return line


def gantt(chart: Chart, cells: int, *, ascii_only: bool = False, colour: bool = False) -> list[Text]:
    """Draw the chart, each line at most `cells` (>= 30) wide. O(bars + lines * cells).

    Args:
        chart: what to draw.
        cells: width of the terminal.
        ascii_only: draw with ASCII, names included.
        colour: whether colours will be seen; adds the legend of the colour scale.
    """
    glyphs = _ASCII if ascii_only else _BLOCKS
    names = [clean(row.node, ascii_only=ascii_only) for row in chart.rows]
    margin = min(max((width(name) for name in names), default=0), max(8, cells // 6))
    plot = cells - margin - 2
    limit = min(MAX_LANES, max(1, MAX_ROWS // max(1, len(chart.rows))))
    lines: list[Text] = []
    for row, name in zip(chart.rows[:MAX_ROWS], names, strict=False):
        canvases = _row(chart, row, plot, limit, glyphs)
        for i, canvas in enumerate(canvases if len(chart.rows) <= _COUNTED_ROWS else canvases[:limit]):
            head = pad(name if i == 0 else "", margin, ascii_only=ascii_only)
            lines.append(canvas.append_to(Text(f"{head} {glyphs.side}")))
    lines += _axis(chart, plot, margin, glyphs)
    if len(chart.rows) <= _COUNTED_ROWS and any(row.lanes > limit for row in chart.rows):
        lines.append(Text(fit("digits: how many more jobs run there at that time; + stands for 10 or more", cells)))
    if chart.idle:
        lines.append(Text(fit(f"idle: {clean(fold(chart.idle), ascii_only=ascii_only)}", cells, ascii_only=ascii_only)))
    if missing := _missing(chart, limit):
        lines.append(Text(fit(f"not drawn: {missing}; --gantt FILE.svg shows all", cells)))
    if colour:
        lines.append(_legend(chart, margin, cells))
    return lines


def _missing(chart: Chart, limit: int) -> str:
    """What the drawing leaves out without a trace."""
    parts = []
    if len(chart.rows) > MAX_ROWS:
        parts.append(count(len(chart.rows) - MAX_ROWS, "further node"))
    if len(chart.rows) > _COUNTED_ROWS and any(row.lanes > limit for row in chart.rows):
        parts.append(f"jobs beside {limit} others" if limit > 1 else "jobs beside another")
    return ", ".join(parts)


def _row(chart: Chart, row: Row, plot: int, limit: int, glyphs: Glyphs) -> list[_Canvas]:
    """Lanes of one node; where there are more than `limit`, a last line counts the jobs not drawn."""
    lanes = [_Canvas(plot) for _ in range(min(row.lanes, limit))]
    taken = [0] * len(lanes)
    hidden = [0] * (plot + 1)
    for bar in row.bars:
        begin = min(plot - 1, math.floor(bar.job.start_time / chart.end * plot + 1e-6))
        finish = max(begin + 1, min(plot, round(bar.job.finish_time / chart.end * plot)))
        if bar.lane >= limit:
            hidden[begin] += 1
            hidden[finish] -= 1
        elif (begin := max(begin, taken[bar.lane])) < finish:
            _bar(lanes[bar.lane], begin, finish, bar, chart, glyphs)
            taken[bar.lane] = finish
    if row.lanes > limit:
        lanes.append(_counts(hidden, plot))
    return lanes


def _bar(canvas: _Canvas, begin: int, finish: int, bar: Bar, chart: Chart, glyphs: Glyphs) -> None:
    red, green, blue = colour = chart.colour(bar.job.contention_slowdown)
    block = Style(color=f"rgb({red},{green},{blue})")
    if finish - begin == 1:
        canvas.put(begin, glyphs.thin, block)
        return
    canvas.put(begin, glyphs.first + glyphs.full * (finish - begin - 2) + glyphs.last, block)
    ascii_only = glyphs is _ASCII
    name = clean(bar.job.id, ascii_only=ascii_only)
    room = finish - begin - 2
    if room >= min(_LEAST_LABEL, width(name)):
        label = Style(color=ink_on(colour), bgcolor=f"rgb({red},{green},{blue})", bold=bar.critical)
        canvas.put(begin + 1, fit(name, room, ascii_only=ascii_only), label)


def _counts(hidden: list[int], plot: int) -> _Canvas:
    canvas, running = _Canvas(plot), 0
    for i in range(plot):
        running += hidden[i]
        if running:
            canvas.put(i, str(running) if running < 10 else "+", Style(dim=True))
    return canvas


def _axis(chart: Chart, plot: int, margin: int, glyphs: Glyphs) -> list[Text]:
    floor, labels = _Canvas(plot), _Canvas(plot + 1)
    floor.put(0, glyphs.floor * plot)
    free = 0
    for t, label in ticks(chart.end, max(2, plot // 12)):
        at = min(plot - 1, round(t / chart.end * plot))
        if at:
            floor.put(at, glyphs.tick)
        begin = max(0, min(at - len(label) // 2, plot - len(label)))
        if begin >= free:
            labels.put(begin, label)
            free = begin + len(label) + 1
    return [
        floor.append_to(Text(" " * (margin + 1) + glyphs.corner)),
        labels.append_to(Text(" " * (margin + 2))),
    ]


def _legend(chart: Chart, margin: int, cells: int) -> Text:
    line = Text(" " * (margin + 2) + "slowdown by contention 1 ")
    for i in range(16):
        line.append("█", Style(color="rgb({},{},{})".format(*colour_at(i / 15))))
    line.append(f" {chart.hottest:g}")
    bold = "   bold: critical chain"
    return line.append(bold) if line.cell_len + len(bold) <= cells else line

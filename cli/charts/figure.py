"""The figure model: rows of panels, each with two axes and series of data.

Rule: times are seconds; a backend places them by the axis. Names are already safe to print (`clean`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .colours import INK
from .scales import Array, Ticks, TimeScale, number_ticks


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by straight lines; with `stairs`, y[i] holds from x[i] to x[i + 1]. nan interrupts the line."""

    label: str
    colour: str
    x: Array
    y: Array
    dash: int = 0
    stairs: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """The area between `low` and `high`, which hold from x[i] to x[i + 1]; a `faint` one lies behind a line."""

    label: str
    colour: str
    x: Array
    low: Array
    high: Array
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Single points, with vertical error bars of +- `error` where given."""

    label: str
    colour: str
    x: Array
    y: Array
    error: Array | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact shown at the pointer for each job: numbers of `kind` "time" (s) or "count", or texts ("text")."""

    title: str
    values: Array
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Boxes:
    """Jobs on resources, one row per rectangle. With cells, each job is a share of a cell's ink.

    Args:
        left, right: seconds. low, high: position on the y axis.
        fill: index into `colours`, per rectangle.
        job: row of `names` and of each fact that the rectangle belongs to.
        strong: rectangles that are outlined: the critical chain.
        labelled: whether names are written into the rectangles.
    """

    label: str
    left: Array
    right: Array
    low: Array
    high: Array
    fill: Array
    colours: Sequence[str]
    job: Array
    names: Array
    facts: Sequence[Fact] = ()
    strong: Array | None = None
    labelled: bool = True

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True, slots=True)
class Strokes:
    """Vertical strokes at x from `low` to `high`: ends of jobs that did not complete, jobs that never started."""

    label: str
    colour: str
    x: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars from 0, one per name, each with its value in words; nan = unknown."""

    names: Sequence[str]
    colours: Sequence[str]
    values: Sequence[float]
    words: Sequence[str]


Series = Line | Area | Points | Boxes | Strokes | Bars


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis.

    Args:
        label: with the unit: "power (kW)".
        low, high: range of the data; high None = as the series need.
        time: the axis shows time by this scale.
        log: logarithmic. whole: ticks at whole numbers only.
        marks: positions with labels, where round numbers do not suit.
    """

    label: str = ""
    low: float = 0.0
    high: float | None = None
    time: TimeScale | None = None
    log: bool = False
    whole: bool = False
    marks: Sequence[tuple[float, str]] = ()

    def place(self, values: Any) -> Array:
        """Return positions of data on the axis."""
        return self.time.place(values) if self.time else np.asarray(values, float)


def time_axis(what: str, scale: TimeScale) -> Axis:
    """Return the x axis of a time scale; `what` is measured: "time since the start"."""
    return Axis(scale.label(what), scale.low, scale.high, scale)


@dataclass(frozen=True, slots=True)
class GanttRow:
    """A named row of a Gantt chart, from `low` to `high` on the y axis."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with its series.

    Args:
        height: share of the figure's height. empty: text where there is nothing to show.
        rows: named rows of the y axis, from the top.
    """

    x: Axis
    y: Axis
    series: Sequence[Series]
    title: str = ""
    height: float = 1.0
    empty: str = ""
    rows: Sequence[GanttRow] = ()

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the series of one kind."""
        return [part for part in self.series if isinstance(part, kind)]

    @property
    def x_range(self) -> tuple[float, float]:
        """Positions of both ends of the x axis."""
        high = self.x.high if self.x.high is not None else max(_largest(self.series, "x") * 1.05, 1e-9)
        low, high = self.x.place([self.x.low, high]).tolist()
        return low, high

    @property
    def y_range(self) -> tuple[float, float]:
        """Both ends of the y axis; the highest value has 5 % of room above it."""
        if self.y.high is not None:
            return self.y.low, self.y.high
        return self.y.low, max(_largest(self.series, "y") * 1.05, self.y.low + (1.0 if self.y.whole else 1e-9))

    def x_ticks(self, most: int, *, spelled: bool = False) -> Ticks:
        """Return the ticks of the x axis."""
        if self.x.time:
            return self.x.time.ticks(most, spelled=spelled)
        return list(self.x.marks) or number_ticks(*self.x_range, most, whole=self.x.whole)

    def y_ticks(self, most: int) -> Ticks:
        """Return the ticks of the y axis; rows and bars have their names there instead."""
        return list(self.y.marks) or number_ticks(*self.y_range, most, whole=self.y.whole)


def bars_panel(bars: Bars, title: str, height: float, empty: str = "") -> Panel:
    """Return a panel of bars; its height grows with `height` for each bar. `empty`: text where there are no bars."""
    names, longest = max(len(bars.names), 1), float(np.nanmax(np.array(bars.values, float), initial=0.0))
    x, y = Axis("", 0.0, longest or 1.0), Axis("", -0.6, names - 0.4)
    return Panel(x, y, [] if empty else [bars], title, 0.1 + height * names, empty)


@dataclass(frozen=True, slots=True)
class ColourBar:
    """A logarithmic scale of colours from 1 to `high`."""

    label: str
    high: float
    colours: Sequence[str]


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """An entry of the legend. `kind`: line, area, faint, point, stroke, boxes or outline."""

    label: str
    kind: str
    colour: str = ""
    dash: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture.

    Args:
        title: short. about: what it shows: workload, machine, policy. notes: remarks, one sentence each.
        rows: panels next to each other, row by row.
        shared: all panels have the same x axis, which only the last row labels.
        height: inches, of a static picture (6.2 wide).
    """

    title: str
    rows: Sequence[Sequence[Panel]]
    about: str = ""
    notes: Sequence[str] = ()
    shared: bool = True
    height: float = 4.0
    bar: ColourBar | None = None

    def x_label(self, row: int) -> str:
        """Return the label of the x axis of a row of panels, "" where the last row has it for all."""
        return "" if self.shared and row < len(self.rows) - 1 else self.rows[row][0].x.label

    def panels(self) -> Iterator[Panel]:
        """All panels, row by row."""
        return (panel for row in self.rows for panel in row)

    def legend(self) -> list[LegendEntry]:
        """Return an entry for each label of a series, once."""
        entries: dict[str, LegendEntry] = {}
        for series in (series for panel in self.panels() for series in panel.series):
            entry = _entry(series)
            entries.setdefault(entry.label, entry)
        return [entry for entry in entries.values() if entry.label]


def _entry(series: Series) -> LegendEntry:
    label, colour = getattr(series, "label", ""), getattr(series, "colour", INK)
    if isinstance(series, Boxes):
        return LegendEntry(
            label if len(series) else "", "boxes" if series.strong is None else "outline", series.colours[0]
        )
    if isinstance(series, Area):
        return LegendEntry(label, "faint" if series.faint else "area", colour)
    kind = "point" if isinstance(series, Points) else "stroke" if isinstance(series, Strokes) else "line"
    return LegendEntry(label, kind, colour, getattr(series, "dash", 0))


def _largest(series: Sequence[Series], axis: str) -> float:
    """The largest finite value of all series on an axis, 0 without any."""
    values = [0.0]
    for item in series:
        if isinstance(item, Area) and axis == "y":
            values += item.high.tolist()
        elif isinstance(item, Line | Points):
            error = item.error if isinstance(item, Points) and item.error is not None and axis == "y" else 0.0
            values += np.ravel(getattr(item, axis) + error).tolist()
    return max(value for value in values if np.isfinite(value))

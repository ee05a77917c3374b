"""What a picture shows, before anything is drawn: panels in rows, and in each its parts.

Rule: x of a time axis is seconds on the trace's clock; who draws divides by the panel's unit. Names are already fit for
people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .units import Unit

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Steps:
    """A function that is constant between edges; `low` and `high`, where there, are its extremes there."""

    label: str
    colour: str
    edges: Array
    values: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that are joined by straight lines, or by steps (`stairs`)."""

    label: str
    colour: str
    x: Array
    y: Array
    stairs: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A value that is there all the time."""

    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Stack:
    """Layers one on the other, the first at the bottom: (label, colour, values between edges)."""

    edges: Array
    layers: Sequence[tuple[str, str, Array]]


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Jobs on resources, one row a rectangle.

    Args:
        left, right: seconds; low, high: resources.
        fill: which colour of the palette.
        job: which row of the columns below.
        name, size, wait, run: of each job.
        labelled: names are written into the rectangles.
    """

    left: Array
    right: Array
    low: Array
    high: Array
    fill: Array
    job: Array
    name: Array
    size: Array
    wait: Array
    run: Array
    labelled: bool

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True, slots=True)
class Ends:
    """Marks where rectangles end that did not end as they should."""

    label: str
    x: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Rug:
    """Marks at the top, of what has no place below."""

    label: str
    x: Array


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar from 0 for each name, with its value in words; nan where it is not known."""

    names: Sequence[str]
    colours: Sequence[str]
    values: Sequence[float]
    words: Sequence[str]


Part = Steps | Curve | Level | Stack | Rectangles | Ends | Rug | Bars


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Args:
        x: from, to; y: from, to (None: as the parts need).
        unit: of x; None where x is no time.
        whole: y counts something.
        marks: places on x with their words, where numbers will not do.
        height: share of the picture's height.
        empty: said where there is nothing to show.
    """

    title: str
    y_title: str
    parts: Sequence[Part]
    x: tuple[float, float]
    x_title: str = ""
    y: tuple[float, float | None] | None = None
    unit: Unit | None = None
    marks: Sequence[tuple[float, str]] = ()
    log: bool = False
    whole: bool = False
    height: float = 1.0
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows of panels under a title and a line of notes; all of them have one x where `shared`. `height`: inches."""

    title: str
    rows: Sequence[Sequence[Panel]]
    notes: str = ""
    shared: bool = True
    height: float = 7.0

    def x_title(self, row: int) -> str:
        """Of a row; where x is shared only the last has one."""
        return "" if self.shared and row < len(self.rows) - 1 else self.rows[row][0].x_title

"""How each part of a panel is drawn by matplotlib, and what it has in the legend.

Rule: one artist for any number of things of a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..render.text import width
from . import cells, names
from .palette import FILLS, INK, MARK, SIZE
from .panels import Bars, Curve, Ends, Level, Panel, Part, Rectangles, Rug, Stack, Steps

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]
#: Pixels of a character of the words beside a bar.
_WORD_PX = 12.0


def draw(axes: Axes, panel: Panel, part: Part, wide: int, high: int, *, first: bool) -> None:
    """Draw a part on axes of so many pixels; `first`: they are the leftmost of their row."""
    unit = panel.unit.size if panel.unit else 1.0
    if isinstance(part, Steps):
        _steps(axes, part, unit)
    elif isinstance(part, Curve):
        style = "steps-post" if part.stairs else "default"
        axes.plot(part.x / unit, part.y, color=part.colour, lw=1.6, drawstyle=style)
    elif isinstance(part, Level):
        axes.axhline(part.value, color=SIZE, lw=1.2, ls=(0, (6, 3)))
    elif isinstance(part, Stack):
        _stack(axes, part, unit)
    elif isinstance(part, Rectangles):
        _rectangles(axes, panel, part, wide, high)
    elif isinstance(part, Ends):
        points = np.stack([part.x / unit, part.low, part.x / unit, part.high], axis=1).reshape(-1, 2)
        _path(axes, points, 2, edgecolor=MARK, facecolor="none", linewidth=1.4, capstyle="butt")
    elif isinstance(part, Rug):
        _rug(axes, part, unit)
    else:
        _bars(axes, part, wide, named=first)


def _steps(axes: Axes, part: Steps, unit: float) -> None:
    edges = part.edges / unit
    if part.low is not None and part.high is not None and len(part.low):
        axes.fill_between(
            edges, np.append(part.low, part.low[-1]), np.append(part.high, part.high[-1]), step="post",
            color=part.colour, alpha=0.3, lw=0,
        )  # fmt: skip
    axes.plot(edges, np.append(part.values, part.values[-1:]), drawstyle="steps-post", color=part.colour, lw=1.3)


def _stack(axes: Axes, part: Stack, unit: float) -> None:
    below = np.zeros(len(part.edges))
    for _, colour, values in part.layers:
        above = below + np.append(values, values[-1:])
        axes.fill_between(part.edges / unit, below, above, step="post", color=colour, lw=0)
        below = above


def _rectangles(axes: Axes, panel: Panel, part: Rectangles, wide: int, high: int) -> None:
    assert panel.unit is not None and panel.y is not None and panel.y[1] is not None
    begin, end, top = panel.x[0] / panel.unit.size, panel.x[1] / panel.unit.size, panel.y[1]
    axes.grid(False, axis="y")
    if len(part) > cells.FEW:
        image = cells.cells(panel, part, wide, high)
        axes.imshow(image, extent=(begin, end, 0.0, top), aspect="auto", interpolation="none", zorder=1)
        axes.set_xlim(begin, end)
    elif len(part):
        pixel = 1.5 * (end - begin) / wide, 1.5 * top / high
        left, right = (np.clip(x / panel.unit.size, begin, end) for x in (part.left, part.right))
        right, upper = _apart(left, right, pixel[0]), _apart(part.low, part.high, pixel[1])
        corners = np.stack([left, part.low, right, part.low, right, upper, left, upper, left, part.low], axis=1)
        for number in np.unique(part.fill).tolist():
            chosen = corners[part.fill == number].reshape(-1, 2)
            _path(axes, chosen, 5, facecolor=FILLS[number], edgecolor="none")
    if part.labelled:
        _names(axes, panel, part, wide, high)


def _apart(begin: Array, end: Array, pixel: float) -> Array:
    """The ends of rectangles such that neighbours are a pixel apart where there is room, and none is below a pixel."""
    ends: Array = np.maximum(end - np.minimum(pixel, 0.2 * (end - begin)), begin + pixel)
    return ends


def _path(axes: Axes, points: Array, corners: int, **style: Any) -> None:
    """Closed (5 corners) or open (2) lines as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    last = Path.CLOSEPOLY if corners == 5 else Path.LINETO
    codes = np.tile([Path.MOVETO, *[Path.LINETO] * (corners - 2), last], len(points) // corners)
    if len(points):
        axes.add_patch(PathPatch(Path(points, codes), zorder=2, **style))


def _names(axes: Axes, panel: Panel, part: Rectangles, wide: int, high: int) -> None:
    for x, y, name in names.places(panel, part, wide, high):
        axes.text(x, y, name, ha="center", va="center", fontsize=8.5, color=INK, zorder=4, clip_on=True)


def _rug(axes: Axes, part: Rug, unit: float) -> None:
    from matplotlib.transforms import blended_transform_factory

    above = blended_transform_factory(axes.transData, axes.transAxes)
    axes.plot(part.x / unit, np.full(len(part.x), 1.012), transform=above, marker=7, color=SIZE, ls="none", ms=5,
              clip_on=False, markeredgewidth=0)  # fmt: skip


def _bars(axes: Axes, part: Bars, wide: int, *, named: bool) -> None:
    places = np.arange(len(part.names))[::-1]
    axes.barh(places, np.nan_to_num(part.values), color=part.colours, height=0.62)
    for place, value, words in zip(places, part.values, part.words, strict=True):
        axes.annotate(words, (max(value, 0.0) if value == value else 0.0, place), (4, 0), textcoords="offset points",
                      va="center", fontsize=9, color=INK)  # fmt: skip
    axes.set_yticks(places, part.names if named else [""] * len(places))
    axes.set_ylim(-0.6, len(places) - 0.4)
    beside = _WORD_PX * (max(map(width, part.words)) + 1)
    axes.set_xlim(0, max(np.nanmax(part.values), 1e-9) * wide / max(wide - beside, 0.3 * wide))
    axes.set_xticks([])
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)


def room(panel: Panel) -> float:
    """Inches that the names on the left of a panel take."""
    names = [name for part in panel.parts if isinstance(part, Bars) for name in part.names]
    return 0.2 + 0.088 * max(map(width, names), default=0)


def legend(panels: Iterable[Panel]) -> Sequence[Artist]:
    """An entry for each thing that has a label, once."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: dict[str, Artist] = {}
    for part in (part for panel in panels for part in panel.parts):
        if isinstance(part, Steps | Curve) and part.label:
            found.setdefault(part.label, Line2D([], [], color=part.colour, lw=2.2, label=part.label))
            if isinstance(part, Steps) and part.low is not None:
                found.setdefault("range", Patch(color=part.colour, alpha=0.3, lw=0, label="least and most in a pixel"))
        elif isinstance(part, Level):
            found.setdefault(part.label, Line2D([], [], color=SIZE, lw=1.2, ls=(0, (4, 2)), label=part.label))
        elif isinstance(part, Stack):
            for name, colour, _ in part.layers:
                found.setdefault(name, Patch(color=colour, label=name))
        elif isinstance(part, Ends):
            found.setdefault(part.label, _dot(part.label, color=MARK, marker="|", ms=11, mew=1.6))
        elif isinstance(part, Rug):
            found.setdefault(part.label, _dot(part.label, color=SIZE, marker=7))
        elif isinstance(part, Rectangles) and len(part) > cells.FEW:
            found.setdefault("", Patch(color=FILLS[0], label="jobs, each in its colour; paler where partly idle"))
    return list(found.values())


def _dot(label: str, **style: Any) -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="none", label=label, **style)

"""How each part of a panel is drawn by Bokeh, and what it has in the legend.

Rule: numbers go as arrays, not as text, so that a page of tens of thousands of jobs opens at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import cells, names
from .palette import FILLS, INK, MARK, QUIET, SIZE
from .panels import Bars, Curve, Ends, Level, Panel, Part, Picture, Rectangles, Rug, Stack, Steps

if TYPE_CHECKING:
    from bokeh.models import Range
    from bokeh.plotting import figure as Figure

Array = npt.NDArray[Any]
#: Rectangles that can be pointed at; cells of the picture that stands for more.
MOST_BARS, CELLS = 200_000, (2400, 1200)
#: Pixels for which names are placed.
_SEEN = 1100, 560
_DURATION = """
const units = [[86400, " d"], [3600, " h"], [60, " min"]];
for (const [size, name] of units) if (value >= 1.5 * size) return (value / size).toPrecision(3) + name;
return value.toPrecision(3) + " s";
"""


def draw(made: Figure, panel: Panel, part: Part, *, named: bool) -> None:
    """Draw a part; `named`: bars have their names beside them."""
    unit = panel.unit.size if panel.unit else 1.0
    if isinstance(part, Steps):
        _steps(made, panel, part, unit)
    elif isinstance(part, Curve):
        _curve(made, panel, part, unit)
    elif isinstance(part, Level):
        made.hspan(y=[part.value], line_color=SIZE, line_width=1.3, line_dash="dashed")
    elif isinstance(part, Stack):
        below = np.zeros(len(part.edges))
        for _, colour, values in part.layers:
            above = below + np.append(values, values[-1:])
            made.varea_step(part.edges / unit, below, above, step_mode="after", fill_color=colour)
            below = above
    elif isinstance(part, Rectangles):
        _rectangles(made, panel, part, unit)
    elif isinstance(part, Ends):
        x = part.x / unit
        made.segment(x, part.low, x, part.high, line_color=MARK, line_width=2)
    elif isinstance(part, Rug):
        assert panel.y is not None and panel.y[1] is not None
        height = np.full(len(part.x), panel.y[1] * 1.015)
        made.scatter(part.x / unit, height, marker="inverted_triangle", size=7, color=SIZE)
    else:
        _bars(made, part, named=named)


def _steps(made: Figure, panel: Panel, part: Steps, unit: float) -> None:
    x = part.edges / unit
    if part.low is not None and part.high is not None:
        low, high = (np.append(each, each[-1:]).astype(float) for each in (part.low, part.high))
        made.varea_step(x, low, high, step_mode="after", fill_color=part.colour, fill_alpha=0.3)
    line = made.line(*_stairs(x, np.append(part.values, part.values[-1:])), color=part.colour, line_width=1.6)
    _point_at(made, panel, line, part.label)


def _curve(made: Figure, panel: Panel, part: Curve, unit: float) -> None:
    x, y = part.x / unit, part.y
    line = made.line(*_stairs(x, y) if part.stairs else (x, y), color=part.colour, line_width=1.8)
    _point_at(made, panel, line, part.label)


def _stairs(x: Array, y: Array) -> tuple[Array, Array]:
    """The corners of a function that stays at each y until the next x; Bokeh's own steps cannot be pointed at."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _point_at(made: Figure, panel: Panel, line: Any, label: str) -> None:
    from bokeh.models import CustomJSHover, HoverTool

    x = f"@x{{0,0.[000]}} {panel.unit.name}" if panel.unit else "@x{custom}"
    said = {} if panel.unit else {"@x": CustomJSHover(code=_DURATION)}
    alone = sum(isinstance(part, Steps | Curve) for part in panel.parts) == 1
    made.add_tools(HoverTool(
        renderers=[line], tooltips=[("at", x), (label or panel.y_title, "@y{0,0.[00]}")], formatters=said,
        mode="vline" if alone else "mouse", line_policy="prev", visible=False,
    ))  # fmt: skip


def _rectangles(made: Figure, panel: Panel, part: Rectangles, unit: float) -> None:
    from bokeh.models import BooleanFilter, CDSView, ColumnDataSource, CustomJSHover, HoverTool
    from bokeh.transform import linear_cmap

    made.ygrid.grid_line_color = None
    if len(part) > MOST_BARS:
        _cells(made, panel, part, unit)
        return
    source = ColumnDataSource({
        "left": part.left / unit, "right": part.right / unit, "low": part.low.astype(np.int32),
        "high": part.high.astype(np.int32), "fill": part.fill.astype(np.uint8), "name": part.name[part.job].tolist(),
        "size": part.size[part.job].astype(np.int32), "wait": part.wait[part.job].astype(np.float32),
        "run": part.run[part.job].astype(np.float32),
    })  # fmt: skip
    colour = linear_cmap("fill", FILLS, -0.5, len(FILLS) - 0.5)
    bars = [made.quad("left", "right", "high", "low", source=source, fill_color=colour, line_color=None)]
    if (part.left == part.right).any():
        at_once = CDSView(filter=BooleanFilter((part.left == part.right).tolist()))
        bars.append(made.segment("left", "low", "left", "high", source=source, view=at_once, line_color=colour))
    tooltips = [("job", "@name"), ("resources", "@size{0,0}"), ("waited", "@wait{custom}"), ("ran", "@run{custom}")]
    said = {field: CustomJSHover(code=_DURATION) for field in ("@wait", "@run")}
    made.add_tools(HoverTool(renderers=bars, tooltips=tooltips, formatters=said, visible=False))
    if part.labelled:
        placed = list(names.places(panel, part, *_SEEN))
        made.text(*(list(each) for each in zip(*placed, strict=True)), text_align="center", text_baseline="middle",
                  text_color=INK, text_font_size="11px") if placed else None  # fmt: skip


def _cells(made: Figure, panel: Panel, part: Rectangles, unit: float) -> None:
    assert panel.y is not None and panel.y[1] is not None
    picture = cells.cells(panel, part, *CELLS)[::-1]
    image = np.full((*picture.shape[:2], 4), 255, np.uint8)
    image[:, :, :3] = picture
    begin, end = (x / unit for x in panel.x)
    flat = np.ascontiguousarray(image).view(np.uint32)[:, :, 0]
    made.image_rgba([flat], x=begin, y=0, dw=end - begin, dh=panel.y[1])


def _bars(made: Figure, part: Bars, *, named: bool) -> None:
    from bokeh.models import PlainText

    places = np.arange(len(part.names))[::-1]
    values = np.nan_to_num(part.values)
    made.hbar(places, right=values, height=0.62, color=list(part.colours))
    made.text(values, places, list(part.words), x_offset=5, text_baseline="middle", text_font_size="12px",
              text_color=INK)  # fmt: skip
    made.x_range.end = (max(values) or 1.0) * 2.1
    made.xaxis.visible, made.xgrid.visible, made.ygrid.visible = False, False, False
    made.yaxis.ticker = places.tolist()
    labels = part.names if named else [""] * len(places)
    said = {int(place): PlainText(text=name) for place, name in zip(places, labels, strict=True)}
    made.yaxis.major_label_overrides = said
    made.yaxis.major_tick_line_color = None


def y_range(panel: Panel) -> Range:
    """What y shows at first."""
    from bokeh.models import DataRange1d, Range1d

    if panel.y is None:
        names = next(part.names for part in panel.parts if isinstance(part, Bars))
        return Range1d(-0.6, len(names) - 0.4)
    low, high = panel.y
    if high is None:
        return DataRange1d(start=low)
    top = high * 1.04 if any(isinstance(part, Rug) for part in panel.parts) else high
    return Range1d(low, top)


def say(made: Figure, panel: Panel) -> None:
    """Write in the middle that there is nothing to show."""
    from bokeh.models import Label

    unit = panel.unit.size if panel.unit else 1.0
    middle = (panel.x[0] * panel.x[1]) ** 0.5 if panel.log else (panel.x[0] + panel.x[1]) / 2
    height = (panel.y[1] or 1.0) / 2 if panel.y is not None else 0.5
    made.add_layout(Label(x=middle / unit, y=height, text=panel.empty, text_color=QUIET, text_align="center"))


def legend(picture: Picture) -> dict[str, tuple[str, str]]:
    """For each thing that has a label, a sign and its style."""
    found: dict[str, tuple[str, str]] = {}
    for part in (part for row in picture.rows for panel in row for part in panel.parts):
        if isinstance(part, Steps | Curve) and part.label:
            found[part.label] = "\u2501\u2501", f"color:{part.colour}"
            if isinstance(part, Steps) and part.low is not None:
                found["least and most"] = "\u25a0", f"color:{part.colour};opacity:.35"
        elif isinstance(part, Level):
            found[part.label] = "\u2505\u2505", f"color:{SIZE}"
        elif isinstance(part, Stack):
            found.update({label: ("\u25a0", f"color:{colour}") for label, colour, _ in part.layers})
        elif isinstance(part, Ends):
            found[part.label] = "\u2503", f"color:{MARK}"
        elif isinstance(part, Rug):
            found[part.label] = "\u25bc", f"color:{SIZE}"
        elif isinstance(part, Rectangles) and len(part):
            many = len(part) > MOST_BARS
            what = "paler where partly idle" if many else "point at one to see what it is"
            found[f"jobs, each in its colour; {what}"] = "\u25a0", f"color:{FILLS[0]}"
    return found

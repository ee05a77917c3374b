"""A picture as an HTML page that can be zoomed and asked, drawn by Bokeh.

Rule: one file that asks nobody for anything; up to MOST_BARS rectangles can be pointed at, more are a picture of cells.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.formats.writing import write_whole
from . import things
from .cells import FEW
from .palette import INK, QUIET
from .panels import Bars, Panel, Picture, Rectangles

if TYPE_CHECKING:
    from bokeh.models import Div
    from bokeh.plotting import figure as Figure

#: Columns of a function of time: what is seen when a picture is made eight times as wide.
COLUMNS = 8000
#: Pixels an inch of a picture's height, and of its width where nothing else is said.
_INCH, _WIDE = 96, 1200
#: Pixels of a panel of bars, half of them for words.
_BARS = 180
_STYLE = "font-family: 'DejaVu Sans', Verdana, sans-serif"


def draw(picture: Picture, path: Path) -> None:
    """Write a picture as a page. Raises OSError."""
    write_whole(path, html(picture))


def html(picture: Picture) -> str:
    """The page. O(what is shown)."""
    from bokeh.embed import file_html
    from bokeh.layouts import column, row
    from bokeh.resources import INLINE

    shares = [max(panel.height for panel in panels) for panels in picture.rows]
    first: Figure | None = None
    rows: list[Any] = [_head(picture)]
    for i, panels in enumerate(picture.rows):
        high = max(130, round((picture.height - 1.0) * _INCH * shares[i] / sum(shares)))
        figures = [_figure(panel, picture.x_title(i), high, first, named=n == 0) for n, panel in enumerate(panels)]
        first = first or (figures[0] if picture.shared else None)
        rows.append(figures[0] if len(figures) == 1 else row(*figures))
    return str(file_html(column(*rows, sizing_mode="stretch_width"), INLINE, title=picture.title))


def _head(picture: Picture) -> Div:
    """Title, notes and legend."""
    from bokeh.models import Div

    entries = "".join(
        f'<span style="margin-right:1.6em"><span style="{escape(style)}">{sign}</span> {escape(label)}</span>'
        for label, (sign, style) in things.legend(picture).items()
    )
    notes = f'<div style="color:{QUIET};margin:.3em 0">{escape(picture.notes)}</div>' if picture.notes else ""
    title = f'<div style="font-size:17px;font-weight:bold;margin:.4em 0">{escape(picture.title)}</div>'
    text = f'<div style="{escape(_STYLE)};font-size:13px;color:{INK};margin:0 12px">{title}{notes}{entries}</div>'
    return Div(text=text, sizing_mode="stretch_width", disable_math=True)


def _figure(panel: Panel, x_title: str, high: int, first: Figure | None, *, named: bool) -> Figure:
    from bokeh.models import NumeralTickFormatter, PlainText, Range1d, WheelZoomTool
    from bokeh.plotting import figure

    unit = panel.unit.size if panel.unit else 1.0
    bars = next((part for part in panel.parts if isinstance(part, Bars)), None)
    chart = next((part for part in panel.parts if isinstance(part, Rectangles)), None)
    made = figure(
        height=high, width=None if bars else _WIDE, frame_width=_BARS if bars else None, toolbar_location="right",
        sizing_mode=None if bars else "stretch_width",
        output_backend="webgl" if chart and len(chart) > FEW else "canvas",
        tools="" if bars else "pan,box_zoom,reset,save", x_axis_type="log" if panel.log else "linear",
        x_range=first.x_range if first else Range1d(panel.x[0] / unit, panel.x[1] / unit),
        y_range=things.y_range(panel),
    )  # fmt: skip
    if not bars:
        made.min_border_left = 80
        wheel = WheelZoomTool(dimensions="both" if chart else "width")
        made.add_tools(wheel)
        made.toolbar.active_scroll = wheel
        made.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    if panel.unit:
        made.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    if panel.title:
        made.title.text = PlainText(text=panel.title)  # text itself would be read as mathematics between $$
    if panel.marks:
        made.xaxis.ticker = [at for at, _ in panel.marks]
        made.xaxis.major_label_overrides = dict(panel.marks)
    made.xaxis.axis_label, made.yaxis.axis_label = x_title, panel.y_title
    _plain(made)
    for part in panel.parts:
        things.draw(made, panel, part, named=named)
    if panel.empty:
        things.say(made, panel)
    return made


def _plain(made: Figure) -> None:
    for axis in made.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color, axis.major_label_text_color, axis.axis_line_color = INK, QUIET, QUIET
        axis.minor_tick_line_color = None
    made.outline_line_color = None
    made.toolbar.logo = None

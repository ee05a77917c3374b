"""The HTML backend: a figure as a page with zoom and hover, drawn by Bokeh.

Rule: the page is one file that loads nothing from the network. Up to `MOST_BOXES` rectangles show their job under the
pointer; more are drawn as a raster. Numbers are stored as arrays, so that a page of many jobs opens quickly.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from bokeh import models
from bokeh.embed import file_html
from bokeh.plotting import figure as Plot
from bokeh.resources import INLINE
from bokeh.transform import linear_cmap

from ...formats.text import width
from . import rectangles
from .colours import DASHES, GRID, INK, QUIET, STRIPE, ink_on
from .figure import Area, Bars, Boxes, Figure, LegendEntry, Line, Panel, Points, Strokes

#: Columns of a function of time: enough for a picture that is zoomed eight times.
COLUMNS = 8000
MOST_BOXES, CELLS = 200_000, (2400, 1200)
#: Pixels per inch of a static picture, width of a page, least width of a panel of bars, of its longest bar, of a
#: character, and of the border around a panel of bars.
_INCH, _WIDE, _BARS, _BAR, _CHAR, _EDGE = 130, 1200, 200, 95, 7.2, 12
_FONT = "'DejaVu Sans', Verdana, sans-serif"
_DURATION = """
const units = [[86400, " d"], [3600, " h"], [60, " min"]];
for (const [size, name] of units) if (value >= 1.5 * size) return (value / size).toPrecision(3) + name;
return value.toPrecision(3) + " s";
"""
#: How numbers of each kind of fact are stored and shown.
_FACTS: dict[str, tuple[Any, str]] = {
    "text": (None, ""), "count": (np.int32, "{0,0}"), "time": (np.float32, "{custom}"),
}  # fmt: skip
_SIGNS = {"line": "\u2501\u2501", "stroke": "\u2503", "point": "\u25cf", "outline": "\u25a1"}


#: A reader who prefers dark pages gets the same hues on a dark ground.
_DARK = (
    "<style>@media screen and (prefers-color-scheme: dark) "
    "{ html { background: #141414; } body { filter: invert(0.92) hue-rotate(180deg); } }</style>\n"
)


def page(figure: Figure) -> str:
    """Return a figure as an HTML page. O(data)."""
    title = ": ".join(part for part in (figure.title, figure.about) if part)
    # The scripts of Bokeh contain </head>, so the style goes to the begin of the head.
    return str(file_html(build(figure), INLINE, title=title or "pilotfish")).replace("<head>", f"<head>\n{_DARK}", 1)


def build(figure: Figure) -> models.LayoutDOM:
    """Return the Bokeh layout."""
    shares = [max(panel.height for panel in panels) for panels in figure.rows]
    first: Plot | None = None
    rows: list[Any] = [_head(figure)]
    for i, panels in enumerate(figure.rows):
        high = max(110, round((figure.height - 1.0) * _INCH * shares[i] / sum(shares)))
        plots = [_plot(figure, panel, figure.x_label(i), high, first, named=n == 0) for n, panel in enumerate(panels)]
        first = first or (plots[0] if figure.shared else None)
        across = models.Row(children=plots, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"})
        rows.append(plots[0] if len(plots) == 1 else across)
    return models.Column(children=rows, sizing_mode="stretch_width")  # `layouts` would stretch panels of a fixed width


def _head(figure: Figure) -> models.Div:
    """Title, notes, legend and colour bar."""
    entries = "".join(_entry(entry) for entry in figure.legend())
    if figure.bar:
        shades = f"linear-gradient(to right,{','.join(figure.bar.colours)})"
        bar = f"display:inline-block;width:140px;height:9px;background:{shades}"
        entries += f'<span>{escape(figure.bar.label)} 1 <span style="{bar}"></span> {figure.bar.high:g}</span>'
    texts = [text for text in (figure.about, *figure.notes) if text]
    lines = "".join(f'<div style="color:{QUIET}">{escape(text)}</div>' for text in texts)
    title = f'<div style="font-size:17px;font-weight:bold">{escape(figure.title)}</div>' if figure.title else ""
    style = f"font-family:{_FONT};font-size:13px;color:{INK};margin:6px 12px;line-height:1.5"
    return models.Div(text=f'<div style="{escape(style)}">{title}{lines}{entries}</div>', sizing_mode="stretch_width",
               disable_math=True)  # fmt: skip


def _entry(entry: LegendEntry) -> str:
    faint = ";opacity:.35" if entry.kind == "faint" else ""
    sign = "\u2505\u2505" if entry.kind == "line" and DASHES[entry.dash] else _SIGNS.get(entry.kind, "\u25a0")
    style = f"color:{INK if entry.kind == 'outline' else entry.colour}{faint}"
    both = "display:inline-block;margin-right:1.6em"
    return f'<span style="{both}"><span style="{style}">{sign}</span> {escape(entry.label)}</span>'


def _plot(figure: Figure, panel: Panel, x_label: str, high: int, first: Plot | None, *, named: bool) -> Plot:
    bars, boxes = panel.of(Bars), panel.of(Boxes)
    calendar = panel.x.time is not None and panel.x.time.epoch is not None
    kind: Any = "log" if panel.x.log else "datetime" if calendar else "linear"
    border = round(_CHAR * max((width(name) for name in bars[0].names), default=0)) + _EDGE if bars and named else _EDGE
    plot = Plot(
        height=high, width=_bars_width(bars[0]) + border + _EDGE if bars else _WIDE,
        frame_width=_bars_width(bars[0]) if bars else None, toolbar_location="right",
        sizing_mode="fixed" if bars else "stretch_width", tools="" if bars else "pan,box_zoom,reset,save",
        output_backend="webgl" if boxes and len(boxes[0]) > rectangles.FEW else "canvas", x_axis_type=kind,
        y_axis_type="log" if panel.y.log else "linear",
        x_range=first.x_range if first else models.Range1d(*panel.x_range), y_range=models.Range1d(*panel.y_range),
    )  # fmt: skip
    plot.min_border_left = border
    if not bars:
        plot.min_border_left = 80
        wheel = models.WheelZoomTool(dimensions="both" if boxes else "width")
        plot.add_tools(wheel)
        plot.toolbar.active_scroll = wheel
        for axis in (plot.yaxis, plot.xaxis) if kind == "linear" else (plot.yaxis,):
            axis.formatter = models.NumeralTickFormatter(format="0,0.[000]")
    if panel.title:
        plot.title.text = models.PlainText(text=panel.title)  # Bokeh reads a str as mathematics between $$
    if panel.x.marks or (panel.x.time and panel.x.time.breaks):
        _named_ticks(plot.xaxis, panel.x_ticks(12))
    if panel.y.marks:
        _named_ticks(plot.yaxis, panel.y_ticks(6))
    if panel.rows:
        _rows(plot, panel)
    plot.xaxis.axis_label, plot.yaxis.axis_label = x_label, panel.y.label
    _plain(plot)
    for series in panel.series:
        _draw(plot, panel, series, named=named)
    if panel.empty:
        (begin, end), (low, top) = panel.x_range, panel.y_range
        middle = (begin * end) ** 0.5 if panel.x.log else (begin + end) / 2
        plot.add_layout(
            models.Label(x=middle, y=(low + top) / 2, text=panel.empty, text_color=QUIET, text_align="center")
        )
    return plot


def _named_ticks(axis: Any, ticks: Any) -> None:
    axis.ticker = [at for at, _ in ticks]
    axis.major_label_overrides = {at: models.PlainText(text=label) for at, label in ticks}


def _rows(plot: Plot, panel: Panel) -> None:
    _named_ticks(plot.yaxis, [((row.low + row.high) / 2, row.name) for row in panel.rows])
    plot.yaxis.major_tick_line_color = None
    for row in panel.rows[::2]:
        plot.add_layout(
            models.BoxAnnotation(bottom=row.low, top=row.high, fill_color=STRIPE, line_color=None, level="image")
        )


def _plain(plot: Plot) -> None:
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color, axis.major_label_text_color, axis.axis_line_color = INK, INK, QUIET
        axis.minor_tick_line_color = None
    plot.xgrid.grid_line_color, plot.ygrid.grid_line_color = GRID, GRID
    plot.outline_line_color = None
    plot.toolbar.logo = None


def _draw(plot: Plot, panel: Panel, series: Any, *, named: bool) -> None:
    """Draw a series; `named`: bars have their names on the left."""
    x = panel.x.place(getattr(series, "x", ()))
    colour = getattr(series, "colour", INK)
    if isinstance(series, Line):
        corners, y = x, series.y
        if series.stairs:  # as corners: Bokeh's own steps do not react to the pointer
            corners, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
        dashes = [max(1, round(2 * length)) for length in DASHES[series.dash]]
        line = plot.line(corners, y, color=colour, line_width=1 if panel.rows else 1.8, line_dash=dashes)
        if not panel.rows:
            _hover(plot, panel, line, series.label)
    elif isinstance(series, Area):
        alpha = 0.25 if series.faint else 1.0
        if len(x):  # a browser never ends to draw an empty one (Bokeh 3.9)
            plot.varea_step(x, series.low, series.high, step_mode="after", fill_color=colour, fill_alpha=alpha)
    elif isinstance(series, Points):
        if series.error is not None:
            plot.segment(x, series.y - series.error, x, series.y + series.error, color=colour)
        dots = plot.scatter(x, series.y, color=colour, size=5, alpha=0.5 if len(x) > 60 else 1.0)
        _hover(plot, panel, dots, series.label)
    elif isinstance(series, Boxes):
        _boxes(plot, panel, series)
    elif isinstance(series, Strokes):
        plot.segment(x, series.low, x, series.high, line_color=colour, line_width=2)
    else:
        _bars(plot, series, named=named)


def _hover(plot: Plot, panel: Panel, drawn: Any, label: str) -> None:
    """Show the values of a line or of points under the pointer."""
    time = panel.x.time
    x, formats = "@x{0,0.[000]}", {}
    if time is not None and time.epoch is not None:
        x, formats = "@x{%F %T}", {"@x": "datetime"}
    elif time is not None:
        x = f"@x{{0,0.[000]}} {time.unit.name}"
    elif panel.x.marks:
        x, formats = "@x{custom}", {"@x": models.CustomJSHover(code=_DURATION)}
    alone = len(panel.of(Line)) == 1
    plot.add_tools(models.HoverTool(
        renderers=[drawn], tooltips=[(panel.x.label, x), (label or panel.y.label, "@y{0,0.[00]}")], formatters=formats,
        mode="vline" if alone else "mouse", line_policy="prev", visible=False,
    ))  # fmt: skip


def _boxes(plot: Plot, panel: Panel, boxes: Boxes) -> None:
    plot.ygrid.grid_line_color = None
    if len(boxes) > MOST_BOXES:
        _raster(plot, panel, boxes)
        return
    data = {
        "left": panel.x.place(boxes.left), "right": panel.x.place(boxes.right), "low": boxes.low.astype(np.float32),
        "high": boxes.high.astype(np.float32), "fill": boxes.fill.astype(np.uint8),
        "name": boxes.names[boxes.job].tolist(),
    }  # fmt: skip
    shown: list[tuple[str, str]] = [("job", "@name")]
    formats = {}
    for number, fact in enumerate(boxes.facts):
        values, field = fact.values[boxes.job], f"fact{number}"
        number_type, form = _FACTS[fact.kind]
        data[field] = values.astype(number_type) if number_type else values.tolist()
        shown.append((fact.title, f"@{field}{form}"))
        if fact.kind == "time":
            formats[f"@{field}"] = models.CustomJSHover(code=_DURATION)
    source = models.ColumnDataSource(data)
    colour = linear_cmap("fill", list(boxes.colours), -0.5, len(boxes.colours) - 0.5)
    gap = "white" if panel.rows else None
    drawn = [plot.quad("left", "right", "high", "low", source=source, fill_color=colour, line_color=gap)]
    if (at_once := boxes.left == boxes.right).any():
        view = models.CDSView(filter=models.BooleanFilter(at_once.tolist()))
        drawn.append(plot.segment("left", "low", "left", "high", source=source, view=view, line_color=colour))
    if boxes.strong is not None and boxes.strong.any():
        view = models.CDSView(filter=models.BooleanFilter(boxes.strong.tolist()))
        plot.quad("left", "right", "high", "low", source=source, view=view, fill_color=None, line_color=INK,
                  line_width=1.8)  # fmt: skip
    plot.add_tools(models.HoverTool(renderers=drawn, tooltips=shown, formatters=formats, visible=False))
    _names(plot, panel, boxes)
    for span in panel.x.time.breaks if panel.x.time else ():
        begin, end = panel.x.place(span).tolist()
        plot.add_layout(models.BoxAnnotation(left=begin, right=end, fill_color="white", fill_alpha=0.6, line_color=None,
                                      hatch_pattern="/", hatch_alpha=0.4))  # fmt: skip


def _names(plot: Plot, panel: Panel, boxes: Boxes) -> None:
    high = (plot.height or 400) - 70.0
    placed = list(rectangles.names(panel, boxes, 1050.0, high, (_CHAR, 13.0))) if boxes.labelled else []
    if not placed:
        return
    labelled = np.array([i for i, _ in placed])
    begins, ends = panel.x.place(boxes.left[labelled]), panel.x.place(boxes.right[labelled])
    inks = [ink_on(boxes.colours[boxes.fill[i]]) for i in labelled]
    plot.text((begins + ends) / 2, (boxes.low[labelled] + boxes.high[labelled]) / 2, [name for _, name in placed],
              text_align="center", text_baseline="middle", text_color=inks, text_font_size="11px")  # fmt: skip


def _raster(plot: Plot, panel: Panel, boxes: Boxes) -> None:
    picture = rectangles.cells(panel, boxes, *CELLS)[::-1]
    image = np.full((*picture.shape[:2], 4), 255, np.uint8)
    image[:, :, :3] = picture
    (begin, end), (low, high) = panel.x_range, panel.y_range
    flat = np.ascontiguousarray(image).view(np.uint32)[:, :, 0]
    plot.image_rgba([flat], x=begin, y=low, dw=end - begin, dh=high - low)


def _bars_width(bars: Bars) -> int:
    """Return the width of a panel in which the words behind the longest bar have room, pixels."""
    return max(_BARS, _BAR + 10 + round(max((width(word) for word in bars.words), default=0) * _CHAR))


def _bars(plot: Plot, bars: Bars, *, named: bool) -> None:
    places = np.arange(len(bars.names))[::-1]
    values = np.nan_to_num(bars.values)
    plot.hbar(places, right=values, height=0.62, color=list(bars.colours))
    plot.text(values, places, list(bars.words), x_offset=5, text_baseline="middle", text_font_size="12px",
              text_color=INK)  # fmt: skip
    plot.x_range.end = (values.max(initial=0.0) or 1.0) * _bars_width(bars) / _BAR
    plot.xaxis.visible, plot.xgrid.visible, plot.ygrid.visible = False, False, False
    _named_ticks(plot.yaxis, [(int(at), name if named else "") for at, name in zip(places, bars.names, strict=True)])
    plot.yaxis.major_tick_line_color = None

"""The Gantt chart as SVG, written by hand: no dependency, no script.

Rule: every name passes `clean` and XML escaping; colours are in classes, so that a page can restyle them for dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from xml.sax.saxutils import escape

from ...simulate.formats.hostlist import fold
from .chart import Bar, Chart, Row, colour_at, ink_on, ticks
from .text import clean, count, decimals, fit, seconds, width

PAGE_WIDTH = 1280.0
_RIGHT, _TOP, _BOTTOM = 28.0, 104.0, 40.0
_LABEL_PX = 7.3  # a cell of the bars' font at 11 px, of the wide ones of the list
_MOST_LINKS = 400

_STYLE = """
text{font-family:ui-sans-serif,system-ui,"Segoe UI","Helvetica Neue","DejaVu Sans",Arial,
sans-serif;fill:#1f2a37} .bg{fill:#ffffff}.title{font-size:20px;font-weight:600}.sub{font-size:13px;fill:#5b6878}
.node{font-size:12px;text-anchor:end}.tick{font-size:11px;fill:#5b6878;text-anchor:middle}.small{font-size:11px;fill:#5b6878}
.row{fill:#f3f6f9}.alt{fill:#e9eef3}.grid{stroke:#cdd6df;stroke-width:1}
.job{stroke:#ffffff;stroke-width:.8}.crit{stroke:#111827;stroke-width:1.8}.link{stroke:#111827;stroke-width:1.2;fill:none;opacity:.45}
.black{fill:#10202e}.white{fill:#ffffff}.name{font-size:11px;pointer-events:none}
"""


@dataclass(frozen=True)
class _Layout:
    """Where things are, in pixels; `lane` is the height of a lane."""

    chart: Chart

    @cached_property
    def lane(self) -> float:
        return min(26.0, max(5.0, 2000.0 / sum(row.lanes for row in self.chart.rows)))

    @cached_property
    def left(self) -> float:
        cells = max((min(24, width(row.node)) for row in self.chart.rows), default=1)
        return 30.0 + 7.8 * cells

    @cached_property
    def tops(self) -> list[float]:
        """Top of each row, and at the end the bottom of the last."""
        tops = [_TOP]
        for row in self.chart.rows:
            tops.append(tops[-1] + max(11.0, row.lanes * self.lane + 2 * self.gap))
        return tops

    @property
    def gap(self) -> float:
        return min(4.0, self.lane / 5)

    @property
    def height(self) -> float:
        return self.tops[-1] + _BOTTOM

    @cached_property
    def scale(self) -> float:
        """Pixels a second."""
        return (PAGE_WIDTH - self.left - _RIGHT) / self.chart.end

    def x(self, t: float) -> float:
        return self.left + t * self.scale

    def y(self, row: int, lane: float) -> float:
        return self.tops[row] + self.gap + lane * self.lane


def svg(chart: Chart, subtitle: str = "") -> str:
    """The chart as one SVG document, 1280 wide and as high as it needs. O(bars).

    Args:
        chart: what to draw.
        subtitle: a line under the title, already fit for people.
    """
    layout = _Layout(chart)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PAGE_WIDTH:g} {layout.height:.1f}" '
        f'width="{PAGE_WIDTH:g}" height="{layout.height:.1f}" role="img">'
    )
    title = f"{fit(clean(chart.plan.workflow), 44)} on {fit(clean(chart.plan.cluster), 20)}"
    parts = [head, f"<style>{_STYLE}</style>", f"<title>{escape(title)}</title>"]
    parts.append('<rect class="bg" width="100%" height="100%"/>')
    parts.append(f'<text class="title" x="24" y="38">{escape(title)}</text>')
    parts.append(f'<text class="sub" x="24" y="62">{escape(clean(subtitle))}</text>')
    parts += _legend(chart)
    parts += _rows(layout)
    parts += _axis(layout)
    for i, row in enumerate(chart.rows):
        parts += [_bar(layout, i, bar) for bar in row.bars]
    parts += _links(layout)
    for i, row in enumerate(chart.rows):
        parts += _names(layout, i, row)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _rows(layout: _Layout) -> Iterator[str]:
    """A lane for each node with its name; names are thinned out where rows are lower than text."""
    skipped, long = 0.0, PAGE_WIDTH - layout.left - _RIGHT
    for i, row in enumerate(layout.chart.rows):
        top, bottom = layout.tops[i], layout.tops[i + 1]
        style = "alt" if i % 2 else "row"
        yield (
            f'<rect class="{style}" x="{layout.left:.1f}" y="{top:.1f}" width="{long:.1f}" '
            f'height="{bottom - top:.1f}"/>'
        )
        skipped += bottom - top
        if skipped >= 13 or i == 0:
            skipped = 0.0
            name = escape(fit(clean(row.node), 24))
            middle = (top + bottom) / 2 + 4
            yield f'<text class="node" x="{layout.left - 10:.1f}" y="{middle:.1f}">{name}</text>'


def _axis(layout: _Layout) -> Iterator[str]:
    top, bottom = layout.tops[0], layout.tops[-1]
    for t, label in ticks(layout.chart.end, 12):
        x = layout.x(t)
        yield f'<line class="grid" x1="{x:.1f}" y1="{top - 4:.1f}" x2="{x:.1f}" y2="{bottom + 5:.1f}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{bottom + 19:.1f}">{label}</text>'
        if bottom - top > 600:
            yield f'<text class="tick" x="{x:.1f}" y="{top - 9:.1f}">{label}</text>'


def _bar(layout: _Layout, row: int, bar: Bar) -> str:
    job = bar.job
    x, y = layout.x(job.start_time), layout.y(row, bar.lane)
    long, high = (
        max(0.8, (job.finish_time - job.start_time) * layout.scale),
        layout.lane - min(2.0, layout.lane / 6),
    )
    red, green, blue = layout.chart.colour(job.contention_slowdown)
    thin = f' style="stroke-width:{max(0.3, long / 5):.2f}"' if bar.critical and long < 9 else ""
    return (
        f'<rect class="{"crit" if bar.critical else "job"}"{thin} x="{x:.2f}" y="{y:.2f}" width="{long:.2f}" '
        f'height="{high:.2f}" rx="{min(4.0, high / 4, long / 3):.2f}" fill="#{red:02x}{green:02x}{blue:02x}">'
        f"<title>{escape(tip(bar, layout.chart.plan.makespan))}</title></rect>"
    )


def tip(bar: Bar, makespan: float) -> str:
    """What the pointer shows of a job, a fact a line."""
    job, places = bar.job, decimals(makespan)
    run = job.finish_time - job.start_time
    lines = [
        clean(job.id),
        f"on {clean(fold(job.nodes))}",
        f"{seconds(job.start_time, places)} to {seconds(job.finish_time, places)} ({seconds(run, places)})",
        f"slowdown by contention {job.contention_slowdown:.2f}",
        f"alone {seconds(job.isolated_run_time, places)}",
    ]
    if job.why is not None:
        lines.append(f"next best: {clean(fold(job.why.nodes))}, +{seconds(max(0.0, job.why.cost_s), places)}")
    if bar.critical:
        lines.append("in the critical chain")
    return "\n".join(lines)


def _names(layout: _Layout, row: int, node: Row) -> Iterator[str]:
    if layout.lane < 12:
        return
    for bar in node.bars:
        job = bar.job
        name = clean(job.id)
        room = int(((job.finish_time - job.start_time) * layout.scale - 9) / _LABEL_PX)
        if room < min(6, width(name)):
            continue
        ink = ink_on(layout.chart.colour(job.contention_slowdown))
        x, y = layout.x(job.start_time) + 5, layout.y(row, bar.lane) + layout.lane / 2 + 3
        yield f'<text class="name {ink}" x="{x:.1f}" y="{y:.1f}">{escape(fit(name, room))}</text>'


def _links(layout: _Layout) -> Iterator[str]:
    """Curves from the end of each job of the critical chain to the start of the next."""
    if len(layout.chart.chain) > _MOST_LINKS:
        return
    places: dict[str, tuple[int, int]] = {}
    for i, row in enumerate(layout.chart.rows):
        for bar in row.bars:
            if bar.critical:
                places.setdefault(bar.job.id, (i, bar.lane))
    for one, other in zip(layout.chart.chain, layout.chart.chain[1:], strict=False):
        if places[one.id] == places[other.id]:
            continue
        x1, y1 = layout.x(one.finish_time), layout.y(*places[one.id]) + layout.lane / 2
        x2, y2 = layout.x(other.start_time), layout.y(*places[other.id]) + layout.lane / 2
        bend = max(10.0, (x2 - x1) / 2)
        yield (
            f'<path class="link" d="M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} '
            f'{x2:.1f} {y2:.1f}"/>'
        )


def _legend(chart: Chart) -> Iterator[str]:
    left, size = PAGE_WIDTH - _RIGHT - 200, 200.0
    chain = f"critical chain ({count(len(chart.chain), 'job')})"
    # over the end of a title that is too wide
    yield f'<rect class="bg" x="{left - 14:.1f}" y="8" width="{size + 14 + _RIGHT:g}" height="72"/>'
    yield '<defs><linearGradient id="heat">'
    for i in range(11):
        red, green, blue = colour_at(i / 10)
        yield f'<stop offset="{i * 10}%" stop-color="#{red:02x}{green:02x}{blue:02x}"/>'
    yield "</linearGradient></defs>"
    yield f'<text class="small" x="{left:.1f}" y="26">slowdown by contention</text>'
    yield f'<rect x="{left:.1f}" y="33" width="{size:g}" height="9" rx="4.5" fill="url(#heat)"/>'
    middle = chart.hottest**0.5
    for value, x, anchor in (
        (1.0, left, "start"),
        (middle, left + size / 2, "middle"),
        (chart.hottest, left + size, "end"),
    ):
        yield f'<text class="small" x="{x:.1f}" y="56" text-anchor="{anchor}">{value:.3g}</text>'
    yield f'<rect class="crit" x="{left:.1f}" y="66" width="22" height="11" rx="3" fill="none"/>'
    yield f'<text class="small" x="{left + 30:.1f}" y="76">{chain}</text>'

"""A site before and after changes: figures of merit, which jobs win and lose, waiting times, the machine over time.

Rule: a difference is after minus before. Its interval is a bar, and the difference a stroke in it; a bar that crosses
the line at 0 is within the noise. What is not known is not drawn, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...formats.text import clean, count, fit, joules
from ...simulate.replay.metrics import TAU_S
from ...simulate.results.figures import distribution
from ...simulate.slurm.site_outcome import hourly_means
from ..output.text import class_place
from .colours import INK, QUIET, series_style
from .compare_figure import digits, spelled, waiting_marks
from .figure import Axis, Bars, Boxes, Fact, Figure, GanttRow, Line, Panel, Series, Strokes, bars_panel, time_axis
from .scales import TimeScale, amount_unit, dated

if TYPE_CHECKING:
    from ...simulate.slurm.site_effect import Contrast, Effect
    from ...simulate.slurm.site_outcome import SiteOutcome

#: Most scenarios of a picture, most classes of a panel, and figures of merit side by side.
MOST_SCENARIOS, _CLASSES, _ACROSS = 8, 9, 3
_DAY, _HOUR = 24, 3600.0
#: Groupings of numbers, whose classes have an order, and their headings.
_SIZES = {"nodes": "size, nodes", "CPUs": "size, CPUs", "limit, minutes": "time limit, minutes"}


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """A scenario: its effect, and the replays before and after its changes."""

    name: str
    effect: Effect
    before: Sequence[SiteOutcome]
    after: Sequence[SiteOutcome]


@dataclass(frozen=True, slots=True)
class ShownSide:
    """A line of a picture: a name, and the replays, or the record, that it shows."""

    name: str
    colour: str
    dash: int
    outcomes: Sequence[SiteOutcome]


def effect_figure(site: str, begin: float, effects: Sequence[ShownEffect], idle_w: float, unchanged: str) -> Figure:
    """Return the figure of up to MOST_SCENARIOS scenarios.

    Args:
        site: its name.
        begin: of the period, seconds since the epoch.
        effects: the scenarios, one or more.
        idle_w: power of a node without a job.
        unchanged: what the site without changes is called.
    """
    shown = effects[:MOST_SCENARIOS]
    sides = [ShownSide(unchanged, QUIET, 0, shown[0].before)]
    for number, one in enumerate(shown):
        colour, _ = series_style(number)
        sides.append(ShownSide(fit(clean(one.name), 22), colour, number % 3 + 1, one.after))
    panels = _bars(shown, sides)
    rows: list[Sequence[Panel]] = [panels[i : i + _ACROSS] for i in range(0, len(panels), _ACROSS)]
    rows += [[panel] for title in ("QOS", "partition", *_SIZES) if (panel := forest(shown, title))]
    rows += [[users_panel(shown, sides)], [waits_panel(sides)]]
    rows += [[panel] for draw in (over_time, _by_hour_of_day) if (panel := draw(sides, begin, idle_w))]
    height = sum(2.0 * max(panel.height for panel in row) + 0.45 for row in rows) + 1.0
    replays = len(shown[0].before)
    about = f"{fit(clean(site), 40)}: {count(shown[0].effect.jobs, 'job')}, {count(replays, 'replay')} of each side"
    notes = [
        "a bar is the 95 % interval of a difference, and its stroke the difference; across 0 it is within the noise"
    ]
    notes.append(f"slowdown: bounded by {TAU_S:g} s; fairness: Jain's index of the users' mean slowdowns")
    if shown[0].effect.energy_j is None:
        notes.append("power and energy: unknown, because no job has ConsumedEnergyRaw")
    if len(effects) > len(shown):
        notes.append(f"the first {len(shown)} of {len(effects)} scenarios")
    return Figure("What the changes do", rows, about, notes, shared=False, height=height)


def _bars(shown: Sequence[ShownEffect], sides: Sequence[ShownSide]) -> list[Panel]:
    """Return a panel of bars for each figure of merit that is known."""
    measures: tuple[tuple[str, Callable[[Effect], Contrast | None], Callable[[list[float]], list[str]]], ...] = (
        ("mean wait", lambda one: one.wait.mean, spelled),
        ("95 % wait at most", lambda one: one.wait.p95, spelled),
        ("mean slowdown", lambda one: one.slowdown.mean, lambda values: [digits(value) for value in values]),
        ("utilisation", lambda one: one.utilisation, _percent),
        ("backfilled", lambda one: one.backfilled, _percent),
        ("fairness, 1: alike", lambda one: one.fairness, lambda values: [f"{one:.2f}" for one in values]),
        ("energy", lambda one: one.energy_j, lambda values: [joules(one) for one in values]),
    )
    panels = []
    for title, of, words in measures:
        contrasts = [of(one.effect) for one in shown]
        numbers = [one for one in contrasts if one is not None]
        if len(numbers) < len(contrasts):
            continue
        values = [numbers[0].before, *(one.after for one in numbers)]
        bars = Bars([side.name for side in sides], [side.colour for side in sides], values, words(values))
        panels.append(bars_panel(bars, title, 0.12))
    return panels


def _percent(values: Sequence[float]) -> list[str]:
    return [f"{100 * value:.1f} %" for value in values]


def forest(shown: Sequence[ShownEffect], title: str) -> Panel | None:
    """Return the intervals of the mean waits by class, a row a class and a lane a scenario; None for one class."""
    tables = [dict(one.effect.groups).get(title, ()) for one in shown]
    names = list(dict.fromkeys(one.name for classes in tables for one in classes))[:_CLASSES]
    if title in _SIZES:
        names.sort(key=class_place)
    if len(names) < 2:
        return None
    lanes = len(shown)
    top = lanes * len(names)
    boxes, strokes = list[tuple[float, float, float, int]](), list[tuple[float, float]]()
    labels, facts = list[str](), list[str]()
    for lane, (scenario, classes) in enumerate(zip(shown, tables, strict=True)):
        for one in classes:
            if one.name not in names:
                continue
            low = top - lanes * names.index(one.name) - lane - 1.0
            wait = one.wait.mean
            strokes.append((wait.difference / _HOUR, low))
            if wait.low is not None and wait.high is not None:
                boxes.append((wait.low / _HOUR, wait.high / _HOUR, low, lane))
                labels.append(f"{clean(scenario.name)}, {clean(one.name) or 'none'}")
                facts.append(f"{count(one.jobs, 'job')}, {wait.before:,.0f} s before, {wait.after:,.0f} s after")
    ends = [0.0, *(part for box in boxes for part in box[:2]), *(at for at, _ in strokes)]
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    begins, ends_of, bottom, lane_of = np.array(boxes, float).reshape(-1, 4).T
    at, low_of = np.array(strokes, float).reshape(-1, 2).T
    colours = [series_style(number)[0] for number in range(lanes)]
    drawn: list[Series] = [
        Boxes("", begins, ends_of, bottom + 0.15, bottom + 0.85, lane_of.astype(int), colours, np.arange(len(boxes)),
              np.array(labels, object), (Fact("waits", np.array(facts, object)),), labelled=False),
        Strokes("", INK, at, low_of + 0.05, low_of + 0.95),
        Strokes("", QUIET, np.zeros(1), np.zeros(1), np.full(1, float(top))),
    ]  # fmt: skip
    rows = [
        GanttRow(clean(name) or "none", top - lanes * (place + 1.0), top - lanes * float(place))
        for place, name in enumerate(names)
    ]
    x = Axis("difference of the mean wait (hours)", min(ends) - margin, max(ends) + margin)
    return Panel(
        x,
        Axis("", 0.0, float(top)),
        drawn,
        f"by {_SIZES.get(title, title)}",
        0.16 * len(names) + 0.045 * top,
        rows=rows,
    )


def users_panel(shown: Sequence[ShownEffect], sides: Sequence[ShownSide]) -> Panel:
    """Return the differences of the users' mean waits, from who wins most to who loses most."""
    series: list[Series] = []
    for one, side in zip(shown, sides[1:], strict=True):
        values = np.sort([part.wait.mean.difference for part in one.effect.group("user")]) / _HOUR
        places = np.linspace(0.0, 100.0, len(values)) if len(values) > 1 else np.zeros(len(values))
        series.append(Line(side.name, side.colour, places, values, side.dash))
    ends = [0.0, *(float(value) for line in series if isinstance(line, Line) for value in line.y)]
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    zero = Line(sides[0].name, QUIET, np.array([0.0, 100.0]), np.zeros(2))
    y = Axis("hours", min(ends) - margin, max(ends) + margin)
    x = Axis("users, from who wins most to who loses most (%)", 0.0, 100.0)
    return Panel(x, y, [zero, *series], "difference of a user's mean wait", 0.75)


def waits_panel(sides: Sequence[ShownSide]) -> Panel:
    """Return the share of jobs that waited at most some time."""
    series: list[Series] = []
    samples = [np.concatenate([one.wait_s[~np.isnan(one.wait_s)] for one in side.outcomes]) for side in sides]
    right = max(10.0, 1.1 * max((float(values.max()) for values in samples if len(values)), default=0.0))
    for side, values in zip(sides, samples, strict=True):
        if len(values):
            x, y = distribution(np.maximum(values, 1.0))
            places, shares = (
                np.concatenate([[1.0], x, [right]]),
                100.0 * np.concatenate([[y[0] * (x[0] <= 1.0)], y, [1.0]]),
            )
            series.append(Line(side.name, side.colour, places, shares, side.dash, stairs=True))
    x_axis = Axis("waiting time, at most", 1.0, right, log=True, marks=waiting_marks(right))
    return Panel(x_axis, Axis("jobs (%)", 0.0, 102.0), series, "waiting times", 0.9)


def over_time(sides: Sequence[ShownSide], begin: float, idle_w: float) -> Panel | None:
    """Return the mean power over the period, or the utilisation where power is not known; None for a moment."""
    means = [hourly_means(side.outcomes, idle_w) for side in sides]
    if not len(means[0].utilisation):
        return None
    metered = [one.power_w for one in means if one.power_w is not None]
    if len(metered) == len(sides):
        unit = amount_unit(max(float(part.max()) for part in metered), "W")
        values, title = [part / unit.size for part in metered], f"mean power of an hour ({unit.name})"
    else:
        values = [100.0 * one.utilisation for one in means]
        title = "utilisation of an hour (%)"
    span = max(one.span_s for side in sides for one in side.outcomes)
    scale = TimeScale(0.0, span, dated(0.0, span, begin))
    series: list[Series] = [
        Line(
            side.name, side.colour, _HOUR * np.arange(len(part) + 1), np.append(part, part[-1]), side.dash, stairs=True
        )
        for side, part in zip(sides, values, strict=True)
    ]
    high = max(float(part.max()) for part in values)
    return Panel(
        time_axis("time since the first submission", scale), Axis("", 0.0, 1.05 * high or 1.0), series, title, 0.9
    )


def _by_hour_of_day(sides: Sequence[ShownSide], begin: float, idle_w: float) -> Panel | None:
    """Return the mean power by the hour of the day (UTC); None where it is not known, or for less than two days."""
    hourly_powers = [hourly_means(side.outcomes, idle_w).power_w for side in sides]
    powers = [part for part in hourly_powers if part is not None]
    if len(powers) < len(sides) or len(powers[0]) < 2 * _DAY:
        return None
    unit = amount_unit(max(float(part.max()) for part in powers), "W")
    series: list[Series] = []
    lowest = highest = float(powers[0].mean()) / unit.size
    for side, part in zip(sides, powers, strict=True):
        clock = (np.arange(len(part)) + int(begin // _HOUR)) % _DAY
        means = np.bincount(clock, part, _DAY) / np.bincount(clock, minlength=_DAY) / unit.size
        lowest, highest = min(lowest, float(means.min())), max(highest, float(means.max()))
        hours = np.arange(_DAY + 1.0)
        series.append(Line(side.name, side.colour, hours, np.append(means, means[-1]), side.dash, stairs=True))
    x = Axis("hour of the day (UTC)", 0.0, float(_DAY), marks=[(float(hour), f"{hour}") for hour in range(0, 25, 3)])
    margin = 0.1 * (highest - lowest) or 0.1
    y = Axis("", lowest - margin, highest + margin)
    return Panel(x, y, series, f"mean power by the hour of the day ({unit.name}; the axis does not begin at 0)", 0.9)

"""Figures of finished replays: Gantt chart, utilisation, queue, energy.

Rule: a column of a figure shows the exact mean over its time, and for a single run also the extremes. Where fewer
things change than there are columns, each change is drawn where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...formats.text import clean, fit, joules, percent
from ...simulate.errors import ConfigError
from ...simulate.results import timeseries as steps
from ...simulate.results.figures import figures
from ...simulate.results.recorded_run import KILLED, REJECTED, STATES, WALLTIME, Jobs, RecordedRun, span
from . import colours
from .colours import job_colours, series_style
from .figure import Area, Axis, Boxes, Fact, Figure, Line, Panel, Series, Strokes, time_axis
from .rectangles import FEW
from .scales import Array, TimeScale, amount_unit, dated

#: Strokes in one Gantt chart; more would hide what they mark.
MOST_STROKES = 4000
_ENDED = ((WALLTIME, "ended by the walltime"), (KILLED, "killed or failed"))
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """A run, with its name and style in the figure; `title` is its name if it was given or there are several, or ""."""

    run: RecordedRun
    label: str
    title: str
    colour: str
    dash: int


@dataclass(frozen=True, slots=True)
class FigureView:
    """The runs of a figure and the time that it shows.

    Args:
        begin, end: seconds of the trace.
        asked: the user gave `begin` or `end`.
        columns: pixels, about, along the time axis.
    """

    shown: Sequence[Shown]
    begin: float
    end: float
    asked: bool
    columns: int

    @property
    def x(self) -> tuple[float, float]:
        """Begin and end."""
        return self.begin, self.end

    @property
    def axis(self) -> Axis:
        """The time axis: calendar dates where all runs have the same start date."""
        epochs = {item.run.epoch for item in self.shown}
        epoch = epochs.pop() if len(epochs) == 1 else None
        return time_axis("time of the trace", TimeScale(self.begin, self.end, dated(self.begin, self.end, epoch)))


def view(
    runs: Sequence[RecordedRun], folders: Sequence[Path], begin: float | None, end: float | None, columns: int,
    labels: Sequence[str] = (),
) -> FigureView:  # fmt: skip
    """Return a view of some runs.

    Args:
        runs: what to show.
        folders: where each comes from; part of its name where two have the same policy.
        begin: first time to show, seconds of the trace; None = where the runs begin.
        end: last time to show, seconds of the trace; None = where the runs end.
        columns: pixels, about, along the time axis.
        labels: names of the runs; empty = their policies.
    """
    names = [run.policy or folder.resolve().name for run, folder in zip(runs, folders, strict=True)]
    shown = []
    for i, (run, name, folder) in enumerate(zip(runs, names, folders, strict=True)):
        label = labels[i] if labels else name if names.count(name) == 1 else f"{name} ({folder})"
        label = fit(clean(label), _LONGEST)
        shown.append(Shown(run, label, label if labels or len(runs) > 1 else "", *series_style(i)))
    first, last = span(runs)
    low, high = first if begin is None else begin, last if end is None else end
    if low >= high:  # the wanted time is before or after all jobs
        low, high = (low, low + 1.0) if end is None else (high - 1.0, high)
    return FigureView(shown, low, high, begin is not None or end is not None, columns)


def about(shown: Sequence[Shown]) -> str:
    """Return workload, machine and policy of some runs in a line."""
    workloads = list(dict.fromkeys(item.run.workload for item in shown if item.run.workload))
    machines = sorted({item.run.machine for item in shown})
    names = ", ".join(fit(clean(name), _LONGEST) for name in workloads[:2]) + (", ..." if len(workloads) > 2 else "")
    sizes = " and ".join(f"{size:,}" for size in machines[:3]) + (", ..." if len(machines) > 3 else "")
    least = "" if all(item.run.sure for item in shown) else "at least "
    policy = f", policy {shown[0].run.policy}" if len(shown) == 1 and shown[0].run.policy else ""
    return f"{names or shown[0].label} on {least}{sizes} resources{clean(policy)}"


def replay_gantt(view: FigureView, *, labelled: bool) -> Figure:
    """Return a Gantt chart for each run, one below the other; `labelled`: with the names of jobs where they fit."""
    rows = [[_gantt_panel(item, view, labelled)] for item in view.shown]
    return Figure("Gantt chart", rows, about(view.shown), height=1.2 + (3.4 if len(rows) == 1 else 2.0 * len(rows)))


def _gantt_panel(shown: Shown, view: FigureView, labelled: bool) -> Panel:
    run = shown.run
    boxes = _boxes(run, view, labelled)
    series: list[Series] = [boxes, *_strokes(run, view)]
    rejected = run.jobs.submit[run.jobs.ending == REJECTED]
    rejected = rejected[(rejected >= view.begin) & (rejected <= view.end)]
    if len(rejected):
        wide = (view.end - view.begin) / view.columns
        thinned = np.unique(np.floor((rejected - view.begin) / wide)) * wide + view.begin
        low, high = np.full(len(thinned), 0.96 * run.machine), np.full(len(thinned), float(run.machine))
        series.append(Strokes(f"never started ({len(rejected):,})", colours.LIMIT, thinned, low, high))
    return Panel(
        view.axis, Axis("resources", 0.0, float(run.machine), whole=True), series, shown.title,
        empty="" if len(boxes) else "no job ran in this time",
    )  # fmt: skip


def _boxes(run: RecordedRun, view: FigureView, labelled: bool) -> Boxes:
    jobs = run.jobs
    begins, ends = jobs.start[jobs.owner], jobs.finish[jobs.owner]
    at_once = (begins == ends) & (begins >= view.begin) & (begins <= view.end)
    visible = at_once | ((ends > view.begin) & (begins < view.end))
    owner, pieces = jobs.owner[visible], jobs.pieces[visible]
    chosen, job = np.unique(owner, return_inverse=True)
    names = np.array([clean(str(name)) for name in jobs.id[chosen]], object)
    facts = (
        Fact("resources", jobs.size[chosen], "count"),
        Fact("waiting time", (jobs.start - jobs.submit)[chosen], "time"),
        Fact("run time", (jobs.finish - jobs.start)[chosen], "time"),
    )
    label = "jobs; paler where partly idle" if visible.sum() > FEW else "jobs, each in its own colour"
    return Boxes(
        label, begins[visible], ends[visible], pieces[:, 0].astype(float), pieces[:, 1] + 1.0,
        job_colours(jobs.id[chosen])[job], colours.JOBS, job, names, facts, labelled=labelled,
    )  # fmt: skip


def _strokes(run: RecordedRun, view: FigureView) -> list[Strokes]:
    """Marks at the ends of jobs that did not complete; where they are too many, only their number."""
    jobs, strokes = run.jobs, []
    for ending, words in _ENDED:
        which = (jobs.ending == ending) & (jobs.finish >= view.begin) & (jobs.finish <= view.end)
        pieces = np.flatnonzero(which[jobs.owner])
        label, number = words, np.count_nonzero(which)
        if len(pieces) > MOST_STROKES:
            label, pieces = f"{words}, not marked", pieces[:0]
        if number:
            low, high = jobs.pieces[pieces, 0].astype(float), jobs.pieces[pieces, 1] + 1.0
            strokes.append(Strokes(f"{label} ({number:,})", colours.INK, jobs.finish[jobs.owner[pieces]], low, high))
    return strokes


def utilisation(view: FigureView) -> Figure:
    """Return the resources in use over time, below a line at the size of the machine."""
    series = _steps(view, steps.busy)
    most = (line.y.max(initial=0.0) for line in series if isinstance(line, Line))
    y = Axis("resources in use", 0.0, 1.05 * max(*(item.run.machine for item in view.shown), *most), whole=True)
    panel = Panel(view.axis, y, [*_machines(view), *series], empty=_empty(view))
    used = [float(steps.busy(item.run.jobs).mean_over(np.array(view.x))[0]) / item.run.machine for item in view.shown]
    note = f"mean utilisation: {_by_run(view.shown, map(percent, used))}"
    return Figure("Utilisation", [[panel]], about(view.shown), [note], height=3.6)


def queue(view: FigureView) -> Figure:
    """Return the number of waiting jobs over time, and the resources that they request."""
    requested = [*_machines(view), *_steps(view, steps.wanted)]
    rows = [
        [Panel(view.axis, Axis("jobs waiting", whole=True), _steps(view, steps.waiting), empty=_empty(view))],
        [Panel(view.axis, Axis("resources requested", whole=True), requested)],
    ]
    return Figure("Queue", rows, about(view.shown), height=4.6)


def energy(view: FigureView, folders: Sequence[object]) -> Figure:
    """Return power and energy over time, and for each run the states of its machines.

    Args:
        view: the runs, each with energy or machine states.
        folders: where each run comes from, for errors.

    Raises:
        ConfigError: a run has neither energy nor machine states.
    """
    for item, folder in zip(view.shown, folders, strict=True):
        if item.run.energy is None and item.run.states is None:
            raise ConfigError(str(folder), "", "no consumed_energy.csv and no machine_states.csv in it",
                              "the results of machines whose power is known")  # fmt: skip
    measured = [item for item in view.shown if item.run.energy is not None]
    rows = _power_and_energy(measured, view) if measured else []
    rows += [[_states(item, view)] for item in view.shown if item.run.states is not None]
    used = [figures(item.run, view.x).joules for item in measured]
    words = ("unknown" if value is None else joules(value) for value in used)
    notes = [f"energy in this time: {_by_run(measured, words)}"] if used else []
    return Figure("Energy", rows, about(view.shown), notes, height=1.5 + 1.5 * max(len(rows), 2))


def _power_and_energy(shown: Sequence[Shown], view: FigureView) -> list[list[Panel]]:
    drawn = []
    for item in shown:
        consumption = item.run.energy
        assert consumption is not None
        at = edges(np.unique(consumption.time), view)
        consumed = steps.joules_at(consumption, at)
        readings = consumed[~np.isnan(consumed)]
        drawn.append((item, at, steps.watts_over(consumption, at), consumed - (readings[0] if len(readings) else 0.0)))
    watts = amount_unit(max(np.nanmax(row[2], initial=0.0) for row in drawn), "W")
    unit = amount_unit(max(np.nanmax(row[3], initial=0.0) for row in drawn), "J")
    power = [_stairs(item, at, by_column / watts.size) for item, at, by_column, _ in drawn]
    total = [Line(item.label, item.colour, at, until / unit.size, item.dash) for item, at, _, until in drawn]
    return [[Panel(view.axis, Axis(f"power ({watts.name})"), power)],
            [Panel(view.axis, Axis(f"energy ({unit.name})"), total)]]  # fmt: skip


def _states(shown: Shown, view: FigureView) -> Panel:
    assert shown.run.states is not None
    functions = steps.states(shown.run.states)
    until = min(view.end, max(span([shown.run])[1], shown.run.states.time.max(initial=view.begin)))
    layers: list[Series] = []
    if until > view.begin:
        at = edges(functions[0].times, replace(view, end=until))
        below = np.zeros(len(at))
        for name, colour, function in reversed(list(zip(STATES, colours.STATES, functions, strict=True))):
            if (mean := _closed(function.mean_over(at))).any():
                layers.append(Area(name.replace("_", " "), colour, at, below, below + mean))
                below = below + mean
    return Panel(
        view.axis, Axis("machines", whole=True), layers, shown.title,
        empty="" if layers else "nothing is known of this time",
    )  # fmt: skip


def edges(times: Array, view: FigureView) -> Array:
    """Return the edges of columns: the times of change, or evenly spaced ones where these are too many."""
    inside = times[(times > view.begin) & (times < view.end)]
    if len(inside) < view.columns:
        return np.concatenate([[view.begin], inside, [view.end]])
    return np.linspace(view.begin, view.end, view.columns + 1)


def _steps(view: FigureView, function: Callable[[Jobs], steps.StepFunction]) -> list[Series]:
    """The means per column of each run, and for a single run the extremes where they differ."""
    series: list[Series] = []
    for shown in view.shown:
        of_run = function(shown.run.jobs)
        at = edges(of_run.times, view)
        low, high = of_run.extremes_over(at)
        if len(view.shown) == 1 and (low != high).any():
            series.append(Area("minimum to maximum", shown.colour, at, _closed(low), _closed(high), faint=True))
        series.append(_stairs(shown, at, of_run.mean_over(at)))
    return series


def _stairs(shown: Shown, at: Array, values: Array) -> Line:
    return Line(shown.label, shown.colour, at, _closed(values), shown.dash, stairs=True)


def _closed(values: Array) -> Array:
    """Values between edges as values at edges: the last one twice."""
    return np.append(values, values[-1:]).astype(float)


def _machines(view: FigureView) -> list[Line]:
    x, sizes = np.array(view.x), sorted({item.run.machine for item in view.shown})
    return [Line(f"machine size ({size:,})", colours.LIMIT, x, np.full(2, float(size)), 1) for size in sizes]


def _by_run(shown: Sequence[Shown], words: Iterable[str]) -> str:
    return ", ".join(f"{text} {item.title}".rstrip() for item, text in zip(shown, words, strict=True))


def _empty(view: FigureView) -> str:
    return "" if any(item.run.jobs.ran.any() for item in view.shown) else "no job ran"

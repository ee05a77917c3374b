"""Load over time: the resources that are in use, and the queue.

Rule: each column of a picture shows the exact mean over its time, and, where one run is shown, the least and the most
in it too; where fewer things happen than there are columns, each step is drawn where it is.
"""

from __future__ import annotations

import numpy as np

from ...simulate.series import steps
from ..render.text import percent
from .panels import Array, Level, Panel, Part, Picture, Steps
from .views import Shown, View, headline


def utilisation(view: View) -> Picture:
    """Resources in use, below a line at the machine's size."""
    parts: list[Part] = [_part(each, steps.busy(each.run.jobs), view) for each in view.shown]
    sizes = sorted({each.run.machine for each in view.shown})
    parts += [Level(f"machine, {size:,} resources", float(size)) for size in sizes]
    means = ", ".join(_mean(each, view) for each in view.shown)
    panel = Panel(
        "", "resources in use", parts, view.x, view.x_title, (0.0, sizes[-1] * 1.05), view.unit, whole=True,
        empty=_empty(view),
    )  # fmt: skip
    return Picture(headline("Utilisation", view.shown), [[panel]], f"in use in the mean: {means}")


def queue(view: View) -> Picture:
    """Jobs that wait, and the resources that they ask for."""
    jobs: list[Part] = [_part(each, steps.waiting(each.run.jobs), view) for each in view.shown]
    wanted: list[Part] = [_part(each, steps.wanted(each.run.jobs), view) for each in view.shown]
    sizes = sorted({each.run.machine for each in view.shown})
    wanted += [Level(f"machine, {size:,} resources", float(size)) for size in sizes]
    rows = [
        [Panel("", "jobs waiting", jobs, view.x, view.x_title, (0.0, None), view.unit, whole=True, empty=_empty(view))],
        [Panel("", "resources they ask for", wanted, view.x, view.x_title, (0.0, None), view.unit, whole=True)],
    ]
    return Picture(headline("Queue", view.shown), rows)


def edges(times: Array, view: View) -> Array:
    """The edges of the columns: where something happens, or evenly where that is too often."""
    inside = times[(times > view.begin) & (times < view.end)]
    if len(inside) < view.columns:
        return np.concatenate([[view.begin], inside, [view.end]])
    return np.linspace(view.begin, view.end, view.columns + 1)


def _part(shown: Shown, function: steps.Steps, view: View) -> Steps:
    columns = edges(function.times, view)
    low, high = function.extremes_over(columns) if len(view.shown) == 1 else (None, None)
    return Steps(shown.label, shown.colour, columns, function.mean_over(columns), low, high)


def _mean(shown: Shown, view: View) -> str:
    used = float(steps.busy(shown.run.jobs).mean_over(np.array(view.x))[0]) / shown.run.machine
    return percent(used) + (f" {shown.label}" if len(view.shown) > 1 else "")


def _empty(view: View) -> str:
    return "" if any(each.run.jobs.ran.any() for each in view.shown) else "no job ran"

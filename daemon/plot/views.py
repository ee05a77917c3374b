"""The runs of a picture as it names and colours them, and the time that it shows.

Rule: a run goes by its policy; where two have the same, by its folder too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from ...simulate.series.run import Run, span
from ..render.text import clean, fit
from .palette import LINES, MORE_LINES
from .units import Unit, of_time

_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """A run, and what it is called and drawn with."""

    run: Run
    label: str
    colour: str


@dataclass(frozen=True, slots=True)
class View:
    """What a picture is of.

    Args:
        begin, end: seconds on the trace's clock.
        asked: the time was asked for; else it is all there is.
        columns: pixels, more or less, on which time is drawn.
    """

    shown: Sequence[Shown]
    begin: float
    end: float
    asked: bool
    columns: int

    @property
    def x(self) -> tuple[float, float]:
        """The time that is shown."""
        return self.begin, self.end

    @property
    def unit(self) -> Unit:
        """Of the time axis."""
        return of_time(self.end - self.begin)

    @property
    def x_title(self) -> str:
        """Of the time axis."""
        return f"time of the trace, {self.unit.name}"


def view(runs: Sequence[Run], folders: Sequence[Path], begin: float | None, end: float | None, columns: int) -> View:
    """A view of runs, from `begin` to `end` where those are given."""
    names = [run.policy or folder.resolve().name for run, folder in zip(runs, folders, strict=True)]
    labels = [
        name if names.count(name) == 1 else f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)
    ]
    colours = LINES if len(runs) <= len(LINES) else MORE_LINES
    shown = [
        Shown(run, fit(clean(label), _LONGEST), colour)
        for run, label, colour in zip(runs, labels, cycle(colours), strict=False)
    ]
    first, last = span(runs)
    low, high = first if begin is None else begin, last if end is None else end
    if low >= high:  # what was asked for is all before or after what there is
        low, high = (low, low + 1.0) if end is None else (high - 1.0, high)
    return View(shown, low, high, begin is not None or end is not None, columns)


def headline(what: str, shown: Sequence[Shown]) -> str:
    """What a picture is of: workload, jobs, machine, policy."""
    workloads = list(dict.fromkeys(each.run.workload for each in shown if each.run.workload))
    machines = sorted({each.run.machine for each in shown})
    names = ", ".join(fit(clean(name), _LONGEST) for name in workloads[:2]) + (", ..." if len(workloads) > 2 else "")
    sizes = " and ".join(f"{size:,}" for size in machines[:3]) + (", ..." if len(machines) > 3 else "")
    about = "" if all(each.run.sure for each in shown) else "at least "
    policy = f", policy {shown[0].run.policy}" if len(shown) == 1 and shown[0].run.policy else ""
    return f"{what}: {names or shown[0].label} on {about}{sizes} resources{clean(policy)}"


"""`pilotfish plot`: pictures of finished replays, ours or Batsim's."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...formats.text import clean, count
from .. import options
from ..charts import picture_files
from ..options import argument, flag, option
from ..usage_errors import bad, check_period, not_among

if TYPE_CHECKING:
    from ..charts.figure import Figure
    from ..charts.replay_figures import FigureView

_KINDS = ("gantt", "utilisation", "queue", "energy", "compare")
#: Runs with distinguishable colours.
_MOST = 9


def plot(
    kind: Annotated[str, argument("KIND", "gantt, utilisation, queue, energy or compare.", words=_KINDS)],
    folders: Annotated[list[Path], argument("DIR", "Results of `simulate --out DIR`, or of Batsim.")],
    picture: picture_files.PlotFile = None,
    begin: options.Begin = None,
    end: options.End = None,
    labels: Annotated[
        list[str] | None, option("NAME", "Name of a run, once for each DIR.", "--label", default="its policy")
    ] = None,
    labelled: Annotated[bool, flag("--job-names", "gantt: write the names of jobs where they fit.")] = False,
    title: Annotated[str | None, option("T", "Replace title, workload and machine by T.")] = None,
) -> None:
    """Draw one or several replays: in the terminal, or into a file.

    \b
    gantt        each job on its resources; HTML: zoom, and point at a job
    utilisation  resources in use over time
    queue        waiting jobs, and the resources that they request
    energy       power, energy, states of the machines
    compare      waiting time, slowdown, utilisation, energy, makespan

    \b
    Examples:
      pilotfish plot utilisation run
      pilotfish plot gantt run --plot run.html
      pilotfish plot queue run --from 86400 --until 172800 --plot day.pdf
      pilotfish plot compare easy strict --label EASY --label FCFS --plot c.svg
    """
    _check(kind, folders, begin, end, labels, labelled)
    picture_files.check(picture)
    from ...formats.replays.results_read import read_run
    from ..charts.replay_figures import view
    from ..output.text import Screen

    screen, runs = Screen(), [read_run(folder) for folder in folders]
    figure_view = view(runs, folders, begin, end, picture_files.columns(picture, screen.cells), labels or ())
    figure = _figure(kind, figure_view, folders, labelled)
    if title is not None:
        figure = replace(figure, title=clean(title), about="")
    if picture is not None:
        picture_files.save(figure, picture)
    else:
        from ..charts.terminal_backend import draw

        screen.put(*draw(figure, screen.cells, ascii_only=screen.ascii_only, colour=screen.colour))


def _check(
    kind: str, folders: list[Path], begin: float | None, end: float | None, labels: list[str] | None, labelled: bool
) -> None:
    if kind not in _KINDS:
        raise not_among("KIND", kind, "a picture", _KINDS)
    if len(folders) > _MOST:
        raise bad("DIR", f"{count(len(folders), 'run')} (allowed: up to {_MOST} in one picture)")
    if len(set(folders)) < len(folders):
        raise bad("DIR", "one of them is given twice")
    if labels and len(labels) != len(folders):
        raise bad("--label", f"{len(labels)} for {count(len(folders), 'run')} (allowed: one for each DIR)")
    if labelled and kind != "gantt":
        raise bad("--job-names", f"a {kind} picture shows no jobs (allowed: with gantt)")
    check_period(begin, end, math.isfinite)


def _figure(kind: str, seen: FigureView, folders: list[Path], labelled: bool) -> Figure:
    from ..charts import compare_figure, replay_figures

    if kind == "gantt":
        return replay_figures.replay_gantt(seen, labelled=labelled)
    if kind == "energy":
        return replay_figures.energy(seen, folders)
    if kind == "compare":
        return compare_figure.compare(seen)
    return replay_figures.utilisation(seen) if kind == "utilisation" else replay_figures.queue(seen)

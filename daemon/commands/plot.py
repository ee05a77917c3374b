"""`pilotfish plot`: pictures of finished runs, by us or by Batsim."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ..plot.panels import Picture
    from ..plot.views import View

#: What draws each ending.
_PACKAGES = {".svg": "matplotlib", ".png": "matplotlib", ".html": "bokeh"}
_KINDS = ("gantt", "utilisation", "queue", "energy", "compare")
#: Runs whose colours can be told apart.
_MOST = 9


def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="gantt, utilisation, queue, energy or compare.")],
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="What `simulate --out DIR` wrote, or Batsim.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="FILE.svg, .png or .html; default: KIND.svg.")
    ] = None,
    begin: Annotated[float | None, typer.Option("--from", metavar="S", help="From S seconds of the trace on.")] = None,
    end: Annotated[float | None, typer.Option("--until", metavar="S", help="Until S seconds of the trace.")] = None,
    labelled: Annotated[bool, typer.Option("--jobs", help="gantt: write the jobs' names where there is room.")] = False,
    title: Annotated[str | None, typer.Option(metavar="T", help="Instead of workload, machine and policy.")] = None,
) -> None:
    """Draw what one run was like, or several beside each other.

    \b
    gantt        each job on its resources; HTML: zoom, and point at a job
    utilisation  resources in use over time
    queue        jobs that wait, and the resources that they ask for
    energy       power, energy, states of the machines
    compare      waiting, slowdown, utilisation, energy, makespan of several runs

    \b
    Examples:
      pilotfish plot gantt run --out run.html
      pilotfish plot queue run --from 86400 --until 172800 --out day.png
      pilotfish plot compare easy conservative strict
    """
    target = out or Path(f"{kind}.svg")
    _check(kind, folders, target, begin, end, labelled)
    from ...simulate.formats.results_read import read_run
    from ..plot import page, sheet
    from ..plot.views import view

    form = page if target.suffix.lower() == ".html" else sheet
    seen = view([read_run(folder) for folder in folders], folders, begin, end, form.COLUMNS)
    picture = _picture(kind, seen, folders, labelled)
    if title is not None:
        from ..render.text import clean

        picture = replace(picture, title=clean(title))
    form.draw(picture, target)
    inputs.note(f"the picture is in {target}")


def _check(
    kind: str, folders: list[Path], target: Path, begin: float | None, end: float | None, labelled: bool
) -> None:
    if kind not in _KINDS:
        raise inputs.not_among("KIND", kind, "a picture", _KINDS)
    if target.suffix.lower() not in _PACKAGES:
        raise inputs.bad("--out", f"{target.name!r} has no known ending (allowed: {', '.join(_PACKAGES)})")
    if len(folders) > _MOST:
        raise inputs.bad("DIR", f"{len(folders)} runs (allowed: up to {_MOST} in one picture)")
    if len(set(folders)) < len(folders):
        raise inputs.bad("DIR", "one of them is given twice")
    if labelled and kind != "gantt":
        raise inputs.bad("--jobs", f"a {kind} picture shows no jobs (allowed: with gantt)")
    for option, value in (("--from", begin), ("--until", end)):
        if value is not None and not math.isfinite(value):
            raise inputs.bad(option, f"{value:g} (allowed: seconds)")
    if begin is not None and end is not None and begin >= end:
        raise inputs.bad("--until", f"{end:g} (allowed: more than --from, {begin:g})")
    if not target.parent.is_dir():
        raise ConfigError(str(target), "", "cannot be written: there is no such folder")
    from ..render.extras import demand

    demand(_PACKAGES[target.suffix.lower()], f"a {target.suffix.lower()}")


def _picture(kind: str, seen: View, folders: list[Path], labelled: bool) -> Picture:
    from ..plot import compare, energy, gantt, load

    if kind == "gantt":
        return gantt.gantt(seen, labelled=labelled)
    if kind == "energy":
        energy.demand(seen, folders)
        return energy.energy(seen)
    return {"utilisation": load.utilisation, "queue": load.queue, "compare": compare.compare}[kind](seen)

"""The Gantt chart: each job on its resources over time.

Rule: a job that was ended before its time has a dark end; one that never began is marked above the chart, at its
submission.
"""

from __future__ import annotations

import numpy as np

from ...simulate.series.run import KILLED, REJECTED, WALLTIME, Run
from ..render.text import clean
from .palette import fill_of
from .panels import Array, Ends, Panel, Part, Picture, Rectangles, Rug
from .views import Shown, View, headline

#: Marks in one chart; more would hide what they mark.
MOST_MARKS = 4000
_ENDED = ((WALLTIME, "ended by the walltime"), (KILLED, "killed or failed"))


def gantt(view: View, *, labelled: bool) -> Picture:
    """A chart for each run, one below the other on the same time."""
    many = len(view.shown) > 1
    rows = [[_panel(each, view, labelled, titled=many)] for each in view.shown]
    return Picture(headline("Gantt chart", view.shown), rows, height=7.0 if not many else 1.4 + 3.3 * len(rows))


def _panel(shown: Shown, view: View, labelled: bool, *, titled: bool) -> Panel:
    run = shown.run
    bars = _rectangles(run, view, labelled)
    parts: list[Part] = [bars, *_ends(run, view)]
    rejected = run.jobs.submit[run.jobs.ending == REJECTED]
    rejected = rejected[(rejected >= view.begin) & (rejected <= view.end)]
    if len(rejected):
        parts.append(Rug(f"never began ({len(rejected):,})", _thinned(rejected, view)))
    return Panel(
        shown.label if titled else "", "resources", parts, view.x, view.x_title,
        (0.0, float(run.machine)), view.unit, whole=True, empty="" if len(bars) else "no job ran in this time",
    )  # fmt: skip


def _rectangles(run: Run, view: View, labelled: bool) -> Rectangles:
    jobs = run.jobs
    left, right = jobs.start[jobs.owner], jobs.finish[jobs.owner]
    seen = (right >= view.begin) & (left <= view.end)
    owner, pieces = jobs.owner[seen], jobs.pieces[seen]
    chosen, job = np.unique(owner, return_inverse=True)
    names = np.array([clean(str(name)) for name in jobs.id[chosen]], object)
    return Rectangles(
        left[seen], right[seen], pieces[:, 0].astype(float), pieces[:, 1] + 1.0, fill_of(jobs.id[chosen])[job], job,
        names, jobs.size[chosen], (jobs.start - jobs.submit)[chosen], (jobs.finish - jobs.start)[chosen], labelled,
    )  # fmt: skip


def _ends(run: Run, view: View) -> list[Ends]:
    """Marks of the jobs that were ended before their time; where there are too many, only how many."""
    jobs, found = run.jobs, []
    for ending, words in _ENDED:
        jobs_so = (jobs.ending == ending) & (jobs.finish >= view.begin) & (jobs.finish <= view.end)
        pieces = np.flatnonzero(jobs_so[jobs.owner])
        label, number = words, np.count_nonzero(jobs_so)
        if len(pieces) > MOST_MARKS:
            label, pieces = f"{words}, not marked", pieces[:0]
        if number:
            low, high = jobs.pieces[pieces, 0].astype(float), jobs.pieces[pieces, 1] + 1.0
            found.append(Ends(f"{label} ({number:,})", jobs.finish[jobs.owner[pieces]], low, high))
    return found


def _thinned(times: Array, view: View) -> Array:
    """No more than one a column."""
    wide = (view.end - view.begin) / view.columns
    return np.unique(np.floor((times - view.begin) / wide)) * wide + view.begin

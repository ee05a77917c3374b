"""A picture of how well jobs were foretold: over time, and by profile.

Rule: absolute errors, in percent; what is off the top of a panel is at its top, and the notes say how many.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ..accuracy import Accuracy, Foretold, by, known
from ..render.text import clean, count, fit, percent, times
from .palette import LINES
from .panels import Bars, Curve, Panel, Picture
from .units import of_time

#: Percent at which the picture ends.
_TOP = 200.0
#: Profiles that are shown, and jobs of a running median.
_MOST, _WINDOW = 9, 20
_LONGEST = 24


def picture(jobs: Sequence[Foretold]) -> Picture:
    """The running median of the errors of each model over time, and a bar for the profiles with the most jobs."""
    off = sum(abs(job.error) * 100 > _TOP for job in jobs)
    notes = f"running median over {_WINDOW} jobs of |actual - forecast| / actual"
    notes += f"; {count(off, 'job')} beyond {_TOP:g} %" if off else ""
    title = f"Forecast against actual: {count(len(jobs), 'job')}"
    return Picture(title, [[_over_time(jobs)], [_profiles(jobs)]], notes, shared=False)


def _over_time(jobs: Sequence[Foretold]) -> Panel:
    seen = known(jobs)
    begin, end = (seen[0].time, seen[-1].time) if seen else (0.0, 0.0)
    unit = of_time(end - begin)
    parts = []
    for i, model in enumerate(by("model", seen)[: len(LINES)]):
        mine = [job for job in seen if (job.model or model.name) == model.name]
        x = np.array([job.time - begin for job in mine])
        parts.append(Curve(clean(model.name), LINES[i], x, _running([job.error for job in mine]), stairs=True))
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(begin))
    return Panel(
        "", "error of run times (%)", parts, (0.0, max(end - begin, unit.size)), f"{unit.name} since {since}",
        (0.0, None), unit, empty="" if seen else "no job has completed of which something was known",
    )  # fmt: skip


def _running(errors: Sequence[float]) -> np.ndarray:
    sizes = np.minimum(100 * np.abs(errors), _TOP)
    return np.array([np.median(sizes[max(0, i + 1 - _WINDOW) : i + 1]) for i in range(len(sizes))])


def _profiles(jobs: Sequence[Foretold]) -> Panel:
    groups = by("profile", jobs)[:_MOST]
    values = [min(100 * group.median, _TOP) for group in groups]
    words = [f"{_words(group)}, {count(group.jobs, 'job')}" for group in groups]
    names = [fit(clean(group.name), _LONGEST) for group in groups]
    parts = [Bars(names, [LINES[0]] * len(names), values, words)] if groups else []
    empty = "" if groups else "no job has completed yet"
    return Panel("Median error by profile", "", parts, (0.0, 1.0), height=0.2 + 0.08 * len(groups), empty=empty)


def _words(group: Accuracy) -> str:
    return percent(group.median) if group.median < 1 else times(1 + group.median)

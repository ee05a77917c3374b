"""The figure of a training: the objective in each generation, epoch or update of each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...formats.text import count
from . import picture_files
from .colours import SERIES, series_style
from .figure import Axis, Figure, Line, Panel, Series

_BASELINE = SERIES[6]


@dataclass(frozen=True, slots=True)
class Course:
    """The meaning of the numbers of a training.

    Args:
        unit: word for an epoch, singular.
        mean: what each number is.
        level: a baseline and its number; None: no baseline.
    """

    unit: str
    mean: str
    level: tuple[str, float] | None = None


def save_curves(picture: Path | None, states: Sequence[Mapping[str, Any]], objective: str, course: Course) -> None:
    """Draw the learning curves into a file. Raises PilotfishError, OSError; None: draw nothing.

    Args:
        picture: the file.
        states: the `seed` of each training and its `course`, a number for each epoch.
        objective: name of what is to be small.
        course: what the numbers are.
    """
    if picture is not None:
        courses = {int(state["seed"]): state["course"] for state in states}
        picture_files.save(learning_curves(objective, courses, course), picture)


def learning_curves(objective: str, courses: Mapping[int, Sequence[float]], course: Course) -> Figure:
    """Return the learning curves.

    Args:
        objective: name of what is to be small.
        courses: seed -> the objective in each epoch, at least one.
        course: what the numbers are.
    """
    most, series = max(map(len, courses.values())), list[Series]()
    for number, (seed, values) in enumerate(courses.items()):
        colour, dash = series_style(number)
        at = np.arange(1.0, len(values) + 1.0)
        series.append(Line(f"seed {seed}", colour, at, np.array(values, float), dash))
    if course.level is not None:
        name, value = course.level
        series.append(Line(f"baseline: {name}", _BASELINE, np.array([1.0, float(most)]), np.full(2, value), 1))
    panel = Panel(Axis(course.unit, whole=True), Axis(f"{objective}, {course.mean}"), series)
    return Figure("Learning curves", [[panel]], count(len(courses), "training"), height=3.6)

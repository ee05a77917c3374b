"""The figure of a training: the mean objective of each generation of each search, next to the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...formats.text import count
from .colours import SERIES, series_style
from .figure import Axis, Figure, Line, Panel, Series

_BASELINE = SERIES[6]


def learning_curves(objective: str, courses: Mapping[int, Sequence[float]], baseline: tuple[str, float]) -> Figure:
    """Return the learning curves.

    Args:
        objective: name of what is to be small.
        courses: seed -> mean logarithm of the objective in each generation, at least one.
        baseline: its name, and the mean logarithm of its objective.
    """
    most, series = max(map(len, courses.values())), list[Series]()
    for number, (seed, values) in enumerate(courses.items()):
        colour, dash = series_style(number)
        at = np.arange(1.0, len(values) + 1.0)
        series.append(Line(f"seed {seed}", colour, at, np.exp(np.array(values, float)), dash))
    name, value = baseline
    series.append(Line(f"baseline: {name}", _BASELINE, np.array([1.0, float(most)]), np.full(2, np.exp(value)), 1))
    panel = Panel(Axis("generation", whole=True), Axis(f"{objective}, geometric mean"), series)
    about = count(len(courses), "search", "searches")
    return Figure("Learning curves", [[panel]], about, height=3.6)

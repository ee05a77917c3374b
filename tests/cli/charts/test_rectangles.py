"""Rectangles on a raster of cells: every job leaves a trace; names are written where they fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.charts import colours
from pilotfish.cli.charts.figure import Boxes, Panel
from pilotfish.cli.charts.rectangles import cells, names
from pilotfish.cli.charts.replay_figures import replay_gantt
from pilotfish.simulate.results.recorded_run import Jobs, RecordedRun
from tests.cli.charts.samples import run_of, seen


def panel_of(run: RecordedRun, end: float | None = None) -> tuple[Panel, Boxes]:
    (panel,) = replay_gantt(seen(run, end=end), labelled=True).panels()
    return panel, panel.of(Boxes)[0]


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 2000), st.integers(0, 99))
def test_exactly_the_cells_with_jobs_are_inked(count: int, machine: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    panel, boxes = panel_of(run_of(count, machine, days=float(draw.uniform(0.01, 400))))
    image = cells(panel, boxes, 300, 100)
    rows = len(image)
    assert rows == min(100, machine)
    inked = (image < 255).any(axis=2)[::-1]
    darkest = image.reshape(-1, 3).astype(int).sum(axis=1).min()
    assert darkest >= min(sum(colours.rgb(fill)) for fill in colours.JOBS) - 3
    long = panel.x.high - panel.x.low
    column = ((boxes.left + boxes.right) / 2 - panel.x.low) / long * 300
    row = (boxes.low + boxes.high) / 2 / machine * rows
    places = np.minimum(column.astype(int), 299), np.minimum(row.astype(int), rows - 1)
    assert inked[places[1], places[0]].all()
    assert inked.sum() <= np.ceil((boxes.right - boxes.left) / long * 300 + 1).sum() * 2


@pytest.mark.parametrize("row", range(0, 100, 7))
def test_a_rectangle_that_ends_at_an_edge_is_not_in_the_next_cell(row: int) -> None:
    """49 resources a cell: 49 times 1 / 49 is not 1."""
    jobs = Jobs(
        np.array(["x"], object), np.zeros(1), np.array([3.0]), np.array([49.0 * 30]), np.array([49]),
        np.zeros(1, np.int8), np.array([[49 * row, 49 * row + 48]]), np.zeros(1, np.int64),
    )  # fmt: skip
    image = cells(*panel_of(RecordedRun("w", "p", 4900, True, jobs), 4900.0), 100, 100)
    inked = (image < 255).any(axis=2)[::-1]
    assert inked.sum() == 30 and inked[row, :30].all()


def test_job_colours_depend_on_the_name_only_and_are_equally_light() -> None:
    named = np.array(["1", "2", "3", "4", "é\udcff"], object)
    indices = colours.job_colours(named).tolist()
    assert indices == colours.job_colours(named[::-1]).tolist()[::-1] == [5, 1, 1, 4, 2]
    linear = np.array([[(channel / 255) ** 2.2 for channel in colours.rgb(fill)] for fill in colours.JOBS])
    light = linear @ (0.2126, 0.7152, 0.0722)
    assert np.ptp(light) < 0.02 and len(colours.STATES) == 5


def test_names_are_written_once_if_they_fit() -> None:
    pieces = np.array([[0, 5], [7, 8], [0, 9], [9, 9]])
    jobs = Jobs(
        np.array(["split", "long name indeed", "low"], object), np.zeros(3), np.array([0.0, 10.0, 0.0]),
        np.array([10.0, 10.2, 90.0]), np.array([8, 10, 1]), np.zeros(3, np.int8), pieces, np.array([0, 0, 1, 2]),
    )  # fmt: skip
    panel, boxes = panel_of(RecordedRun("w", "p", 10, True, jobs))
    assert list(names(panel, boxes, 1000, 500, (11, 19))) == [(3, "low"), (0, "split")]
    assert list(names(panel, boxes, 1000, 100, (11, 19))) == [(0, "split")]

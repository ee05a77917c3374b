"""The picture of a run: every job as forecast and as it ran, on its nodes, in the colour of what came true."""

from __future__ import annotations

import math

import numpy as np

from pilotfish.cli.charts.figure import Area, Boxes, Line, Points, Strokes
from pilotfish.cli.charts.forecast_figure import run_report
from pilotfish.daemon.report.accuracy import RunOutcome
from pilotfish.simulate.model.snapshot import JobState
from tests.cli.charts.samples import planned, ran, random_plan

FORECAST, SAME, LONGER, SHORTER, FAILED = range(5)


def drawn(boxes: Boxes, name: str) -> list[tuple[float, float, int]]:
    """Start, end and colour of the rectangles of a job, from the top."""
    rows = np.flatnonzero(boxes.names[boxes.job] == name)
    rows = rows[np.argsort(-boxes.high[rows])]
    return [(boxes.left[i], boxes.right[i], boxes.fill[i]) for i in rows]


def test_each_job_is_above_as_forecast_and_below_as_it_ran() -> None:
    jobs = [(f"j{i}", ("a" if i < 4 else "b",), 10.0 * i, 10.0 * i + 10.0, 1.0, ()) for i in range(7)]
    plan = planned(jobs, ("a", "b", "idle"))
    gantt, scatter = run_report(ran(plan), *plan[1:]).panels()
    assert [row.name for row in gantt.rows] == ["a", "b"]
    (boxes,) = gantt.of(Boxes)
    assert drawn(boxes, "j0") == [(0.0, 10.0, FORECAST), (1.0, 11.0, SAME)]
    assert drawn(boxes, "j1") == [(10.0, 20.0, FORECAST), (11.0, 31.0, LONGER)]
    assert drawn(boxes, "j2") == [(20.0, 30.0, FORECAST), (21.0, 26.0, SHORTER)]
    assert drawn(boxes, "j5") == [(50.0, 60.0, FORECAST), (51.0, 56.0, FAILED)]
    assert drawn(boxes, "j6") == [(60.0, 70.0, FORECAST)], "it never started"
    for row, mine in zip(gantt.rows, (range(4), range(4, 7)), strict=True):
        of = np.isin(boxes.names[boxes.job], [f"j{i}" for i in mine])
        assert boxes.low[of].min() == row.low and boxes.high[of].max() == row.high
    keys = {part.label for part in gantt.of(Area)}
    assert keys == {"forecast", "as forecast", "longer", "shorter", "did not complete"}
    points, (bounds,) = scatter.of(Points), scatter.of(Strokes)
    assert sum(len(part.x) for part in points) == 5 and bounds.low.tolist() == [9.0, 9.0]
    assert {(x, y) for part in points for x, y in zip(part.x, part.y, strict=True)} == {(10, 10), (10, 20), (10, 5)}
    (line,) = scatter.of(Line)
    assert (line.x == line.y).all() and scatter.x_range == scatter.y_range == (5.0, 20.0)


def test_rectangles_of_a_node_do_not_overlap() -> None:
    plan = random_plan(60, 3)
    (boxes,) = next(run_report(ran(plan), *plan[1:]).panels()).of(Boxes)
    for i in range(len(boxes)):
        same = (boxes.low == boxes.low[i]) & (np.arange(len(boxes)) != i)
        assert not (same & (boxes.left < boxes.right[i]) & (boxes.right > boxes.left[i])).any()


def test_a_run_of_no_job_is_an_empty_picture() -> None:
    plan = planned([], ("a",))
    gantt, scatter = run_report(RunOutcome("r", plan.plan, JobState.CANCELLED, ()), *plan[1:]).panels()
    assert gantt.empty == "no job" and scatter.empty and math.isfinite(gantt.y_range[1])

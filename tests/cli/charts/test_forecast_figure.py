"""The picture of forecast accuracy: it has all profiles, and counts errors above its top."""

from __future__ import annotations

import statistics

from pilotfish.cli.charts.figure import Bars, Boxes, Figure, Line, Points, Strokes
from pilotfish.cli.charts.forecast_figure import forecast_accuracy
from pilotfish.daemon.report.accuracy import factor
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome
from tests.cli.charts.samples import forecasts


def picture(figure: Figure) -> bytes:
    from pilotfish.cli.charts import matplotlib_backend  # it takes a second, in each worker that collects the tests

    return matplotlib_backend.picture(figure, "svg")


def job(actual: float, profile: str, at: float) -> ForecastOutcome:
    return ForecastOutcome("k", at, 1.0, actual, profile, "max-min", "easy", "measured")


def test_the_picture_has_every_profile_and_counts_errors_above_its_top():
    jobs = [job(110.0 if i == 7 else 10.0 + i % 3, f"p{i % 4}\x1b", 60.0 * i) for i in range(50)] + [
        job(0.1, "p0\x1b", 3000.0)
    ]
    figure = forecast_accuracy(jobs)
    assert "1 job beyond 100x" in figure.notes
    text = picture(figure).decode()
    assert all(f"p{i}\\x1b" in text for i in range(4)) and "\x1b" not in text


def test_errors_are_factors_over_dates_with_their_running_median():
    jobs = forecasts(200)
    above, middle, _, below = forecast_accuracy(jobs).panels()
    points, lines, (bars,) = above.of(Points), above.of(Line), below.of(Bars)
    assert sum(len(part.x) for part in points) == 200 and len(lines) == len(points) == 2
    assert (
        max(part.y.max() for part in points) <= above.y_range[1] and above.y.log and above.x.label == "date (UTC, 2026)"
    )
    mine = [factor(one.error) for one in jobs if one.model == "max-min"]
    line = next(part for part in lines if part.label.startswith("max-min"))
    assert line.y[0] == mine[0] and line.y[-1] == statistics.median(mine[-20:])
    assert sum(len(part.x) for part in middle.of(Points)) == 200 and len(middle.of(Points)) == 5
    (bounds,) = middle.of(Strokes)
    assert set(bounds.x) == {100.0} and set(bounds.low) == {80.0} and set(bounds.high) == {125.0}
    assert len(bars.names) == 5 and all("jobs" in words for words in bars.words)


def test_each_job_is_on_its_nodes_as_forecast_and_as_it_ran():
    late = ForecastOutcome("late", 160.0, 30.0, 60.0, "p", shortest_s=20.0, longest_s=40.0, node="a,b",
                           forecast_start_time=95.0)  # fmt: skip
    jobs = [ForecastOutcome("elsewhere", 90.0, 5.0, 5.0, "p"), late]
    *_, gantt, _ = forecast_accuracy(jobs).panels()
    (boxes,) = gantt.of(Boxes)
    assert [row.name for row in gantt.rows] == ["a", "b"] and set(boxes.names) == {"late"}
    spans = sorted(zip(boxes.left, boxes.right, boxes.fill, strict=True))
    assert spans == [(0.0, 30.0, 0)] * 2 + [(5.0, 65.0, 2)] * 2, "forecast, and longer than its interval"


def test_no_job_is_an_empty_picture():
    figure = forecast_accuracy([])
    assert [panel.empty for panel in figure.panels()] == [
        *["no completed job had a forecast"] * 2,
        "no job",
        "no job has completed",
    ]
    assert picture(figure).startswith(b"<?xml")

"""Figures of replays as data: every job is drawn, areas are exact, units suit, names and times are as requested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.cli.charts import colours, compare_figure
from pilotfish.cli.charts import replay_figures as replays
from pilotfish.cli.charts.figure import Area, Bars, Boxes, Figure, Line, Strokes
from pilotfish.simulate.results.recorded_run import REJECTED, STATES
from tests.cli.charts.samples import DAY, powered, run_of, seen


def series_of(figure: Figure, kind: type) -> list:
    return [series for panel in figure.panels() for series in panel.of(kind)]


def test_killed_and_rejected_jobs_are_marked() -> None:
    run = run_of(100)
    run.jobs.ending[3] = REJECTED
    figure = replays.replay_gantt(seen(run), labelled=True)
    ends, rug = series_of(figure, Strokes)
    assert ends.label == "ended by the walltime (2)" and ends.x.tolist() == run.jobs.finish[[7, 57]].tolist()
    assert rug.label == "never started (1)" and abs(rug.x[0] - run.jobs.submit[3]) <= 30 * DAY / 500
    large_run = run_of(300_000)
    (ends,) = series_of(replays.replay_gantt(seen(large_run), labelled=False), Strokes)
    assert ends.label == "ended by the walltime, not marked (6,000)" and not len(ends.x)


def test_jobs_have_their_places_and_facts() -> None:
    run = run_of(30)
    (boxes,) = series_of(replays.replay_gantt(seen(run), labelled=False), Boxes)
    assert boxes.left.tolist() == run.jobs.start.tolist() and boxes.right.tolist() == run.jobs.finish.tolist()
    assert boxes.names.tolist() == run.jobs.id.tolist() and not boxes.labelled
    facts = {fact.title: fact.values for fact in boxes.facts}
    assert facts["waiting time"].tolist() == (run.jobs.start - run.jobs.submit).tolist()
    assert facts["resources"].tolist() == [1] * 30


@pytest.mark.parametrize("many", [False, True])
def test_load_keeps_the_area_in_its_columns(many: bool) -> None:
    run = run_of(4000 if many else 40)
    for figure, lengths in ((replays.utilisation(seen(run)), run.jobs.finish - run.jobs.start),
                           (replays.queue(seen(run)), run.jobs.start - run.jobs.submit)):  # fmt: skip
        line = series_of(figure, Line)[-1 if figure.title == "Utilisation" else 0]
        values = line.y[:-1]
        assert line.stairs and (len(values) == 500 if many else len(values) <= 500)
        assert (values * np.diff(line.x)).sum() == pytest.approx(lengths.sum())
        bands = series_of(figure, Area)
        assert many is bool(bands) and (not many or (bands[0].low[:-1] <= values + 1e-6).all())


def test_energy_has_readable_units() -> None:
    runs = powered(run_of(5), asleep=False), powered(run_of(5, policy="off"), asleep=True)
    figure = replays.energy(seen(*runs, begin=0.0, end=2 * DAY), ["a", "b"])
    assert [panel.y.label for panel in figure.panels()] == ["power (kW)", "energy (GJ)", "machines", "machines"]
    assert [area.label for area in series_of(figure, Area)] == [
        "computing", "idle", "computing", "idle", "sleeping"
    ]  # fmt: skip
    (total,) = (panel for panel in figure.panels() if panel.y.label == "energy (GJ)")
    assert np.nanmax(total.of(Line)[0].y) == pytest.approx(4.0) and len(STATES) == len(colours.STATES)
    assert figure.notes == ["energy in this time: 4.00 GJ easy, 4.00 GJ off"]


def test_machine_states_are_drawn_until_the_run_ends() -> None:
    short, long = powered(run_of(3, days=1.0), asleep=False), powered(run_of(3, days=90.0, policy="b"), asleep=False)
    figure = replays.energy(seen(short, long, begin=0.0), ["a", "b"])
    ends = [panel.of(Area)[0].x[-1] for panel in figure.panels() if panel.of(Area)]
    assert ends == [2 * DAY, pytest.approx(long.jobs.finish.max())]
    late = replays.energy(seen(short, begin=50 * DAY), ["a"]).rows[-1][0]
    assert late.empty == "nothing is known of this time" and not late.series


def test_a_comparison_has_a_bar_for_each_known_number() -> None:
    runs = powered(run_of(50), asleep=False), run_of(80, policy="strict")
    figure = compare_figure.compare(seen(*runs))
    assert [panel.title for panel in figure.panels() if panel.title] == [
        "mean waiting time", "mean slowdown", "utilisation", "energy", "makespan"
    ]  # fmt: skip
    bars = series_of(figure, Bars)
    assert all(bar.names == ["easy", "strict"] for bar in bars) and list(bars[3].words) == ["4.00 GJ", "unknown"]
    assert bars[0].values[0] == pytest.approx((runs[0].jobs.start - runs[0].jobs.submit).mean())
    for line in series_of(figure, Line):
        assert (np.diff(line.x) >= 0).all() and (np.diff(line.y) >= 0).all() and line.y[-1] == 100.0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([4285.7, 1_554_193.0], ["1.19 hours", "432 hours"]),
        ([0.0, 0.0], ["0.00 seconds", "0.00 seconds"]),
        ([0.0, 7200.0], ["0.00 minutes", "120 minutes"]),
        ([1.0, 100 * DAY], ["0.00 days", "100 days"]),
        ([100 * DAY, 145 * DAY], ["100 days", "145 days"]),
    ],
)
def test_times_are_compared_in_one_unit(values: list[float], words: list[str]) -> None:
    assert compare_figure.spelled(values) == words


def test_runs_are_named_by_policy_and_by_folder_if_two_share_it() -> None:
    runs = run_of(1), run_of(2, machine=7), run_of(3, policy="")
    shown = seen(*runs).shown
    assert [item.label for item in shown] == ["easy (run0)", "easy (run1)", "run2"]
    assert len({item.colour for item in shown}) == len({item.dash for item in shown}) == 3
    assert replays.about(shown) == "trace on 7 and 1,000 resources"
    assert replays.about(shown[:1]) == "trace on 1,000 resources, policy easy"
    assert [item.label for item in seen(*runs, labels=("a", "b", "c\x1b")).shown] == ["a", "b", "c\\x1b"]


@pytest.mark.parametrize(
    ("begin", "end", "x"),
    [(None, None, (0.0, 1.0)), (5.0, None, (5.0, 6.0)), (None, -3.0, (-4.0, -3.0)), (2.0, 9.0, (2.0, 9.0))],
)
def test_the_requested_time_is_shown(begin: float | None, end: float | None, x: tuple[float, float]) -> None:
    assert seen(run_of(0), begin=begin, end=end).x == x


def test_dates_are_shown_if_all_runs_have_the_same_start_date() -> None:
    dated = replace(run_of(9), epoch=1.3466e9)
    assert seen(dated, dated).axis.label == "date (UTC, 2012)"
    assert seen(dated, run_of(9)).axis.label == "time of the trace (days)"

"""Pictures of runs: every job is in them, however many there are, and both ways of drawing can be opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.plot import cells, compare, energy, gantt, load, names, page, palette, sheet, things, units
from pilotfish.daemon.plot.panels import Bars, Curve, Ends, Picture, Rectangles, Rug, Stack, Steps
from pilotfish.daemon.plot.views import View, headline, view
from pilotfish.simulate.series.run import DONE, REJECTED, STATES, WALLTIME, Energy, Jobs, MachineStates, Run

DAY = 86400.0


def run_of(count: int, machine: int = 1000, *, policy: str = "easy", days: float = 30.0) -> Run:
    """Jobs side by side, none on the resources of another: a picture of many small rectangles."""
    draw = np.random.default_rng(count)
    first = np.arange(count) % machine
    submit = np.sort(draw.uniform(0.0, days * DAY, count))
    start = submit + draw.exponential(3600.0, count)
    finish = start + draw.exponential(600.0, count)
    ending = np.where(np.arange(count) % 50 == 7, WALLTIME, DONE).astype(np.int8)
    jobs = Jobs(
        np.array([f"j{i}" for i in range(count)], object), submit, start, finish, np.ones(count, np.int64), ending,
        np.stack([first, first], axis=1), np.arange(count),
    )  # fmt: skip
    return Run("trace", policy, machine, True, jobs)


def powered(run: Run, *, asleep: bool) -> Run:
    time = np.array([0.0, 0.0, DAY, 2 * DAY])
    counts = np.array([[0, 0, 0, 9, 0], [4 * asleep, 0, 0, 9 - 4 * asleep, 0], [0, 0, 0, 1, 8], [0, 0, 0, 9, 0]])
    return Run(
        run.workload, run.policy, run.machine, run.sure, run.jobs, MachineStates(time, counts),
        Energy(time, np.array([0.0, 0.0, 1e9, 4e9])), 4e9,
    )  # fmt: skip


def seen(*runs: Run, begin: float | None = None, end: float | None = None, columns: int = 500) -> View:
    return view(list(runs), [Path(f"run{i}") for i in range(len(runs))], begin, end, columns)


def parts_of(picture: Picture, kind: type) -> list:
    return [part for row in picture.rows for panel in row for part in panel.parts if isinstance(part, kind)]


def drawn(picture: Picture, path: Path) -> ElementTree.Element:
    sheet.draw(picture, path)
    return ElementTree.parse(path).getroot()


@pytest.mark.parametrize(("count", "most_bytes"), [(30, 60_000), (1_900, 300_000), (30_000, 1_500_000)])
def test_a_chart_of_many_jobs_stays_small(tmp_path: Path, count: int, most_bytes: int) -> None:
    root = drawn(gantt.gantt(seen(run_of(count)), labelled=False), tmp_path / "x.svg")
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert (tmp_path / "x.svg").stat().st_size < most_bytes and len(tags) < 400
    assert tags.count("image") == (count > cells.FEW)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(1, 2000), st.integers(0, 99))
def test_each_job_leaves_a_trace_and_nothing_else_does(count: int, machine: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    run = run_of(count, machine, days=float(draw.uniform(0.01, 400)))
    (panel,) = gantt.gantt(seen(run), labelled=False).rows[0]
    bars = next(part for part in panel.parts if isinstance(part, Rectangles))
    image = cells.cells(panel, bars, 300, 100)
    rows = len(image)
    assert rows == min(100, machine)
    inked = (image < 255).any(axis=2)[::-1]
    darkest = image.reshape(-1, 3).astype(int).sum(axis=1).min()
    assert darkest >= min(sum(palette.rgb(fill)) for fill in palette.FILLS) - 3
    column = ((bars.left + bars.right) / 2 - panel.x[0]) / (panel.x[1] - panel.x[0]) * 300
    row = (bars.low + bars.high) / 2 / machine * rows
    places = np.minimum(column.astype(int), 299), np.minimum(row.astype(int), rows - 1)
    assert inked[places[1], places[0]].all()
    assert inked.sum() <= np.ceil((bars.right - bars.left) / (panel.x[1] - panel.x[0]) * 300 + 1).sum() * 2


@pytest.mark.parametrize("row", range(0, 100, 7))
def test_what_ends_at_the_edge_of_a_cell_is_not_in_the_next(row: int) -> None:
    """49 resources a cell: 49 times 1 / 49 is not 1."""
    jobs = Jobs(
        np.array(["x"], object), np.zeros(1), np.array([3.0]), np.array([49.0 * 30]), np.array([49]),
        np.zeros(1, np.int8), np.array([[49 * row, 49 * row + 48]]), np.zeros(1, np.int64),
    )  # fmt: skip
    (panel,) = gantt.gantt(seen(Run("w", "p", 4900, True, jobs), end=4900.0), labelled=False).rows[0]
    image = cells.cells(panel, panel.parts[0], 100, 100)
    inked = (image < 255).any(axis=2)[::-1]
    assert inked.sum() == 30 and inked[row, :30].all()


def test_colours_go_by_the_name_alone() -> None:
    named = np.array(["1", "2", "3", "4", "é\udcff"], object)
    assert palette.fill_of(named).tolist() == palette.fill_of(named[::-1]).tolist()[::-1] == [2, 0, 6, 1, 2]


def test_what_ended_before_its_time_and_what_never_began_are_marked() -> None:
    run = run_of(100)
    run.jobs.ending[3] = REJECTED
    picture = gantt.gantt(seen(run), labelled=True)
    (ends,), (rug,) = parts_of(picture, Ends), parts_of(picture, Rug)
    assert ends.label == "ended by the walltime (2)" and ends.x.tolist() == run.jobs.finish[[7, 57]].tolist()
    assert rug.label == "never began (1)" and abs(rug.x[0] - run.jobs.submit[3]) <= 30 * DAY / 500
    many = run_of(300_000)
    (ends,) = parts_of(gantt.gantt(seen(many), labelled=False), Ends)
    assert ends.label == "ended by the walltime, not marked (6,000)" and not len(ends.x)


def test_names_are_written_once_and_where_there_is_room() -> None:
    pieces = np.array([[0, 5], [7, 8], [0, 9], [9, 9]])
    jobs = Jobs(
        np.array(["split", "long name indeed", "low"], object), np.zeros(3), np.array([0.0, 10.0, 0.0]),
        np.array([10.0, 10.2, 90.0]), np.array([8, 10, 1]), np.zeros(3, np.int8), pieces, np.array([0, 0, 1, 2]),
    )  # fmt: skip
    (panel,) = gantt.gantt(seen(Run("w", "p", 10, True, jobs)), labelled=True).rows[0]
    bars = panel.parts[0]
    assert isinstance(bars, Rectangles)
    assert list(names.places(panel, bars, 1000, 500)) == [(45.0, 9.5, "low"), (5.0, 3.0, "split")]
    assert list(names.places(panel, bars, 1000, 100)) == [(5.0, 3.0, "split")]


@pytest.mark.parametrize("many", [False, True])
def test_load_keeps_the_area_in_its_columns(many: bool) -> None:
    run = run_of(4000 if many else 40)
    for picture, wanted in ((load.utilisation(seen(run)), run.jobs.finish - run.jobs.start),
                            (load.queue(seen(run)), run.jobs.start - run.jobs.submit)):  # fmt: skip
        part = parts_of(picture, Steps)[0]
        assert len(part.values) == (500 if many else len(part.edges) - 1) and len(part.values) <= 500
        assert (part.values * np.diff(part.edges)).sum() == pytest.approx(wanted.sum())
        assert many is (part.low is not None) and (not many or (part.low <= part.values + 1e-6).all())


def test_energy_in_units_that_can_be_read() -> None:
    picture = energy.energy(
        seen(powered(run_of(5), asleep=False), powered(run_of(5, policy="off"), asleep=True), begin=0.0, end=2 * DAY)
    )
    assert [row[0].y_title for row in picture.rows] == ["power, kW", "energy, GJ", "machines", "machines"]
    assert [layer[0] for stack in parts_of(picture, Stack) for layer in stack.layers] == [
        "computing", "idle", "computing", "idle", "sleeping"
    ]  # fmt: skip
    assert np.nanmax(parts_of(picture, Curve)[0].y) == pytest.approx(4.0) and len(STATES) == len(palette.STATES)
    assert picture.notes == "consumed in this time: 4.00 GJ easy, 4.00 GJ off"


def test_a_comparison_has_a_bar_for_each_number_that_is_known() -> None:
    runs = powered(run_of(50), asleep=False), run_of(80, policy="strict")
    picture = compare.compare(seen(*runs))
    assert [panel.title for panel in picture.rows[0]] == [
        "mean waiting", "mean slowdown", "utilisation", "energy", "makespan"
    ]  # fmt: skip
    bars = parts_of(picture, Bars)
    assert all(bar.names == ["easy", "strict"] for bar in bars) and list(bars[3].words) == ["4.00 GJ", "unknown"]
    assert bars[0].values[0] == pytest.approx((runs[0].jobs.start - runs[0].jobs.submit).mean())
    for curve in parts_of(picture, Curve):
        assert (np.diff(curve.x) >= 0).all() and (np.diff(curve.y) >= 0).all() and curve.y[-1] == 100.0


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
    assert compare.spell(values) == words


def test_what_is_not_known_of_a_run_that_is_over_is_not_drawn() -> None:
    short, long = powered(run_of(3, days=1.0), asleep=False), powered(run_of(3, days=90.0, policy="b"), asleep=False)
    picture = energy.energy(seen(short, long, begin=0.0))
    ends = [stack.edges[-1] for stack in parts_of(picture, Stack)]
    assert ends == [2 * DAY, pytest.approx(long.jobs.finish.max())]
    late = energy.energy(seen(short, begin=50 * DAY)).rows[-1][0]
    assert late.empty == "nothing is known of this time" and parts_of(Picture("", [[late]]), Stack)[0].layers == []


def test_runs_go_by_policy_and_where_two_have_the_same_by_folder_too() -> None:
    runs = run_of(1), run_of(2, machine=7), run_of(3, policy="")
    shown = seen(*runs).shown
    assert [each.label for each in shown] == ["easy (run0)", "easy (run1)", "run2"]
    assert len({each.colour for each in shown}) == 3
    assert headline("Queue", shown) == "Queue: trace on 7 and 1,000 resources"
    assert headline("Queue", shown[:1]) == "Queue: trace on 1,000 resources, policy easy"


@pytest.mark.parametrize(
    ("begin", "end", "x"),
    [(None, None, (0.0, 1.0)), (5.0, None, (5.0, 6.0)), (None, -3.0, (-4.0, -3.0)), (2.0, 9.0, (2.0, 9.0))],
)
def test_a_time_that_was_asked_for(begin: float | None, end: float | None, x: tuple[float, float]) -> None:
    assert seen(run_of(0), begin=begin, end=end).x == x


@pytest.mark.parametrize(
    ("span", "name"), [(1.0, "seconds"), (180.0, "minutes"), (10799.0, "minutes"), (3 * DAY, "days")]
)
def test_the_unit_of_time_goes_by_the_span(span: float, name: str) -> None:
    assert units.of_time(span).name == name


def test_the_unit_of_power_goes_by_the_largest() -> None:
    assert [units.of_amount(value, "W").name for value in (0.0, 999.0, 1e3, 2.5e7)] == ["W", "W", "kW", "MW"]


PICTURES: dict[str, Callable[[View], Picture]] = {
    "gantt": lambda view: gantt.gantt(view, labelled=True),
    "utilisation": load.utilisation,
    "queue": load.queue,
    "energy": energy.energy,
    "compare": compare.compare,
}


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("count", [0, 2500])
def test_everything_can_be_drawn(tmp_path: Path, kind: str, count: int) -> None:
    runs = powered(run_of(count), asleep=True), powered(run_of(count, 7, policy="a$b$ <i>"), asleep=False)
    picture = PICTURES[kind](seen(*runs))
    text = "".join(drawn(picture, tmp_path / "x.svg").itertext())
    assert picture.title in text and ("a$b$ <i>" in text or count == 0)
    assert ("no job ran" in text) is (count == 0 and kind != "energy")
    sheet.draw(picture, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert_self_contained(page.html(picture))


def ours(text: str) -> str:
    """Of a page: what is not Bokeh's own code."""
    head, _, rest = text.partition("<script")
    return head + rest.rpartition('type="application/json"')[2]


def assert_self_contained(text: str) -> None:
    """Nothing is fetched, and no name is taken for a tag."""
    assert not re.findall(r"<(?:script|link)[^>]*\b(?:src|href)=", text)
    assert "</html>" in ours(text) and not {"<i>", "<img", "http"} & set(re.findall("<i>|<img|http", ours(text)))


def test_a_page_of_many_jobs_is_small_and_of_very_many_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = gantt.gantt(seen(run_of(30_000)), labelled=False)
    whole = page.html(picture)
    assert len(whole) < 5_000_000 and '"Quad"' in ours(whole) and '"ImageRGBA"' not in ours(whole)
    monkeypatch.setattr(things, "MOST_BARS", 1000)
    cut = ours(page.html(picture))
    assert '"Quad"' not in cut and '"ImageRGBA"' in cut


def test_a_drawing_is_the_same_when_drawn_again(tmp_path: Path) -> None:
    picture = gantt.gantt(seen(run_of(2500)), labelled=True)
    for name in ("a.svg", "b.svg"):
        sheet.draw(picture, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()

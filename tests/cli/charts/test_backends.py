"""The three backends on every picture: they can be opened, show the same data, and lose no name or label."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.charts import picture_files, rectangles, terminal_backend
from pilotfish.cli.charts.figure import Area, Axis, Bars, Boxes, Figure, Line, Panel, Points
from pilotfish.cli.charts.replay_figures import replay_gantt
from pilotfish.formats.text import width
from tests.cli.charts.samples import pictures, planned, random_plan, run_of, seen
from tests.support import effort

if TYPE_CHECKING:
    from bokeh.resources import INLINE
    from matplotlib.patches import PathPatch

    from pilotfish.cli.charts import bokeh_backend, matplotlib_backend

SVG = "{http://www.w3.org/2000/svg}"
KINDS = tuple(pictures(3))


@pytest.fixture(scope="module", autouse=True)
def _backends() -> None:
    """Import what takes seconds to import when it is tested, and not in each worker that collects the tests."""
    global INLINE, PathPatch, bokeh_backend, matplotlib_backend
    from bokeh.resources import INLINE
    from matplotlib.patches import PathPatch

    from pilotfish.cli.charts import bokeh_backend, matplotlib_backend


@cache
def svg(kind: str, count: int) -> ElementTree.Element:
    return ElementTree.fromstring(matplotlib_backend.picture(pictures(count)[kind], "svg"))


@cache
def page(kind: str, count: int) -> str:
    return bokeh_backend.page(pictures(count)[kind])


def texts(root: ElementTree.Element) -> str:
    return "\n".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))


def own_part(page: str) -> str:
    """A page without Bokeh's own code."""
    head, _, page_end = page.partition("<script")
    return head + page_end.rpartition('type="application/json"')[2]


MANY = 400


#: The calibration is the same picture whatever the number of jobs.
DRAWN = [(kind, count) for kind in KINDS for count in (0, MANY) if (kind, count) != ("calibration", 0)]


@pytest.mark.parametrize(("kind", "count"), effort.some(DRAWN))
def test_every_picture_can_be_drawn_by_every_backend(tmp_path: Path, kind: str, count: int) -> None:
    figure = pictures(count)[kind]
    root = svg(kind, count)
    words = texts(root)
    assert figure.title in words and not list(root.iter(f"{SVG}script"))
    for panel in figure.panels():
        assert panel.title in words and panel.y.label in words and panel.empty in words
    assert "\x1b" not in words and "\u202e" not in words
    html = page(kind, count)
    assert not re.findall(r"<(?:script|link)[^>]*\b(?:src|href)=", html)
    assert "</html>" in html and not set(re.findall("<i>|<img|http|<script>&", own_part(html)))
    scripts = [script for script in INLINE.js_raw if re.search(r"BEGIN bokeh(-widgets)?\.min", script)]
    assert len(scripts) == 2 and all(
        script in html for script in scripts
    )  # a browser shows nothing if a letter is wrong
    forms = {".png": b"\x89PNG"} if count else {}
    forms |= {".pdf": b"%PDF"} if count and kind in ("plan", "calibration") else {}  # it embeds fonts, which takes long
    for ending, magic in forms.items():
        picture_files.save(figure, tmp_path / f"x{ending}")
        data = (tmp_path / f"x{ending}").read_bytes()
        assert data.startswith(magic) and 3000 < len(data) < 3_000_000


@pytest.mark.parametrize("kind", effort.some(KINDS, 1))
@pytest.mark.parametrize("cells", [40, 80])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("count", [0, 60, MANY])
def test_terminal_lines_fit(kind: str, cells: int, ascii_only: bool, count: int) -> None:
    lines = terminal_backend.draw(pictures(count)[kind], cells, ascii_only=ascii_only)
    for line in lines:
        assert width(line.plain) <= cells and "\x1b" not in line.plain and "\n" not in line.plain
        assert not ascii_only or line.plain.isascii()
    assert len(lines) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_matplotlib_and_bokeh_draw_the_same_numbers(kind: str) -> None:
    """Every line, point, bar and box of the model is in both, at the same places."""
    figure = pictures(60)[kind]
    axes: list[Any] = matplotlib_backend.build(figure).axes[figure.bar is not None :]
    plots = [plot for row in bokeh_backend.build(figure).children[1:] for plot in getattr(row, "children", [row])]
    panels = list(figure.panels())
    assert len(axes) == len(plots) == len(panels)
    for axis, plot, panel in zip(axes, plots, panels, strict=True):
        data = [renderer.data_source.data for renderer in plot.renderers if hasattr(renderer, "data_source")]
        assert axis.get_ylabel() == panel.y.label == (plot.yaxis[0].axis_label or "")
        for series in panel.series:
            if isinstance(series, Line) and not series.stairs:
                x, y = panel.x.place(series.x), series.y
                assert any(_same(line.get_xdata(), x) and _same(line.get_ydata(), y) for line in axis.lines)
                assert any("y" in columns and _same(columns["x"], x) and _same(columns["y"], y) for columns in data)
            elif isinstance(series, Line):
                x, y = panel.x.place(series.x), series.y
                assert any(_same(line.get_xdata(), x) and _same(line.get_ydata(), y) for line in axis.lines)
                assert any("y" in columns and _same(np.unique(columns["x"]), np.unique(x))
                           and _same(np.unique(columns["y"]), np.unique(y)) for columns in data)  # fmt: skip
            elif isinstance(series, Points):
                x, y = panel.x.place(series.x), series.y
                assert any(_same(line.get_xdata(), x) and _same(line.get_ydata(), y) for line in axis.lines)
                assert any("y" in columns and _same(columns["x"], x) and _same(columns["y"], y) for columns in data)
            elif isinstance(series, Bars):
                widths = [patch.get_width() for patch in axis.patches]
                assert _same(widths, np.nan_to_num(series.values))
                assert any(
                    "right" in columns and _same(columns["right"], np.nan_to_num(series.values)) for columns in data
                )
            elif isinstance(series, Boxes):
                paths = [shape.get_path() for shape in axis.patches if isinstance(shape, PathPatch)]
                filled = [shape.get_facecolor()[3] > 0 for shape in axis.patches if isinstance(shape, PathPatch)]
                corners = [len(path.vertices) for path, full in zip(paths, filled, strict=True) if full]
                assert sum(corners) == 5 * len(series)
                (source,) = [columns for columns in data if "fill" in columns][:1]
                assert _same(source["left"], panel.x.place(series.left)) and _same(source["high"], series.high)
                assert source["name"] == series.names[series.job].tolist()


def _same(left: object, right: object) -> bool:
    first, second = np.asarray(left, float), np.asarray(right, float)
    return first.shape == second.shape and bool(np.allclose(first, second, equal_nan=True))


@pytest.mark.parametrize("kind", effort.some(KINDS))
def test_legends_name_every_series(kind: str) -> None:
    figure = pictures(MANY)[kind]
    words = texts(svg(kind, MANY))
    html = own_part(page(kind, MANY))
    terminal = "\n".join(line.plain for line in terminal_backend.draw(figure, 120))
    for entry in figure.legend():
        assert entry.label in words
        label = escape(entry.label)
        assert any(text in html for text in (label, escape(label), json.dumps(label)[1:-1]))
        assert entry.kind not in ("line", "area") or entry.label in terminal


@pytest.mark.parametrize(("count", "most_bytes"), [(30, 60_000), (1_900, 300_000), (30_000, 1_500_000)])
def test_a_chart_of_many_jobs_stays_small(count: int, most_bytes: int) -> None:
    data = matplotlib_backend.picture(replay_gantt(seen(run_of(count)), labelled=False), "svg")
    tags = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(data).iter()]
    assert len(data) < most_bytes and len(tags) < 400
    assert tags.count("image") == (count > rectangles.FEW)


@pytest.mark.long
def test_a_page_of_many_jobs_is_small_and_a_raster_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = replay_gantt(seen(run_of(30_000)), labelled=False)
    html = bokeh_backend.page(figure)
    assert len(html) < 5_000_000 and '"Quad"' in own_part(html) and '"ImageRGBA"' not in own_part(html)
    monkeypatch.setattr(bokeh_backend, "MOST_BOXES", 1000)
    cut = own_part(bokeh_backend.page(figure))
    assert '"Quad"' not in cut and '"ImageRGBA"' in cut


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_drawing_is_reproducible(form: str) -> None:
    figure = replay_gantt(seen(run_of(200)), labelled=True)
    assert matplotlib_backend.picture(figure, form) == matplotlib_backend.picture(figure, form)


def test_names_stay_within_their_boxes() -> None:
    jobs = [(f"mProject_{i:05}", ("a",), 9.0 * i, 9.0 * i + 9, 1.0, ()) for i in range(6)]
    jobs += [(f"s{i}", ("a",), 54 + 0.1 * i, 54.1 + 0.1 * i, 1.0, ()) for i in range(4)]
    axes = matplotlib_backend.build(planned(jobs, ("a",)).chart()).axes[-1]
    sheet = axes.figure
    sheet.canvas.draw()
    names = [text for text in axes.texts if text.get_text()]
    assert len(names) == 6
    for text in names:
        box = text.get_window_extent().transformed(axes.transData.inverted())
        start = 9 * (box.x0 // 9)
        assert start <= box.x0 and box.x1 <= start + 9


def test_the_page_shows_facts_under_the_pointer() -> None:
    page = own_part(bokeh_backend.page(random_plan(3, 2).chart()))
    for title in ("nodes", "run time alone", "slowdown by contention", "next best", "critical chain"):
        assert f'["{title}","@fact' in page.replace('", "', '","')


def test_terminal_draws_nodes_names_and_time() -> None:
    chart = planned(
        [
            ("prepare", ("a",), 0.0, 10.0, 1.0, ()),
            ("align", ("a",), 10.0, 20.0, 1.5, ("prepare",)),
            ("beside", ("a",), 10.0, 20.0, 1.5, ("prepare",)),
        ],
        ("a", "b"),
    ).chart()
    lines = [line.plain for line in terminal_backend.draw(chart, 43, headed=False)]
    assert lines == [
        "a │█prepare███████████▌█align█████████████▌",
        "  │                    █beside████████████▌",
        "b │",
        "  └────────────────────┴──────────────────┴",
        "   0                 10 s              20 s",
    ]
    text = [line.plain for line in terminal_backend.draw(chart, 60, ascii_only=True, headed=False)]
    assert text[0].startswith("a |[prepare=") and "[align=" in text[0]
    assert text[1].startswith("  | ") and "[beside=" in text[1]
    assert text[2] == "b |"
    assert "10 s" in text[-1] and text[-1].endswith("20 s")


def test_terminal_counts_jobs_that_do_not_fit() -> None:
    jobs = [(f"j{i}", ("a",), 0.0, 10.0, 1.0, ()) for i in range(9)]
    chart = planned(jobs, ("a",)).chart()
    lines = [line.plain for line in terminal_backend.draw(chart, 40, headed=False)]
    assert lines[terminal_backend.MAX_LANES].strip(" │") == "5" * 37
    wide = [line.plain for line in terminal_backend.draw(chart, 80, headed=False)]
    assert wide[-1] == "digits: how many more jobs run there at that time; + stands for 10 or more"
    crowded = terminal_backend.draw(random_plan(1000, 40).chart(), 80, headed=False)
    assert "8 further nodes" in crowded[-1].plain and len(crowded) <= 4 * terminal_backend.MAX_ROWS


def test_terminal_draws_the_longest_of_the_jobs_that_do_not_fit() -> None:
    jobs = [(f"j{i}", ("a",), 0.0, 10.0, 1.0, ()) for i in range(6)]
    jobs += [("night", ("a",), 5.0, 40.0, 1.0, ()), ("day", ("a",), 0.0, 30.0, 1.0, ())]
    lines = [line.plain for line in terminal_backend.draw(planned(jobs, ("a",)).chart(), 44, headed=False)]
    drawn = lines[: terminal_backend.MAX_LANES]
    assert sum("night" in line for line in drawn) == sum("day" in line for line in drawn) == 1
    assert sum(f"j{i}" in line for i in range(6) for line in drawn) == 2
    assert lines[terminal_backend.MAX_LANES].strip(" │") == "4" * 10  # none while only the long ones run


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=40), st.integers(1, 5))
def test_jobs_of_a_lane_do_not_overlap_and_a_hidden_one_fits_in_none(spans: list[tuple[int, int]], limit: int) -> None:
    jobs = [(f"j{i}", ("a",), float(begin), float(begin + long), 1.0, ()) for i, (begin, long) in enumerate(spans)]
    boxes = next(iter(planned(jobs, ("a",)).chart().panels())).of(Boxes)[0]
    order = np.lexsort((boxes.right, boxes.left)).tolist()
    placed = terminal_backend._longest([(0, i) for i in order], boxes, limit)
    assert [i for _, i in placed] == order
    lanes = [[(boxes.left[i], boxes.right[i]) for lane, i in placed if lane == n] for n in range(limit)]
    assert all(span[1] <= successor[0] for lane in lanes for span, successor in pairwise(sorted(lane)))
    for lane, i in placed:
        if lane == limit:
            assert all(
                any(a < boxes.right[i] and boxes.left[i] < b for a, b in spans_of_lane) for spans_of_lane in lanes
            )


@pytest.mark.parametrize("colour", [False, True])
def test_terminal_names_idle_nodes_and_explains_colours_if_shown(colour: bool) -> None:
    names = tuple(f"n{i}" for i in range(1, 51))
    chart = planned([("a", ("n3",), 0.0, 10.0, 1.0, ())], names).chart()
    lines = [line.plain for line in terminal_backend.draw(chart, 80, colour=colour, headed=False)]
    assert lines[3] == "idle: n[1-2,4-50]" and len(lines) == 4 + colour
    assert not colour or ("slowdown by contention 1 " in lines[4] and "bold: critical chain" in lines[4])


def test_terminal_plots_values_in_the_right_cells() -> None:
    x = np.array([0.0, 50.0, 100.0])
    steps = Line("busy", "#000000", x, np.array([0.0, 100.0, 100.0]), stairs=True)
    band = Area("range", "#000000", x, x, x, faint=True)
    panel = Panel(Axis("time (s)", 0.0, 100.0), Axis("cores", 0.0, 100.0), [steps, band])
    lines = [line.plain for line in terminal_backend.draw(Figure("Load", [[panel]]), 46)]
    plot = [line.partition("│")[2] for line in lines if "│" in line]
    assert len(plot) == 10 and plot[0].strip() == "●" * 21 and plot[0].index("●") == 20
    assert plot[-1].startswith("●" * 20) and lines[:2] == ["Load", "● busy"] and lines[-1].strip() == "time (s)"
    assert lines[-2].split()[0] == "0" and lines[-2].endswith("100")


def test_a_page_has_no_empty_area_which_a_browser_never_ends_to_draw() -> None:
    none, x = np.array([]), np.array([0.0, 1.0])
    series = [Area("key of a colour", "#000000", none, none, none), Area("band", "#000000", x, x, x)]
    panel = Panel(Axis("time (s)", 0.0, 1.0), Axis("cores", 0.0, 1.0), series)
    plot = bokeh_backend.build(Figure("Load", [[panel]])).children[1]
    assert [renderer.data_source.data["x"].tolist() for renderer in plot.renderers] == [[0.0, 1.0]]


@pytest.mark.parametrize("words", ["1", "1.12x, 65 jobs, 92 % inside"])
def test_the_words_behind_the_longest_bar_have_room_on_a_page(words: str) -> None:
    bars = Bars(("a", "b"), ("#000000", "#000000"), (2.0, 1.0), (words, "1"))
    panel = Panel(Axis("", 0.0, 2.0), Axis("", 0.0, 2.0), [bars])
    plot = bokeh_backend.build(Figure("Bars", [[panel]])).children[1]
    room = plot.frame_width * (1.0 - 2.0 / plot.x_range.end)
    assert room >= 7 * len(words)


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf", ".html"])
def test_a_missing_package_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    from pilotfish.simulate.errors import PilotfishError

    picture_files.check(Path(f"x{ending}"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PilotfishError, match=r"needs (matplotlib|bokeh): pip install 'pilotfish\[plot\]'"):
        picture_files.check(Path(f"x{ending}"))

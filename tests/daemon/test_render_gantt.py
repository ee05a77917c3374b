"""The Gantt chart: its geometry, and what terminal, SVG, HTML and PNG make of it."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.render import chart, page, png, svg, tables, terminal
from pilotfish.daemon.render.text import width
from pilotfish.simulate.errors import PilotfishError
from pilotfish.simulate.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.plan import Plan, PlannedJob, RunnerUp
from pilotfish.simulate.platform import Cluster, Node, NodeType

NAMES = (
    "plain",
    "作業" * 30,
    "\x1b[2J\x1b[31m",
    "[red]x[/red]",
    "<script>&\"'",
    "a\nb",
    "\u202e" + "x" * 200,
)
SVG = "{http://www.w3.org/2000/svg}"


def made(jobs: list[tuple], nodes: tuple[str, ...]) -> SimpleNamespace:
    """A plan of (id, nodes, start, finish, slowdown, after)."""
    kind = NodeType("half", 8, 2**34, 8e10)
    cluster = Cluster("lab", tuple(Node(name, kind) for name in nodes))
    planned = tuple(
        PlannedJob(name, on, start, finish, 1.0, slow, why=RunnerUp((nodes[-1],), 3.4))
        for name, on, start, finish, slow, _ in jobs
    )
    makespan = max((job.finish_time for job in planned), default=0.0)
    plan = Plan("dag-1", "lab", "mom", 0, makespan, None, makespan * 0.9, 0.002, False, 7, planned)
    profile = Profile((ThreadGroup(1, 1.0),))
    workflow = Workflow("dag-1", tuple(Job(job[0], profile, after=job[5]) for job in jobs))
    return SimpleNamespace(
        plan=plan, workflow=workflow, cluster=cluster, chart=chart.build(plan, workflow, cluster)
    )


def many(count: int, nodes: int, seed: int = 1) -> SimpleNamespace:
    draw = random.Random(seed)
    names = tuple(f"s{i}" for i in range(1, nodes + 1))
    jobs = []
    for i in range(count):
        start, on = draw.uniform(0, 900), draw.choice(names)
        name = f"{NAMES[i % len(NAMES)]}{i}"
        jobs.append((name, (on,), start, start + draw.expovariate(1 / 40), draw.uniform(1, 4), ()))
    return made(jobs, names)


spans = st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 50)), max_size=40)


@given(spans)
@settings(max_examples=50, deadline=None)
def test_lanes_never_overlap_and_are_as_few_as_possible(spans):
    jobs = [PlannedJob(str(i), ("n",), s, s + d, d, 1.0) for i, (s, d) in enumerate(sorted(spans))]
    lanes = chart.stack(jobs)
    for i, one in enumerate(jobs):
        for other, lane in zip(jobs[:i], lanes, strict=False):
            assert lane != lanes[i] or other.finish_time <= one.start_time
    most = max((sum(o.start_time <= j.start_time < o.finish_time for o in jobs) for j in jobs), default=0)
    assert len(set(lanes)) == most


@given(st.floats(1e-3, 1e7), st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_ticks_are_few_round_and_inside(end, most):
    times = [t for t, _ in chart.ticks(end, most)]
    labels = [label for _, label in chart.ticks(end, most)]
    assert times[0] == 0 and times[-1] <= end * (1 + 1e-6) and len(times) <= most + 1
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("end", "labels"),
    [
        (1.5, ["0", "0.5 s", "1.0 s", "1.5 s"]),
        (90.0, ["0", "20 s", "40 s", "60 s", "80 s"]),
        (1500.0, ["0", "5 min", "10 min", "15 min", "20 min", "25 min"]),
        (20000.0, ["0", "2 h", "4 h"]),
    ],
)
def test_tick_labels(end, labels):
    assert [label for _, label in chart.ticks(end, 5)] == labels


def test_the_critical_chain_follows_predecessors_and_what_freed_a_node():
    found = made(
        [
            ("first", ("a",), 0.0, 4.0, 1.0, ()),
            ("short", ("b",), 0.0, 1.0, 1.0, ()),
            ("waits", ("a",), 4.0, 9.0, 1.0, ("short",)),
            ("last", ("b",), 9.0, 12.0, 1.0, ("waits", "short")),
            ("aside", ("b",), 1.0, 3.0, 1.0, ("short",)),
        ],
        ("a", "b"),
    ).chart
    assert [job.id for job in found.chain] == ["first", "waits", "last"]
    assert {bar.job.id for row in found.rows for bar in row.bars if bar.critical} == {
        "first",
        "waits",
        "last",
    }


def test_the_scale_runs_from_cold_to_hot():
    found = many(50, 3).chart
    assert found.heat(1.0) == 0 and found.heat(found.hottest) == 1
    assert found.colour(1.0) != found.colour(found.hottest)
    assert found.hottest >= max(job.contention_slowdown for job in found.plan.jobs)


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize(("jobs", "nodes"), [(0, 2), (1, 1), (7, 3), (1000, 4), (1000, 40)])
def test_terminal_lines_fit_80_cells(jobs, nodes, ascii_only, colour):
    lines = terminal.gantt(many(jobs, nodes).chart, 80, ascii_only=ascii_only, colour=colour)
    for line in lines:
        assert width(line.plain) <= 80
        assert "\x1b" not in line.plain and "\n" not in line.plain
        assert not ascii_only or colour or line.plain.isascii()
    assert len(lines) <= 4 * terminal.MAX_ROWS


def test_terminal_draws_nodes_names_and_time():
    found = made(
        [
            ("prepare", ("a",), 0.0, 10.0, 1.0, ()),
            ("align", ("a",), 10.0, 20.0, 1.5, ("prepare",)),
            ("beside", ("a",), 10.0, 20.0, 1.5, ("prepare",)),
        ],
        ("a", "b"),
    )
    lines = [line.plain for line in terminal.gantt(found.chart, 43)]
    assert lines == [
        "a │█prepare███████████▌█align█████████████▌",
        "  │                    █beside████████████▌",
        "b │",
        "  └────────────────────┴──────────────────┴",
        "   0                 10 s              20 s",
    ]
    text = [line.plain for line in terminal.gantt(found.chart, 60, ascii_only=True)]
    assert text[0].startswith("a |[prepare=") and "[align=" in text[0]
    assert text[1].startswith("  | ") and "[beside=" in text[1]
    assert text[2] == "b |"
    assert "10 s" in text[-1] and text[-1].endswith("20 s")


def test_terminal_counts_what_does_not_fit():
    jobs = [(f"j{i}", ("a",), 0.0, 10.0, 1.0, ()) for i in range(9)]
    lines = [line.plain for line in terminal.gantt(made(jobs, ("a",)).chart, 40)]
    assert lines[terminal.MAX_LANES].strip(" │") == "5" * 37
    wide = [line.plain for line in terminal.gantt(made(jobs, ("a",)).chart, 80)]
    assert wide[-1] == "digits: how many more jobs run there at that time; + stands for 10 or more"
    crowded = terminal.gantt(many(1000, 40).chart, 80)
    assert "8 further nodes" in crowded[-1].plain


def test_idle_nodes_are_named_in_a_line_and_take_no_rows():
    names = tuple(f"n{i}" for i in range(1, 51))
    found = made([("a", ("n3",), 0.0, 10.0, 1.0, ())], names)
    assert [row.node for row in found.chart.rows] == ["n3"] and len(found.chart.idle) == 49
    lines = [line.plain for line in terminal.gantt(found.chart, 80)]
    assert lines[-1] == "idle: n[1-2,4-50]" and len(lines) == 4
    assert "1 job on 50 nodes (49 idle)" in tables.subtitle(found.plan, found.workflow, found.cluster)
    few = made([("a", ("n3",), 0.0, 10.0, 1.0, ())], names[:5])
    assert len(few.chart.rows) == 5 and not few.chart.idle


def test_names_stay_within_their_bars_and_outlines_within_narrow_ones():
    jobs = [(f"mProject_{i:05}", ("a",), 9.0 * i, 9.0 * i + 9, 1.0, ()) for i in range(12)]
    jobs += [(f"s{i}", ("a",), 108 + 0.1 * i, 108.1 + 0.1 * i, 1.0, ()) for i in range(4)]
    root = ElementTree.fromstring(svg.svg(made(jobs, ("a",)).chart))
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    names = [text for text in root.iter(f"{SVG}text") if "name" in text.get("class", "").split()]
    for bar, name in zip(bars, names, strict=False):
        assert float(name.get("x")) + 7.2 * len(name.text) <= float(bar.get("x")) + float(bar.get("width"))
    assert len(names) == 12 and all("stroke-width" in bar.get("style") for bar in bars[12:])


@pytest.mark.parametrize(("jobs", "nodes"), [(0, 1), (1, 1), (1000, 40)])
def test_svg_is_wellformed_and_names_are_only_text(jobs, nodes):
    found = many(jobs, nodes)
    root = ElementTree.fromstring(svg.svg(found.chart, "policy <mom> & \x1b"))
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert len(bars) == jobs
    assert not list(root.iter(f"{SVG}script"))
    text = "".join(root.itertext())
    assert "\x1b" not in text and "\u202e" not in text
    if jobs == 1000:
        assert "<script>&\"'4" in text
        width_, height = (float(part) for part in root.get("viewBox").split()[2:])
        assert width_ == 1280 and height < 3000


def test_svg_bars_lie_where_the_plan_says():
    found = made([("one", ("a",), 0.0, 5.0, 1.0, ()), ("two", ("b",), 5.0, 10.0, 3.0, ("one",))], ("a", "b"))
    root = ElementTree.fromstring(svg.svg(found.chart))
    one, two = (rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None)
    assert float(one.get("x")) + float(one.get("width")) == pytest.approx(float(two.get("x")), abs=0.02)
    assert float(one.get("y")) < float(two.get("y"))
    assert one.get("fill") != two.get("fill") and one.get("class") == "crit"
    assert "next best: b, +3.40 s" in two.findtext(f"{SVG}title")
    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "link"]) == 1


def test_html_is_one_page_that_holds_the_chart():
    text = page.html(many(20, 3).chart, "x")
    assert text.startswith("<!DOCTYPE html>") and text.count("<svg") == 1 and text.count("<script>") == 1
    assert "prefers-color-scheme:dark" in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "height:auto" in text and "100vh" not in text  # what is higher than the window is scrolled, not shrunk


def test_png(tmp_path: Path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "plan.png"
    png.png(many(30, 3).chart, target, "cost $x_1$ {")
    assert target.read_bytes().startswith(b"\x89PNG")


def test_png_without_matplotlib_says_what_to_do(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PilotfishError, match=r"pilotfish\[plot\].*\.svg"):
        png.png(many(1, 1).chart, tmp_path / "plan.png")

"""The Gantt chart of a plan as data: lanes, rows, the critical chain, the scale of slowdowns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.charts.colours import HEAT, rgb
from pilotfish.cli.charts.figure import Boxes, Figure, Line
from pilotfish.cli.charts.plan_gantt import critical_chain, heat_of, hottest, lanes
from pilotfish.cli.output import tables
from tests.cli.charts.samples import planned, random_plan

spans = st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 50)), max_size=40)


def boxes_of(chart: Figure) -> Boxes:
    (panel,) = chart.panels()
    return panel.of(Boxes)[0]


@given(spans)
@settings(max_examples=50)
def test_lanes_never_overlap_and_are_as_few_as_possible(spans):
    jobs = [(s, s + d) for s, d in sorted(spans)]
    lane_numbers = lanes(jobs)
    for i, job in enumerate(jobs):
        for earlier, lane in zip(jobs[:i], lane_numbers, strict=False):
            assert lane != lane_numbers[i] or earlier[1] <= job[0]
    most = max((sum(o[0] <= j[0] < o[1] for o in jobs) for j in jobs), default=0)
    assert len(set(lane_numbers)) == most


def test_the_critical_chain_follows_predecessors_and_jobs_that_freed_a_node():
    drawing = planned(
        [
            ("first", ("a",), 0.0, 4.0, 1.0, ()),
            ("short", ("b",), 0.0, 1.0, 1.0, ()),
            ("waits", ("a",), 4.0, 9.0, 1.0, ("short",)),
            ("last", ("b",), 9.0, 12.0, 1.0, ("waits", "short")),
            ("aside", ("b",), 1.0, 3.0, 1.0, ("short",)),
        ],
        ("a", "b"),
    )
    chain = critical_chain(drawing.plan, drawing.workflow)
    assert [job.id for job in chain] == ["first", "waits", "last"]
    chart = drawing.chart()
    boxes = boxes_of(chart)
    assert boxes.label == "critical chain (3 jobs)"
    assert set(boxes.names[boxes.job[boxes.strong]]) == {"first", "waits", "last"}
    (link,) = (panel.of(Line)[0] for panel in chart.panels())
    assert link.x[:2].tolist() == [9.0, 9.0] and link.y[:2].tolist() == [1.5, 0.5]


def test_boxes_lie_where_the_plan_says():
    chart = planned([("one", ("a",), 0.0, 5.0, 1.0, ()), ("two", ("b",), 5.0, 10.0, 3.0, ("one",))], ("a", "b")).chart()
    boxes = boxes_of(chart)
    assert list(zip(boxes.left, boxes.right, boxes.low, boxes.high, strict=True)) == [(0, 5, 1, 2), (5, 10, 0, 1)]
    assert boxes.fill[0] < boxes.fill[1]
    (panel,) = chart.panels()
    assert [(row.name, row.low, row.high) for row in panel.rows] == [("a", 1.0, 2.0), ("b", 0.0, 1.0)]
    facts = {fact.title: fact.values.tolist() for fact in boxes.facts}
    assert facts["next best"] == ["b, +3.40 s"] * 2 and facts["slowdown by contention"] == ["1.00", "3.00"]


@pytest.mark.parametrize(("jobs", "nodes"), [(0, 1), (1, 1), (1000, 40)])
def test_every_job_has_a_box_in_its_row(jobs, nodes):
    drawing = random_plan(jobs, nodes)
    (panel,) = drawing.chart().panels()
    boxes = panel.of(Boxes)[0]
    assert len(boxes) == jobs and bool(panel.empty) is (jobs == 0)
    for name, low in zip(boxes.facts[0].values[boxes.job], boxes.low, strict=True):
        (row,) = (row for row in panel.rows if row.low <= low < row.high)
        assert row.name == name


def test_the_scale_runs_from_cold_to_hot_and_gets_darker():
    plan = random_plan(50, 3).plan
    high = hottest(plan)
    assert heat_of(1.0, high) == 0 and heat_of(high, high) == 1
    assert high >= max(job.contention_slowdown for job in plan.jobs)
    light = [np.dot(rgb(colour), (0.299, 0.587, 0.114)) for colour in HEAT]
    assert light == sorted(light, reverse=True) and light[0] - light[-1] > 150


def test_idle_nodes_are_named_in_a_note_and_take_no_rows():
    names = tuple(f"n{i}" for i in range(1, 51))
    drawing = planned([("a", ("n3",), 0.0, 10.0, 1.0, ())], names)
    (panel,) = drawing.chart().panels()
    assert [row.name for row in panel.rows] == ["n3"] and drawing.chart().notes == ["idle: n[1-2,4-50]"]
    assert "1 job on 50 nodes (49 idle)" in tables.subtitle(drawing.plan, drawing.workflow, drawing.cluster)
    small_chart = planned([("a", ("n3",), 0.0, 10.0, 1.0, ())], names[:5]).chart()
    assert len(next(small_chart.panels()).rows) == 5 and not small_chart.notes


def test_one_long_job_leaves_the_others_legible():
    jobs = [(f"j{i}", ("a",), 10.0 * i, 10.0 * i + 10, 1.0, ()) for i in range(6)]
    chart = planned([*jobs, ("long", ("b",), 0.0, 9000.0, 1.0, ())], ("a", "b")).chart()
    (panel,) = chart.panels()
    low, high = panel.x_range
    first, last = panel.x.place([0.0, 60.0])
    assert (last - first) / (high - low) > 0.8
    assert "the time axis is cut by" in chart.notes[0] and panel.x.time.ticks(6)[-1][1] == "2:30 h"

"""The picture of a what-if: the numbers of the report, classes in order, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.cli.charts.effect_figure import MOST_SCENARIOS, ShownEffect, effect_figure
from pilotfish.cli.charts.figure import Bars, Boxes, Figure, Line, Panel, Strokes
from pilotfish.cli.output.text import class_place
from pilotfish.simulate.slurm.site import Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_effect import effect
from pilotfish.simulate.slurm.site_outcome import HOUR_S, SiteOutcome

DAYS, JOBS = 12, 240
SPAN_S = DAYS * 86_400.0
SITE = Site(
    SiteRules(),
    (SiteNode("n1", cpus=4, cores=4),),
    (SitePartition("batch", ("n1",), is_default=True),),
    jobs=tuple(
        SiteJob(f"{row}", f"j{row}", f"u{row % 7}", "x", ("low", "high")[row % 2], ("batch",), row * SPAN_S / JOBS,
                limit_min=(20, 100, 2000)[row % 3], min_cpus=(1, 30, 4)[row % 3])
        for row in range(JOBS)
    ),
)  # fmt: skip


def outcome(wait_s: float, power_w: float | None = None) -> SiteOutcome:
    hours = 24 * DAYS
    waits = np.where(np.arange(JOBS) % 2, wait_s, 60.0)
    joules = None if power_w is None else np.full(hours, power_w * HOUR_S)
    return SiteOutcome(waits, waits, np.ones(JOBS), np.zeros(JOBS), np.full(hours, HOUR_S), joules, 1.0, 4, 1, SPAN_S)


def figure(number: int = 1, power_w: float | None = None) -> Figure:
    before = [outcome(60.0, power_w)]
    shown = []
    for place in range(number):
        after = [outcome(60.0 + 3600.0 * (place + 1), power_w and power_w / 2)]
        shown.append(ShownEffect(f"s{place}", effect(SITE, before, after), before, after))
    return effect_figure("here", 0.0, shown, 10.0, "as it is")


def panel(drawn: Figure, title: str) -> Panel:
    return next(one for one in drawn.panels() if title in one.title)


def test_a_class_has_its_interval_and_its_difference() -> None:
    by_qos = panel(figure(), "QOS")
    (boxes,), strokes = by_qos.of(Boxes), by_qos.of(Strokes)
    names = [row.name for row in by_qos.rows]
    assert sorted(names) == ["high", "low"]
    assert boxes.left[names.index("high")] == pytest.approx(1.0) == boxes.right[names.index("high")]
    assert boxes.left[names.index("low")] == 0.0 == boxes.right[names.index("low")]
    assert strokes[0].x.tolist() == boxes.left.tolist()
    low, high = by_qos.x_range
    assert low < 0.0 and high > 1.0
    for row, name in zip(by_qos.rows, names, strict=True):
        place = names.index(name)
        assert row.low <= boxes.low[place] < boxes.high[place] <= row.high


def test_classes_of_numbers_stand_in_their_order() -> None:
    drawn = figure()
    assert [row.name for row in panel(drawn, "time limit").rows] == ["1 to 30", "31 to 120", "over 1440"]
    assert [row.name for row in panel(drawn, "size").rows] == ["1", "2 to 4", "17 to 64"]
    assert [class_place(name) for name in ("1", "over 1024")] == [(False, 1), (True, 1024)]


def test_each_scenario_has_a_lane_and_a_colour() -> None:
    drawn = figure(3)
    by_qos = panel(drawn, "QOS")
    (boxes,) = by_qos.of(Boxes)
    assert len(boxes) == 6 and set(boxes.fill.tolist()) == {0, 1, 2}
    assert len({(low, high) for low, high in zip(boxes.low.tolist(), boxes.high.tolist(), strict=True)}) == 6
    assert [entry.label for entry in drawn.legend()] == ["as it is", "s0", "s1", "s2"]
    (bars,) = panel(drawn, "mean wait").of(Bars)
    assert list(bars.names) == ["as it is", "s0", "s1", "s2"] and bars.values[0] == 60.0


def test_power_is_drawn_where_it_is_known_and_else_said_to_be_unknown() -> None:
    unknown, metered = figure(), figure(power_w=1000.0)
    assert any("unknown" in note for note in unknown.notes) and not any("unknown" in note for note in metered.notes)
    assert not any("power" in one.title for one in unknown.panels())
    before, after = panel(metered, "mean power of an hour").of(Line)
    assert before.y[0] == pytest.approx(1.0 + 0.01 * 0.75) and after.y[0] == pytest.approx(0.5 + 0.01 * 0.75)
    assert len(panel(metered, "hour of the day").of(Line)[0].x) == 25


def test_more_scenarios_than_fit_are_counted() -> None:
    assert any(f"{MOST_SCENARIOS} of {MOST_SCENARIOS + 1}" in note for note in figure(MOST_SCENARIOS + 1).notes)

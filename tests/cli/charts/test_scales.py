"""Scales of axes: ticks are few, round and inside; units suit; breaks keep all events in order."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.charts import scales
from pilotfish.cli.charts.scales import TimeScale

DAY = 86400.0
EPOCH = datetime(2012, 9, 2, 15, 0, tzinfo=UTC).timestamp()


@given(st.floats(1e-3, 1e7), st.integers(1, 20))
@settings(max_examples=100)
def test_clock_ticks_are_few_round_and_inside(end, most):
    times = [t for t, _ in scales.clock_ticks(end, most)]
    labels = [label for _, label in scales.clock_ticks(end, most)]
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
def test_labels_of_clock_ticks(end, labels):
    assert [label for _, label in scales.clock_ticks(end, 5)] == labels


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e7), st.integers(1, 20), st.booleans())
def test_number_ticks_are_few_distinct_and_inside(low, span, most, whole):
    ticks = scales.number_ticks(low, low + span, most, whole=whole)
    assert len(ticks) <= most + 1 and len({label for _, label in ticks}) == len(ticks)
    assert all(low - 1e-6 * span <= at <= (low + span) + 1e-6 * span for at, _ in ticks)
    assert not whole or all(at == int(at) for at, _ in ticks)


@given(st.floats(0, 2e11, allow_subnormal=False), st.floats(5, 4e9), st.integers(2, 12))
def test_calendar_ticks_are_few_ascending_and_inside(begin, span, most):
    ticks = scales.calendar_ticks(begin, begin + span, most)
    assert len(ticks) <= 2 * most + 2
    assert all(begin <= at <= begin + span for at, _ in ticks)
    assert all(tick[0] < successor[0] for tick, successor in pairwise(ticks))


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (30.0, ["15:00:00", "15:00:10", "15:00:20", "15:00:30"]),
        (12 * 3600.0, ["15:00", "18:00", "21:00", "3 Sep", "03:00"]),
        (4 * DAY, ["3 Sep", "4 Sep", "5 Sep", "6 Sep"]),
        (30 * DAY, ["3 Sep", "10 Sep", "17 Sep", "24 Sep", "1 Oct"]),
        (400 * DAY, ["Oct 2012", "Jan 2013", "Apr 2013", "Jul 2013", "Oct 2013"]),
        (4000 * DAY, ["2013", "2016", "2019", "2022"]),
    ],
)
def test_labels_of_dates(span, labels):
    assert [label for _, label in scales.calendar_ticks(EPOCH, EPOCH + span, 5)] == labels


def test_a_dated_axis_is_in_unix_time_and_says_the_year() -> None:
    scale = TimeScale(0.0, 200 * DAY, EPOCH)
    assert scale.place(60.0) == (EPOCH + 60) * 1e3 and scale.label("time") == "date (UTC, 2012-2013)"
    assert [label for _, label in scale.ticks(4)] == ["Nov 2012", "Jan 2013", "Mar 2013"]


def test_within_a_day_the_axis_says_the_day() -> None:
    assert TimeScale(0.0, 30.0, EPOCH).label("time") == "time on 2 Sep 2012 (UTC)"
    assert TimeScale(0.0, DAY, EPOCH).label("time") == "date (UTC, 2012)"


@pytest.mark.parametrize(("begin", "end", "dates"), [(0.0, 9.0, True), (0.0, 1e15, False), (0.0, 1.0, False)])
def test_dates_are_shown_for_supported_ranges(begin, end, dates) -> None:
    assert scales.dated(begin, end, EPOCH) == (EPOCH if dates else None) and scales.dated(begin, end, None) is None


@pytest.mark.parametrize(
    ("span", "name"), [(1.0, "seconds"), (180.0, "minutes"), (10799.0, "minutes"), (3 * DAY, "days")]
)
def test_the_unit_of_time_depends_on_the_span(span: float, name: str) -> None:
    assert scales.time_unit(span).name == name
    assert TimeScale(0.0, span).label("time") == f"time ({name})"


def test_the_unit_of_power_depends_on_the_largest_value() -> None:
    assert [scales.amount_unit(value, "W").name for value in (0.0, 999.0, 1e3, 2.5e7)] == ["W", "W", "kW", "MW"]


def test_a_long_time_without_events_is_drawn_short() -> None:
    ((begin, end),) = breaks = scales.breaks_of(np.array([0.0, 10.0, 20.0, 5000.0, 5010.0]))
    assert 20 < begin < end < 5000
    scale = TimeScale(0.0, 5010.0, breaks=breaks)
    low, high = scale.place([0.0, 5010.0])
    cut = scale.place([begin, end])
    assert (cut[1] - cut[0]) / (high - low) == pytest.approx(0.06, abs=0.01)
    assert scale.place(10.0) - low == pytest.approx(high - scale.place(5000.0))
    assert [label for _, label in scale.ticks(4)] == ["0", "10 s", "5,000 s", "5,010 s"]
    assert scale.label("time") == "time"


def test_one_long_job_among_short_ones_is_cut() -> None:
    ((begin, end),) = scales.breaks_of(np.array([0.0, 5.0, 86400.0]))
    assert 5 < begin < 6 and 86399 < end < 86400


@pytest.mark.parametrize("events", [[], [0, 100], [0, 1, 2, 10], list(range(100)), [0, 20, 60, 100], [0, 1e-9, 1, 2]])
def test_a_legible_axis_has_no_break(events) -> None:
    assert scales.breaks_of(np.array(events, float)) == ()


@given(st.lists(st.floats(0, 1e6).map(lambda at: round(at, 6)), min_size=4, max_size=30), st.integers(2, 10))
def test_breaks_keep_the_order_of_events_and_the_ticks_inside(events, most) -> None:
    times = np.unique(events)
    breaks = scales.breaks_of(times)
    if breaks:
        scale = TimeScale(float(times[0]), float(times[-1]), breaks=breaks)
        assert (np.diff(scale.place(times)) > 0).all()
        (low, high), ticks = scale.place([times[0], times[-1]]), [at for at, _ in scale.ticks(most)]
        assert low - 1e-9 <= ticks[0] and ticks[-1] <= high + 1e-9 and ticks == sorted(ticks)
        assert not any(begin < at < end for begin, end in breaks for at in times)

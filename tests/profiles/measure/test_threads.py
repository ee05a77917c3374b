"""Thread groups from records: hand-made cases, and the conservation of CPU time."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.measure.threads import group_threads
from pilotfish.profiles.probes.thread_record import RunningVariance, ThreadRecord


def record(begin, end, on_s, wait_s=0.0, gap_s=0.0, readings=10):
    return ThreadRecord(begin, end, on_s, wait_s, gap_s, readings)


def total(groups):
    return sum(group.count * group.demand for group in groups)


def test_one_busy_thread():
    found = group_threads([record(0, 2, 2.0)], wall_s=2.0, cpu_s=2.0)
    assert [(g.count, g.demand, g.utilisation) for g in found.groups] == [(1, 2.0, 1.0)]
    assert found.isolated_s == pytest.approx(2.0)


def test_waiting_is_taken_out_of_the_isolated_time():
    found = group_threads([record(0, 4, 2.0, wait_s=2.0)], wall_s=4.0, cpu_s=2.0)
    assert found.waiting == pytest.approx(0.5)
    assert found.isolated_s == pytest.approx(2.0)
    assert found.groups[0].utilisation == pytest.approx(1.0)


def test_stolen_time_is_waiting():
    found = group_threads([record(0, 2, 1.5)], wall_s=2.0, cpu_s=1.5, stolen=0.25)
    assert found.isolated_s == pytest.approx(1.5)
    assert found.waiting == pytest.approx(0.25)


def test_sleep_before_and_after_work_lowers_utilisation():
    found = group_threads([record(1, 2, 1.0)], wall_s=4.0, cpu_s=1.0)
    assert found.groups[0].utilisation == pytest.approx(0.25)
    assert found.isolated_s == pytest.approx(4.0)


def test_similar_threads_form_one_group():
    threads = [record(0, 2, 2.0), record(0, 2, 1.95), record(0, 2, 0.5)]
    found = group_threads(threads, wall_s=2.0, cpu_s=4.45)
    assert [group.count for group in found.groups] == [2, 1]


def test_successive_threads_are_one_thread():
    found = group_threads([record(0, 1, 1.0), record(1, 2, 1.0), record(2, 3, 1.0)], wall_s=3.0, cpu_s=3.0)
    assert [(g.count, g.demand) for g in found.groups] == [(1, pytest.approx(3.0))]


def test_concurrent_threads_are_several():
    found = group_threads([record(0, 3, 1.4), record(0.5, 3, 1.3)], wall_s=3.0, cpu_s=2.7)
    assert sum(group.count for group in found.groups) == 2


def test_helpers_are_not_counted_but_their_time_is_kept():
    found = group_threads([record(0, 10, 9.95), record(0, 10, 0.05)], wall_s=10.0, cpu_s=10.0)
    assert [(g.count, g.demand) for g in found.groups] == [(1, pytest.approx(10.0))]


def test_unseen_time_fills_the_gaps_of_ended_threads():
    ended, stayed = record(0, 0.9, 0.9, gap_s=0.1), record(0, 2, 2.0)
    found = group_threads([ended, stayed], wall_s=2.0, cpu_s=2.98)
    assert [g.demand for g in found.groups] == [pytest.approx(2.0), pytest.approx(0.98)]


def test_unseen_processes_fill_as_many_threads_as_needed():
    assert group_threads([], wall_s=1.0, cpu_s=0.9).groups[0].count == 1
    assert group_threads([], wall_s=1.0, cpu_s=1.9).groups[0].count == 2


def test_short_threads_at_once_are_counted_by_the_peak():
    brief = [record(i * 0.1, i * 0.1 + 0.1, 0.1, readings=1) for i in range(10) for _ in range(2)]
    found = group_threads(brief, wall_s=2.0, cpu_s=2.0, peak=2.0)
    assert [(g.count, g.demand) for g in found.groups] == [(2, pytest.approx(1.0))]


def test_a_run_without_cpu_time_still_has_a_group():
    found = group_threads([], wall_s=5.0, cpu_s=0.0)
    assert found.isolated_s == pytest.approx(5.0, rel=0.3)
    assert found.groups[0].demand > 0


def test_running_mean_and_variance():
    spread = RunningVariance()
    for value in (1.0, 2.0, 4.0):
        spread.add(value)
    assert spread.mean == pytest.approx(7 / 3)
    assert spread.variance == pytest.approx(14 / 9)


@st.composite
def records(draw):
    wall_s = draw(st.floats(0.01, 100))
    threads = []
    for _ in range(draw(st.integers(0, 6))):
        begin = draw(st.floats(0, 0.99)) * wall_s
        end = begin + draw(st.floats(0.001, 1)) * (wall_s - begin)
        on_s = draw(st.floats(0.001, 1)) * (end - begin)
        wait_s = draw(st.floats(0, 1)) * (end - begin - on_s)
        gap_s = draw(st.floats(0, 1)) * (wall_s - end)
        threads.append(record(begin, end, on_s, wait_s, gap_s, draw(st.integers(1, 20))))
    seen = sum(thread.on_s for thread in threads)
    cpu_s = seen + draw(st.floats(0, 3)) * wall_s
    return threads, wall_s, cpu_s, draw(st.floats(0, 6)), draw(st.floats(0, 0.9))


@settings(max_examples=100, deadline=None)
@given(records())
def test_cpu_time_is_conserved_and_groups_are_sound(case):
    threads, wall_s, cpu_s, peak, stolen = case
    found = group_threads(threads, wall_s, cpu_s, peak=peak, stolen=stolen)
    assert total(found.groups) == pytest.approx(max(cpu_s, 1e-6), rel=1e-6, abs=1e-5)
    assert 0 <= found.waiting <= 1
    for group in found.groups:
        assert group.count >= 1
        assert 0 < group.utilisation <= 1
        assert math.isfinite(group.utilisation_std)
    assert found.isolated_s >= max(group.demand for group in found.groups) * (1 - 1e-9)

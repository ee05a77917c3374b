"""Thread groups from records: cases by hand, and the law that no CPU second is lost or made."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.threads import Spread, ThreadRecord, account


def record(begin, end, on_s, wait_s=0.0, gap_s=0.0, readings=10):
    return ThreadRecord(begin, end, on_s, wait_s, gap_s, readings)


def total(groups):
    return sum(group.count * group.demand for group in groups)


def test_one_busy_thread():
    found = account([record(0, 2, 2.0)], wall_s=2.0, cpu_s=2.0)
    assert [(g.count, g.demand, g.utilisation) for g in found.groups] == [(1, 2.0, 1.0)]
    assert found.isolated_s == pytest.approx(2.0)


def test_waiting_is_taken_out_of_the_isolated_time():
    found = account([record(0, 4, 2.0, wait_s=2.0)], wall_s=4.0, cpu_s=2.0)
    assert found.waiting == pytest.approx(0.5)
    assert found.isolated_s == pytest.approx(2.0)
    assert found.groups[0].utilisation == pytest.approx(1.0)


def test_what_the_host_took_is_waiting():
    found = account([record(0, 2, 1.5)], wall_s=2.0, cpu_s=1.5, stolen=0.25)
    assert found.isolated_s == pytest.approx(1.5)
    assert found.waiting == pytest.approx(0.25)


def test_sleep_lowers_utilisation_also_before_and_after_the_work():
    found = account([record(1, 2, 1.0)], wall_s=4.0, cpu_s=1.0)
    assert found.groups[0].utilisation == pytest.approx(0.25)
    assert found.isolated_s == pytest.approx(4.0)


def test_threads_alike_are_one_group_and_others_another():
    threads = [record(0, 2, 2.0), record(0, 2, 1.95), record(0, 2, 0.5)]
    found = account(threads, wall_s=2.0, cpu_s=4.45)
    assert [group.count for group in found.groups] == [2, 1]


def test_one_after_another_is_one_thread():
    found = account([record(0, 1, 1.0), record(1, 2, 1.0), record(2, 3, 1.0)], wall_s=3.0, cpu_s=3.0)
    assert [(g.count, g.demand) for g in found.groups] == [(1, pytest.approx(3.0))]


def test_at_the_same_time_is_several_threads():
    found = account([record(0, 3, 1.4), record(0.5, 3, 1.3)], wall_s=3.0, cpu_s=2.7)
    assert sum(group.count for group in found.groups) == 2


def test_helpers_are_not_counted_but_their_time_is_kept():
    found = account([record(0, 10, 9.95), record(0, 10, 0.05)], wall_s=10.0, cpu_s=10.0)
    assert [(g.count, g.demand) for g in found.groups] == [(1, pytest.approx(10.0))]


def test_what_ended_unseen_is_made_up_where_it_can_have_been():
    ended, stayed = record(0, 0.9, 0.9, gap_s=0.1), record(0, 2, 2.0)
    found = account([ended, stayed], wall_s=2.0, cpu_s=2.98)
    assert [g.demand for g in found.groups] == [pytest.approx(2.0), pytest.approx(0.98)]


def test_processes_too_short_to_be_seen_are_as_many_as_their_time_needs():
    assert account([], wall_s=1.0, cpu_s=0.9).groups[0].count == 1
    assert account([], wall_s=1.0, cpu_s=1.9).groups[0].count == 2


def test_short_threads_at_once_are_counted_by_the_peak():
    brief = [record(i * 0.1, i * 0.1 + 0.1, 0.1, readings=1) for i in range(10) for _ in range(2)]
    found = account(brief, wall_s=2.0, cpu_s=2.0, peak=2.0)
    assert [(g.count, g.demand) for g in found.groups] == [(2, pytest.approx(1.0))]


def test_a_sleeper_without_cpu_time_is_still_a_profile():
    found = account([], wall_s=5.0, cpu_s=0.0)
    assert found.isolated_s == pytest.approx(5.0, rel=0.3)
    assert found.groups[0].demand > 0


def test_spread_is_mean_and_variance():
    spread = Spread()
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
    found = account(threads, wall_s, cpu_s, peak=peak, stolen=stolen)
    assert total(found.groups) == pytest.approx(max(cpu_s, 1e-6), rel=1e-6, abs=1e-5)
    assert 0 <= found.waiting <= 1
    for group in found.groups:
        assert group.count >= 1
        assert 0 < group.utilisation <= 1
        assert math.isfinite(group.utilisation_std)
    assert found.isolated_s >= max(group.demand for group in found.groups) * (1 - 1e-9)

"""Phases from generated histories, and their agreement with the group."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.estimate import estimate
from pilotfish.profiles.measure.phases import MOST_PHASES, phases
from pilotfish.profiles.measure.threads import group_threads
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.probes.thread_history import MOST_POINTS, ThreadHistory
from pilotfish.profiles.probes.thread_record import ThreadRecord
from pilotfish.simulate.model.job import ThreadGroup

STEP = 0.1


def thread_history(levels, wait=0.0):
    """A thread that used these shares of its intervals, and waited for `wait` of each."""
    made, on = ThreadHistory(), 0.0
    made.add(0.0, 0.0, 0.0)
    for i, level in enumerate(levels, 1):
        on += level * STEP * (1 - wait)
        made.add(i * STEP, on, i * STEP * wait)
    return made


def found(levels, count=1, wait=0.0):
    span = len(levels) * STEP
    return phases([(0.0, span, [thread_history(levels, wait)])] * count, float(np.mean(levels)), STEP)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("wait", [0.0, 0.5])
def test_phases_of_a_known_run_alone_and_with_waiting(count, wait):
    seen = found([1.0] * 100 + [0.2] * 60 + [0.7] * 40, count, wait)
    assert [phase.share for phase in seen] == pytest.approx([0.5, 0.3, 0.2])
    assert [phase.utilisation for phase in seen] == pytest.approx([1.0, 0.2, 0.7])


def test_a_steady_run_has_no_phases():
    noise = np.random.default_rng(1).normal(0, 0.05, 300)
    assert found(np.clip(0.6 + noise, 0, 1)) == ()


def test_a_small_change_is_no_phase():
    assert found([0.50] * 100 + [0.56] * 100) == ()


def test_a_rhythm_has_no_phases():
    assert found(([1.0] * 8 + [0.0] * 8) * (MOST_PHASES + 4)) == ()


def test_a_short_run_has_no_phases():
    assert found([1.0, 1.0, 0.0, 0.0]) == ()
    assert phases([], 0.5, STEP) == ()
    assert phases([(0.0, 9.0, [])], 0.5, STEP) == ()


def test_a_successive_thread_continues_the_history():
    later = ThreadHistory()
    later.add(10.0, 0.0, 0.0)
    later.add(20.0, 2.0, 0.0)
    seen = phases([(0.0, 20.0, [thread_history([1.0] * 100), later])], 0.6, STEP)
    assert [phase.utilisation for phase in seen] == pytest.approx([1.0, 0.2])


def test_a_group_has_phases_without_their_deviation():
    record = ThreadRecord(0.0, 20.0, 12.0, history=thread_history([1.0] * 100 + [0.2] * 100))
    for level in [1.0] * 100 + [0.2] * 100:
        record.steps.add(level)
    record.readings = 200
    (group,) = group_threads([record], 20.0, 12.0, step_s=STEP).groups
    assert [phase.utilisation for phase in group.phases] == pytest.approx([1.0, 0.2])
    assert group.utilisation == pytest.approx(0.6)
    assert group.utilisation_std == pytest.approx(0.0, abs=1e-6)


def test_a_long_history_stays_small_and_loses_no_time():
    made = ThreadHistory()
    for i in range(40 * MOST_POINTS):
        made.add(float(i), 0.25 * i, 0.5 * i)
    on, wait = made.at([0.0, 1000.0, 40.0 * MOST_POINTS - 1])
    assert list(on) == pytest.approx([0.0, 250.0, 0.25 * (40 * MOST_POINTS - 1)])
    assert list(wait) == pytest.approx([2 * value for value in on])
    assert len(made._points) <= MOST_POINTS


def test_an_empty_history_is_zero():
    assert [list(part) for part in ThreadHistory().at([0.0, 1.0])] == [[0.0, 0.0], [0.0, 0.0]]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(5, 60)), min_size=1, max_size=6),
    st.floats(0.01, 1.0),
    st.floats(0, 0.9),
)
def test_the_mean_of_phases_is_that_of_the_group(parts, utilisation, wait):
    levels = [level for level, count in parts for _ in range(count)]
    seen = phases([(0.0, len(levels) * STEP, [thread_history(levels, wait)])], utilisation, STEP)
    assert len(seen) != 1 and len(seen) <= MOST_PHASES
    for phase in seen:
        assert 0 < phase.utilisation <= 1
    if seen:
        assert sum(phase.share for phase in seen) == pytest.approx(1.0)
        assert sum(phase.share * phase.utilisation for phase in seen) == pytest.approx(utilisation)


def moving(rates, levels=None):
    """A thread's course, and what it moved: bytes in a second on a core in each interval."""
    levels = levels or [1.0] * len(rates)
    traffic = ThreadHistory()
    traffic.add(0.0, 0.0, 0.0)
    total = 0.0
    for i, (rate, level) in enumerate(zip(rates, levels, strict=True), 1):
        total += rate * level * STEP
        traffic.add(i * STEP, total, 0.0)
    return thread_history(levels), traffic


def seen_moving(rates, levels=None, count=1):
    thread, traffic = moving(rates, levels)
    span, mean = len(rates) * STEP, float(np.mean(levels or [1.0]))
    return phases([(0.0, span, [thread])] * count, mean, STEP, traffic, [thread] * count)


def test_changing_traffic_makes_phases_of_a_busy_thread():
    seen = seen_moving([1e9] * 100 + [6e9] * 60 + [2e9] * 40)
    assert [phase.share for phase in seen] == pytest.approx([0.5, 0.3, 0.2])
    assert [phase.utilisation for phase in seen] == pytest.approx([1.0, 1.0, 1.0])
    assert [phase.bandwidth for phase in seen] == pytest.approx([1e9, 6e9, 2e9])


def test_traffic_is_that_of_a_second_on_a_core_and_shared_among_threads():
    seen = seen_moving([4e9] * 100 + [1e9] * 100, [0.5] * 100 + [1.0] * 100)
    assert [phase.utilisation for phase in seen] == pytest.approx([0.5, 1.0])
    assert [phase.bandwidth for phase in seen] == pytest.approx([4e9, 1e9])
    of_four = seen_moving([4e9] * 100 + [1e9] * 100, count=4)
    assert [phase.bandwidth for phase in of_four] == pytest.approx([1e9, 0.25e9])


def test_steady_noisy_traffic_makes_no_phases():
    noise = np.random.default_rng(2).normal(1, 0.2, 300).clip(0.1)
    assert seen_moving(list(2e9 * noise)) == ()
    assert seen_moving([0.0] * 200) == ()


def test_sleeping_parts_have_no_traffic_rate():
    seen = seen_moving([2e9] * 100 + [0.0] * 100, [1.0] * 100 + [0.001] * 100)
    assert len(seen) == 2 and seen[0].bandwidth == pytest.approx(2e9, rel=0.05)


def test_a_profile_keeps_mean_bandwidth_and_measured_ratios():
    group = ThreadGroup(1, 20.0, 1.0, phases=seen_moving([1e9] * 100 + [5e9] * 100))
    run = Measurement((group,), 20.0, 20.0, 20.0, bandwidth=6e9)  # another counter, which knows the whole better
    (parts,) = run.to_profile().groups
    assert [phase.bandwidth for phase in parts.phases] == pytest.approx([2e9, 10e9])
    (again,) = estimate("x", [run, run, replace(run, bandwidth=3e9)]).groups
    assert [phase.bandwidth for phase in again.phases] == pytest.approx([2e9, 10e9])
    (unknown,) = replace(run, bandwidth=None).to_profile().groups
    assert [phase.bandwidth for phase in unknown.phases] == [0.0, 0.0]


def test_a_group_with_traffic_has_phases():
    thread, traffic = moving([1e9] * 100 + [6e9] * 100)
    record = ThreadRecord(0.0, 20.0, 20.0, readings=200, history=thread)
    (group,) = group_threads([record], 20.0, 20.0, step_s=STEP, traffic=traffic).groups
    assert [phase.bandwidth for phase in group.phases] == pytest.approx([1e9, 6e9])
    assert group_threads([record], 20.0, 20.0, step_s=STEP).groups[0].phases == ()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e10), st.floats(0.05, 1.0), st.integers(12, 40)), min_size=2, max_size=5))
def test_phases_conserve_traffic(parts):
    rates = [rate for rate, _, count in parts for _ in range(count)]
    levels = [level for _, level, count in parts for _ in range(count)]
    seen = seen_moving(rates, levels)
    moved = sum(rate * level for rate, level in zip(rates, levels, strict=True)) / len(rates)
    if seen and any(phase.bandwidth for phase in seen):
        parts = sum(phase.share * phase.utilisation * phase.bandwidth for phase in seen)
        assert parts == pytest.approx(moved, rel=0.02)

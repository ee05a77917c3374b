"""Phases from made-up courses, and the law that they say nothing else than the group does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.course import MOST_POINTS, Course
from pilotfish.profiles.phases import MOST_PHASES, phases
from pilotfish.profiles.threads import ThreadRecord, account

STEP = 0.1


def course(levels, wait=0.0):
    """A thread that used these shares of its intervals, and waited for `wait` of each."""
    made, on = Course(), 0.0
    made.add(0.0, 0.0, 0.0)
    for i, level in enumerate(levels, 1):
        on += level * STEP * (1 - wait)
        made.add(i * STEP, on, i * STEP * wait)
    return made


def found(levels, count=1, wait=0.0):
    span = len(levels) * STEP
    return phases([(0.0, span, [course(levels, wait)])] * count, float(np.mean(levels)), STEP)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("wait", [0.0, 0.5])
def test_phases_of_a_known_run_alone_and_in_company(count, wait):
    seen = found([1.0] * 100 + [0.2] * 60 + [0.7] * 40, count, wait)
    assert [phase.share for phase in seen] == pytest.approx([0.5, 0.3, 0.2])
    assert [phase.utilisation for phase in seen] == pytest.approx([1.0, 0.2, 0.7])


def test_a_steady_run_has_none():
    noise = np.random.default_rng(1).normal(0, 0.05, 300)
    assert found(np.clip(0.6 + noise, 0, 1)) == ()


def test_a_small_change_is_none():
    assert found([0.50] * 100 + [0.56] * 100) == ()


def test_a_rhythm_is_none():
    assert found(([1.0] * 8 + [0.0] * 8) * (MOST_PHASES + 4)) == ()


def test_a_run_too_short_to_tell_has_none():
    assert found([1.0, 1.0, 0.0, 0.0]) == ()
    assert phases([], 0.5, STEP) == ()
    assert phases([(0.0, 9.0, [])], 0.5, STEP) == ()


def test_a_thread_that_follows_another_goes_on_with_its_course():
    later = Course()
    later.add(10.0, 0.0, 0.0)
    later.add(20.0, 2.0, 0.0)
    seen = phases([(0.0, 20.0, [course([1.0] * 100), later])], 0.6, STEP)
    assert [phase.utilisation for phase in seen] == pytest.approx([1.0, 0.2])


def test_an_account_has_them_and_their_spread_is_not_the_groups():
    record = ThreadRecord(0.0, 20.0, 12.0, course=course([1.0] * 100 + [0.2] * 100))
    for level in [1.0] * 100 + [0.2] * 100:
        record.steps.add(level)
    record.readings = 200
    (group,) = account([record], 20.0, 12.0, step_s=STEP).groups
    assert [phase.utilisation for phase in group.phases] == pytest.approx([1.0, 0.2])
    assert group.utilisation == pytest.approx(0.6)
    assert group.utilisation_std == pytest.approx(0.0, abs=1e-6)


def test_a_long_course_stays_small_and_loses_no_time():
    made = Course()
    for i in range(40 * MOST_POINTS):
        made.add(float(i), 0.25 * i, 0.5 * i)
    on, wait = made.at([0.0, 1000.0, 40.0 * MOST_POINTS - 1])
    assert list(on) == pytest.approx([0.0, 250.0, 0.25 * (40 * MOST_POINTS - 1)])
    assert list(wait) == pytest.approx([2 * value for value in on])
    assert len(made._points) <= MOST_POINTS


def test_a_course_that_never_began():
    assert [list(part) for part in Course().at([0.0, 1.0])] == [[0.0, 0.0], [0.0, 0.0]]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(5, 60)), min_size=1, max_size=6),
    st.floats(0.01, 1.0),
    st.floats(0, 0.9),
)
def test_the_mean_is_the_groups_whatever_it_is(parts, utilisation, wait):
    levels = [level for level, count in parts for _ in range(count)]
    seen = phases([(0.0, len(levels) * STEP, [course(levels, wait)])], utilisation, STEP)
    assert len(seen) != 1 and len(seen) <= MOST_PHASES
    for phase in seen:
        assert 0 < phase.utilisation <= 1
    if seen:
        assert sum(phase.share for phase in seen) == pytest.approx(1.0)
        assert sum(phase.share * phase.utilisation for phase in seen) == pytest.approx(utilisation)

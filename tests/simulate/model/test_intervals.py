"""Intervals of free resources behave like sets; the lowest numbers are allocated first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.intervals import FreeResources, merge_intervals


def numbers(intervals: Any) -> list[int]:
    """Return the resources of intervals, in order."""
    return [number for first, last in intervals for number in range(first, last + 1)]


STEP = st.tuples(st.sampled_from(["take", "these", "back"]), st.integers(0, 99))


@given(st.integers(1, 70), st.lists(STEP, max_size=40))
def test_intervals_equal_a_set(machine: int, steps: list[tuple[str, int]]) -> None:
    free, left, taken = FreeResources(machine), set(range(machine)), list[Any]()
    for what, number in steps:
        if what == "take" and left:
            size = number % len(left) + 1
            taken.append(free.allocate(size))
            assert numbers(taken[-1]) == sorted(left)[:size]
        elif what == "these" and left:
            chosen = sorted(left)[number % 3 :: number % 4 + 1]
            found = merge_intervals((one, one) for one in chosen)
            assert not isinstance(found, int) and free.allocate_these(found) is None
            taken.append(found)
        elif taken:
            free.release(taken.pop(number % len(taken)))
        left = set(range(machine)) - {one for intervals in taken for one in numbers(intervals)}
        assert numbers(free.intervals) == sorted(left) and free.count == len(left)
        assert all(a[1] + 1 < b[0] for a, b in zip(free.intervals, free.intervals[1:], strict=False))


def test_allocate_these_returns_a_busy_resource() -> None:
    free = FreeResources(10)
    free.allocate_these([(2, 3), (7, 7)])
    wanted = (0, 2), (3, 4), (5, 8), (7, 9), (0, 0), (0, 1)
    assert [free.allocate_these([one]) for one in wanted] == [2, 3, 7, 7, None, 0]
    assert free.intervals == [(1, 1), (4, 6), (8, 9)]


def test_merge_intervals() -> None:
    assert merge_intervals([(4, 5), (0, 1), (2, 2)]) == [(0, 2), (4, 5)]
    assert merge_intervals([(0, 3), (3, 4)]) == 3 and merge_intervals([]) == []

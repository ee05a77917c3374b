"""Sets of resources as lists of intervals: the free resources, and their allocation to jobs.

Rule: intervals ascend and do not touch; the lowest numbers are allocated first, as in compiled replays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

#: First and last resource.
Interval = tuple[int, int]
_BEYOND = 1 << 62


class FreeResources:
    """The free resources of a machine of `machine` resources, 0 or more, all free at first."""

    def __init__(self, machine: int) -> None:
        self.intervals: list[Interval] = [(0, machine - 1)] if machine else []
        self.count = machine

    def allocate(self, size: int) -> tuple[Interval, ...]:
        """Allocate the `size` lowest free resources, if enough are free. O(intervals allocated), and a shift."""
        free, remainder = self.intervals, size
        self.count -= size
        for place, (first, last) in enumerate(free):
            width = last - first + 1
            if width < remainder:
                remainder -= width
                continue
            allocation = (*free[:place], (first, first + remainder - 1))
            if width == remainder:
                del free[: place + 1]
            else:
                free[: place + 1] = [(first + remainder, last)]
            return allocation
        raise AssertionError("not enough free resources")

    def allocate_these(self, wanted: Iterable[Interval]) -> int | None:
        """Allocate these intervals. Return the first resource that is not free, or None if all were free."""
        free = self.intervals
        for first, last in wanted:
            place = bisect_right(free, (first, _BEYOND)) - 1
            low, high = free[place] if place >= 0 else (0, -1)
            if high < first:
                return first
            if high < last:
                return high + 1
            if low < first:
                free[place] = low, first - 1
                if last < high:
                    free.insert(place + 1, (last + 1, high))
            elif last < high:
                free[place] = last + 1, high
            else:
                del free[place]
            self.count -= last - first + 1
        return None

    def release(self, taken: Iterable[Interval]) -> None:
        """Free these intervals. O(log intervals) each, and a shift."""
        free = self.intervals
        for first, last in taken:
            self.count += last - first + 1
            place = bisect_left(free, (first, last))
            end = place
            if end < len(free) and free[end][0] == last + 1:
                last, end = free[end][1], end + 1
            if place and free[place - 1][1] == first - 1:
                place -= 1
                first = free[place][0]
            free[place:end] = [(first, last)]


class MergedIntervals(list[Interval]):
    """Intervals of resources from 0 on that ascend and do not touch; the caller has checked that."""


def merge_intervals(intervals: Iterable[Interval]) -> MergedIntervals | int:
    """Sort intervals and merge adjacent ones. Return a resource that occurs in two of them if they overlap."""
    result, end = MergedIntervals(), -_BEYOND
    for pair in sorted(intervals):
        first, last = pair
        if first > end + 1:
            result.append(pair)
        elif first <= end:
            return first
        else:
            result[-1] = result[-1][0], last
        end = last
    return result


def common(one: Iterable[Interval], other: Sequence[Interval]) -> list[Interval]:
    """Return what two sorted lists of intervals have in common. O(intervals)."""
    overlaps, at = list[Interval](), 0
    for first, last in one:
        while at < len(other) and other[at][1] < first:
            at += 1
        place = at
        while place < len(other) and other[place][0] <= last:
            overlaps.append((max(first, other[place][0]), min(last, other[place][1])))
            place += 1
    return overlaps


def without(one: Iterable[Interval], other: Sequence[Interval]) -> list[Interval]:
    """Return a sorted list of intervals without what is in another. O(intervals)."""
    pieces = list[Interval]()
    for first, last in one:
        for low, high in common([(first, last)], other):
            if low > first:
                pieces.append((first, low - 1))
            first = high + 1
        if first <= last:
            pieces.append((first, last))
    return pieces


def lowest(intervals: Iterable[Interval], size: int) -> list[Interval]:
    """Return the `size` lowest resources of a sorted list of intervals, or all if they are fewer."""
    selection = list[Interval]()
    for first, last in intervals:
        if size <= 0:
            break
        selection.append((first, min(last, first + size - 1)))
        size -= last - first + 1
    return selection


def count_of(intervals: Iterable[Interval]) -> int:
    """Return the number of resources."""
    return sum([last - first + 1 for first, last in intervals])

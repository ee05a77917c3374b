"""Sets of resources as intervals: which are free, and which of them a job is given.

Rule: intervals ascend and do not touch; the lowest numbers are given out first, as compiled replays do it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

#: First and last resource.
Interval = tuple[int, int]


class Free:
    """What is free of so many resources.

    Args:
        machine: resources, all free at first.
    """

    def __init__(self, machine: int) -> None:
        self.intervals: list[Interval] = [(0, machine - 1)]
        self.count = machine

    def take(self, size: int) -> tuple[Interval, ...]:
        """The lowest `size`, of which there are enough. O(intervals taken), and a shift of those that stay."""
        free, left = self.intervals, size
        self.count -= size
        for place, (first, last) in enumerate(free):
            width = last - first + 1
            if width < left:
                left -= width
                continue
            taken = (*free[:place], (first, first + left - 1))
            if width == left:
                del free[: place + 1]
            else:
                free[: place + 1] = [(first + left, last)]
            return taken
        raise AssertionError("there are not as many")

    def take_these(self, wanted: Iterable[Interval]) -> int | None:
        """Take these intervals; the first resource of them that is not free, where there is one: it is not taken."""
        free = self.intervals
        for first, last in wanted:
            place = bisect_right(free, first, key=_first) - 1
            low, high = free[place] if place >= 0 else (0, -1)
            if high < first:
                return first
            if high < last:
                return high + 1
            free[place : place + 1] = [
                part for part in ((low, first - 1), (last + 1, high)) if part[0] <= part[1]
            ]
            self.count -= last - first + 1
        return None

    def give_back(self, taken: Iterable[Interval]) -> None:
        """Free what was taken. O(log intervals) each, and a shift."""
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


def joined(intervals: Iterable[Interval]) -> list[Interval] | int:
    """The same set, ascending, those that touch made one; a resource that is in two of them, where there is one."""
    found: list[Interval] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1]:
            return first
        if found and first == found[-1][1] + 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def _first(interval: Interval) -> int:
    return interval[0]

"""The differences between two long lists that are mostly equal, such as two answers about the same queue.

Rule: elements outside the returned ranges are equal, and in the same order; elements inside may be equal, too. Equal
runs are compared as slices, which costs a few nanoseconds an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: Elements that are compared at once.
RUN = 1024
#: A difference of more elements than this in a row, at one place, ends the search: the rest counts as different.
LONGEST = 64


def differences(old: Sequence[Any], new: Sequence[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield the ranges of `old`, in order, and the ranges of `new` that have taken their places."""
    i = j = 0
    while True:
        equal = _equal_run(old, i, new, j)
        i, j = i + equal, j + equal
        if i == len(old) and j == len(new):
            return
        removed, added = _shift(old, i, new, j)
        yield slice(i, i + removed), slice(j, j + added)
        i, j = i + removed, j + added


def _equal_run(old: Sequence[Any], i: int, new: Sequence[Any], j: int) -> int:
    """Return how many elements are equal from here on."""
    longest, length, step = min(len(old) - i, len(new) - j), 0, RUN
    while step and length < longest:
        step = min(step, longest - length)
        if old[i + length : i + length + step] == new[j + length : j + length + step]:
            length += step
        else:
            step //= 2
    return length


def _shift(old: Sequence[Any], i: int, new: Sequence[Any], j: int) -> tuple[int, int]:
    """Return how many elements of each to skip, so that the next two are equal."""
    for skipped in range(1, LONGEST + 1):
        for removed, added in ((skipped, skipped), (skipped, 0), (0, skipped)):
            place, new_place = i + removed, j + added
            if place == len(old) and new_place == len(new):
                return removed, added
            if place < len(old) and new_place < len(new) and old[place] == new[new_place]:
                return removed, added
    return len(old) - i, len(new) - j

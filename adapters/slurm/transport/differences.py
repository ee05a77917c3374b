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
        gone, added = _shift(old, i, new, j)
        yield slice(i, i + gone), slice(j, j + added)
        i, j = i + gone, j + added


def _equal_run(old: Sequence[Any], i: int, new: Sequence[Any], j: int) -> int:
    """Return how many elements are equal from here on."""
    most, found, step = min(len(old) - i, len(new) - j), 0, RUN
    while step and found < most:
        step = min(step, most - found)
        if old[i + found : i + found + step] == new[j + found : j + found + step]:
            found += step
        else:
            step //= 2
    return found


def _shift(old: Sequence[Any], i: int, new: Sequence[Any], j: int) -> tuple[int, int]:
    """Return how many elements of each to skip, so that the next two are equal."""
    for skipped in range(1, LONGEST + 1):
        for gone, added in ((skipped, skipped), (skipped, 0), (0, skipped)):
            left, right = i + gone, j + added
            if left == len(old) and right == len(new):
                return gone, added
            if left < len(old) and right < len(new) and old[left] == new[right]:
                return gone, added
    return len(old) - i, len(new) - j

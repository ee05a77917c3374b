"""Sizes of the slices of a replay, between which the caller can show progress or stop.

Rule: a slice is sized from the duration of the last; the first is one instant. The size does not affect the schedule.
"""

from __future__ import annotations

#: Target duration of a slice, seconds.
TARGET_S = 0.1
#: Largest growth from one slice to the next, and largest number of instants in a slice.
GROWTH, MOST = 8, 10_000_000
FIRST = 1


def next_slice(instants: int, spent_s: float) -> int:
    """Return the number of instants of the next slice, 1 to MOST.

    Args:
        instants: instants of the last slice.
        spent_s: seconds that it took; 0 if not measured.
    """
    grow = instants * GROWTH
    if spent_s * GROWTH > TARGET_S:
        grow = int(instants * TARGET_S / spent_s)
    return max(1, min(grow, MOST))

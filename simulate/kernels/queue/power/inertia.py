"""Inertial shutdown decides at a period which machines are switched, in compiled code and in Python (needs nothing).

Source: thesis of Poquet (2017), 7.4.3, algorithm 3.
"""

from __future__ import annotations

#: Relative increase above which a mean horizon counts as risen, so that the order of sums has no effect.
ROSE = 1e-9


def next_turn(
    mean: float, before: float, bound: float, switches_on: bool, switched: int, doubles: bool
) -> tuple[bool, int]:
    """Return whether machines are to be switched on, not off, and how many if there are as many; 0: none.

    Args:
        mean: mean liquid load horizon of the period, seconds.
        before: that of the period before, seconds.
        bound: horizon from which on machines are switched on, seconds.
        switches_on: the last decision was to switch machines on.
        switched: machines switched since that decision.
        doubles: twice as many are switched as last time, not one more.
    """
    if mean >= bound * (1.0 - ROSE):
        before = 0.0
        if not switches_on:
            switches_on, switched = True, 0
    if (mean > before * (1.0 + ROSE)) == switches_on:
        return switches_on, max(2 * switched if doubles else switched + 1, 1)
    return not switches_on, 0

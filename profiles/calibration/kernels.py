"""The compiled loops that load a core or the memory.

Rule: they hold no lock of Python's, so that threads of one process run side by side.
Source: J. McCalpin, STREAM (1995): triad, a = b + s * c, 24 bytes an element, reads for ownership not counted.
"""

from __future__ import annotations

from typing import Any

from numba import njit

BYTES = 24  #: of a triad's element, as STREAM counts
BLOCK = 512  #: elements between two stretches of computing
STEPS = 1_000_000


@njit(nogil=True)
def triad(a: Any, b: Any, c: Any, factor: float, extra: int) -> float:
    """a = b + factor * c; with `extra` > 0 so many dependent steps after each block, to ask for less bandwidth."""
    x = factor  # not known to the compiler, which would leave the steps out
    for begin in range(0, len(a), BLOCK):
        for i in range(begin, min(begin + BLOCK, len(a))):
            a[i] = b[i] + factor * c[i]
        for _ in range(extra):
            x = x * 0.999999 + 1e-6
    return x


@njit(nogil=True)
def compute(seed: int) -> float:
    """STEPS steps of integer and floating-point work that depend on each other; nothing of it in memory."""
    state, x = seed, 0.5
    for _ in range(STEPS):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = x * 0.75 + (state & 1023) * 2.0**-12
    return x

"""How far a replay goes before it looks up: for its caller, who shows how far it has come, or ends it.

Rule: the next slice is sized by what the last one took, whatever the policy, the trace and the machine cost; the first
is one instant. What is replayed does not depend on it.
"""

from __future__ import annotations

#: Seconds that a slice is to take.
WANTED_S = 0.1
#: Times as many instants as in the last slice, at most, and instants of a slice, at most.
GROWTH, MOST = 8, 10_000_000
FIRST = 1


def next_slice(instants: int, spent_s: float) -> int:
    """Instants of the next slice, 1 or more.

    Args:
        instants: of the last slice.
        spent_s: seconds that it took; 0 where nobody measures.
    """
    grown = instants * GROWTH
    if spent_s * GROWTH > WANTED_S:
        grown = int(instants * WANTED_S / spent_s)
    return max(1, min(grown, MOST))

"""Which of the nodes that fit a job gets, by definition.

Rule: its slowest node is as fast as it can be, of such nodes the lowest ones, and as many as there are; the others are
the slowest ones that are faster, of equally fast ones the highest. So of equally fast nodes it gets the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def chosen(fits: Iterable[int], speeds: Sequence[float], wanted: int) -> tuple[int, ...] | None:
    """Return the nodes, ascending; None if too few fit.

    Args:
        fits: positions of the nodes that fit.
        speeds: of all nodes.
        wanted: how many.
    """
    line = sorted(fits, key=lambda node: (-speeds[node], node))
    if len(line) < wanted:
        return None
    slowest = sorted((speeds[node] for node in line), reverse=True)[wanted - 1]
    same = [node for node in line if speeds[node] == slowest][:wanted]
    faster = [node for node in line if speeds[node] > slowest]
    return tuple(sorted(same + faster[len(faster) - (wanted - len(same)) :]))

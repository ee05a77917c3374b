"""What a resource of the machine draws in each of its states, and how long it takes to change.

Rule: resources are alike, or fall into runs of neighbours that are, whose energy is known as long as none is switched.
Where the machine is given by a number, the figures are those of a Grid'5000 Taurus node.
Source: thesis of Poquet (2017), table 6.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..platform import NodeType


@dataclass(frozen=True, slots=True)
class Powers:
    """Of one resource, watts and seconds.

    Args:
        idle, computing: while it waits, and while a job computes on it.
        budget_idle, budget_computing: the same as policies with a limit estimate them, rather too high.
        off: None: it cannot be switched off.
        on_w, on_s, off_w, off_s: while it is switched on and off, and how long that takes.
    """

    idle: float
    computing: float
    budget_idle: float
    budget_computing: float
    off: float | None = None
    on_w: float = 0.0
    on_s: float = 0.0
    off_w: float = 0.0
    off_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Mixed:
    """What resources draw that are not all alike.

    Args:
        runs: how many neighbours are alike, and what each draws; of all resources, in their order.
    """

    runs: tuple[tuple[int, Powers], ...]


TAURUS = Powers(95.0, 190.74, 100.0, 203.12, 9.75, 125.17, 151.52, 101.0, 6.1)


def joined_powers(each: Iterable[tuple[int, Powers | None]]) -> Powers | Mixed | None:
    """Of resources, so many at a time, in their order; None: of some it is not known."""
    runs: list[tuple[int, Powers]] = []
    for many, powers in each:
        if powers is None:
            return None
        before = runs.pop()[0] if runs and runs[-1][1] == powers else 0
        runs.append((before + many, powers))
    return runs[0][1] if len(runs) == 1 else Mixed(tuple(runs))


def powers_of(kind: NodeType, resources: int = 1) -> Powers | None:
    """Of one of the `resources` that nodes of this kind are made of (1: the node, or its cores); None: not known.

    A node is switched off as a whole, so that only who replays nodes has states in which they are off.
    """
    power = kind.power
    if power is None or (resources > 1 and power.computing is None and power.idle_uncore != 1.0):
        return None
    uncore = power.per_socket * kind.sockets
    full = power.idle + uncore + power.per_core * kind.cores if power.computing is None else power.computing
    idle = power.idle + (uncore * power.idle_uncore if power.computing is None else 0.0)
    found = Powers(
        idle / resources,
        full / resources,
        (idle if power.budget_idle is None else power.budget_idle) / resources,
        (full if power.budget_computing is None else power.budget_computing) / resources,
    )
    on, off = power.switch_on, power.switch_off
    if resources > 1 or power.off is None or on is None or off is None:
        return found
    return replace(
        found, off=power.off, on_w=on.watts, on_s=on.seconds, off_w=off.watts, off_s=off.seconds
    )

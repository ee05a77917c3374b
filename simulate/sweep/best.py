"""Which runs are worth having: the best by each objective, and those that no other run beats in two at once.

Rule: compared is only what replays the same jobs at the same load; what is not known takes part in no comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Objective:
    """What is wanted: a column, what people call it, and whether little or much of it is good."""

    column: str
    name: str
    much: bool = False

    def cost(self, row: Row) -> float | None:
        """What is to be small; None where it is not known."""
        value = row.get(self.column)
        return None if value is None else -float(value) if self.much else float(value)


WAITING = Objective("mean_waiting_time", "waiting")
UTILISATION = Objective("utilisation", "utilisation", much=True)
ENERGY = Objective("consumed_joules", "energy")
OBJECTIVES = (
    WAITING, Objective("mean_bounded_slowdown", "slowdown"), Objective("makespan", "makespan"), UTILISATION, ENERGY,
)  # fmt: skip


def cases(rows: Sequence[Row], same: Sequence[str]) -> list[list[Row]]:
    """The rows that may be compared with each other, in their order: those with the same in these columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in same), []).append(row)
    return list(found.values())


def best(rows: Sequence[Row], objective: Objective, first: Collection[int] = ()) -> int | None:
    """Position of the best row; of equals one of `first`, then the one that comes first; None where none is known."""
    costs = [
        (cost, place not in first, place)
        for place, row in enumerate(rows) if (cost := objective.cost(row)) is not None
    ]  # fmt: skip
    return min(costs)[2] if costs else None


def traded(rows: Sequence[Row]) -> tuple[Objective, Objective]:
    """The two objectives that a site weighs against each other: energy, where all rows know it, else utilisation, and
    waiting."""
    known = bool(rows) and all(ENERGY.cost(row) is not None for row in rows)
    return (ENERGY if known else UTILISATION), WAITING


def pareto(points: Sequence[Point | None]) -> list[int]:
    """Positions of the points that no other dominates, ascending; little is good. O(points log points).

    A point dominates another that is as large or larger in both and larger in one: of equal points all stay.
    """
    known = sorted((point, place) for place, point in enumerate(points) if point is not None)
    kept: list[tuple[Point, int]] = []
    for point, place in known:
        if not kept or point[1] < kept[-1][0][1] or point == kept[-1][0]:
            kept.append((point, place))
    return sorted(place for _, place in kept)


@dataclass(frozen=True, slots=True)
class Worth:
    """What is worth having among runs that may be compared; runs are positions.

    Args:
        two: the objectives that are weighed against each other.
        front: what no other run beats in both at once.
        best: objective -> the best, for those of which something is known; of equals one of the front.
    """

    two: tuple[Objective, Objective]
    front: tuple[int, ...]
    best: Mapping[Objective, int]


def worth(rows: Sequence[Row]) -> Worth:
    """Judge runs that may be compared. O(rows log rows)."""
    two = traded(rows)

    def point(row: Row) -> Point | None:
        first, second = (objective.cost(row) for objective in two)
        return None if first is None or second is None else (first, second)

    front = tuple(pareto([point(row) for row in rows]))
    found = {objective: best(rows, objective, frozenset(front)) for objective in OBJECTIVES}
    return Worth(two, front, {objective: place for objective, place in found.items() if place is not None})

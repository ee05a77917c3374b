"""The best runs: laws of the Pareto front, the best by each objective, and what is compared."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.sweep import ENERGY, OBJECTIVES, UTILISATION, WAITING, best, cases, pareto, worth

#: Values that are often equal.
VALUES = st.one_of(st.integers(0, 4).map(float), st.floats(0, 4))
POINTS = st.lists(st.one_of(st.none(), st.tuples(VALUES, VALUES)), max_size=30)


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether a point is at least as good in both and better in one: the definition."""
    return one[0] <= other[0] and one[1] <= other[1] and one != other


@given(POINTS)
def test_the_front_is_the_points_that_no_point_dominates(points: list[Any]) -> None:
    front = pareto(points)
    known = [point for point in points if point is not None]
    assert front == sorted(set(front))
    for place, point in enumerate(points):
        beaten = point is None or any(dominates(other, point) for other in known)
        assert (place in front) is not beaten


@given(POINTS)
def test_other_points_are_dominated_by_the_front(points: list[Any]) -> None:
    front = pareto(points)
    for place, point in enumerate(points):
        if point is not None and place not in front:
            assert any(dominates(points[on], point) for on in front)


@given(POINTS, st.randoms(use_true_random=False))
def test_the_order_of_the_points_changes_nothing(points: list[Any], random: Any) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)
    assert sorted(points[i] for i in pareto(points)) == sorted(shuffled[i] for i in pareto(shuffled))


def row(**numbers: Any) -> dict[str, Any]:
    return dict.fromkeys((objective.column for objective in OBJECTIVES), None) | numbers


ROWS = st.lists(
    st.builds(
        lambda waiting, used, joules: row(mean_waiting_time=waiting, utilisation=used, consumed_joules=joules),
        *(st.one_of(st.none(), VALUES) for _ in range(3)),
    ),
    max_size=20,
)


@given(ROWS)
def test_the_best_is_the_least_or_largest_known_value(rows: list[dict[str, Any]]) -> None:
    judged = worth(rows)
    for objective in OBJECTIVES:
        known = [row[objective.column] for row in rows if row[objective.column] is not None]
        assert (objective in judged.best) == bool(known)
        if known:
            wanted = max(known) if objective.maximise else min(known)
            place = judged.best[objective]
            assert rows[place][objective.column] == wanted
            equals = [i for i, row in enumerate(rows) if row[objective.column] == wanted]
            on_front = [i for i in equals if i in judged.front]
            assert place == (on_front or equals)[0]


@given(ROWS)
def test_energy_is_weighed_only_if_all_rows_know_it(rows: list[dict[str, Any]]) -> None:
    known = bool(rows) and all(row["consumed_joules"] is not None for row in rows)
    assert worth(rows).two == ((ENERGY if known else UTILISATION), WAITING)


def test_much_utilisation_and_little_waiting_are_good() -> None:
    rows = [
        row(utilisation=used, mean_waiting_time=wait) for used, wait in ((0.5, 9.0), (0.9, 9.0), (0.7, 3.0), (0.6, 5.0))
    ]
    judged = worth(rows)
    assert judged.front == (1, 2) and judged.best == {WAITING: 2, UTILISATION: 1}
    assert best(rows, WAITING) == 2 and best([], WAITING) is None


def test_cases_group_comparable_rows() -> None:
    rows = [{"workload": cell[0], "load": cell[1], "run": i} for i, cell in enumerate(("a1", "b1", "a2", "a1"))]
    assert [[row["run"] for row in case] for case in cases(rows, ("workload", "load"))] == [[0, 3], [1], [2]]

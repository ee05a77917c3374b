"""Dependencies of workloads after leaving out, sorting and joining jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.workload import LOST, Dependencies, Workload, concatenate_dependencies, joined

PAIRS = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1]))


def of(pairs: Any) -> Dependencies:
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Dependencies(table[:, 0], table[:, 1])


def named(given: Dependencies | None, names: list[Any]) -> set[tuple[Any, Any]]:
    """Return pairs by the names of rows."""
    assert given is not None
    return {(names[a], names[b]) for a, b in zip(given.before.tolist(), given.after.tolist(), strict=True)}


@given(PAIRS, st.sets(st.integers(0, 8)), st.booleans(), st.randoms())
def test_dependencies_between_kept_jobs_are_kept(pairs: set[Any], kept: set[int], mask: bool, draw: Any) -> None:
    order = sorted(kept)
    if not mask:
        draw.shuffle(order)
    rows = np.isin(np.arange(9), order) if mask else np.array(order, np.int64)
    found, lost = of(pairs).take(rows, 9)
    assert named(found, order) == {pair for pair in pairs if set(pair) <= kept}
    assert lost == sum(a not in kept and b in kept for a, b in pairs)


def made(name: str, times: list[float], pairs: Any) -> Workload:
    column, ids = np.array(times), np.array([f"{name}{i}" for i in range(len(times))], object)
    sizes = np.ones(len(times), np.int64)
    return Workload(name, np.arange(len(times)), column, column, column, sizes, more={"name": ids},
                    dependencies=None if pairs is None else of(pairs))  # fmt: skip


def test_joined_workloads_keep_their_dependencies() -> None:
    whole = joined([made("a", [1.0, 5.0], [(1, 0)]), made("b", [0.0, 2.0], None), made("c", [0.0, 0.0], [(0, 1)])])
    assert whole.more["name"].tolist() == ["b0", "c0", "c1", "a0", "b1", "a1"]
    assert named(whole.dependencies, whole.more["name"].tolist()) == {("a1", "a0"), ("c0", "c1")}
    assert concatenate_dependencies([(None, 3), (None, 2)]) is None


def test_dependencies_on_jobs_left_out_are_dropped_and_counted() -> None:
    left = made("a", [0.0, 1.0, 2.0], [(0, 1), (0, 2), (1, 2)]).take(np.array([False, True, True]), "odd ones")
    assert left.left_out == {"odd ones": 1, LOST: 2}
    assert named(left.dependencies, left.more["name"].tolist()) == {("a1", "a2")}

"""Planned starts, reservations and jobs that come first: no placement ever delays them."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.placement.future_occupancy import (
    START_S,
    FutureOccupancy,
    Occupation,
    PlannedStart,
    QueuedAhead,
    StartRequest,
)
from pilotfish.adapters.slurm.placement.partitions import SlurmReservation
from tests.support.slurm_jobs import NOW

SIZES = {f"n{i}": (4, 4.0) for i in range(4)}
NAMES = st.sets(st.sampled_from(sorted(SIZES)), min_size=1).map(lambda names: tuple(sorted(names)))
ORDERS = st.tuples(st.integers(-1, 0), st.integers(-3, 0), st.integers(1, 9))
PLANS = st.lists(
    st.builds(PlannedStart, st.integers(1, 9), ORDERS, NAMES, st.floats(NOW - 50, NOW + 500), st.integers(1, 4),
              st.floats(0, 4), st.booleans()), max_size=5,
)  # fmt: skip
HOLDS = st.lists(
    st.builds(Occupation, NAMES, st.integers(1, 4), st.floats(0, 4), st.floats(NOW, NOW + 500)), max_size=5
)
FIRSTS = st.lists(st.builds(QueuedAhead, st.integers(1, 9), ORDERS, NAMES.map(frozenset)), max_size=4)
WINDOWS = st.lists(
    st.builds(
        SlurmReservation, st.just("r"), st.floats(NOW - 50, NOW + 500), st.floats(NOW, NOW + 900), NAMES.map(frozenset)
    ),
    max_size=3,
)
ASKS = st.builds(StartRequest, ORDERS, st.floats(1, 600), st.integers(1, 4), st.floats(0, 4), st.booleans())


@given(HOLDS, PLANS, FIRSTS, WINDOWS, ASKS)
def test_a_job_that_comes_first_is_never_delayed(
    holds: list[Occupation],
    planned: list[PlannedStart],
    first: list[QueuedAhead],
    windows: list[SlurmReservation],
    ask: StartRequest,
) -> None:
    outlook = FutureOccupancy(NOW, SIZES, holds, planned, first, windows)
    allowed, why = outlook.open_nodes(ask, SIZES.keys())
    assert bool(why) is (len(allowed) < len(SIZES))
    end = NOW + START_S + ask.span
    for name in SIZES:
        assert (name in allowed) is not bool(outlook.obstacle(ask, name))  # sets at once, or one by one: the same
        before = [p for p in planned if name in p.nodes and p.order < ask.order and p.start < end]
        if name not in allowed:
            continue
        assert not [w for w in windows if name in w.nodes and w.start < end and w.end > NOW]
        assert not [f for f in first if name in f.nodes and f.order < ask.order]
        for moment in {p.start for p in before}:  # at every planned start there is room for it, and for this job
            cores_held = sum(h.cores for h in holds if name in h.nodes and h.end > moment)
            begun = sum(p.cores for p in before if p.start <= moment)
            assert cores_held + begun + ask.cores <= 4 and not ask.whole


def test_without_future_starts_all_nodes_are_open() -> None:
    ask = StartRequest((0, 0, 1), math.inf, 4)
    assert FutureOccupancy(NOW, SIZES).open_nodes(ask, SIZES.keys()) == (frozenset(SIZES), "")
    late = PlannedStart(9, (0, -9, 9), tuple(SIZES), NOW + 700.0, 4, 4.0)
    assert FutureOccupancy(NOW, SIZES, planned=[late]).open_nodes(replace(ask, span=600.0), SIZES.keys())[1] == ""
    assert "job 9" in FutureOccupancy(NOW, SIZES, planned=[late]).open_nodes(ask, SIZES.keys())[1]
    lower = replace(late, order=(0, 9, 9))
    assert FutureOccupancy(NOW, SIZES, planned=[lower]).open_nodes(ask, SIZES.keys())[1] == ""

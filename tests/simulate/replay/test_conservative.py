"""Conservative backfilling: the compiled one is the one of the definition, and breaks no promise."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_replay import conservative
from test_replay import JOB, places, workload

from pilotfish.simulate.batch.replay import replay
from pilotfish.simulate.batch.spec import ALLOCATIONS, Conservative
from pilotfish.simulate.batch.worlds import FEW

GROUPS = [(0, 9), (10, 69), (70, 129)]


@given(st.lists(JOB, max_size=25), st.integers(1, 130), st.sampled_from(list(ALLOCATIONS)))
@settings(max_examples=250, deadline=None)
def test_it_is_the_schedule_of_the_definition(rows: list[Any], machine: int, allocation: str) -> None:
    jobs = workload(rows)
    groups = [(first, min(last, machine - 1)) for first, last in GROUPS if first < machine]
    done = replay(jobs, machine, Conservative(allocation=allocation), groups=groups)
    start, where, _ = conservative(jobs, machine, allocation, groups)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where


@given(st.lists(JOB, max_size=20), st.integers(1, 90), st.sampled_from(("sjf", "smallest", "f1", "random")))
@settings(max_examples=100, deadline=None)
def test_in_other_orders_too(rows: list[Any], machine: int, order: str) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine, Conservative(order))
    drawn = np.random.default_rng(0).permutation(len(jobs)).tolist()
    start, where, _ = conservative(jobs, machine, order=order, drawn=drawn)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where


@given(st.lists(JOB, max_size=25), st.integers(1, 90), st.sampled_from(list(ALLOCATIONS)))
@settings(max_examples=60)
def test_a_promise_is_never_broken(rows: list[Any], machine: int, allocation: str) -> None:
    *_, promised = conservative(workload(rows), machine, allocation)
    assert all(earlier >= later for starts in promised for earlier, later in pairwise(starts))


def test_the_profile_grows() -> None:
    rows = [(0.0, 3.0, 5.0 + i, 1 + i % 7) for i in range(FEW + 30)]
    jobs = workload(rows)
    done = replay(jobs, 9, Conservative())
    assert np.array_equal(done.start_time, conservative(jobs, 9)[0], equal_nan=True)


@pytest.mark.parametrize("allocation", ["contiguous", "local"])
def test_what_no_hole_can_hold_is_rejected(allocation: str) -> None:
    done = replay(workload([(0.0, 1.0, 1.0, 8)]), 8, Conservative(allocation=allocation), groups=[(0, 3), (4, 7)])
    assert done.rejected.tolist() == [allocation == "local"]

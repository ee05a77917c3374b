"""Conservative backfilling: the compiled replay equals the reference, and reservations only move to earlier times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.tables import FEW
from tests.reference.plain_replay import conservative
from tests.simulate.replay.test_replay import JOB, places, workload

GROUPS = [(0, 9), (10, 69), (70, 129)]


@given(st.lists(JOB, max_size=25), st.integers(1, 130), st.sampled_from(list(ALLOCATIONS)))
@settings(max_examples=250, deadline=None)
def test_replay_equals_the_reference(rows: list[Any], machine: int, allocation: str) -> None:
    jobs = workload(rows)
    groups = [(first, min(last, machine - 1)) for first, last in GROUPS if first < machine]
    done = replay(jobs, machine, Conservative(allocation=allocation), groups=groups)
    start, where, _ = conservative(jobs, machine, allocation, groups)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where


@given(st.lists(JOB, max_size=20), st.integers(1, 90), st.sampled_from(("sjf", "smallest", "f1", "random")))
@settings(max_examples=100, deadline=None)
def test_replay_equals_the_reference_in_all_orders(rows: list[Any], machine: int, order: str) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine, Conservative(order))
    drawn = np.random.default_rng(0).permutation(len(jobs)).tolist()
    start, where, _ = conservative(jobs, machine, order=order, drawn=drawn)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where


@given(st.lists(JOB, max_size=25), st.integers(1, 90), st.sampled_from(list(ALLOCATIONS)))
@settings(max_examples=60)
def test_reservations_never_move_to_a_later_time(rows: list[Any], machine: int, allocation: str) -> None:
    *_, promised = conservative(workload(rows), machine, allocation)
    assert all(earlier >= later for starts in promised for earlier, later in pairwise(starts))


@pytest.mark.uncounted  # compiled, but for the reference
@pytest.mark.parametrize("allocation", ["basic", "contiguous"])
def test_profile_grows(allocation: str) -> None:
    rows = [(0.0, 3.0, 5.0 + i, 1 + i % 7) for i in range(FEW + 30)]
    jobs = workload(rows)
    done = replay(jobs, 9, Conservative(allocation=allocation))
    assert np.array_equal(done.start_time, conservative(jobs, 9, allocation)[0], equal_nan=True)


@pytest.mark.parametrize("allocation", list(ALLOCATIONS))
def test_slices_of_the_past_make_room(allocation: str) -> None:
    rows = [(5.0 * i, 3.0 + i % 5, 5.0 + i % 11, 1 + i % 7) for i in range(8 * FEW)]
    jobs = workload(rows)
    done = replay(jobs, 9, Conservative(allocation=allocation))
    assert np.array_equal(done.start_time, conservative(jobs, 9, allocation)[0], equal_nan=True)


@pytest.mark.parametrize("allocation", ["contiguous", "local"])
def test_jobs_that_fit_no_gap_are_rejected(allocation: str) -> None:
    done = replay(workload([(0.0, 1.0, 1.0, 8)]), 8, Conservative(allocation=allocation), groups=[(0, 3), (4, 7)])
    assert done.rejected.tolist() == [allocation == "local"]

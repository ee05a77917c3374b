"""Conservative backfilling: the compiled replay equals the reference, and reservations only move to earlier times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.machine import Powers
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative, Saving
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.tables import FEW
from tests.reference.plain_replay import conservative
from tests.simulate.replay.test_replay import GAPS, JOB, SPANS, WHOLE, WHOLE_GAPS, places, workload
from tests.support.instances import rows_of

GROUPS = [(0, 9), (10, 69), (70, 129)]
SMALL_GROUPS = [(0, 4), (5, 11)]
POWERS = Powers(2.0, 4.0, 2.0, 4.0)
SMALL_JOB = st.one_of(rows_of(WHOLE_GAPS, WHOLE, WHOLE, range(1, 9)), st.tuples(GAPS, SPANS, SPANS, st.integers(1, 8)))


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


# --- under a power cap ---
CAPS = st.builds(lambda percent, span: PowerCap(span[0], span[1], Amount(percent / 100, share=True)),
                 st.integers(50, 100), st.tuples(st.sampled_from([-np.inf, 0.0, 3.0, 9.0]),
                                                 st.sampled_from([np.inf, 14.0, 40.0])))  # fmt: skip


def capped(jobs: Workload, machine: int, cap: PowerCap) -> tuple[float, float, int]:
    """Return begin and end of a cap, and how many resources may compute: an idle one draws 2 W, others 4 W."""
    window, most = cap.window(jobs) or (0.0, 0.0), cap.cap.absolute(machine * 4.0)
    return *window, max((n for n in range(machine + 1) if machine * 2.0 + n * 2.0 <= most), default=0)


@given(st.lists(SMALL_JOB, max_size=20), st.integers(4, 12), st.sampled_from(list(ALLOCATIONS)), CAPS)
@settings(max_examples=150, deadline=None)
def test_replay_under_a_power_cap_equals_the_reference(
    rows: list[Any], machine: int, allocation: str, cap: PowerCap
) -> None:
    jobs = workload(rows)
    groups = [(first, min(last, machine - 1)) for first, last in SMALL_GROUPS if first < machine]
    done = replay(jobs, machine, Saving(Conservative(allocation=allocation), limit=cap), groups=groups, powers=POWERS)
    limit = capped(jobs, machine, cap)
    start, where, promised = conservative(jobs, machine, allocation, groups, cap=limit)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where
    assert all(earlier >= later for starts in promised for earlier, later in pairwise(starts))
    for time in (*done.start_time.tolist(), limit[0]):
        if limit[0] <= time < limit[1]:
            assert jobs.size[(done.start_time <= time) & (done.finish_time > time)].sum() <= limit[2]


@pytest.mark.long
@pytest.mark.parametrize(("end", "last"), [(2000.0, True), (90.0, False)])
@pytest.mark.parametrize("allocation", ["basic", "contiguous"])
def test_profile_grows_under_a_cap(allocation: str, end: float, last: bool) -> None:
    rows = [(0.0 if i < FEW + 30 else 3.0, 3.0 + i % 5, 5.0 + i % 11, 1 + i % 4) for i in range(3 * FEW)]
    jobs, cap = workload(rows), PowerCap(20.0, end, Amount(0.8, share=True))
    done = replay(jobs, 9, Saving(Conservative(allocation=allocation), limit=cap), powers=POWERS)
    limit = capped(jobs, 9, cap)
    assert limit[1:] == (jobs.submit_time[-1] if last else 90.0, 5)
    start, *_ = conservative(jobs, 9, allocation, cap=limit)
    assert np.array_equal(done.start_time, start, equal_nan=True)


@given(st.lists(SMALL_JOB, max_size=25), st.integers(1, 12), st.sampled_from(list(ALLOCATIONS)))
@settings(max_examples=80, deadline=None)
def test_a_cap_that_caps_nothing_changes_nothing(rows: list[Any], machine: int, allocation: str) -> None:
    jobs, policy = workload(rows), Conservative(allocation=allocation)
    done = replay(jobs, machine, Saving(policy, limit=PowerCap(cap=Amount(1.0, share=True))))
    base = replay(jobs, machine, policy)
    assert np.array_equal(done.start_time, base.start_time, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == [places(base, i) for i in range(len(jobs))]

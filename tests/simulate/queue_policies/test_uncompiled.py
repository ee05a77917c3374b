"""The built-in policies in Python: their schedules are those of the compiled kernels, job by job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.swf import read_swf
from pilotfish.simulate.queue_policies.policy_specs import ORDERS, Conservative, Easy, Policy, Strict
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.select import Select
from tests.simulate.replay.test_replay import ENDLESS, JOB, workload

#: Jobs that fill a small machine closely, so that several compete for what a reservation leaves.
TIGHT = st.tuples(
    st.sampled_from([0.0, 0.0, 1.0]), st.integers(1, 12).map(float), st.integers(1, 40).map(float), st.integers(1, 8)
)
DRAWN = "random"  # the one order that is drawn in another way
TRACE = "curie_1w_50027000.swf.gz"


def assert_same(own: Replayed, compiled: Replayed) -> None:
    for name in ("start_time", "finish_time", "rejected", "pieces", "piece0", "piece_count"):
        assert np.array_equal(getattr(own, name), getattr(compiled, name), equal_nan=name.endswith("time")), name


@given(
    st.one_of(st.lists(TIGHT, min_size=8, max_size=30), st.lists(JOB, max_size=40), st.lists(ENDLESS, max_size=40)),
    *(
        st.one_of(st.integers(8, 12), st.integers(1, 130)),
        st.sampled_from([name for name in ORDERS if name != DRAWN]),
        st.booleans(),
    ),
)
@settings(max_examples=150, deadline=None)
def test_easy_and_strict_are_those_of_the_kernel(rows: list[Any], machine: int, order: str, fills: bool) -> None:
    jobs, policy = workload([row for row in rows if row[3] <= machine]), Easy(order) if fills else Strict(order)
    assert_same(replay(jobs, machine, uncompiled(policy, 0)), replay(jobs, machine, policy))


@given(
    st.one_of(st.lists(TIGHT, min_size=8, max_size=25), st.lists(JOB, max_size=25)),
    st.one_of(st.integers(8, 12), st.integers(1, 90)),
    st.sampled_from(("fcfs", "sjf", "smallest", "largest", "f1")),
)
@settings(max_examples=150, deadline=None)
def test_conservative_is_that_of_the_kernel(rows: list[Any], machine: int, order: str) -> None:
    jobs, policy = workload([row for row in rows if row[3] <= machine]), Conservative(order)
    assert_same(replay(jobs, machine, uncompiled(policy, 0)), replay(jobs, machine, policy))


@pytest.mark.parametrize("policy", [Easy(), Easy("wfp3"), Strict("smallest"), Conservative("sjf")], ids=str)
def test_a_slice_of_a_real_trace_gives_the_same_schedule(policy: Policy) -> None:
    path = Path(os.environ.get("TRACES", ""), TRACE)
    if not path.is_file():
        pytest.skip(f"{TRACE} is not in the folder that TRACES names: no real trace is replayed")
    jobs = Select(most=2048).of(read_swf(path, skip_invalid=True))
    jobs = jobs.take(np.arange(len(jobs)) < 250)
    own, compiled = replay(jobs, 2048, uncompiled(policy, 0)), replay(jobs, 2048, policy)
    assert_same(own, compiled)
    assert (compiled.start_time > jobs.submit_time).sum() > 60  # the queue is long


def test_a_random_order_is_the_same_whenever_it_is_drawn() -> None:
    jobs = workload([(0.0, 5.0, 9.0, 4)] * 12)
    first, again, other = (replay(jobs, 4, uncompiled(Strict("random"), seed)).start_time for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)

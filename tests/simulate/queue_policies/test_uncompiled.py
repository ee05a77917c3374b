"""The built-in policies in Python: their schedules are those of the compiled kernels, job by job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine
from pilotfish.simulate.model.network import Network
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.node_backfill import NodeBackfill
from pilotfish.simulate.queue_policies.numbered_resources import NumberedResources
from pilotfish.simulate.queue_policies.order_ranks import ORDERS
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative, Easy, Policy, Saving, Strict
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.select import Select
from pilotfish.simulate.world.world_parts import Part
from tests.simulate.replay.test_networked import chained
from tests.simulate.replay.test_replay import ENDLESS, JOB, workload

#: Jobs that fill a small machine closely, so that several compete for what a reservation leaves.
TIGHT = st.tuples(
    st.sampled_from([0.0, 0.0, 1.0]), st.integers(1, 12).map(float), st.integers(1, 40).map(float), st.integers(1, 8)
)
DRAWN = "random"  # the one order that is drawn in another way
#: Caps of Taurus nodes: from below what idle nodes draw on; some begin or end in the middle.
CAPS = st.builds(
    lambda percent, begin, end: PowerCap(begin, end, Amount(percent / 100, share=True)),
    st.integers(40, 100), st.sampled_from([-np.inf, 2.0, 9.0]), st.sampled_from([np.inf, 14.0, 40.0]),
)  # fmt: skip
RESERVING = st.builds(Conservative, st.sampled_from(("fcfs", "largest", "f1")), st.sampled_from(list(ALLOCATIONS)))
TRACE = "curie_1w_50027000.swf.gz"


def depending(jobs: Workload, pairs: list[tuple[int, int]]) -> Workload:
    """Return the jobs with those pairs as dependencies that lead to later jobs."""
    edges = sorted({(a, b) for a, b in pairs if a < b < len(jobs)})
    before, after = np.array(edges, np.int64).reshape(-1, 2).T
    return replace(jobs, dependencies=Dependencies(before, after) if edges else None)


def groups_of(machine: int) -> list[tuple[int, int]]:
    return [(first, min(last, machine - 1)) for first, last in ((0, 4), (5, 29), (30, 99)) if first < machine]


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


@given(
    st.one_of(st.lists(TIGHT, min_size=8, max_size=25), st.lists(JOB, max_size=25)),
    st.one_of(st.integers(8, 12), st.integers(1, 90)),
    RESERVING,
    st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_conservative_allocates_as_the_kernel_does(
    rows: list[Any], machine: int, policy: Conservative, pairs: list[tuple[int, int]]
) -> None:
    """Also jobs that the allocation rejects, and jobs that wait for others."""
    jobs, groups = depending(workload(rows), pairs), groups_of(machine)
    own, compiled = (replay(jobs, machine, each, groups=groups) for each in (uncompiled(policy, 0), policy))
    assert_same(own, compiled)
    assert np.array_equal(own.stranded, compiled.stranded)


@given(
    st.one_of(st.lists(TIGHT, min_size=8, max_size=25), st.lists(JOB, max_size=25)),
    st.one_of(st.integers(8, 12), st.integers(1, 90)),
    st.builds(Saving, RESERVING, limit=CAPS),
    st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_conservative_under_a_cap_is_that_of_the_kernel(
    rows: list[Any], machine: int, policy: Saving, pairs: list[tuple[int, int]]
) -> None:
    """Also jobs that are above the cap, and a cap that has no end because jobs wait for others."""
    jobs, groups = depending(workload(rows), pairs), groups_of(machine)
    assert policy.limit is not None
    python = uncompiled(policy, 0, window=policy.limit.window(jobs))
    own, compiled = (replay(jobs, machine, each, groups=groups) for each in (python, policy))
    assert_same(own, compiled)
    assert np.array_equal(own.stranded, compiled.stranded)


@given(chained(), st.builds(Saving, RESERVING, limit=CAPS))
@settings(max_examples=100, deadline=None)
def test_conservative_under_a_cap_is_that_of_the_kernel_on_a_network(
    scene: tuple[Workload, Network], policy: Saving
) -> None:
    jobs, network = scene
    jobs = replace(jobs, walltime=np.minimum(jobs.walltime, 1e5))
    assert policy.limit is not None
    python = uncompiled(policy, 0, window=policy.limit.window(jobs))
    own, compiled = (replay(jobs, len(network.speeds), each, network=lambda: network) for each in (python, policy))
    assert_same(own, compiled)
    assert np.array_equal(own.stranded, compiled.stranded)


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


@pytest.mark.parametrize("parts", [(), (Part(),)], ids=["stepwise", "parts"])
@pytest.mark.parametrize("policy", [Easy(), Easy("wfp3"), Strict()], ids=str)
def test_easy_counts_resources_where_no_node_matters(
    policy: Easy | Strict, parts: tuple[Part, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A room of nodes costs arrays at each call."""
    rooms = list[Any]()
    monkeypatch.setattr(NumberedResources, "free_nodes", lambda resources: rooms.append(resources))
    jobs = workload([(1.0, 2.0, 5.0, 3)] * 20)
    python, compiled = replay(jobs, 8, uncompiled(policy, 0), parts=parts), replay(jobs, 8, policy)
    assert np.array_equal(python.start_time, compiled.start_time) and not rooms


def test_a_random_order_is_the_same_whenever_it_is_drawn() -> None:
    jobs = workload([(0.0, 5.0, 9.0, 4)] * 12)
    first, again, other = (replay(jobs, 4, uncompiled(Strict("random"), seed)).start_time for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_in_strict_order_one_waiting_job_is_tried_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait for the one with the reservation, however many they are."""
    tried, start = [], NodeBackfill.start
    monkeypatch.setattr(NodeBackfill, "start", lambda self, job: tried.append(job.number) or start(self, job))
    jobs = workload([(0.0, 5.0, 5.0, 8)] * 100)
    policy = Saving(Strict(), limit=PowerCap(-np.inf, np.inf, Amount(0.9, share=True)))
    replayed = replay(jobs, Machine(8 * 2, powers=TAURUS_POWERS), uncompiled(policy, 0, window=(-np.inf, np.inf)))
    assert np.array_equal(replayed.start_time, 5.0 * np.arange(100)) and len(tried) <= 2 * 100

"""Reservations of a queue policy: what is promised is kept, and a promise that cannot be kept is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.queue_policies.free_nodes import FreeNodes, NodeNeed
from pilotfish.simulate.queue_policies.interface import QueueView, Reserve, Start
from pilotfish.simulate.queue_policies.policy_specs import Conservative, Easy
from pilotfish.simulate.queue_policies.queued_job import NodeJob, Running
from pilotfish.simulate.queue_policies.reservations import check_reservations, reserved_until
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from tests.simulate.planning.test_queue_mapping import GIB, cluster_of, job_of, planned
from tests.simulate.replay.test_replay import workload
from tests.support.python_policies import Says

NODES = 3
PLACES = st.lists(st.integers(0, NODES - 1), min_size=1, max_size=NODES, unique=True).map(tuple)
#: Cores on each node, time, walltime, nodes.
ASKED = st.tuples(st.integers(1, 3), st.integers(0, 12).map(float), st.integers(0, 9).map(float), PLACES)


@given(st.lists(ASKED, max_size=6), st.lists(ASKED, min_size=1, max_size=6), st.sampled_from([0.0, 2.0]))
@settings(max_examples=300, deadline=None)
def test_reservations_hold_if_at_each_time_no_node_is_over_capacity(
    running: list[Any], asked: list[Any], late_s: float
) -> None:
    """By brute force: what is held at the beginning of each reservation. Jobs that have just started end `late_s` later."""
    capacity, now = np.full(NODES, 4), 10.0
    jobs = [
        NodeJob(i, i, cores * len(nodes), wall, 0.0, None, len(nodes))
        for i, (cores, _, wall, nodes) in enumerate((*running, *asked))
    ]
    needs = {job.number: NodeNeed(cores) for job, (cores, *_) in zip(jobs, (*running, *asked), strict=True)}
    runs, places, free = list[Running](), dict[int, tuple[int, ...]](), capacity.copy()
    for job, (cores, began, wall, nodes) in zip(jobs, running, strict=False):
        if (free[list(nodes)] < cores).any():
            continue
        just = began > 8.0
        start = now + late_s if just else now - began
        runs.append(Running(job, start, start + wall, ()))
        places[job.number] = nodes
        free[list(nodes)] -= cores
    runs.sort(key=lambda it: it.until)
    room = FreeNodes(free, np.zeros(NODES), lambda job: needs[job.number], lambda it: places[it.job.number])
    snapshot: Any = SimpleNamespace(time=now, running=runs, free_nodes=room.copy)
    reserved = [
        Reserve(job, now + 0.5 + gap, nodes)
        for job, (_, gap, _, nodes) in zip(jobs[len(running) :], asked, strict=True)
    ]
    found = check_reservations(snapshot, reserved, now, now + late_s)

    def held(time: float) -> Any:
        total = np.zeros(NODES)
        for it in runs:
            until = it.until - late_s * (it.start_time >= now + late_s)
            total[list(places[it.job.number])] += needs[it.job.number].cores * (until > time)
        for each in reserved:
            if each.time <= time < reserved_until(each.time, each.job):
                total[list(each.nodes or ())] += needs[each.job.number].cores
        return total

    holds = all((held(each.time) <= capacity).all() for each in reserved)
    assert isinstance(found, dict) == holds
    if isinstance(found, dict):
        assert found == {each.job.number: (each.time, each.nodes) for each in reserved}


ROW = st.tuples(
    st.integers(1, 12).map(float), st.integers(0, 9).map(float), st.integers(1, 4), st.integers(1, 3),
    st.sampled_from([0.0, 3 * GIB]),
)  # fmt: skip


@given(
    st.lists(ROW, min_size=1, max_size=14), st.sampled_from([Easy(), Easy("sjf"), Conservative(), Conservative("sjf")]),
    st.integers(0, 20).map(float),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_job_starts_later_than_it_was_promised_if_none_outlasts_its_walltime(
    rows: list[Any], policy: Easy | Conservative, left: float
) -> None:
    """One job runs already, on both cores of a node. Nothing contends."""
    jobs = [
        job_of(f"j{i}", run, threads, nodes=nodes, memory=memory, walltime=run + slack)
        for i, (run, slack, threads, nodes, memory) in enumerate(rows)
    ]
    jobs.append(job_of("r", 20.0, 2, walltime=20.0 + left))
    underway = [RunningJob("r", ("n0",), 0.5, elapsed_s=10.0)]
    made = planned(uncompiled(policy, 0, arranged=True), jobs, cluster_of(4, 4, 5), underway=underway)
    waits = [job for job in made.jobs if job.start_time > 0.0]
    promised = [job for job in made.jobs if job.reserved is not None]
    assert len(promised) == (len(waits) if isinstance(policy, Conservative) else bool(waits))
    for job in promised:
        assert job.reserved is not None and 0.0 < job.start_time <= job.reserved.start_time
        assert len(job.reserved.nodes) == len(job.nodes)


def two(now: QueueView) -> list[Any]:
    return sorted(now.waiting, key=lambda job: job.id)


def start_the_long_job_and_reserve(nodes: tuple[int, ...] | None) -> Any:
    """`a` runs for 10 s at most and `b` is promised a start in 5 s."""

    def decide(now: QueueView) -> list[Any]:
        if now.time > 0.0:
            return [Start(job) for job in now.waiting]
        first, second = two(now)
        return [Start(first, nodes=(0,)), Reserve(second, 5.0, nodes)]

    return decide


@pytest.mark.parametrize(("nodes", "kept"), [((0,), False), ((1,), True), (None, True), ((2,), False), ((0, 1), False)])
def test_a_start_that_delays_a_reservation_of_the_same_call_is_refused(
    nodes: tuple[int, ...] | None, kept: bool
) -> None:
    jobs = [job_of("a", 8.0, 2, walltime=10.0), job_of("b", 8.0, 2, walltime=10.0)]
    if kept:
        made = planned(start_the_long_job_and_reserve(nodes), jobs, cluster_of(2, 2))
        assert made.jobs[0].reserved is None and made.jobs[1].reserved is not None
        assert (made.jobs[1].reserved.start_time, made.jobs[1].reserved.nodes) == (5.0, ("n1",))
        return
    with pytest.raises(
        PolicyError, match=r"job b, at 0\.0 s: it is reserved for 5\.0 s, nodes \(.*\) \(allowed: where"
    ):
        planned(start_the_long_job_and_reserve(nodes), jobs, cluster_of(2, 2))


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (lambda now: [Reserve(two(now)[0], 0.0)], "it is reserved for 0.0 (allowed: a time after 0.0 s)"),
        (lambda now: [Reserve(two(now)[0], math.inf)], "it is reserved for inf (allowed: a time after 0.0 s)"),
        (lambda now: [Reserve(two(now)[0], math.nan)], "it is reserved for nan (allowed: a time after 0.0 s)"),
        (lambda now: [Reserve(two(now)[0], "5")], "it is reserved for '5' (allowed: a time after 0.0 s)"),
        (lambda now: [Reserve(two(now)[0], 5.0)] * 2, "it is reserved twice (allowed: once)"),
        (lambda now: [Reserve(two(now)[0], 5.0, ("x",))], "it is reserved for 5.0 s, nodes ('x',)"),
        (lambda now: [Start(two(now)[0]), Reserve(two(now)[0], 5.0)], "it is already running"),
        (lambda now: [Reserve("a", 5.0)], "a decision is about 'a' (allowed: a job of `waiting`)"),
    ],
)
def test_an_invalid_reservation_is_one_clear_error(decide: Any, why: str) -> None:
    with pytest.raises(PolicyError) as caught:
        planned(decide, [job_of("a", 5.0), job_of("b", 5.0)], cluster_of(4))
    assert why in str(caught.value)


def test_a_replay_refuses_what_a_plan_refuses() -> None:
    """Two resources: the first job takes both for up to 10 s, and the second is promised one at 5 s, or at 10 s."""
    jobs = workload([(0.0, 8.0, 10.0, 2), (0.0, 1.0, 1.0, 1)])

    def decide(at: float) -> Any:
        def decide(now: QueueView) -> list[Any]:
            if now.time > 0.0:
                return [Start(job) for job in now.waiting]
            first, second = now.waiting
            return [Start(first), Reserve(second, at)]

        return Says(decide)

    assert replay(jobs, 2, decide(10.0)).start_time.tolist() == [0.0, 8.0]
    with pytest.raises(
        PolicyError, match=r"job 2, at 0\.0 s: it is reserved for 5\.0 s \(allowed: where jobs that run"
    ):
        replay(jobs, 2, decide(5.0))

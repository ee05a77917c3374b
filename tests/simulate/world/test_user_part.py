"""A part that a user writes, failing nodes, works under every queue policy and with every other part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power, Transition
from pilotfish.simulate.model.machine import TAURUS_POWERS, machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import (
    ON_NODES,
    Easy,
    parse,
)
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.known_run_times import WALLTIME
from pilotfish.simulate.world.replay_result import Replayed
from tests.cli.replay.test_what_goes_together import POLICIES
from tests.support.failing_nodes import FailingNodes, Outage
from tests.support.python_policies import Easy as OwnEasy

#: Policies that replay jobs; a conservative policy promises starts, so no machine is switched off under it, and
#: `nodes` reserves nothing for which a budget could save.
QUEUE = [spec for spec in POLICIES if spec.startswith(("easy", "strict", "conservative", "pairs", "nodes", *ON_NODES))
         and (not spec.startswith(tuple(ON_NODES)) or "+" not in spec or "+powercap" in spec)
         and spec not in ("conservative+opportunistic", "conservative+proportional", "conservative+inertial",
                          "conservative+energybud:budget=70%", "nodes+energybud:budget=70%")]  # fmt: skip
SWITCHED = Power(40.0, 5.0, off=2.0, switch_on=Transition(50.0, 3.0), switch_off=Transition(30.0, 1.0))
CLUSTER = Cluster("lab", tuple(Node(f"n{i}", NodeType("small", 4, 8e9, 20e9, power=SWITCHED)) for i in range(3)))
OUTAGES = (Outage(20.0, 60.0, (0, 3)), Outage(90.0, 130.0, (4, 7)), Outage(300.0, 301.0, (0, 3)))


class Halves:
    """Predicts half of each walltime."""

    def __init__(self, jobs: Workload) -> None:
        self.jobs = jobs

    def expected(self, row: int) -> float:
        return float(self.jobs.walltime[row]) / 2

    def ended(self, row: int, ran: float | None = None) -> None:
        pass


def jobs(*, linked: bool) -> Workload:
    rng, count = np.random.default_rng(11), 40
    runs = rng.integers(1, 60, count).astype(float)
    size = rng.integers(1, 5, count)
    dependencies = Dependencies(np.array([0, 3, 7]), np.array([5, 9, 11])) if linked else None
    return Workload("w", np.arange(count), np.sort(rng.integers(0, 150, count)).astype(float), runs,
                    runs * rng.integers(1, 3, count), size, dependencies=dependencies)  # fmt: skip


def check(done: Replayed, nodes: FailingNodes) -> None:
    """Each job ran for its time, on resources that were up, after the last time that it was requeued."""
    assert not done.rejected.any() and not np.isnan(done.finish_time).any()
    requeued = {number: time for time, number in nodes.requeued}
    assert requeued, "the outages hit a job"
    for row in range(len(done.start_time)):
        first, count = done.piece0[row], done.piece_count[row]
        assert done.start_time[row] >= requeued.get(row, -1.0)
        for low, high in done.pieces[first : first + count].tolist():
            for outage in OUTAGES:
                overlaps = low <= outage.resources[1] and high >= outage.resources[0]
                during = done.start_time[row] < outage.end and done.finish_time[row] > outage.begin
                assert not (overlaps and during), (row, outage)
    busy = [(time, step) for start, end, size in zip(done.start_time, done.finish_time, done.sizes, strict=True)
            for time, step in ((start, int(size)), (end, -int(size)))]  # fmt: skip
    used = 0
    for _, step in sorted(busy, key=lambda change: (change[0], change[1])):
        used += step
        assert used <= done.machine


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("spec", [spec for spec in QUEUE if not parse(spec).needs_nodes])
def test_numbered_resources_fail_under_every_policy(spec: str, predicted: bool) -> None:
    workload, nodes = jobs(linked="energybud" not in spec), FailingNodes(OUTAGES)  # a budget needs a last submission
    run_times: Any = Halves(workload) if predicted else WALLTIME
    replayed = replay(workload, 12, parse(spec), powers=TAURUS_POWERS, run_times=run_times, parts=[nodes])
    check(replayed, nodes)
    np.testing.assert_allclose(replayed.finish_time - replayed.start_time, workload.run_time, rtol=1e-12)


@pytest.mark.parametrize("spec", QUEUE)
def test_shared_nodes_fail_under_every_policy(spec: str) -> None:
    workload, nodes = jobs(linked="energybud" not in spec), FailingNodes(OUTAGES)  # a budget needs a last submission
    replayed = replay(workload, machine_of(CLUSTER), parse(spec), parts=[nodes], contention=True)
    check(replayed, nodes)


def test_a_policy_in_python_sees_it_too() -> None:
    workload = jobs(linked=False)
    nodes, same_nodes = FailingNodes(OUTAGES), FailingNodes(OUTAGES)
    replayed = replay(workload, 12, OwnEasy(), parts=[nodes])
    same = replay(workload, 12, Easy(), parts=[same_nodes])
    assert nodes.requeued == same_nodes.requeued
    np.testing.assert_array_equal(replayed.start_time, same.start_time)


def test_without_outages_nothing_changes() -> None:
    workload = jobs(linked=True)
    plain, with_part = replay(workload, 12, Easy()), replay(workload, 12, Easy(), parts=[FailingNodes(())])
    np.testing.assert_equal(plain.start_time, with_part.start_time)
    np.testing.assert_equal(plain.pieces, with_part.pieces)


@pytest.mark.parametrize("spec", [spec for spec in QUEUE if "energybud" not in spec])
@pytest.mark.parametrize("on_nodes", [False, True])
def test_a_job_as_wide_as_the_machine_waits_for_what_is_down_and_starts_as_it_is_back(
    spec: str, *, on_nodes: bool
) -> None:
    policy = parse(spec)
    if policy.needs_nodes and not on_nodes:
        pytest.skip("it places jobs on nodes")
    runs, sizes = np.array([15.0, 20.0, 1.0]), np.array([4, 12, 1])
    wide = Workload("w", np.arange(3), np.array([0.0, 1.0, 200.0]), runs, runs * 3.0, sizes)
    settings: dict[str, Any] = {"contention": True} if on_nodes else {"powers": TAURUS_POWERS}
    start, later_start = (
        replay(wide, machine_of(CLUSTER) if on_nodes else 12, policy, parts=[FailingNodes(outages)], **settings).start_time[1]
        for outages in ((), (Outage(10.0, 50.0, (4, 7)),))
    )  # fmt: skip
    assert later_start == (start if "powercap" in spec else start + 35.0)  # a cap keeps it until its end, at 200 s

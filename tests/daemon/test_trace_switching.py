"""The daemon switches nodes in a trace as the policy does in a replay: one object decides in both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.live_component import use_policy
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.trace_run import DaemonReplay, TraceJobs, TraceRun
from pilotfish.simulate.kernels.queue.power.tables import TO_IDLE
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, Power, Transition
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay import energy
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed
from tests.simulate.replay.test_replay import places

Row = tuple[int, int, int, int]
CORES = 4


def cluster_of(off_s: float, on_s: float, nodes: int = 4) -> Cluster:
    power = Power(
        95.0, computing=190.0, off=9.0, switch_on=Transition(125.0, on_s), switch_off=Transition(101.0, off_s)
    )
    kind = NodeType("t", CORES, 8e9, 1e10, contention=Contention.NONE, power=power)
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(nodes)))


def workload_of(rows: list[Row]) -> Workload:
    """Return jobs whose latest ends never coincide: rounded clocks would order them in one way or another."""
    submit, run, slack, size = (np.array(column, float) for column in zip(*rows, strict=True))
    walltime = run + slack + 0.25 + 0.01 * np.arange(len(rows))
    return Workload("trace", np.arange(len(rows)), submit, run, walltime, size.astype(int))


def played(jobs: Workload, cluster: Cluster, policy: str) -> DaemonReplay:
    use_policy(policy)  # a new object
    told = TraceJobs(jobs, cluster, "walltime")
    options = Options(policy=policy, objective="turnaround", window=WINDOW)
    guard = Guard(bound=0.5, window=20, fallback="slf")
    adapter = SimulatedAdapter(cluster, truth=told.truth)
    run = TraceRun(told, adapter, options, guard, switched=adapter.power.switched)
    return run.run(progress=lambda now: None, clock=lambda: 0.0)


def no_job_runs_on_a_node_that_is_off(done: Replayed) -> None:
    """Assert it of each core: from the begin of a switch off to the end of the next boot no job runs there."""
    off_since: dict[int, float] = {}
    away = list[tuple[int, float, float]]()
    for row in done.switched.tolist():
        kind, begin, end, first, last = row
        for core in range(first, last + 1):
            if kind == TO_IDLE:
                away.append((core, off_since.pop(core), end))
            else:
                assert core not in off_since, "it is off already"
                off_since[core] = begin
    away += [(core, begin, np.inf) for core, begin in off_since.items()]
    for job in range(len(done.workload)):
        mine = set(places(done, job))
        for core, begin, end in away:
            apart = done.finish_time[job] <= begin + 1e-6 or done.start_time[job] >= end - 1e-6
            assert core not in mine or apart, (job, core, begin, end)


ROWS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 9), st.sampled_from((1, 2, 4, 8, 12, 16))),
    min_size=1,
    max_size=14,
).map(sorted)
POLICIES = (
    "easy+opportunistic:t_idle=0", "easy+opportunistic:t_idle=5", "strict+opportunistic:t_idle=3",
    "easy+proportional:rho=0.5,period=10", "easy+proportional:rho=0.25,period=7,passes=period",
    "easy+inertial:v_ub=5,period=10", "easy+inertial:v_ub=20,period=10,growth=plus-one,switches=now",
    "easy+proportional:rho=0.75,period=10+opportunistic:t_idle=3", "easy+powercap:cap=95%+opportunistic:t_idle=2",
)  # fmt: skip
#: A job after all others. A cap of a replay ends with the last submission, and one of the daemon never does.
LAST = (400, 1, 0, 1)
#: The largest job that POLICIES' cap ever lets start. The daemon rejects a larger one; a replay starts it after the cap.
LARGEST = 12


@given(ROWS, st.sampled_from(POLICIES), st.sampled_from(((0.0, 0.0), (1.0, 1.0), (2.0, 3.0), (4.0, 10.0))))
@settings(max_examples=60)
def test_the_daemon_switches_nodes_as_the_replay_does(
    rows: list[Row], policy: str, seconds: tuple[float, float]
) -> None:
    if "powercap" in policy:
        rows = [*((submit, run, slack, min(size, LARGEST)) for submit, run, slack, size in rows), LAST]
    jobs, cluster = workload_of(rows), cluster_of(*seconds)
    live = played(jobs, cluster, policy)
    assert not live.failures
    done = live.replayed
    no_job_runs_on_a_node_that_is_off(done)
    machine = machine_of(cluster)
    expected = replay(jobs, machine, parse(policy), contention=True)
    np.testing.assert_allclose(done.start_time, expected.start_time, rtol=0, atol=1e-4)
    np.testing.assert_allclose(done.finish_time, expected.finish_time, rtol=0, atol=1e-4)
    assert machine.powers is not None
    consumed = [energy.consumed(each, machine.powers) for each in (done, expected)]
    assert consumed[0] == pytest.approx(consumed[1], rel=1e-6)

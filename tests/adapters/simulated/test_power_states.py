"""Simulated nodes that are powered down and up: no job is ever on a node that is off, or that has not booted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power, Transition
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, PowerOff, PowerOn, Submit
from pilotfish.simulate.model.snapshot import JobState, NodeState

OFF_S, ON_S = 6.0, 100.0
POWER = Power(95.0, computing=190.0, off=9.0, switch_on=Transition(125.0, ON_S), switch_off=Transition(101.0, OFF_S))
KIND = NodeType("t", 2, 1e9, 1e10, power=POWER)
NAMES = ("a", "b", "c")


def cluster_of(kind: NodeType = KIND) -> Cluster:
    return Cluster("lab", tuple(Node(name, kind) for name in NAMES))


def job(id: str, seconds: float = 10.0, nodes: int = 1, walltime: float | None = None) -> Job:
    return Job(id, Profile((ThreadGroup(1, seconds),)), nodes=nodes, walltime=walltime)


def test_a_node_goes_off_and_a_job_waits_for_its_boot() -> None:
    adapter = SimulatedAdapter(cluster_of(), start_time=1000.0)
    adapter.apply(PowerOff(("a",)))
    assert adapter.snapshot().node_states[0] is NodeState.DOWN
    assert adapter.wait(1e6) and adapter.time == 1000.0 + OFF_S
    assert adapter.snapshot().node_states[0] is NodeState.ASLEEP
    adapter.apply(Submit("k", job("k", 10.0, nodes=2, walltime=10.0), ("a", "b")))
    assert adapter.snapshot().node_states[0] is NodeState.UP
    adapter.advance(1e6)
    (view,) = adapter.snapshot().jobs
    assert view.state is JobState.COMPLETED
    assert view.start_time == pytest.approx(1000.0 + OFF_S + ON_S)
    assert view.finish_time == pytest.approx(view.start_time + 10.0, abs=1e-5)


def test_a_node_that_was_powered_up_is_ready_sooner() -> None:
    adapter = SimulatedAdapter(cluster_of())
    adapter.apply(PowerOff(("a",)))
    adapter.advance(50.0)
    adapter.apply(PowerOn(("a", "b")))
    adapter.advance(70.0)
    adapter.apply(PowerOn(("a",)))
    adapter.apply(Submit("k", job("k"), ("a",)))
    (view,) = adapter.snapshot().jobs
    assert view.start_time == pytest.approx(50.0 + ON_S)
    assert [(switch.node, switch.on) for switch in adapter.power.switched] == [(0, False), (0, True)]


def test_what_cannot_be_switched_is_refused_and_nothing_changes() -> None:
    adapter = SimulatedAdapter(cluster_of())
    adapter.apply(Submit("k", job("k"), ("a",)))
    adapter.apply(PowerOff(("b",)))
    for action, why in (
        (PowerOff(("c", "a")), "a has jobs"),
        (PowerOff(("c", "b")), "b is down"),
        (PowerOn(("b",)), "b is down"),
        (PowerOff(("c", "z")), "z is no node"),
        (Submit("l", job("l"), ("b",)), "being powered down"),
    ):
        with pytest.raises(AdapterError, match=why) as caught:
            adapter.apply(action)
        assert not caught.value.transient and adapter.snapshot().node_states[2] is NodeState.UP
    plain = SimulatedAdapter(cluster_of(NodeType("t", 2, 1e9, 1e10, power=Power(95.0, computing=190.0))))
    assert adapter.capabilities.power and not plain.capabilities.power
    with pytest.raises(AdapterError, match="can be switched"):
        plain.apply(PowerOff(("a",)))


NODES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)
STEPS = st.lists(
    st.tuples(st.sampled_from(("off", "on", "start", "cancel")), NODES, st.integers(0, 60)), min_size=1, max_size=25
)


@given(STEPS)
def test_no_job_is_ever_on_a_node_that_is_off_or_boots(steps: list[tuple[str, tuple[str, ...], int]]) -> None:
    adapter = SimulatedAdapter(cluster_of())
    for number, (step, nodes, seconds) in enumerate(steps):
        key = str(number)
        action = {
            "off": PowerOff(nodes),
            "on": PowerOn(nodes),
            "start": Submit(key, job(key, 1.0 + seconds, len(nodes)), nodes),
            "cancel": Cancel(str(number - 1)),
        }[step]
        before = adapter.snapshot()
        busy = {name for view in before.jobs if not view.state.ended for name in view.nodes}
        try:
            adapter.apply(action)
        except AdapterError:
            assert adapter.snapshot().node_states == before.node_states
        else:
            assert step != "off" or not busy & set(nodes)
        adapter.advance(float(seconds))
    adapter.advance(1e6)
    off = list[tuple[str, float, float]]()  # from when a node goes off until it has booted
    for switch in adapter.power.switched:
        name = NAMES[switch.node]
        if switch.on:
            began = next(i for i in reversed(range(len(off))) if off[i][0] == name)
            off[began] = name, off[began][1], switch.end
        else:
            off.append((name, switch.begin, float("inf")))
    for view in adapter.snapshot().jobs:
        assert view.state.ended and view.start_time is not None and view.finish_time is not None
        for name, begin, end in off:
            is_clear = view.finish_time <= begin or view.start_time >= end - 1e-9
            cancelled_in_boot = view.state is JobState.CANCELLED and view.finish_time <= view.start_time
            assert name not in view.nodes or is_clear or cancelled_in_boot

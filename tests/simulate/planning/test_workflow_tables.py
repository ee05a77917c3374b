"""A profile on another node type: busy time and bandwidth scale with speed, idle time does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, group_phases, measured_type
from pilotfish.simulate.model.job import Phase, Profile, ThreadGroup
from pilotfish.simulate.planning.workflow_tables import scaling_notes
from tests.support.instances import groups, node_types

SLOW = NodeType("slow", 1, 100.0, 10e9, frequency=1e9)
FAST = NodeType("fast", 1, 100.0, 10e9, frequency=2e9)
CLUSTER = Cluster("lab", (Node("s", SLOW), Node("f", FAST)))


def test_twice_the_speed_halves_busy_time_only() -> None:
    group = ThreadGroup(1, 10.0, utilisation=0.5, bandwidth=3e9)  # 20 s, half of them idle
    assert group_phases(group, SLOW, FAST) == [(pytest.approx(15.0), pytest.approx(1 / 3), pytest.approx(6e9))]
    assert group_phases(group, FAST, SLOW) == [(pytest.approx(30.0), pytest.approx(2 / 3), pytest.approx(1.5e9))]


def test_bandwidth_stays_within_the_node() -> None:
    group = ThreadGroup(1, 10.0, bandwidth=8e9)
    assert group_phases(group, SLOW, FAST)[0][2] == 10e9


def test_a_profile_on_its_own_type_is_unchanged() -> None:
    """Even if it needs more than the node has."""
    group = ThreadGroup(1, 10.0, utilisation=0.4, bandwidth=45e9)
    for origin, kind in [(SLOW, SLOW), (None, FAST), (NodeType("slow", 1, 100.0, 10e9, frequency=1e9), SLOW)]:
        assert group_phases(group, origin, kind) == [(25.0, 0.4, 45e9)]


def test_speed_replaces_frequency() -> None:
    turbo = NodeType("turbo", 1, 100.0, 10e9, frequency=1e9, speed=4e9)
    assert group_phases(ThreadGroup(1, 8.0), SLOW, turbo)[0][0] == pytest.approx(2.0)


def test_phases_scale_one_by_one() -> None:
    phases = (Phase(0.5, 1.0, 2e9), Phase(0.5, 0.2, 0.0))
    group = ThreadGroup(1, 12.0, phases=phases)  # 20 s: 10 busy, then 2 busy and 8 idle
    assert group_phases(group, SLOW, SLOW) == [(pytest.approx(10.0), 1.0, 2e9), (pytest.approx(10.0), 0.2, 0.0)]
    assert group_phases(group, SLOW, FAST) == [
        (pytest.approx(5.0), 1.0, pytest.approx(4e9)),
        (pytest.approx(9.0), pytest.approx(1 / 9), 0.0),
    ]


def test_calibrated_types_are_compared_by_their_loop_speed_and_others_are_not() -> None:
    group = ThreadGroup(1, 12.0)
    slow, fast = replace(SLOW, loop_speed=1e8), replace(FAST, loop_speed=4e8, speed=1.0)
    assert group_phases(group, slow, fast)[0][0] == pytest.approx(3.0)
    assert group_phases(group, slow, FAST) == group_phases(group, SLOW, FAST), "FAST was not calibrated"
    assert group_phases(group, slow, slow.at_pace(0.5))[0][0] == pytest.approx(24.0)


@settings(max_examples=60, deadline=None)
@given(groups(phased=True), node_types("a"), node_types("b"))
def test_busy_time_scales_and_idle_time_does_not(group: ThreadGroup, a: NodeType, b: NodeType) -> None:
    here, there = group_phases(group, a, a), group_phases(group, a, b)
    for (work, u, bandwidth), (other, v, moved) in zip(here, there, strict=True):
        assert other * (1 - v) == pytest.approx(work * (1 - u))
        assert other * v == pytest.approx(work * u * a.relative_speed / b.relative_speed)
        assert 0.0 < v <= 1.0 and moved <= max(b.memory_bandwidth, bandwidth)
    assert sum(work * u for work, u, _ in here) == pytest.approx(group.demand)


@given(st.sampled_from([None, "slow", "fast", "gone"]))
def test_the_type_of_the_measurement(name: str | None) -> None:
    expected = {None: SLOW, "slow": SLOW, "fast": FAST, "gone": None}
    assert measured_type(Profile((ThreadGroup(1, 1.0),), measured_on=name), CLUSTER) is expected[name]


def test_notes_name_scaled_and_unscaled_profiles() -> None:
    group = (ThreadGroup(1, 1.0),)
    home, gone = Profile(group, name="home"), Profile(group, name="p", measured_on="gone")
    (note,) = scaling_notes([home], CLUSTER)
    assert note.startswith("profile home: measured on slow, scaled to fast")
    assert "measured on 'gone'" in scaling_notes([gone], CLUSTER)[0]
    assert scaling_notes([home, gone], Cluster("lab", (Node("s", SLOW),)))[0].startswith("profile p")
    assert scaling_notes([], CLUSTER) == []

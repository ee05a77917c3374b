"""The shadow knows how far jobs have come under contention, as the engine that foretold it does."""

from __future__ import annotations

import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.shadow import Seen, Shadow
from pilotfish.simulate.job import Job, Profile, ThreadGroup
from pilotfish.simulate.plan import Start
from pilotfish.simulate.platform import Cluster, Node, NodeType

SITE = Cluster("lab", tuple(Node(name, NodeType("t", 4, 1e9, 10e9)) for name in "ab"), 2.0)


def hog(name: str, seconds: float) -> Job:
    """Four threads that want twice the node's bandwidth."""
    return Job(name, Profile((ThreadGroup(4, seconds, bandwidth=5e9),)))


def test_it_follows_what_started_and_ended_between_two_looks() -> None:
    real, shadow = SimulatedAdapter(SITE, start_time=100.0), Shadow()
    real.apply(Start("w/long", hog("long", 10.0), ("a",)))
    real.apply(Start("w/short", hog("short", 2.0), ("a",)))
    running, ended = {}, {}
    real.wait(1e9)  # the short one has come and gone
    for view in real.snapshot().jobs:
        seen = Seen(view.job, view.nodes, view.start_time or 0.0)
        (ended if view.state.ended else running)[view.key] = seen
    assert set(ended) == {"w/short"}
    shadow.follow(SITE, running, ended, real.time)
    assert shadow.progress("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)
    assert shadow.progress("w/short") is None
    real.advance(3.0)
    shadow.follow(SITE, running, {}, real.time)
    assert 0.0 < shadow.progress("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)


def test_what_cannot_be_simulated_is_not_followed() -> None:
    shadow = Shadow()
    shadow.follow(SITE, {"w/x": Seen(hog("x", 1.0), ("elsewhere",), 0.0)}, {}, 5.0)
    assert shadow.progress("w/x") is None


def test_a_clock_that_goes_back_and_another_cluster_start_it_anew() -> None:
    shadow, running = Shadow(), {"w/x": Seen(hog("x", 10.0), ("a",), 50.0)}
    shadow.follow(SITE, running, {}, 60.0)
    later = shadow.progress("w/x")
    shadow.follow(SITE, running, {}, 55.0)
    assert shadow.progress("w/x") == pytest.approx(later / 2)
    shadow.follow(Cluster("other", SITE.nodes, 2.0), running, {}, 60.0)
    assert shadow.progress("w/x") == pytest.approx(later)

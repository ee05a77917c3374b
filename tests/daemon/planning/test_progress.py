"""The simulated progress of running jobs equals that of the engine that made the forecast."""

from __future__ import annotations

import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.planning.problem import running_view
from pilotfish.daemon.planning.progress import Progress
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Submit

SITE = Cluster("lab", tuple(Node(name, NodeType("t", 4, 1e9, 10e9)) for name in "ab"), 2.0)


def hog(name: str, seconds: float) -> Job:
    """Return a job of four threads that demand twice the node's bandwidth."""
    return Job(name, Profile((ThreadGroup(4, seconds, bandwidth=5e9),)))


def test_it_follows_jobs_that_started_and_ended_between_two_snapshots() -> None:
    real, progress = SimulatedAdapter(SITE, start_time=100.0), Progress()
    real.apply(Submit("w/long", hog("long", 10.0), ("a",)))
    real.apply(Submit("w/short", hog("short", 2.0), ("a",)))
    running, ended = {}, {}
    real.wait(1e9)  # the short job has started and ended
    for view in real.snapshot().jobs:
        seen = running_view(view.key, view.job, view.nodes, view.start_time or 0.0)
        (ended if view.state.ended else running)[view.key] = seen
    assert set(ended) == {"w/short"}
    progress.follow(SITE, running, ended, real.time)
    assert progress.of("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)
    assert progress.of("w/short") is None
    real.advance(3.0)
    progress.follow(SITE, running, {}, real.time)
    assert 0.0 < progress.of("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)


def test_a_job_that_cannot_be_simulated_is_not_followed() -> None:
    progress = Progress()
    progress.follow(SITE, {"w/x": running_view("w/x", hog("x", 1.0), ("elsewhere",), 0.0)}, {}, 5.0)
    assert progress.of("w/x") is None


def test_it_starts_over_when_time_goes_back_or_the_cluster_changes() -> None:
    progress, running = Progress(), {"w/x": running_view("w/x", hog("x", 10.0), ("a",), 50.0)}
    progress.follow(SITE, running, {}, 60.0)
    later = progress.of("w/x")
    progress.follow(SITE, running, {}, 55.0)
    assert progress.of("w/x") == pytest.approx(later / 2)
    progress.follow(Cluster("other", SITE.nodes, 2.0), running, {}, 60.0)
    assert progress.of("w/x") == pytest.approx(later)

"""Lookahead judges whole runs: what never ends must not look short."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pilotfish.simulate.engine import Simulation
from pilotfish.simulate.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planner import plan
from pilotfish.simulate.platform import Cluster, ContendingThreads, Contention, CpuSharing, Node, NodeType


def cluster_of(count: int, oversubscription: float) -> Cluster:
    """Nodes as in the paper: equal shares of the bandwidth among all threads."""
    kind = NodeType(
        "paper", 4, 8e9, 10e9, contention=Contention.EQUAL_SHARE, contending_threads=ContendingThreads.ALL,
        cpu_sharing=CpuSharing.PER_THREAD,
    )  # fmt: skip
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(count)), oversubscription)


def test_jobs_that_wait_for_each_other_never_count_as_run() -> None:
    """A wait on purpose that closes a circle leaves jobs unstarted: that is no short plan but none."""
    jobs = tuple(Job(name, Profile((ThreadGroup(1, 5.0),))) for name in "abc")
    simulation = Simulation(Workflow("circle", jobs), cluster_of(1, 1.0))
    simulation.run("mom")
    places, keys, caps = simulation.world.placed.copy(), np.arange(3.0), np.full(1, math.inf)
    assert simulation.follow(places, keys, np.array([-1, -1, -1]), caps)[0] == pytest.approx(5.0)
    assert simulation.follow(places, keys, np.array([1, 0, -1]), caps) == (math.inf, math.inf)


def test_it_makes_a_job_wait_on_purpose_where_stacking_wastes_the_node() -> None:
    """Two bandwidth hogs side by side take four times as long as one (twice the share, twice the threads)."""
    hog = Profile((ThreadGroup(4, 10.0, bandwidth=5e9),))
    workflow = Workflow("hogs", tuple(Job(f"h{i}", hog) for i in range(2)))
    site = cluster_of(1, math.inf)
    stacked, searched = plan(workflow, site, policy="mom"), plan(workflow, site)
    assert stacked.makespan == pytest.approx(80.0)
    assert searched.makespan == pytest.approx(40.0)
    assert sorted(job.start_time for job in searched.jobs) == pytest.approx([0.0, 20.0])
    assert searched.makespan >= searched.lower_bound * (1 - 1e-9)

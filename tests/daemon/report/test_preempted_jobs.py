"""What a choice may cost others: the preemptible jobs on its nodes, and the work that each would lose."""

from __future__ import annotations

from pilotfish.daemon.report.job_log import _preempted
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

CLUSTER = Cluster("c", tuple(Node(f"n{n}", NodeType("t", 4, 1e9, 1e9)) for n in range(1, 4)))
THREE = Job("j", Profile((ThreadGroup(3, 60.0),)))


def test_only_jobs_that_yield_on_the_chosen_nodes_are_named_with_what_they_lose() -> None:
    views = (
        JobView("b1", THREE, JobState.RUNNING, (), start_time=900.0, preemptible=True, yields=("n1", "n2")),
        JobView("b2", THREE, JobState.RUNNING, (), start_time=990.0, preemptible=True, yields=("n3",)),
        JobView("b3", THREE, JobState.CONFIGURING, (), preemptible=True, yields=("n1",)),
        JobView("b4", THREE, JobState.RUNNING, ("n1",), start_time=0.0, preemptible=True),
    )
    snapshot = Snapshot(1000.0, 1, CLUSTER, (NodeState.UP,) * 3, views)
    assert _preempted(("n1",), snapshot) == {"b1": 600.0, "b3": 0.0}
    assert _preempted(("n2", "n3"), snapshot) == {"b1": 600.0, "b2": 30.0}
    assert snapshot.jobs.yielding == views[:3]

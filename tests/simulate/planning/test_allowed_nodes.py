"""A job with a list of allowed nodes runs only there, under every policy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.capacity import Occupancy, never_fits
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.planner import POLICIES, plan
from pilotfish.simulate.planning.simulation import Simulation

NODES = ("a", "b", "c", "d")
CLUSTER = Cluster("x", tuple(Node(name, NodeType("t", 2, 1e9, 1e9)) for name in NODES))
PROFILE = Profile((ThreadGroup(1, 1.0),))


LISTS = st.lists(st.sets(st.sampled_from(NODES), min_size=2), min_size=1, max_size=12)


@given(LISTS, st.sampled_from(sorted(POLICIES)), st.data())
@settings(max_examples=60, deadline=None)
def test_every_policy_keeps_to_the_list(lists: list[set[str]], policy: str, data: st.DataObject) -> None:
    jobs = tuple(
        Job(f"j{i}", PROFILE, nodes=data.draw(st.integers(1, 2)), allowed=frozenset(names))
        for i, names in enumerate(lists)
    )
    found = plan(Workflow("w", (*jobs, Job("free", PROFILE))), CLUSTER, policy=policy, seed=0, budget=60)
    for job, planned in zip(jobs, found.jobs, strict=False):
        assert set(planned.nodes) <= set(job.allowed or ()) and len(set(planned.nodes)) == job.nodes
    assert found.makespan >= found.lower_bound - 1e-9


def test_a_list_too_short_is_refused_by_name() -> None:
    job = Job("j", PROFILE, nodes=2, allowed=frozenset({"a"}))
    with pytest.raises(InvalidJobError, match=r"'j' can never start.*2 nodes of its size among those that may run it"):
        Simulation(Workflow("w", (job,)), CLUSTER)
    assert "1 of 4" in (never_fits(job, CLUSTER) or "")
    assert Occupancy(CLUSTER).obstacle(job, "b") == "it may not run on b"
    assert Occupancy(CLUSTER).obstacle(job, "a") is None


def test_a_restricted_job_does_not_hold_up_others() -> None:
    tied = [Job(f"t{i}", PROFILE, allowed=frozenset({"a"})) for i in range(4)]
    simulation = Simulation(Workflow("w", (*tied, Job("free", PROFILE))), CLUSTER)
    assert simulation.run("mom").start[-1] == 0.0

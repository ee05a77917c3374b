"""The check before applying: the reasons, and the law that accepted starts never overfill a node."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.check import check
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Place, Submit
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

CLUSTER = Cluster("lab", tuple(Node(name, NodeType("t", 4, 100.0, 1e9)) for name in ("n1", "n2", "n3")))
UP, DRAINED = NodeState.UP, NodeState.DRAINED


def job(threads=1, memory=0.0, nodes=1):
    return Job("j", Profile((ThreadGroup(threads, 1.0),)), memory=memory, nodes=nodes)


def snapshot(*views, states=(UP, UP, DRAINED)):
    return Snapshot(0.0, 1, CLUSTER, states, views)


RUNNING = JobView("w/r", job(3, 60.0), JobState.RUNNING, ("n1",))
ENDED = JobView("w/e", job(4, 100.0), JobState.COMPLETED, ("n2",))


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Submit("w/a", job(), ("n1",)), None),
        (Submit("w/a", job(2), ("n1",)), "n1 would hold 5 threads, over its limit of 4"),
        (Submit("w/a", job(1, 41.0), ("n1",)), "n1 would hold 101 bytes, over its memory of 100"),
        (Submit("w/a", job(4, 100.0), ("n2",)), None),
        (Submit("w/a", job(), ("n3",)), "n3 is drained"),
        (Submit("w/a", job(), ("n9",)), "there is no node 'n9'"),
        (Submit("w/a", job(nodes=2), ("n1", "n2")), None),
        (Submit("w/a", job(nodes=2), ("n1",)), "the plan names 1 node (n1), the job asks for 2"),
        (Submit("w/a", job(nodes=2), ("n1", "n1")), "the plan names 1 node (n1), the job asks for 2"),
        (Submit("w/a", job(), ()), "the plan names 0 nodes, the job asks for 1"),
        (Submit("w/r", job(), ("n2",)), "the job is running already"),
        (Submit("w/e", job(), ("n2",)), "the job is completed already"),
        (Cancel("w/r"), None),
        (Cancel("w/e"), "the job has ended already (completed)"),
        (Cancel("w/x"), "the resource manager does not know this job"),
    ],
)
def test_reasons(action, reason):
    found = check([action], snapshot(RUNNING, ENDED))
    assert [rejection.reason for rejection in found] == ([reason] if reason else [])


OFFERED = JobView("w/o", job(), JobState.PENDING, restartable=True, offered=True)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (OFFERED, None),
        (replace(OFFERED, waits="its QOS is full"), "it has to wait: its QOS is full"),
        (replace(OFFERED, job=replace(job(), allowed=frozenset({"n1"}))), "it may not run on n2"),
    ],
)
def test_the_fresh_view_of_a_job_handed_over_counts(view, reason):
    found = check([Place("w/o", job(), ("n2",))], snapshot(view))
    assert [rejection.reason for rejection in found] == ([reason] if reason else [])


def test_exclusive_jobs_share_no_node():
    there = JobView("w/r", replace(job(), apart="sharing cores"), JobState.RUNNING, ("n1",))
    for apart, refused in (("sharing cores", False), ("", False), ("alone 7", True)):
        found = check([Submit("w/a", replace(job(), apart=apart), ("n1",))], snapshot(there))
        assert bool(found) is refused
    both = [Submit(f"w/{apart}", replace(job(), apart=apart), ("n2",)) for apart in "ab"]
    assert [rejection.action for rejection in check(both, snapshot())] == both[1:]


def test_accepted_starts_count_for_those_after_them():
    actions = [Submit(f"w/{i}", job(2), ("n2",)) for i in range(3)]
    assert [rejection.action for rejection in check(actions, snapshot())] == actions[2:]


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 60), st.sampled_from(["n1", "n2", "n3"])), max_size=12))
@settings(max_examples=50, deadline=None)
def test_accepted_starts_never_overfill_a_node(wanted):
    actions = [Submit(f"w/{i}", job(t, m), (n,)) for i, (t, m, n) in enumerate(wanted)]
    start = snapshot(RUNNING)
    rejected = {rejection.action.key for rejection in check(actions, start)}
    views = [JobView(a.key, a.job, JobState.RUNNING, a.nodes) for a in actions if a.key not in rejected]
    shown = snapshot(RUNNING, *views)
    taken = shown.jobs.occupancy(shown.cluster)
    assert all(threads <= 4 for threads in taken.threads)
    assert all(memory <= 100 * (1 + 1e-6) for memory in taken.memory)
    assert taken.threads[2] == 0

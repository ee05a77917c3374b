"""What is counted of the views of a snapshot is the same, whether it follows another one or stands alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState, JobView, JobViews

CLUSTER = Cluster("c", tuple(Node(f"n{i}", NodeType("t", 4, 4e9, 1e10)) for i in range(3)))
VIEWS = st.builds(
    lambda number, threads, apart, state, nodes, offered: JobView(
        f"slurm/{number}",
        Job(str(number), Profile((ThreadGroup(threads, 60.0),)), memory=2.0**20 * threads, apart=apart),
        state,
        nodes,
        offered=offered,
    ),
    st.integers(1, 8),
    st.integers(1, 4),
    st.sampled_from(("", "alone", "sharing")),
    st.sampled_from((JobState.PENDING, JobState.RUNNING, JobState.RUNNING, JobState.COMPLETED)),
    st.lists(st.sampled_from(("n0", "n1", "n2", "elsewhere")), max_size=3, unique=True).map(tuple),
    st.booleans(),
)
STEPS = st.lists(st.tuples(st.lists(VIEWS, max_size=4), st.sets(st.integers(1, 8)), st.booleans()), max_size=8)


@given(STEPS)
def test_views_that_follow_others_are_counted_alike(steps: list[tuple[list[JobView], set[int], bool]]) -> None:
    shown, views = dict[str, JobView](), JobViews()
    for new, dropped, counted in steps:
        before = dict(shown)
        for number in dropped:
            shown.pop(f"slurm/{number}", None)
        shown |= {view.key: view for view in new}
        gone = [view for key, view in before.items() if shown.get(key) is not view]
        views = views.followed_by(
            shown.values(), gone, [view for key, view in shown.items() if before.get(key) is not view]
        )
        if counted:  # from now on it is adjusted
            views.occupancy(CLUSTER)
    alone = JobViews(shown.values())
    assert views == alone and views.by_key == alone.by_key == shown
    assert views.holding == {key: view for key, view in shown.items() if view.nodes and not view.state.ended}
    assert views.offered == tuple(view for view in shown.values() if view.offered)
    found, expected = views.occupancy(CLUSTER), alone.occupancy(CLUSTER)
    assert (found.threads, found.memory) == (expected.threads, expected.memory)
    for i, name in enumerate(("n0", "n1", "n2")):
        there = [view.job for view in views.holding.values() if name in view.nodes]
        assert found.threads[i] == sum(job.profile.threads for job in there)
        assert found.apart.get(i, {}).keys() == {job.apart for job in there if job.apart}
    found.place(Job("more", Profile((ThreadGroup(1, 1.0),))), ("n0",))
    assert views.occupancy(CLUSTER).threads == expected.threads

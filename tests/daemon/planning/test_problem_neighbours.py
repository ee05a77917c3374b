"""Caches from one snapshot to the next do not change the problem or the metrics of the last one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from pilotfish.daemon.planning.problem import Neighbours, build_problem
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.queue import Queue, Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot
from tests.growth import held_by

TYPES = [NodeType("a", 4, 1e9, 1e10, power=Power(10.0, per_core=5.0)), NodeType("b", 2, 1e9, 1e10)]
node = st.builds(Node, st.sampled_from(("n1", "n2", "n3", "n4")), st.sampled_from(TYPES))
clusters = st.lists(node, min_size=1, max_size=3, unique_by=lambda node: node.name).map(
    lambda nodes: Cluster("c", tuple(nodes))
)
jobs = st.builds(Job, st.just("j"), st.integers(1, 3).map(lambda n: Profile((ThreadGroup(n, 50.0),))))
views = st.builds(
    JobView,
    key=st.sampled_from(("slurm/1", "slurm/2", "slurm/3")),
    job=jobs,
    state=st.sampled_from((JobState.RUNNING, JobState.RUNNING, JobState.PENDING, JobState.COMPLETED)),
    nodes=st.lists(st.sampled_from(("n1", "n2", "n3", "n4")), max_size=2, unique=True).map(tuple),
    start_time=st.sampled_from((None, 10.0)),
)
#: Changes since the snapshot before: another cluster, an equal or a new one, and jobs, equal or new.
steps = st.tuples(st.sampled_from(("as it was", "equal", "new")), clusters, st.lists(views, max_size=3), st.booleans())


@settings(max_examples=50, deadline=None)
@given(st.lists(steps, min_size=2, max_size=8))
def test_earlier_snapshots_do_not_change_the_problem_or_the_metrics(
    steps: list[tuple[str, Cluster, list[JobView], bool]],
) -> None:
    neighbours, metrics = Neighbours(), Metrics()
    cluster, seen = steps[0][1], dict[str, JobView]()
    for number, (what, other, changed, same) in enumerate(steps):
        cluster = other if what == "new" else replace(cluster) if what == "equal" else cluster
        seen = {**(seen if same else {}), **{view.key: view for view in changed}}
        up = (NodeState.UP,) * len(cluster.nodes)
        snapshot = Snapshot(100.0 + number, number, cluster, up, tuple(seen.values()))
        assert build_problem(Queue(), snapshot, neighbours=neighbours) == build_problem(Queue(), snapshot)
        metrics.show_snapshot(snapshot, Counter())
        first = Metrics()
        first.show_snapshot(snapshot, Counter())
        assert _of_nodes(metrics) == _of_nodes(first)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([*NodeState]), min_size=4, max_size=4), min_size=2, max_size=6),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=4),
)
def test_what_fits_nowhere_is_known_again_when_nodes_change(
    states: list[list[NodeState]], shapes: list[tuple[int, int]]
) -> None:
    neighbours, queue = Neighbours(), Queue()
    cluster = Cluster("c", tuple(Node(f"n{i}", TYPES[i % 2]) for i in range(4)))
    waiting = [
        Job(f"j{i}", Profile((ThreadGroup(threads, 50.0),)), nodes=nodes) for i, (nodes, threads) in enumerate(shapes)
    ]
    queue.add(Submission("w", Workflow("w", tuple(waiting)), 0.0))
    for number, now in enumerate(states):
        snapshot = Snapshot(float(number), number, cluster, tuple(now), ())
        assert build_problem(queue, snapshot, neighbours=neighbours) == build_problem(queue, snapshot)


def _of_nodes(metrics: Metrics) -> list[str]:
    return sorted(line for line in generate_latest(metrics.registry).decode().splitlines() if "pilotfish_node_" in line)


def test_neighbours_and_metrics_forget_what_is_gone() -> None:
    neighbours, metrics = Neighbours(), Metrics()

    def held(first: int, last: int) -> int:
        for number in range(first, last):
            names = (f"n{number}", f"m{number}")
            cluster = Cluster("c", tuple(Node(name, TYPES[0]) for name in names))
            job = Job("j", Profile((ThreadGroup(1, 50.0),)))
            seen = tuple(JobView(f"slurm/{number}-{name}", job, JobState.RUNNING, (name,)) for name in names)
            snapshot = Snapshot(float(number), number, cluster, (NodeState.UP,) * 2, seen)
            assert len(list(neighbours.of(seen, cluster))) == 2
            metrics.show_snapshot(snapshot, Counter())
        return held_by(neighbours) + len(generate_latest(metrics.registry))

    early = held(0, 20)
    assert held(20, 1000) < 1.1 * early

"""The queue's state after a history of changes is what a count of the last queue gives."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.node_capacity import NodeCapacity, node_load
from pilotfish.adapters.slurm.placement.partitions import CoreSharing, Partition
from pilotfish.adapters.slurm.placement.queue_state import FEW, QueueState, Ranking
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState, NodeState

NAMES = tuple(f"n{number}" for number in range(6))
CLUSTER = Cluster("c", tuple(Node(name, NodeType("t", 4, 4e9, 1e10)) for name in NAMES), oversubscription=2)
PARTITIONS = {"main": Partition("main"), "shared": Partition("shared", sharing=CoreSharing.FORCE, rows=2)}
JOBS = st.builds(
    SlurmJob,
    id=st.integers(1, 12),
    state=st.sampled_from((JobState.PENDING, JobState.PENDING, JobState.RUNNING, JobState.COMPLETED)),
    reason=st.sampled_from(("Priority", "Resources", "JobHeldUser", "Dependency")),
    partition=st.sampled_from(("main", "shared")),
    uid=st.sampled_from((5, 6)),
    features=st.sampled_from(("", "", "ssd")),
    cpus=st.integers(1, 4),
    memory=st.sampled_from((0.0, 1e9)),
    priority=st.integers(0, 4),
    begin=st.sampled_from((None, 10.0, 20.0, 30.0)),
    start=st.sampled_from((None, None, 50.0)),
    placed=st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
    wanted=st.sampled_from(((), (), ("n1",), ("n2",))),
    pinned=st.sampled_from((None, None, 9.0)),
    dependency=st.sampled_from(("", "", "afterok:1")),
    comment=st.sampled_from(("", "", "pilotfish")),
)
#: Jobs that are new or different, ids of jobs that go, nodes that change, and the clock.
STEPS = st.lists(
    st.tuples(
        st.lists(JOBS, max_size=4),
        st.lists(st.integers(1, 12), max_size=2),
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 4)), max_size=2),
        st.sampled_from((5.0, 10.0, 15.0, 20.0, 40.0)),
    ),
    max_size=12,
)


def may_start(job: SlurmJob, now: float) -> bool:
    """Return whether Slurm may start a job of another user's that waits."""
    if job.state is not JobState.PENDING or "pilotfish" in job.comment or (job.pinned is not None and job.wanted):
        return False
    free = job.reason in ("Priority", "Resources") or job.start is not None
    return free and job.priority > 0 and not job.dependency and (job.begin is None or job.begin <= now)


def nodes_of(job: SlurmJob) -> tuple[str, ...]:
    if job.state is JobState.PENDING:
        return job.wanted if job.pinned is not None else ()
    return job.placed if job.state is JobState.RUNNING else ()


@given(STEPS)
@example([([SlurmJob(1, JobState.PENDING, reason="Priority", partition="main", priority=1, start=50.0)], [], [], 5.0)])
def test_a_history_of_changes_counts_like_the_last_queue(
    steps: list[tuple[list[SlurmJob], list[int], list[tuple[str, int]], float]],
) -> None:
    state, jobs, now = QueueState(SlurmSelection().takes), dict[int, SlurmJob](), 0.0
    capacity = NodeCapacity(CLUSTER)
    nodes = {name: SlurmNode(name, NodeState.UP, 4, 4e9, idle=4) for name in NAMES}
    for new, removed, changed, now in steps:
        for number in removed:
            jobs.pop(number, None)
        jobs |= {job.id: job for job in new}
        state.update([replace(job) for job in new], removed)
        state.advance(now)
        nodes = nodes | {name: replace(nodes[name], idle=idle) for name, idle in changed}
        capacity.update(nodes, state, PARTITIONS)
        shapes = [SlurmJob(99, JobState.PENDING, partition=name, cpus=cores) for name in PARTITIONS for cores in (1, 3)]
        fresh = NodeCapacity(CLUSTER)
        fresh_queue = QueueState(SlurmSelection().takes)
        fresh_queue.update(jobs.values())
        fresh.update(nodes, fresh_queue, PARTITIONS)
        for job in shapes:
            fitting = capacity.fitting(job, frozenset(NAMES))
            assert fitting == fresh.fitting(job, frozenset(NAMES)) == capacity.fitting_among(job, NAMES)
        assert capacity.unseen() == fresh.unseen()
    assert state.jobs == jobs
    assert state.placed == {job.id: (job, where) for job in jobs.values() if (where := nodes_of(job))}
    assert state.pending == {job.id: job for job in jobs.values() if job.state is JobState.PENDING}
    assert state.ours.keys() == {number for number, job in state.pending.items() if "pilotfish" in job.comment}
    free = {job.id: job for job in jobs.values() if may_start(job, now)}
    assert state.planned == {number: job for number, job in free.items() if job.start is not None}
    assert {number for group in state.startable_of.values() for number in group} == free.keys()
    firsts = dict[object, SlurmJob]()
    for job in sorted(free.values(), key=lambda job: (-job.priority, job.id)):
        if job.start is None:
            firsts.setdefault((job.partition, job.features, job.wanted), job)
    assert {job.id for job in state.ahead(())} == {job.id for job in firsts.values()}
    for name in NAMES:
        ids = sorted(job.id for job in jobs.values() if name in nodes_of(job))
        assert [job.id for job in capacity.jobs_on(name)] == ids
        assert node_load(capacity.jobs_on(name), PARTITIONS).cores == sum(jobs[number].cores for number in ids)


@given(st.lists(st.tuples(st.sampled_from((1, 3 * FEW)), st.integers(0, 9), st.booleans()), max_size=30))
def test_a_ranking_is_in_order_whatever_was_added_and_dropped(edits: list[tuple[int, int, bool]]) -> None:
    ranking, pairs = Ranking(), set[tuple[float, int]]()
    for pair_count, first, read in edits:
        for pair in ((float(number % 7), number) for number in range(first, first + pair_count)):
            (ranking.drop if pair in pairs else ranking.add)(pair)
            pairs ^= {pair}
        if read:
            assert ranking.order == sorted(pairs)
    assert ranking.order == sorted(pairs)

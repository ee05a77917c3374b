"""Placing a job after a snapshot gives the same verdicts as reading the queue again with the job placed."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.handed_over.ownership import Ownership, SlurmSelection, ownership_of
from pilotfish.adapters.slurm.placement.eligibility import Deferral, Eligibility, EligibilityCache
from pilotfish.adapters.slurm.placement.limits import Limits, Qos, Quota, UsageCap
from pilotfish.adapters.slurm.placement.partitions import CoreSharing, Partition
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.adapters.slurm.site_state import SiteState
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState, NodeState

NOW = 1_000.0
NAMES = [f"n{number}" for number in range(24)]  # more than are looked at one by one
CLUSTER = Cluster("c", tuple(Node(name, NodeType("t", 4, 4e9, 1e10)) for name in NAMES))
NODES = {name: SlurmNode(name, NodeState.UP, 4, 4e9, partitions=frozenset({"main", "shared"})) for name in NAMES}
PARTITIONS = {
    "main": Partition("main", nodes=frozenset(NAMES)),
    "shared": Partition("shared", nodes=frozenset(NAMES), sharing=CoreSharing.FORCE, rows=2),
}
waiting = st.builds(
    SlurmJob,
    id=st.just(0),
    state=st.just(JobState.PENDING),
    reason=st.sampled_from(("BeginTime", "Priority", "Resources")),
    partition=st.sampled_from(("main", "shared")),
    qos=st.just("normal"),
    nodes=st.integers(1, 3),
    threads=st.integers(1, 4),
    memory=st.sampled_from((1e9, 2e9)),
    time_limit=st.sampled_from((60.0, 600.0)),
    submit=st.just(990.0),
    begin=st.sampled_from((980.0, 1500.0)),
    start=st.sampled_from((None, NOW + 300.0)),
    priority=st.integers(1, 9),
    comment=st.sampled_from(("pilotfish:hold=600", "")),
)


@given(st.lists(waiting, min_size=1, max_size=8), st.integers(1, 6), st.data())
def test_a_placement_counts_as_if_it_was_read_from_slurm(jobs: list[SlurmJob], most: int, data: st.DataObject) -> None:
    queue = [replace(job, id=number, cpus=job.threads * job.nodes, uid=5) for number, job in enumerate(jobs, 1)]
    qos = {"normal": Qos({"jobs": UsageCap(float(most))}, {}, {5: {}}, {})}
    site = SiteState(PARTITIONS, (), Limits(qos), ControllerSettings(limits=True), {}, frozenset(range(9)), frozenset())
    judge = _eligibility(queue, site)
    for _ in range(3):
        fitting = [(number, verdict) for number, verdict in judge.verdicts().items() if not verdict.waits]
        if not fitting:
            break
        number, verdict = data.draw(st.sampled_from(fitting))
        job = next(job for job in queue if job.id == number)
        where = tuple(sorted(verdict.allowed)[: job.nodes])
        assert not judge.verdict(job, where).waits
        placed = replace(job, wanted=where, pinned=NOW)
        queue = [placed if queued.id == number else queued for queued in queue]
        judge.place(placed)
        assert judge.verdicts() == _eligibility(queue, site).verdicts()


CAPS = st.dictionaries(
    st.sampled_from(("jobs", "cpu", "node", "cpu minutes left", "minutes")),
    st.sampled_from((1.0, 4.0, 30.0)),
    max_size=2,
)
running = st.builds(
    SlurmJob, id=st.just(0), state=st.just(JobState.RUNNING), partition=st.sampled_from(("main", "shared")), uid=st.just(6),
    qos=st.sampled_from(("normal", "high")), cpus=st.integers(1, 3), placed=st.sampled_from((("n1",), ("n2",))),
    end=st.sampled_from((NOW - 10.0, NOW + 600.0, None)), time_limit=st.just(60.0),
)  # fmt: skip


@given(st.lists(waiting | running, max_size=12), CAPS, CAPS)
def test_limits_are_granted_in_slurms_order(
    jobs: list[SlurmJob], normal: dict[str, float], high: dict[str, float]
) -> None:
    """The reference counts every job of the queue, one after another."""
    queue = [
        replace(job, id=number, cpus=max(job.cpus, job.threads * job.nodes), uid=5)
        for number, job in enumerate(jobs, 1)
    ]
    caps = {
        name: {kind: UsageCap(value) for kind, value in entry.items()}
        for name, entry in (("normal", normal), ("high", high))
    }
    limits = Limits({name: Qos(entry, {}, {5: {}}, {}) for name, entry in caps.items()})
    partitions = {name: replace(entry, tier=2 if name == "shared" else 1) for name, entry in PARTITIONS.items()}
    site = SiteState(partitions, (), limits, ControllerSettings(limits=True), {}, frozenset(range(99)), frozenset())
    verdicts = _eligibility(queue, site).verdicts()
    quota = Quota(limits, {})
    for job in queue:
        if job.state is JobState.RUNNING:
            quota.count(job, max(0.0, job.end - NOW) if job.end is not None else 60.0)
    order = sorted(queue, key=lambda job: (-partitions[job.partition].tier, -job.priority, job.id))
    for job in (job for job in order if job.state is JobState.PENDING):
        kind, span = ownership_of(job, SlurmSelection(), NOW)[0], job.time_limit or math.inf
        if kind in (Ownership.HELD, Ownership.FREE):
            assert verdicts[job.id].waits == quota.obstacle(job, span) or not quota.obstacle(job, span)
            assert "are taken" not in verdicts[job.id].waits or quota.obstacle(job, span)
        counts = (
            not verdicts[job.id].waits if kind is Ownership.HELD else (job.begin or 0.0) <= NOW and job.start is None
        )
        if counts:
            quota.count(job, span)


def _eligibility(jobs: list[SlurmJob], site: SiteState) -> Eligibility:
    cache = EligibilityCache(CLUSTER, SlurmSelection())
    cache.queue.update(jobs)
    return Eligibility(CLUSTER, NODES, cache, site, NOW, Deferral())

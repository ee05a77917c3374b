"""Random small instances: clusters, workflows and states, for comparisons and laws.

Numbers come from short lists as well as from ranges, so that ties and simultaneous ends are common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CpuSharing,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
)
from pilotfish.simulate.model.job import Job, PeerWait, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob

PIECEWISE = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=3500.0, dc=45000.0, dd=3000.0)
PAPER = ("loadavg", "slf", "let", "mom")


def rows_of(*columns: Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return jobs with one value of each column, all equally likely.

    Each is drawn as one number: to draw each value costs hypothesis more than the reference and the replay together.
    """
    sizes = [len(column) for column in columns]
    assert math.prod(sizes) < 2**24, "beyond it hypothesis prefers small numbers"

    def row(number: int) -> tuple[Any, ...]:
        found = []
        for column, size in zip(columns, sizes, strict=True):
            number, at = divmod(number, size)
            found.append(column[at])
        return tuple(found)

    return st.integers(0, math.prod(sizes) - 1).map(row)


def make_type(cores: int = 1, **fields: Any) -> NodeType:
    """Return a plain node type: no memory contention, threads share cores equally."""
    plain = {"contention": Contention.NONE, "cpu_sharing": CpuSharing.PER_THREAD}
    return NodeType("t", cores, 100.0, fields.pop("memory_bandwidth", 10e9), **{**plain, **fields})


def make_cluster(nodes: int = 1, limit: float = math.inf, cores: int = 1, **fields: Any) -> Cluster:
    """Return equal nodes n0, n1, ... with unlimited oversubscription."""
    kind = make_type(cores, **fields)
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(nodes)), limit)


def make_job(
    name: str, demand: float = 10.0, threads: int = 1, *after: str, u: float = 1.0, b: float = 0.0, **fields: Any
) -> Job:
    """Return a job of one thread group."""
    return Job(name, Profile((ThreadGroup(threads, demand, u, bandwidth=b),)), after=after, **fields)


def flow(*jobs: Job) -> Workflow:
    """Return a workflow of these jobs."""
    return Workflow("w", jobs)


seconds = st.one_of(st.sampled_from([1.0, 2.0, 5.0, 10.0, 60.0]), st.floats(0.5, 100.0))
utilisations = st.one_of(st.sampled_from([1.0, 1.0, 0.5]), st.floats(0.05, 1.0))
bandwidths = st.one_of(st.sampled_from([0.0, 2e9, 10e9]), st.floats(0.0, 20e9))
uncores = st.sampled_from([1.0, 0.05])
powers = st.one_of(
    st.builds(Power, st.sampled_from([0.0, 95.0]), st.just(6.14), st.just(5.59), idle_uncore=uncores),
    st.just(Power(idle=95.0, computing=190.74)),
)


@st.composite
def node_types(draw: Any, name: str = "t", **fixed: Any) -> NodeType:
    """Draw a node type; keyword arguments fix its fields."""
    contention = fixed.get("contention") or draw(st.sampled_from(Contention))
    values = {
        "cores": draw(st.integers(1, 4)),
        "memory": 100.0,
        "memory_bandwidth": draw(st.sampled_from([5e9, 10e9, 40e9])),
        "sockets": 1,
        "frequency": draw(st.sampled_from([1e9, 2e9, 2.7e9])),
        "contending_threads": draw(st.sampled_from(ContendingThreads)),
        "cpu_sharing": draw(st.sampled_from(CpuSharing)),
        "remote_access_penalty": draw(st.sampled_from([1.0, 1.0, 1.8])),
        "queueing": draw(st.sampled_from([0.58, 0.58, 0.0])),
        "power": draw(st.one_of(st.none(), powers)),
        **fixed,
        "contention": contention,
    }
    if contention is Contention.PIECEWISE_LINEAR:
        sockets = draw(st.sampled_from([1, 1, 2])) if "sockets" not in fixed else fixed["sockets"]
        values |= {"piecewise": PIECEWISE, "sockets": sockets}
    return NodeType(name, **values)


@st.composite
def clusters(draw: Any, nodes: int = 4, kinds: int = 2, shared: bool = False, **fixed: Any) -> Cluster:
    """Draw up to `nodes` nodes of up to `kinds` types; with `shared`, some nodes share a memory."""
    types = [draw(node_types(f"t{i}", **fixed)) for i in range(draw(st.integers(1, kinds)))]
    members = []
    for i in range(draw(st.integers(1, nodes))):
        kind = draw(st.sampled_from(types))
        domain = f"memory-{kind.name}" if shared and draw(st.booleans()) else None
        members.append(Node(f"n{i}", kind, domain))
    limit = draw(st.sampled_from([1.0, 1.5, 2.0, 4.0, math.inf]))
    return Cluster("lab", tuple(members), limit)


@st.composite
def groups(draw: Any, phased: bool = False) -> ThreadGroup:
    """Draw a thread group; with `phased`, sometimes in phases."""
    count, demand = draw(st.integers(1, 4)), draw(seconds)
    if phased and draw(st.booleans()):
        first = draw(st.sampled_from([0.25, 0.5, 0.9]))
        parts = tuple(Phase(share, draw(utilisations), draw(bandwidths)) for share in (first, 1.0 - first))
        return ThreadGroup(count, demand, phases=parts)
    return ThreadGroup(count, demand, draw(utilisations), bandwidth=draw(bandwidths))


@st.composite
def profiles(draw: Any, phased: bool = False, most_groups: int = 2, kinds: int = 1) -> Profile:
    """Draw a profile, sometimes measured on another type or on one that the cluster does not have."""
    parts = tuple(draw(groups(phased)) for _ in range(draw(st.integers(1, most_groups))))
    origin = draw(st.sampled_from([None, None, "t0", "t1", "gone"])) if kinds > 1 else None
    return Profile(parts, memory=draw(st.sampled_from([0.0, 0.0, 30.0])), measured_on=origin)


@st.composite
def workflows(
    draw: Any, jobs: int = 8, nodes: int = 1, phased: bool = False, most_groups: int = 2, kinds: int = 1, edges: int = 2
) -> Workflow:
    """Draw up to `jobs` jobs from a few profiles, on up to `nodes` nodes and with up to `edges` predecessors each."""
    shapes = [draw(profiles(phased, most_groups, kinds)) for _ in range(draw(st.integers(1, 4)))]
    made: list[Job] = []
    for i in range(draw(st.integers(1, jobs))):
        before = draw(st.lists(st.sampled_from(made), max_size=edges, unique_by=lambda j: j.id)) if made else []
        wide = draw(st.integers(1, nodes))
        made.append(
            Job(
                f"j{i}",
                draw(st.sampled_from(shapes)),
                after=tuple(j.id for j in before),
                nodes=wide,
                memory=draw(st.sampled_from([0.0, 0.0, 0.0, 45.0])),
                wait=draw(st.sampled_from(PeerWait)) if wide > 1 else PeerWait.YIELD,
            )
        )
    return Workflow("w", tuple(made))


@st.composite
def fitting(draw: Any, some_clusters: Any, some_workflows: Any, spare: int = 0) -> tuple[Workflow, Cluster]:
    """Draw a workflow and a cluster on which each of its jobs can start, also without `spare` nodes."""
    cluster, workflow = draw(some_clusters), draw(some_workflows)
    widest = max(1, len(cluster.nodes) - spare)
    jobs = tuple(replace(job, nodes=min(job.nodes, widest)) for job in workflow.jobs)
    least = max(job.profile.threads for job in jobs) / min(node.type.cores for node in cluster.nodes)
    return replace(workflow, jobs=jobs), replace(cluster, oversubscription=max(cluster.oversubscription, least))


@st.composite
def circumstances(draw: Any, workflow: Workflow, cluster: Cluster) -> dict[str, Any]:
    """Draw a moment in the middle: the done jobs, the running jobs and their progress, the available nodes."""
    done: set[str] = set()
    underway: list[RunningJob] = []
    for job in workflow.jobs:
        if not set(job.after) <= done:
            continue
        fate = draw(st.sampled_from(["done", "running", "waiting"]))
        if fate == "done":
            done.add(job.id)
        elif fate == "running" and job.nodes <= len(cluster.nodes):
            first = draw(st.integers(0, len(cluster.nodes) - job.nodes))
            names = tuple(n.name for n in cluster.nodes[first : first + job.nodes])
            underway.append(RunningJob(job.id, names, draw(st.sampled_from([0.0, 0.5, 0.93]))))
    names = [n.name for n in cluster.nodes]
    available = draw(st.one_of(st.none(), st.sets(st.sampled_from(names), min_size=max(1, len(names) - 1))))
    return {"underway": tuple(underway), "done": frozenset(done), "available": available}


def renamed(cluster: Cluster, **changes: str) -> Cluster:
    """Return the same cluster with other node names."""
    return replace(cluster, nodes=tuple(replace(n, name=changes.get(n.name, n.name)) for n in cluster.nodes))

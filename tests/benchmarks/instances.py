"""Instances of the paper's experiments (Chahal et al., ICPE 2019, 5.1), and DAGs of several shapes.

Rule: everything is drawn from a seed. 36 distinct STREAM jobs of 4-28 threads at 3.6-10.5 GB/s a thread; servers of
56 cores and 80 GB/s.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from pilotfish.simulate.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.platform import Cluster, ContendingThreads, Contention, CpuSharing, Node, NodeType

Parents = list[list[int]]
GB = 1e9


def stream_profiles(seed: int = 0) -> list[Profile]:
    """36 distinct STREAM jobs; the time of one thread alone is 10 to 100 s."""
    draw = random.Random(seed)
    return [
        Profile(
            (
                ThreadGroup(
                    count=draw.randint(4, 28),
                    service_demand=draw.uniform(10.0, 100.0),
                    utilisation=draw.uniform(0.9, 1.0),
                    utilisation_std=0.1,
                    bandwidth=draw.uniform(3.6, 10.5) * GB,
                ),
            ),
            name=f"stream-{i}",
        )
        for i in range(36)
    ]


def wide(jobs: int, _: random.Random) -> Parents:
    """One job, then all the others at once."""
    return [[], *([0] for _ in range(jobs - 1))]


def layered(jobs: int, draw: random.Random, levels: int = 8) -> Parents:
    """Levels of equal width; a job waits for one to three of the level before."""
    width = max(1, jobs // levels)
    parents: Parents = []
    for i in range(jobs):
        first = (i // width) * width
        above = range(max(0, first - width), first)
        parents.append(sorted(draw.sample(above, min(len(above), draw.randint(1, 3)))))
    return parents


def diamonds(jobs: int, _: random.Random, branches: int = 4) -> Parents:
    """A chain of diamonds: one job, then `branches` at once, then one that waits for them all."""
    parents: Parents = [[]]
    tip, members = 0, list[int]()
    while len(parents) < jobs:
        if len(members) < branches and len(parents) < jobs - 1:
            members.append(len(parents))
            parents.append([tip])
        else:
            tip = len(parents)
            parents.append(members or [tip - 1])
            members = []
    return parents


def tangled(jobs: int, draw: random.Random) -> Parents:
    """Each job waits for up to two of the ten before it."""
    return [sorted(draw.sample(range(max(0, i - 10), i), draw.randint(0, min(2, i)))) for i in range(jobs)]


SHAPES: dict[str, Callable[[int, random.Random], Parents]] = {
    "wide": wide,
    "layered": layered,
    "diamonds": diamonds,
    "random": tangled,
}


def random_wide(jobs: int, draw: random.Random) -> Parents:
    """Few levels of many jobs: up to five roots, then a job waits for one of the first tenth, or for nothing."""
    first = max(1, jobs // 10)
    return [[draw.randrange(min(i, first))] if i >= first or (draw.random() < 0.3 and i) else [] for i in range(jobs)]


def stream_workflow(shape: Callable[[int, random.Random], Parents], jobs: int, seed: int) -> Workflow:
    """A DAG of that shape whose jobs are drawn from the STREAM jobs."""
    draw = random.Random(seed)
    profiles = stream_profiles()
    parents = shape(jobs, draw)
    return Workflow(
        f"{getattr(shape, '__name__', 'dag')}-{jobs}-{seed}",
        tuple(Job(f"j{i}", draw.choice(profiles), tuple(f"j{p}" for p in before)) for i, before in enumerate(parents)),
    )


def server(paper: bool) -> NodeType:
    """The paper's server under the paper's model, or under ours."""
    return NodeType(
        "xeon56",
        56,
        256 * 2**30,
        80 * GB,
        contention=Contention.EQUAL_SHARE if paper else Contention.MAX_MIN,
        contending_threads=ContendingThreads.ALL if paper else ContendingThreads.RUNNING,
        cpu_sharing=CpuSharing.PER_THREAD if paper else CpuSharing.PER_JOB,
    )


def servers(count: int, paper: bool, oversubscription: float | None = None) -> Cluster:
    """That many alike servers; threads per core unlimited under the paper's model, else 1, unless given."""
    kind = server(paper)
    limit = (math.inf if paper else 1.0) if oversubscription is None else oversubscription
    return Cluster("servers", tuple(Node(f"s{i}", kind) for i in range(count)), oversubscription=limit)


#: What `servers(..., paper)` stands for.
MODELS = {True: "equal-share, all, per-thread, unlimited", False: "max-min, running, per-job, 1.0"}

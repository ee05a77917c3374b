"""Baseline: the event-driven simulation with LET and MOM in plain Python.

Rule: the paper's model only (equal-share, all threads contend, per-thread sharing), with the semantics of the product,
so that schedules can be compared; lists and floats, no array library, no cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Workflow

INSTANT, LESS = 1e-9, 1.0 - 1e-9


@dataclass
class Strand:
    """A running thread group: threads, CPU share, bandwidth, seconds of isolated time left, rate."""

    job: int
    count: int
    u: float
    b: float
    left: float
    rate: float = 0.0


def rates(strands: list[Strand], cores: int, bandwidth: float) -> None:
    """Set the rate of each strand: dilation by equal share, then one stretch of busy time by bisection."""
    level = bandwidth / sum(s.count for s in strands)
    m = [max(1.0, s.b / level) for s in strands]

    def held(stretch: float) -> float:
        return sum(s.count * s.u * d / (s.u * d * stretch + 1.0 - s.u) for s, d in zip(strands, m, strict=True))

    stretch = 1.0
    if held(1.0) > cores:
        low, high = 1.0, 1.0 + sum(s.count for s in strands) / cores
        while high - low > 4e-16 * high:
            stretch = (low + high) / 2
            low, high = (stretch, high) if held(stretch) > cores else (low, stretch)
    for s, d in zip(strands, m, strict=True):
        s.rate = 1.0 / (s.u * d * stretch + 1.0 - s.u)


def step(strands: list[Strand]) -> float:
    """Return the seconds until the next strand ends."""
    return min(s.left / s.rate for s in strands)


def run_on(strands: list[Strand], seconds: float) -> list[Strand]:
    """Advance all strands, and return those that have not ended."""
    for s in strands:
        s.left -= s.rate * seconds
    return [s for s in strands if s.left / s.rate > INSTANT]


def what_if(strands: list[Strand], new: list[Strand], cores: int, bandwidth: float, policy: str) -> float:
    """Return the seconds until the new job ends (let), or until all jobs on the node have ended (mom)."""
    ahead = [Strand(s.job, s.count, s.u, s.b, s.left) for s in (*strands, *new)]
    job, clock = new[0].job, 0.0
    while ahead and (policy == "mom" or any(s.job == job for s in ahead)):
        rates(ahead, cores, bandwidth)
        seconds = step(ahead)
        clock += seconds
        ahead = run_on(ahead, seconds)
    return clock


def simulate(workflow: Workflow, cluster: Cluster, policy: str) -> tuple[float, list[int]]:
    """Return the makespan and the node of each job."""
    ids = {job.id: i for i, job in enumerate(workflow.jobs)}
    blockers = [len(job.after) for job in workflow.jobs]
    after: list[list[int]] = [[] for _ in ids]
    for i, job in enumerate(workflow.jobs):
        for before in job.after:
            after[ids[before]].append(i)
    running: list[list[Strand]] = [[] for _ in cluster.nodes]
    placed, clock = [-1] * len(ids), 0.0
    queue = [i for i, count in enumerate(blockers) if count == 0]
    while queue or any(running):
        waiting = []
        for i in queue:
            groups = workflow.jobs[i].profile.groups
            new = [Strand(i, g.count, g.utilisation, g.bandwidth, g.isolated_time) for g in groups]
            best, score = -1, 0.0
            for n, node in enumerate(cluster.nodes):
                threads = sum(workflow.jobs[k].profile.threads for k in {s.job for s in running[n]})
                if threads + workflow.jobs[i].profile.threads > cluster.thread_limit(node):
                    continue
                value = what_if(running[n], new, node.type.cores, node.type.memory_bandwidth, policy)
                if best < 0 or value < score * LESS:
                    best, score = n, value
            if best < 0:
                waiting.append(i)
                continue
            placed[i] = best
            running[best] += new
        for n, strands in enumerate(running):
            if strands:
                rates(strands, cluster.nodes[n].type.cores, cluster.nodes[n].type.memory_bandwidth)
        seconds = min(step(strands) for strands in running if strands)
        clock += seconds
        ended: set[int] = set()
        for n, strands in enumerate(running):
            if strands:
                running[n] = run_on(strands, seconds)
                ended |= {s.job for s in strands} - {s.job for s in running[n]}
        ready = []
        for i in ended:
            for k in after[i]:
                blockers[k] -= 1
                if blockers[k] == 0:
                    ready.append(k)
        queue = waiting + sorted(ready)
    return clock, placed

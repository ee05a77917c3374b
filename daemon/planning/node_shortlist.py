"""Which nodes of a large cluster a plan looks at.

Rule: up to FEW_NODES, all of them. Beyond, those that suit what waits: for each shape of job as many of the nodes that
may take it as all the jobs to be planned want together, those with room now before the others, those that will be
empty sooner first. So a job can have nodes to itself wherever there are such, and none waits for one that nobody looked
at. What runs elsewhere is left out; of a job on more nodes only what is on these is looked at.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ..simulate.fits import SLACK, Occupancy, memory_need
from ..simulate.job import Job, Workflow
from ..simulate.platform import Cluster
from .planning import Problem, Running

Array = npt.NDArray[Any]
#: Nodes up to which a search looks at all of them: a simulation of so many takes a millisecond or less.
FEW_NODES = 256


def focus(problem: Problem, cluster: Cluster) -> tuple[Problem, Cluster]:
    """The problem and the cluster cut down to the nodes that matter, see above. O(nodes x shapes + jobs)."""
    if len(cluster.nodes) <= FEW_NODES:
        return problem, cluster
    running = {job.id: job for job in problem.running}
    waiting = [job for job in problem.workflow.jobs if job.id not in running]
    needed = {name for job in waiting for before in job.after if before in running for name in running[before].nodes}
    needed |= _suited(waiting, problem, running, cluster)
    domains = {node.memory_domain for node in cluster.nodes if node.name in needed} - {None}
    nodes = tuple(node for node in cluster.nodes if node.name in needed or node.memory_domain in domains)
    small = dataclasses.replace(cluster, nodes=nodes, groups={})
    seen = small.index
    here = [_cut(job, seen) for job in problem.running]
    kept = {job.id: job for job in here if job.nodes}
    jobs = tuple(
        dataclasses.replace(job, nodes=len(kept[job.id].nodes)) if job.id in kept else job
        for job in problem.workflow.jobs
        if job.id in kept or job.id not in running
    )
    workflow = Workflow(problem.workflow.name, jobs)
    available = tuple(name for name in problem.available if name in seen)
    return dataclasses.replace(problem, workflow=workflow, running=tuple(kept.values()), available=available), small


def _suited(waiting: list[Job], problem: Problem, running: dict[str, Running], cluster: Cluster) -> set[str]:
    """Names of the nodes that suit what waits."""
    shapes = {_shape(job): job for job in waiting}
    wanted = sum(job.nodes for job in waiting)
    taken, last = Occupancy(cluster), [0.0] * len(cluster.nodes)
    for job in problem.workflow.jobs:
        if job.id in running:
            taken.place(job, running[job.id].nodes)
            left = (1.0 - running[job.id].progress) * job.profile.isolated_time
            for name in running[job.id].nodes:
                i = cluster.index[name]
                if left > last[i]:
                    last[i] = left
    usable = np.zeros(len(cluster.nodes), bool)
    usable[[cluster.index[name] for name in problem.available]] = True
    order = np.argsort(last, kind="stable")
    order = order[usable[order]]
    limit = np.array([cluster.thread_limit(node) for node in cluster.nodes])[order]
    memory = np.array([node.type.memory for node in cluster.nodes])[order]
    threads, used = np.array(taken.threads)[order], np.array(taken.memory)[order]
    names = [cluster.nodes[i].name for i in order.tolist()]
    distinct = {job.allowed for job in waiting if job.allowed is not None}
    lists = {some: np.array([name in some for name in names], bool) for some in distinct}
    chosen: set[int] = set()
    for job in shapes.values():
        may = (limit >= job.profile.threads) & (memory * (1 + SLACK) >= memory_need(job))
        if job.allowed is not None:
            may &= lists[job.allowed]
        room = (limit - threads >= job.profile.threads) & (memory * (1 + SLACK) - used >= memory_need(job))
        chosen.update(order[may & room][:wanted].tolist())
        short = wanted - int((may & room).sum())
        chosen.update(order[may & ~room][: max(short, 0)].tolist())
    return {cluster.nodes[i].name for i in chosen}


def _shape(job: Job) -> tuple[object, ...]:
    return job.nodes, job.profile.threads, memory_need(job), job.allowed


def _cut(job: Running, nodes: dict[str, int]) -> Running:
    return dataclasses.replace(job, nodes=tuple(name for name in job.nodes if name in nodes))

"""Which nodes of a large cluster a plan considers.

Rule: up to FEW_NODES, all of them. Beyond, for each shape of waiting job as many allowed nodes as all jobs to be
planned need together: nodes with free capacity first, then those that become empty sooner. So every job can have nodes
to itself where such nodes exist, and no job waits for a node that was left out. Jobs that run elsewhere are left out;
of a job on more nodes only its part on these nodes is planned with.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.model.capacity import SLACK, Occupancy, memory_need
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import RunningJob
from ..state.queue import shape_of
from .problem import Problem

Array = npt.NDArray[Any]
#: Nodes up to which a search considers all of them: simulating so many takes a millisecond or less.
FEW_NODES = 256


def shortlist(problem: Problem, cluster: Cluster) -> tuple[Problem, Cluster]:
    """Return the problem and the cluster cut down to the nodes that matter. O(nodes x shapes + jobs)."""
    if len(cluster.nodes) <= FEW_NODES:
        return problem, cluster
    running = {job.id: job for job in problem.running}
    waiting = [job for job in problem.workflow.jobs if job.id not in running]
    needed = {name for job in waiting for before in job.after if before in running for name in running[before].nodes}
    needed |= _suitable(waiting, problem, running, cluster)
    domains = {node.memory_domain for node in cluster.nodes if node.name in needed} - {None}
    nodes = tuple(node for node in cluster.nodes if node.name in needed or node.memory_domain in domains)
    small = dataclasses.replace(cluster, nodes=nodes, groups={})
    index = small.index
    here = [(job, tuple(name for name in job.nodes if name in index)) for job in problem.running]
    kept = {job.id: dataclasses.replace(job, nodes=nodes) for job, nodes in here if nodes}
    jobs = tuple(
        dataclasses.replace(job, nodes=len(kept[job.id].nodes)) if job.id in kept else job
        for job in problem.workflow.jobs
        if job.id in kept or job.id not in running
    )
    workflow = Workflow(problem.workflow.name, jobs)
    available = tuple(name for name in problem.available if name in index)
    return dataclasses.replace(problem, workflow=workflow, running=tuple(kept.values()), available=available), small


def _suitable(waiting: list[Job], problem: Problem, running: dict[str, RunningJob], cluster: Cluster) -> set[str]:
    """Return the names of the nodes that suit the waiting jobs."""
    shapes = {shape_of(job): job for job in waiting}
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
    limit = np.array(cluster.thread_limits)[order]
    memory = np.array([node.type.memory for node in cluster.nodes])[order]
    threads, used = np.array(taken.threads)[order], np.array(taken.memory)[order]
    names = [cluster.nodes[i].name for i in order.tolist()]
    distinct = {job.allowed for job in waiting if job.allowed is not None}
    lists = {some: np.array([name in some for name in names], bool) for some in distinct}
    chosen: set[int] = set()
    for job in shapes.values():
        allowed = (limit >= job.profile.threads) & (memory * (1 + SLACK) >= memory_need(job))
        if job.allowed is not None:
            allowed &= lists[job.allowed]
        free = (limit - threads >= job.profile.threads) & (memory * (1 + SLACK) - used >= memory_need(job))
        chosen.update(order[allowed & free][:wanted].tolist())
        short = wanted - int((allowed & free).sum())
        chosen.update(order[allowed & ~free][: max(short, 0)].tolist())
    return {cluster.nodes[i].name for i in chosen}

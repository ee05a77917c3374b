"""Shortlist of the nodes that a plan considers on a large cluster.

Rule: up to FEW_NODES, all of them. Beyond, for each shape of waiting job as many allowed nodes as all jobs to be
planned need together: nodes with free capacity first, then those that become empty sooner. So every job can have nodes
to itself where such nodes exist, and no job waits for a node that was left out. Jobs that run elsewhere are left out;
of a job on more nodes only its part on these nodes is planned with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import compress

import numpy as np

from ...simulate.arrays import Array
from ...simulate.model.capacity import SLACK, memory_need
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.plan import RunningJob
from ...simulate.planning.workflow_tables import template_of
from ..state.queue_entry import shape_of
from .plan_steps import in_steps
from .problem import Problem

#: Nodes up to which a search considers all of them: simulating so many takes a millisecond or less.
FEW_NODES = 256


def shortlist(
    problem: Problem, cluster: Cluster, breathe: Callable[[], None] = lambda: None
) -> tuple[Problem, Cluster]:
    """Return the problem and the cluster cut down to the nodes that matter. O(nodes x shapes + jobs).

    Args:
        problem: what to plan.
        cluster: all nodes.
        breathe: called between two steps, so that the caller can do other work.
    """
    if len(cluster.nodes) <= FEW_NODES:
        return problem, cluster
    running, index = {job.id: job for job in problem.running}, cluster.index
    waiting = [job for job in problem.workflow.jobs if job.id not in running]
    needed = _suitable(waiting, problem, running, cluster, breathe)
    breathe()
    after = {before for job in waiting for before in job.after if before in running}
    needed[[index[name] for before in after for name in running[before].nodes]] = True
    template = template_of(cluster)
    if len(template.domains) < len(needed):
        domains = np.zeros(len(template.domains), bool)
        domains[template.nodes["domain"][needed]] = True
        needed = domains[template.nodes["domain"]]
    if needed.all():
        return problem, cluster
    nodes = tuple(compress(cluster.nodes, needed.tolist()))
    small = dataclasses.replace(cluster, nodes=nodes, groups={})
    breathe()
    listed = small.index.__contains__
    placements = ((job, tuple(filter(listed, job.nodes))) for job in problem.running)
    runs = {job.id: dataclasses.replace(job, nodes=nodes) for job, nodes in placements if nodes}
    breathe()
    jobs = tuple(
        dataclasses.replace(job, nodes=len(runs[job.id].nodes)) if job.id in runs else job
        for job in problem.workflow.jobs
        if job.id in runs or job.id not in running
    )
    workflow = Workflow(problem.workflow.name, jobs)
    available = tuple(filter(listed, problem.available))
    return dataclasses.replace(problem, workflow=workflow, running=tuple(runs.values()), available=available), small


def _suitable(
    waiting: list[Job], problem: Problem, running: dict[str, RunningJob], cluster: Cluster, breathe: Callable[[], None]
) -> Array:
    """Return which nodes suit the waiting jobs, bool [nodes]."""
    shapes = {shape_of(job): job for job in waiting}
    node_count = sum(job.nodes for job in waiting)
    of_nodes = template_of(cluster).nodes
    last, threads, used = _loads(problem, running, cluster, breathe)
    usable = np.zeros(len(of_nodes), bool)
    usable[[*map(cluster.index.__getitem__, problem.available)]] = True
    order = np.argsort(last, kind="stable")
    order = order[usable[order]]
    limit, memory, threads, used = of_nodes["limit"][order], of_nodes["memory"][order], threads[order], used[order]
    distinct = {job.allowed for job in waiting if job.allowed is not None}
    lists = {names: np.array([cluster.nodes[i].name in names for i in order.tolist()], bool) for names in distinct}
    chosen = np.zeros(len(of_nodes), bool)
    for job in shapes.values():
        if chosen.sum() == len(order):
            break
        allowed = (limit >= job.profile.threads) & (memory * (1 + SLACK) >= memory_need(job))
        if job.allowed is not None:
            allowed &= lists[job.allowed]
        free = (limit - threads >= job.profile.threads) & (memory * (1 + SLACK) - used >= memory_need(job))
        best = order[allowed & free][:node_count]
        chosen[best] = True
        chosen[order[allowed & ~free][: node_count - len(best)]] = True
    return chosen


def _loads(
    problem: Problem, running: dict[str, RunningJob], cluster: Cluster, breathe: Callable[[], None]
) -> tuple[Array, Array, Array]:
    """Return the seconds until each node is empty, and the threads and bytes of its jobs [nodes]."""
    place, rows, held = cluster.index.__getitem__, list[int](), list[tuple[int, int, float, float]]()
    profiles: dict[int, tuple[int, float]] = {}
    for job in in_steps(problem.workflow.jobs, breathe):
        if (run := running.get(job.id)) is not None:
            profile = job.profile
            if id(profile) not in profiles:
                profiles[id(profile)] = profile.threads, profile.isolated_time
            threads, time = profiles[id(profile)]
            rows += map(place, run.nodes)
            held.append((len(run.nodes), threads, memory_need(job), (1.0 - run.progress) * time))
    breathe()
    nodes = len(cluster.nodes)
    sizes, threads_of, bytes_of, left_s = np.array(held, np.float64).reshape(-1, 4).T
    job_rows = np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))
    at, last = np.array(rows, np.int64), np.zeros(nodes)
    np.maximum.at(last, at, left_s[job_rows])
    return last, np.bincount(at, threads_of[job_rows], nodes), np.bincount(at, bytes_of[job_rows], nodes)

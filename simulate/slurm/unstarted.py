"""Reasons why jobs of a site never start in a replay: what they ask for, and what the files of the site have.

Rule: the first reason that holds for all partitions of a job counts. What only the state of the queue decides, such as
limits and dependencies, is "limits, dependencies, or another reason".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from .job_columns import SiteJobs, distinct
from .partition_limits import has_flag, takes_owner
from .site import Site, SiteJob, SiteNode, SitePartition

OTHER = "limits, dependencies, or another reason"


def reasons_never_started(site: Site, jobs: Array) -> tuple[tuple[str, int], ...]:
    """Return reason -> how many of some jobs have it, the most first. O(jobs log jobs + their kinds x nodes).

    Args:
        site: the site.
        jobs: mask of the jobs that never start.
    """
    columns, nodes = SiteJobs.of(site.jobs), {node.name: node for node in site.nodes}
    rows = np.flatnonzero(jobs)
    accounts = columns.accounts
    first, kind = distinct(columns.pattern[rows], accounts.codes[rows])
    counts = Counter[str]()
    for row, number in zip(rows[first].tolist(), np.bincount(kind, minlength=len(first)).tolist(), strict=True):
        job = columns.patterns[columns.pattern[row]]
        counts[next(_reasons(site, nodes, job, accounts.values[accounts.codes[row]]), OTHER)] += number
    return tuple(counts.most_common())


def _reasons(site: Site, nodes: dict[str, SiteNode], job: SiteJob, account: str) -> Iterator[str]:
    parts = [one for one in site.partitions if one.name in job.partitions]
    if not parts:
        yield f"no file describes the partition {', '.join(job.partitions) or 'of jobs that name none'}"
    if site.qos and job.qos and job.qos not in {one.name for one in site.qos}:
        yield f"no file describes the QOS {job.qos}"
    if not [one for one in parts if one.state in ("UP", "DRAIN")]:
        yield "their partition does not start jobs"
    if not [one for one in parts if takes_owner(one, account, job.qos)]:
        yield "their partition does not allow their account or QOS"
    if not [one for one in parts if len(one.nodes) >= job.min_nodes]:
        yield "they want more nodes than their partition has"
    if not [one for one in parts if _has_time(site, one, job)]:
        yield "their time limit is above MaxTime of the partition"
    features = {name for part in parts for node in part.nodes for name in nodes[node].features}
    absent = sorted(set(re.findall(r"[A-Za-z_][\w.-]*", job.constraint)) - features)
    if absent and "|" not in job.constraint:
        yield f"no node of their partition has the feature {absent[0]}"
    if not [one for one in parts if sum(_holds(nodes[name], job) for name in one.nodes) >= job.min_nodes]:
        yield "too few nodes of their partition have that many CPUs or GPUs, or that much memory"


def _has_time(site: Site, part: SitePartition, job: SiteJob) -> bool:
    free = any(one.name == job.qos and has_flag(one, "PartitionTimeLimit") for one in site.qos)
    return free or part.max_time_min is None or (job.limit_min or 0) <= part.max_time_min


def _holds(node: SiteNode, job: SiteJob) -> bool:
    cpus = job.cpus_per_task * (job.tasks_per_node or 1)
    memory = max(job.memory_per_node_mib or 0, (job.memory_per_cpu_mib or 0) * cpus)
    return node.cpus >= cpus and node.gpus >= job.gpus_per_node and node.memory_mib >= memory

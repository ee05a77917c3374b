"""The jobs of a trace at a site: what they ask for there, and who submits them.

Rule: a trace says less than a site's accounting. A job asks for as many tasks of one CPU as the trace has processors.
Its user, group and queue are those of the site that have the same name; a number is a name, too. A group without an
account of that name is an account of its own below root, with one share; a queue that is neither a partition nor a QOS
is the default partition. All this is counted in the sentences of `SiteTrace.unknown`.
Times are whole seconds, rounded up, and limits are whole minutes, rounded up. As under any other policy, a job runs for
the smaller of its run time and its walltime.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..model.cluster import Cluster
from ..model.machine import Machine
from ..model.workload import Workload
from ..wording import count
from .site import JobRecord, Site, SiteJob, SiteLimits, SiteNode, SitePartition, SiteRules
from .site_policy import SlurmRules

#: The second of a trace's time 0 where the trace does not say it: a Monday.
UNKNOWN_EPOCH = 4 * 86_400
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class SiteTrace:
    """A site with the jobs of a trace.

    Args:
        site: the site; its jobs are the rows of the trace, in their order.
        epoch: the site's time at second 0 of the trace.
        unknown: sentences about what the trace and the site do not say of each other.
    """

    site: Site
    epoch: int
    unknown: tuple[str, ...]


def site_of_trace(policy: SlurmRules, jobs: Workload, machine: Machine) -> SiteTrace:
    """Return the site with the jobs of a trace. O(jobs + dependencies).

    Args:
        policy: the site.
        jobs: the trace.
        machine: the CPUs of the site, or the nodes of a cluster in the place of its own.
    """
    site, unknown = _on_machine(policy, machine)
    users = _Users(site, jobs)
    site = _without_strangers(site, users, unknown)
    if not any(users.user):
        site = _without_user_limits(site)
        unknown.append("the trace does not say who submitted a job: limits of users and accounts are left out")
    mebibytes = _memory(site, jobs, unknown)
    knows_memory = any(mebibytes)
    if site.rules.counts_memory and not knows_memory and not _has_default_memory(site):
        site = replace(site, rules=replace(site.rules, counts_memory=False))
        unknown.append("neither the trace nor the site says how much memory a job needs: memory is not counted")
    epoch = UNKNOWN_EPOCH if jobs.epoch is None else math.floor(jobs.epoch)
    submit, run, limit = trace_times(jobs)
    texts = _dependencies(jobs)
    failed = jobs.overruns | (jobs.more.get("returns", np.zeros(len(jobs))) != 0)
    rows = zip(
        (submit + epoch).tolist(), run.tolist(), limit.tolist(), jobs.size.tolist(), mebibytes, failed.tolist(),
        strict=True,
    )  # fmt: skip
    site_jobs = tuple(
        SiteJob(
            str(row), "job", users.user[row], users.account[row], users.qos[row], users.partitions[row], submitted,
            (JobRecord("FAILED"),) if has_failed else (), minutes if minutes > 0 else None, tasks=size, min_cpus=size,
            memory_per_cpu_mib=mib or None, dependency=texts.get(row, ""), run_s=seconds,
        )
        for row, (submitted, seconds, minutes, size, mib, has_failed) in enumerate(rows)
    )  # fmt: skip
    site = replace(site, jobs=site_jobs)
    return SiteTrace(site, epoch, (*site.unknown, *users.unknown(), *unknown, *_too_long(site)))


def trace_times(jobs: Workload) -> tuple[Array, Array, Array]:
    """Return submissions and run times, whole seconds, and limits, minutes; 0 is the limit of the partition."""
    run = np.ceil(np.minimum(jobs.run_time, jobs.walltime))
    limit = np.where(np.isinf(jobs.walltime), 0.0, np.maximum(np.ceil(jobs.walltime / 60.0), 1.0))
    return np.ceil(jobs.submit_time), run, limit.astype(np.int64)


def _on_machine(policy: SlurmRules, machine: Machine) -> tuple[Site, list[str]]:
    """Return the site on the nodes of a machine. Nodes are in the partitions in which the site has their names."""
    site, cluster = policy.site, machine.cluster
    if cluster is None:
        return replace(site, nodes=tuple(replace(node, works=True) for node in site.nodes)), []
    nodes = _cluster_nodes(cluster, whole=machine.processors == len(cluster.nodes))
    names = {node.name for node in nodes}

    def members(partition: SitePartition) -> tuple[str, ...]:
        return tuple(node for node in partition.nodes if node in names)

    if all(members(partition) for partition in site.partitions):
        return replace(site, nodes=nodes, partitions=tuple(
            replace(partition, nodes=members(partition)) for partition in site.partitions
        )), []  # fmt: skip
    every = tuple(node.name for node in nodes)
    partitions = tuple(replace(partition, nodes=every) for partition in site.partitions)
    problem = "the cluster's nodes are not those of the site: each partition has all of them"
    return replace(site, nodes=nodes, partitions=partitions), [problem]


def _cluster_nodes(cluster: Cluster, *, whole: bool) -> tuple[SiteNode, ...]:
    """Return the nodes of a cluster; `whole`: a job gets whole ones, so that each counts as one CPU."""
    return tuple(
        SiteNode(
            node.name, *((1, 1) if whole else (node.type.cores, node.type.cores)), sockets=node.type.sockets,
            memory_mib=max(int(node.type.memory // _MIB), 1),
        )
        for node in cluster.nodes
    )  # fmt: skip


def _memory(site: Site, jobs: Workload, unknown: list[str]) -> list[int]:
    """Return the memory that each job asks for, MiB for each CPU; 0 where the trace does not say it."""
    kibibytes: Array = jobs.more.get("requested_memory", np.zeros(len(jobs)))
    mebibytes = np.ceil(np.maximum(kibibytes, 0) / 1024).astype(np.int64)
    largest = max(node.memory_mib for node in site.nodes)
    if (mebibytes > largest).sum() > (mebibytes > 0).sum() / 2:
        unknown.append("most jobs of the trace ask for more memory than a node has: what they ask for is left out")
        return [0] * len(jobs)
    return [int(value) for value in mebibytes]


def _too_long(site: Site) -> list[str]:
    """Return a sentence about the jobs whose limits are above those of their partitions, which never start."""
    longest = {partition.name: partition.max_time_min for partition in site.partitions}
    longest[""] = next((one.max_time_min for one in site.partitions if one.is_default), site.partitions[0].max_time_min)
    bounds = (longest[job.partitions[0] if job.partitions else ""] for job in site.jobs)
    number = sum(
        bound is not None and (job.limit_min or 0) > bound for job, bound in zip(site.jobs, bounds, strict=True)
    )
    return [f"{count(number, 'job')} with a walltime above MaxTime of the partition: never started"] if number else []


def _has_default_memory(site: Site) -> bool:
    places: tuple[SiteRules | SitePartition, ...] = (site.rules, *site.partitions)
    return any(
        place.default_memory_per_cpu_mib is not None or place.default_memory_per_node_mib is not None
        for place in places
    )


class _Users:
    """Users, accounts, QOS and partitions of the jobs of a trace, a row a job.

    Args:
        site: the site.
        jobs: the trace.
    """

    def __init__(self, site: Site, jobs: Workload) -> None:
        names = {title: _names(jobs.more.get(title), len(jobs)) for title in ("user", "group", "queue", "partition")}
        accounts = defaultdict[str, list[str]](list)
        for entry in site.associations:
            if entry.user:
                accounts[entry.user].append(entry.account)
        known_accounts = {entry.account for entry in site.associations}
        partitions = {entry.name for entry in site.partitions}
        qos = {entry.name for entry in site.qos}

        def account(user: str, group: str) -> str:
            choices = accounts.get(user, [])
            return group if group in choices or not choices else choices[0]

        pairs = dict.fromkeys(zip(names["user"], names["group"], strict=True))
        account_of = {pair: account(*pair) for pair in pairs}
        self.user = names["user"]
        self.account = [account_of[pair] for pair in zip(names["user"], names["group"], strict=True)]
        queues = list(zip(names["queue"], names["partition"], strict=True))
        self.partitions = [tuple(name for name in pair if name in partitions)[:1] for pair in queues]
        self.qos = [next((name for name in pair if name in qos), "") for pair in queues]
        self._strangers = {"user": set(names["user"]) - accounts.keys() - {""}}
        self._strangers["group"] = set(self.account) - known_accounts - {""}
        self._strangers["queue"] = set(names["queue"]) - partitions - qos - {""}
        self._default = next((entry.name for entry in site.partitions if entry.is_default), site.partitions[0].name)

    @property
    def has_strangers(self) -> bool:
        """Return whether a job is of an account that the site does not have."""
        return bool(self._strangers["group"]) or not any(self.account)

    def unknown(self) -> list[str]:
        """Return a sentence for each kind of name that the site does not have."""
        users, groups, queues = (len(self._strangers[kind]) for kind in ("user", "group", "queue"))
        texts = list[str]()
        if users:
            texts.append(f"the site does not have {count(users, 'user')} of the trace: each has one share")
        if groups:
            texts.append(f"the site has no account for {count(groups, 'group')} of the trace: each has its own")
        if queues:
            problem = f"the site has no partition and no QOS for {count(queues, 'queue')} of the trace"
            texts.append(f"{problem}: their jobs are in the default partition, {self._default}")
        return texts


def _names(column: Array | None, jobs: int) -> list[str]:
    """Return a column of a trace as names; "" where it says nothing."""
    if column is None:
        return [""] * jobs
    if column.dtype.kind in "OUS":
        return [str(value) for value in column.tolist()]
    return ["" if not value >= 0 else f"{value:.15g}" for value in column.tolist()]


def _without_strangers(site: Site, users: _Users, unknown: list[str]) -> Site:
    """Return the site whose partitions let in accounts of the trace that it does not have."""
    closed = [entry.name for entry in site.partitions if entry.allow_accounts is not None]
    if not closed or not users.has_strangers:
        return site
    unknown.append(f"AllowAccounts of {', '.join(closed)} is left out: accounts of the trace are not the site's")
    return replace(site, partitions=tuple(replace(entry, allow_accounts=None) for entry in site.partitions))


def _without_user_limits(site: Site) -> Site:
    """Return the site whose QOS have no limits of a user or an account."""
    none = SiteLimits()
    names = [one.name for one in fields(none) if one.name.startswith(("user_", "account_"))]
    plain: dict[str, Any] = {name: getattr(none, name) for name in names}
    qos = tuple(replace(entry, limits=replace(entry.limits, **plain)) for entry in site.qos)
    return replace(site, qos=qos)


def _dependencies(jobs: Workload) -> dict[int, str]:
    """Return the dependencies of jobs as Slurm writes them; delays are whole minutes, rounded up."""
    pairs = jobs.dependencies
    if pairs is None:
        return {}
    terms = defaultdict[int, list[str]](list)
    columns: Iterable[tuple[int, int, float, bool]] = zip(
        pairs.before.tolist(), pairs.after.tolist(), pairs.delays.tolist(), pairs.at_any_end.tolist(), strict=True
    )
    for before, after, delay, any_end in columns:
        kind = "afterany" if any_end else "afterok"
        terms[after].append(f"{kind}:{before}" + (f"+{math.ceil(delay / 60.0)}" if delay else ""))
    return {row: ",".join(texts) for row, texts in terms.items()}

"""The jobs of a site as tables: what each asks for, whom it waits for, and what happens to it by itself.

Rule: what Slurm derives once at submission is derived here: limits and memory that a job did not name, and the nodes
that its features allow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import (
    AFTER,
    AFTER_ANY,
    AFTER_NOT_OK,
    AFTER_OK,
    AFTER_START,
    CANCEL,
    DOWN,
    DRAINED,
    EVENT,
    FUTURE,
    HELD,
    HISTORY,
    JOB,
    NODE_STATE,
    RELEASE,
    REQUEUE_S,
    RESERVATION_EDGE,
    SUBMIT,
    UP,
)
from .site import Site, SiteJob, SitePartition

#: A time limit where nothing names one, minutes: a year.
NO_LIMIT_MIN = 365 * 24 * 60
_KINDS = {
    "afterany": AFTER_ANY, "afterok": AFTER_OK, "afternotok": AFTER_NOT_OK, "after": AFTER_START, "aftercorr": AFTER_OK,
}  # fmt: skip
_FEATURE = re.compile(r"[^\s&|\[\]()*,]+")


class NodeSets:
    """Sets of nodes that jobs name, each kept once."""

    def __init__(self, site: Site) -> None:
        self._index = {node.name: row for row, node in enumerate(site.nodes)}
        self._features = defaultdict[str, set[int]](set)
        for row, node in enumerate(site.nodes):
            for feature in node.features:
                self._features[feature].add(row)
        self._words = -(-len(site.nodes) // 64)
        self._rows: dict[frozenset[int], int] = {}

    def row(self, nodes: Iterable[int]) -> int:
        """Return the row of a set of node numbers."""
        return self._rows.setdefault(frozenset(nodes), len(self._rows))

    def named(self, names: Iterable[str]) -> int:
        """Return the row of the nodes with these names; names that the site does not have are left out."""
        return self.row(self._index[name] for name in names if name in self._index)

    def allowed(self, job: SiteJob) -> int:
        """Return the row of the nodes that a job's features and lists allow, -1 if all are."""
        nodes = None
        if job.constraint:
            nodes = set[int]()
            for alternative in job.constraint.split("|"):
                features = [self._features[name] for name in _FEATURE.findall(alternative)]
                nodes |= set.intersection(*features) if features else set()
        if job.excluded_nodes:
            nodes = set(range(len(self._index))) if nodes is None else nodes
            nodes -= {self._index[name] for name in job.excluded_nodes if name in self._index}
        return -1 if nodes is None else self.row(nodes)

    def table(self) -> Array:
        """Return the sets as words, [sets, words]."""
        return node_words(self._rows, self._words)


def node_words(sets: Iterable[Iterable[int]], words: int) -> Array:
    """Return sets of node numbers as rows of 64-bit words, at least one row."""
    rows = [sorted(nodes) for nodes in sets]
    table = np.zeros((max(len(rows), 1), words), np.uint64)
    for row, nodes in enumerate(rows):
        for node in nodes:
            table[row, node // 64] |= np.uint64(1) << np.uint64(node % 64)
    return table


def job_tables(site: Site, sets: NodeSets) -> dict[str, Array]:
    """Return the tables of the jobs: `jobs`, `job_parts`, `after`.

    Args:
        site: the site, completed.
        sets: takes the sets of nodes that jobs name.
    """
    partitions = {entry.name: row for row, entry in enumerate(site.partitions)}
    users = {name: row for row, name in enumerate(dict.fromkeys(job.user for job in site.jobs))}
    accounts = {name: row for row, name in enumerate(dict.fromkeys(job.account for job in site.jobs))}
    associations = {(entry.account, entry.user): row for row, entry in enumerate(site.associations)}
    qos = {entry.name: row for row, entry in enumerate(site.qos)}
    jobs = np.zeros(len(site.jobs), JOB)
    parts, heads = list[int](), dict[str, int]()
    default = next((row for row, entry in enumerate(site.partitions) if entry.is_default), 0)
    for row, job in zip(jobs, site.jobs, strict=True):
        wanted_parts = [partitions[name] for name in job.partitions if name in partitions] or [default]
        wanted_parts.sort(key=lambda part: -site.partitions[part].tier)
        row["part0"], row["parts"] = len(parts), len(wanted_parts)
        parts += wanted_parts
        _fill_job(row, job, site, site.partitions[wanted_parts[0]])
        row["user"], row["account"] = users[job.user], accounts[job.account]
        row["assoc"] = associations.get((job.account or "root", job.user or "?"), -1)
        row["qos"] = qos.get(job.qos or "normal", 0)
        row["allowed"] = sets.allowed(job)
        row["required"] = sets.named(job.required_nodes) if job.required_nodes else -1
    for number, job in enumerate(site.jobs):
        jobs[number]["array"] = heads.setdefault(job.array, number) if job.array else -1
    after, unmet = _dependents(site, jobs)
    jobs["unmet"] = unmet
    return {"jobs": jobs, "job_parts": np.array(parts or [0], INT), "after": after}


def _fill_job(row: Array, job: SiteJob, site: Site, partition: SitePartition) -> None:
    """Write what one job asks for."""
    rules = site.rules
    limit = job.limit_min
    if limit is None:
        limit = partition.default_time_min if partition.default_time_min is not None else partition.max_time_min
    least = max(job.min_nodes, 1)
    cpus_per_task = max(job.cpus_per_task, 1)
    memory, is_per_cpu = _memory(job, site, partition)
    values = {
        "run": job.run_s, "submit": job.submit, "limit": NO_LIMIT_MIN if limit is None else limit,
        "time_min": -1 if job.time_min_min is None else job.time_min_min,
        "min_nodes": least, "max_nodes": -1 if job.max_nodes is None else job.max_nodes,
        "want_nodes": max(least, job.max_nodes or 0), "tasks": max(job.tasks, 1), "cpus_per_task": cpus_per_task,
        "min_cpus": max(job.min_cpus, job.tasks * cpus_per_task, least),
        "tasks_per_node": job.tasks_per_node or 0, "memory": memory, "memory_per_cpu": is_per_cpu,
        "gpus": job.gpus_per_node, "exclusive": job.is_exclusive or rules.selects == "nodes",
        "contiguous": job.is_contiguous, "nice": job.nice, "begin_at": job.begin or 0, "task": job.task,
        "array_limit": job.array_limit or 0, "deadline": -1 if job.deadline is None else job.deadline,
        "requeued": job.is_requeued and rules.requeues, "successful": not job.runs or job.runs[-1].state == "COMPLETED",
        "state": FUTURE if job.released is None else HELD, "resv_pass": -1, "refused": -1, "log": -1,
    }  # fmt: skip
    for name, value in values.items():
        row[name] = value


def _memory(job: SiteJob, site: Site, partition: SitePartition) -> tuple[int, int]:
    """Return the memory of a job, MiB, and 1 if that is for each CPU; 0 is all memory of a node."""
    rules = site.rules
    for per_node, per_cpu in (
        (job.memory_per_node_mib, job.memory_per_cpu_mib),
        (partition.default_memory_per_node_mib, partition.default_memory_per_cpu_mib),
        (rules.default_memory_per_node_mib, rules.default_memory_per_cpu_mib),
    ):
        if per_cpu is not None:
            return per_cpu, int(per_cpu > 0)
        if per_node is not None:
            return per_node, 0
    return 0, 0


def _dependents(site: Site, jobs: Array) -> tuple[Array, list[int]]:
    """Return the table of dependents, by the job that they wait for, and how many jobs each waits for."""
    rows = defaultdict[str, list[int]](list)
    for number, job in enumerate(site.jobs):
        rows[job.id].append(number)
        if job.array:
            rows[job.array].append(number)
    dependents = defaultdict[int, list[tuple[int, int, int]]](list)
    unmet = [0] * len(site.jobs)
    names = dict[tuple[str, str], int]()
    for number, job in enumerate(site.jobs):
        for term in re.split(r"[,?]", job.dependency) if job.dependency else ():
            kind, *ids = term.split(":")
            kind = kind.lower()
            if kind == "singleton" and (job.user, job.name) in names:
                dependents[names[job.user, job.name]].append((number, AFTER_ANY, 0))
                unmet[number] += 1
            for text in ids if kind in _KINDS else ():
                name, _, delay = text.partition("+")
                others = rows[name]
                if kind == "aftercorr":
                    others = [other for other in others if site.jobs[other].task == job.task]
                for other in others:
                    dependents[other].append((number, _KINDS[kind], int(delay or 0) * 60))
                    unmet[number] += 1
        names[job.user, job.name] = number
    table = list[tuple[int, int, int]]()
    for number in range(len(site.jobs)):
        jobs[number]["after0"], jobs[number]["afters"] = len(table), len(dependents[number])
        table += dependents[number]
    return np.array(table or [(0, 0, 0)], AFTER), unmet


def agenda_tables(site: Site, jobs: Array, sets: NodeSets, *, repeats: bool) -> dict[str, Array]:
    """Return what happens by itself: `agenda`, by time, and `history`, runs as the record says.

    Args:
        site: the site, completed.
        jobs: their table.
        sets: takes the nodes of runs.
        repeats: whether jobs start as the record says.
    """
    nodes = {node.name: row for row, node in enumerate(site.nodes)}
    partitions = {partition.name: row for row, partition in enumerate(site.partitions)}
    events, history = list[tuple[int, int, int, int]](), list[tuple[float, int, int, int, int, int, int]]()
    for number, job in enumerate(site.jobs):
        events.append((int(job.submit), SUBMIT, number, 0))
        if job.released is not None:
            events.append((int(job.released), RELEASE, number, 0))
        last = job.runs[-1] if job.runs else None
        if last is not None and last.start is None and last.end is not None and last.state.startswith("CANCELLED"):
            events.append((int(last.end), CANCEL, number, 0))
        for turn, run in enumerate(job.runs if repeats else ()):
            if run.start is None:
                continue
            if turn > 0:
                before = job.runs[turn - 1].end or run.start
                events.append((int(before) + 1, SUBMIT, number, REQUEUE_S - 1))
            part = partitions.get(run.partition, int(jobs[number]["part0"]))
            finish = run.end if run.end is not None else float("inf")
            by = {"main": 0, "backfill": 1}.get(run.started_by, 2)
            history.append((finish, number, part, int(run.start), sets.named(run.nodes), by, run.cpus))
    for event in site.events:
        if event.node in nodes:
            state = DOWN if event.kills else DRAINED
            events.append((int(event.start), NODE_STATE, nodes[event.node], state))
            if event.end is not None:
                events.append((int(event.end), NODE_STATE, nodes[event.node], UP))
    for row, reservation in enumerate(site.reservations):
        events += [(int(time), RESERVATION_EDGE, row, 0) for time in (reservation.start, reservation.end)]
    events.sort(key=lambda event: (event[0], event[1], event[2]))
    return {"agenda": np.array(events, EVENT), "history": np.array(history, HISTORY)}

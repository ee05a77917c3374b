"""The jobs of a site as tables: what each asks for, whom it waits for, and what happens to it by itself.

Rule: what Slurm derives once at submission is derived here: limits and memory that a job did not name, and the nodes
that its features allow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
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
    JOB,
    LARGEST,
    NODE_STATE,
    RELEASE,
    REQUEUE_S,
    RESERVATION_EDGE,
    SUBMIT,
    UP,
)
from .job_columns import SiteJobs, distinct, spans
from .share_tables import association_rows
from .site import Site, SiteJob, SitePartition

#: A time limit where nothing names one, minutes: a year.
NO_LIMIT_MIN = 365 * 24 * 60
_KINDS = {
    "afterany": AFTER_ANY, "afterok": AFTER_OK, "afternotok": AFTER_NOT_OK, "after": AFTER_START, "aftercorr": AFTER_OK,
}  # fmt: skip
#: Times are whole seconds; those further from the epoch are not exact, seconds.
_LATEST_S = 2.0**53
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

    Raises:
        ConfigError: a job has a time that is infinite, or not a number.
    """
    columns = SiteJobs.of(site.jobs)
    _check_times(columns)
    used, pattern = distinct(columns.pattern)
    patterns = [columns.patterns[code] for code in columns.pattern[used].tolist()]
    partitions = {entry.name: row for row, entry in enumerate(site.partitions)}
    default = next((row for row, entry in enumerate(site.partitions) if entry.is_default), 0)
    qos = {entry.name: row for row, entry in enumerate(site.qos)}
    requests, parts = np.zeros(len(patterns), JOB), list[int]()
    for row, job in zip(requests, patterns, strict=True):
        job_parts = [partitions[name] for name in job.partitions if name in partitions] or [default]
        job_parts.sort(key=lambda part: -site.partitions[part].tier)
        row["part0"], row["parts"] = len(parts), len(job_parts)
        parts += job_parts
        _fill_request(row, job, site, site.partitions[job_parts[0]])
        row["qos"] = qos.get(job.qos or "normal", 0)
        row["allowed"] = sets.allowed(job)
        row["required"] = sets.named(job.required_nodes) if job.required_nodes else -1
    jobs = requests[pattern]
    slots = spans(jobs["part0"], jobs["parts"])
    jobs["part0"] = np.cumsum(jobs["parts"]) - jobs["parts"]
    _fill_own(jobs, columns, site)
    after = _dependents(columns, jobs)
    return {"jobs": jobs, "job_parts": np.array(parts, INT)[slots] if parts else np.zeros(1, INT), "after": after}


def _check_times(columns: SiteJobs) -> None:
    """Raise ConfigError for a time that the tables cannot hold. O(jobs + runs)."""
    jobs, runs = np.arange(len(columns)), columns.runs
    owners = np.repeat(jobs, np.diff(columns.first_run))
    of_jobs = {name: getattr(columns, name) for name in ("submit", "begin", "released", "deadline")}
    of_runs = {name: getattr(runs, name) for name in ("eligible", "start", "end")}
    for name, times in {**of_jobs, **of_runs}.items():
        is_wrong = (times > _LATEST_S) | (times < -_LATEST_S)
        if name == "submit":  # elsewhere NaN is None
            is_wrong |= np.isnan(times)
        rows = np.flatnonzero(is_wrong)
        if len(rows):
            job = int((owners if name in of_runs else jobs)[rows[0]])
            problem, allowed = f"{name} is {times[rows[0]]}", "seconds since the epoch, finite"
            raise ConfigError(f"job {columns.ids[job]}", "", problem, allowed, more=len(rows) - 1)


def _fill_own(jobs: Array, columns: SiteJobs, site: Site) -> None:
    """Write what jobs do not share with others that request the same."""
    users, accounts, arrays = columns.users.compact(), columns.accounts.compact(), columns.arrays.compact()
    jobs["user"], jobs["account"] = users.codes, accounts.codes
    jobs["assoc"] = association_rows(site)
    jobs["run"], jobs["submit"] = columns.run_s, columns.submit
    jobs["begin_at"] = np.nan_to_num(columns.begin, nan=0.0)
    jobs["deadline"] = np.nan_to_num(columns.deadline, nan=-1.0)
    jobs["state"] = np.where(np.isnan(columns.released), FUTURE, HELD)
    last, states = columns.last_run, columns.runs.state
    completes = np.array([*(state == "COMPLETED" for state in states.values), True])
    jobs["successful"] = completes[states.codes[last] if len(states) else np.full(len(jobs), -1)] | (last < 0)
    heads, _ = distinct(arrays.codes)
    is_task = np.array([name != "" for name in arrays.values], bool)[arrays.codes]
    jobs["array"] = np.where(is_task, heads[arrays.codes], -1)


def _fill_request(row: Array, job: SiteJob, site: Site, partition: SitePartition) -> None:
    """Write what jobs of a pattern ask for."""
    rules = site.rules
    limit = job.limit_min
    if limit is None:
        limit = partition.default_time_min if partition.default_time_min is not None else partition.max_time_min
    least = max(job.min_nodes, 1)
    memory, is_per_cpu = _memory(job, site, partition)
    most = partition.max_memory_per_cpu_mib or rules.max_memory_per_cpu_mib
    more = max(-(-memory // most), 1) if is_per_cpu and most else 1  # CPUs in the place of one
    memory, cpus_per_task = -(-memory // more), more * max(job.cpus_per_task, 1)
    values = {
        "limit": NO_LIMIT_MIN if limit is None else limit,
        "time_min": -1 if job.time_min_min is None else job.time_min_min,
        "min_nodes": least, "max_nodes": -1 if job.max_nodes is None else job.max_nodes,
        "want_nodes": max(least, job.max_nodes or 0), "tasks": max(job.tasks, 1), "cpus_per_task": cpus_per_task,
        "min_cpus": max(job.min_cpus, job.tasks * cpus_per_task, least),
        "tasks_per_node": job.tasks_per_node or 0, "memory": memory, "memory_per_cpu": is_per_cpu,
        "gpus": job.gpus_per_node, "exclusive": job.is_exclusive or rules.selects == "nodes",
        "contiguous": job.is_contiguous, "nice": job.nice, "array_limit": job.array_limit or 0,
        "requeued": job.is_requeued and rules.requeues, "resv_pass": -1, "refused": -1, "log": -1, "granted": -1,
    }  # fmt: skip
    for name, value in values.items():
        row[name] = max(-LARGEST, min(value, LARGEST))


def requested_memory(site: Site) -> tuple[Array, Array]:
    """Return the memory of each pattern of jobs, MiB, and 1 where that is for each CPU: see `_memory`."""
    parts, patterns = {part.name: part for part in site.partitions}, SiteJobs.of(site.jobs).patterns
    default = next((part for part in site.partitions if part.is_default), site.partitions[0])
    names = [job.partitions[0] if job.partitions else "" for job in patterns]
    rows = [_memory(job, site, parts.get(name, default)) for job, name in zip(patterns, names, strict=True)]
    memory, is_per_cpu = np.array(rows, INT).reshape(-1, 2).T
    return memory, is_per_cpu


def _memory(job: SiteJob, site: Site, partition: SitePartition) -> tuple[int, int]:
    """Return the memory of a job, MiB, and 1 if that is for each CPU; 0 is all memory of a node, or none by CPU."""
    rules = site.rules
    if job.memory_per_cpu_mib is not None:
        return job.memory_per_cpu_mib, int(job.memory_per_cpu_mib > 0)
    if job.memory_per_node_mib is not None:
        return job.memory_per_node_mib, 0
    for per_node, per_cpu in (
        (partition.default_memory_per_node_mib, partition.default_memory_per_cpu_mib),
        (rules.default_memory_per_node_mib, rules.default_memory_per_cpu_mib),
    ):
        if per_cpu is not None:
            return per_cpu, 1
        if per_node is not None:
            return per_node, 0
    return 0, 0


def _dependents(columns: SiteJobs, jobs: Array) -> Array:
    """Return the table of dependents, by the job that they wait for; fill how many jobs each waits for."""
    waits = list[tuple[int, int, int, int]]()  # the job that is waited for, and a row of the table
    if any(columns.dependencies.values):
        waits = sorted(_waits(columns), key=lambda wait: wait[0])
    table = np.array([wait[1:] for wait in waits] or [(0, 0, 0)], AFTER)
    counts = np.bincount(np.array([wait[0] for wait in waits], INT), minlength=len(jobs))
    jobs["after0"], jobs["afters"] = np.cumsum(counts) - counts, counts
    jobs["unmet"] = np.bincount(np.array([wait[1] for wait in waits], INT), minlength=len(jobs))
    return table


def _waits(columns: SiteJobs) -> Iterator[tuple[int, int, int, int]]:
    """Yield the job that is waited for, the job that waits, how, and with which delay."""
    rows = defaultdict[str, list[int]](list)
    for number, (name, array) in enumerate(zip(columns.ids, columns.arrays, strict=True)):
        rows[name].append(number)
        if array:
            rows[array].append(number)
    names = dict[tuple[str, str], int]()
    owners = zip(columns.users, columns.names, columns.dependencies, strict=True)
    for number, (user, job_name, dependency) in enumerate(owners):
        for term in re.split(r"[,?]", dependency) if dependency else ():
            kind, *ids = term.split(":")
            kind = kind.lower()
            if kind == "singleton" and (user, job_name) in names:
                yield names[user, job_name], number, AFTER_ANY, 0
            for text in ids if kind in _KINDS else ():
                name, _, delay = text.partition("+")
                for other in rows[name]:
                    if kind != "aftercorr" or columns.task[other] == columns.task[number]:
                        yield other, number, _KINDS[kind], int(delay or 0) * 60
        names[user, job_name] = number


def agenda(site: Site, *, repeats: bool) -> Array:
    """Return what happens by itself, by time.

    Args:
        site: the site, completed.
        repeats: whether jobs start as the record says, and so are requeued as it says.
    """
    columns = SiteJobs.of(site.jobs)
    runs, nodes = columns.runs, {node.name: row for row, node in enumerate(site.nodes)}
    tables = [_events(columns.submit, SUBMIT, np.arange(len(columns)))]
    released = np.flatnonzero(~np.isnan(columns.released))
    tables.append(_events(columns.released[released], RELEASE, released))
    owner = np.flatnonzero(columns.last_run >= 0)
    last = columns.last_run[owner]
    leaves = [repeats or state.startswith("CANCELLED") for state in runs.state.values]  # others leave by a rule
    is_cancelled = (
        np.array(leaves, bool)[runs.state.codes][last] & np.isnan(runs.start[last]) & ~np.isnan(runs.end[last])
    )
    tables.append(_events(runs.end[last][is_cancelled], CANCEL, owner[is_cancelled]))
    if repeats:
        tables.append(_requeues(columns))
    events = list[tuple[int, int, int, int]]()  # in the order of the fields of EVENT
    for event in site.events:
        if event.node in nodes:
            state = DOWN if event.kills else DRAINED
            events.append((int(event.start), nodes[event.node], state, NODE_STATE))
            if event.end is not None:
                events.append((int(event.end), nodes[event.node], UP, NODE_STATE))
    for row, reservation in enumerate(site.reservations):
        events += [(int(time), row, 0, RESERVATION_EDGE) for time in (reservation.start, reservation.end)]
    table = np.concatenate([*tables, np.array(events, EVENT)])
    return table[np.lexsort((table["what"], table["kind"], table["time"]))]


def _requeues(columns: SiteJobs) -> Array:
    """Return the submissions of jobs that were requeued."""
    runs = columns.runs
    owner = np.repeat(np.arange(len(columns)), np.diff(columns.first_run))
    again = np.flatnonzero(~np.isnan(runs.start))
    again = again[again > columns.first_run[owner[again]]]
    before = np.where(np.isnan(runs.end[again - 1]), runs.start[again], runs.end[again - 1])
    before = np.where(before == 0, runs.start[again], before)
    return _events(before.astype(INT) + 1, SUBMIT, owner[again], REQUEUE_S - 1)


def _events(times: Array, kind: int, subjects: Array, state: int = 0) -> Array:
    """Return rows of the agenda."""
    events = np.zeros(len(times), EVENT)
    events["time"], events["kind"], events["what"], events["state"] = times, kind, subjects, state
    return events

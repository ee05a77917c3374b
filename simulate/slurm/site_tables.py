"""A site as the tables of the kernels.

Rule: what Slurm derives once at submission is derived here: limits and memory that a job did not name, the nodes that
its features allow, its dependents. Nothing here decides anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..arrays import Array
from ..kernels.slurm.tables import (
    AFTER,
    AFTER_ANY,
    AFTER_NOT_OK,
    AFTER_OK,
    AFTER_START,
    CANCEL,
    DRAINED,
    DOWN,
    EVENT,
    HELD,
    HISTORY,
    HISTORY_START,
    JOB,
    NODE,
    NODE_STATE,
    PARTITION,
    RELEASE,
    RESERVATION_EDGE,
    RULES,
    SCRATCH_ROWS,
    SUBMIT,
    UP,
    WORD,
    Slurm,
)
from ..kernels.mapping.layout import INT
from .limit_tables import limit_tables
from .reservation_tables import reservation_tables
from .share_tables import share_tables
from .site import Site, SiteAssociation, SiteJob, SitePartition, SiteQos

#: A time limit where nothing names one, minutes: a year.
NO_LIMIT_MIN = 365 * 24 * 60
_KINDS = {"afterany": AFTER_ANY, "afterok": AFTER_OK, "afternotok": AFTER_NOT_OK, "after": AFTER_START,
          "aftercorr": AFTER_OK}  # fmt: skip
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


def completed(site: Site) -> Site:
    """Return the site with an association and a QOS for each of its jobs, where the files name none."""
    qos = list(site.qos)
    names = {each.name for each in qos}
    for name in ["normal", *(job.qos for job in site.jobs)]:
        if name not in names:
            names.add(name)
            qos.append(SiteQos(name))
    associations = list(site.associations) or [SiteAssociation("root")]
    accounts = {each.account: row for row, each in enumerate(associations) if not each.user}
    users = {(each.account, each.user) for each in associations if each.user}
    for job in site.jobs:
        account = job.account or "root"
        if account not in accounts:
            accounts[account] = len(associations)
            associations.append(SiteAssociation(account, parent=0))
        if (account, job.user) not in users:
            users.add((account, job.user))
            associations.append(SiteAssociation(account, job.user or "?", parent=accounts[account]))
    return replace(site, qos=tuple(qos), associations=tuple(associations))


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the clocks of slurmctld stand when a replay begins; seconds after its begin."""

    tick: float
    backfill: float
    period: float
    limit: int
    full: float

    @classmethod
    def drawn(cls, site: Site, seed: int) -> Phases:
        """Draw all phases from a seed."""
        draws = np.random.default_rng(seed).random(5).tolist()
        rules = site.rules
        return cls(
            draws[0], draws[1] * max(rules.scheduler.bf_interval, 1.0), draws[2] * rules.priority.period_s,
            int(draws[3] * 30), draws[4] * max(rules.scheduler.sched_interval, 1.0),
        )  # fmt: skip


def site_block(site: Site, phases: Phases, *, seed: int = 1, repeats: bool = False) -> Slurm:
    """Return the state of a site before its first submission.

    Args:
        site: the site, `completed`.
        phases: of its clocks.
        seed: of what is random later.
        repeats: whether jobs start as the record says, and passes start none.
    """
    sets = NodeSets(site)
    words = -(-len(site.nodes) // 64)
    jobs, parts = _jobs(site, sets)
    after, unmet = _dependents(site, jobs)
    jobs["unmet"] = unmet
    agenda, history = _agenda(site, sets, repeats)
    began = float(agenda["time"][0]) if len(agenda) else 0.0
    reservations = reservation_tables(site)
    shares = share_tables(site)
    limits = limit_tables(site, jobs, parts)
    runs = max(len(site.jobs), 1) if not repeats else max(len(history), 1)
    if site.rules.preempt_type:
        runs *= 4
    pieces = int(sum(_most_nodes(row, len(site.nodes)) for row in jobs)) if not repeats else 0
    if repeats:
        pieces = sum(len(run.nodes) for job in site.jobs for run in job.runs)
    slices = 2 * max(site.rules.scheduler.bf_node_space_size, site.rules.scheduler.bf_max_job_test) + 4
    nodes, waiting = len(site.nodes), len(jobs)
    fixed = {
        "partition_nodes": _partition_nodes(site, words), "allowed_nodes": sets.table(), "job_parts": parts,
        "after": after, "agenda": agenda, "history": history,
        **{name: table for tables in (reservations, shares, limits) for name, table in tables.items()},
    }  # fmt: skip
    shapes = {
        "nodes": (nodes,), "views": (2, nodes), "partitions": (len(site.partitions),), "jobs": (waiting,),
        "part_priority": (len(parts),), "pieces": (max(pieces, 1) * (4 if site.rules.preempt_type else 1),),
        "starts": (runs,), "running": (waiting,), "waiting": (waiting,), "records": (2 * len(parts) + 1,),
        "merged": (2 * len(parts) + 1,), "ends_at": (waiting,), "ends_job": (waiting,), "epilogs_at": (waiting,),
        "epilogs_job": (waiting,), "slices": (slices,), "slice_nodes": (slices, words), "free_rows": (slices,),
        "scratch": (SCRATCH_ROWS, words), "usable_cpus": (nodes,), "taken_cpus": (nodes,), "chosen": (nodes,),
        "runs": (nodes,), "user_counts": (int(jobs["user"].max(initial=0)) + 1,),
    }  # fmt: skip
    block = Slurm({name: table for name, table in fixed.items() if name not in shapes}, shapes)
    block.jobs[:] = jobs
    _fill_nodes(block, site)
    _fill_partitions(block, site)
    _fill_rules(block, site)
    count, clock = block.count, block.clock
    count["jobs"], count["random"], count["history"] = waiting, 1 + seed % 2147483645, int(repeats)
    count["last_full"] = int(began + phases.full - site.rules.scheduler.sched_interval)
    count["last_sched"], count["changed"], count["limit_phase"] = int(began), int(began), phases.limit
    clock["now"], clock["tick_phase"] = began, phases.tick
    clock["next_backfill"], clock["next_period"] = began + phases.backfill, began + phases.period
    return block

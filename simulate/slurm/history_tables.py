"""The runs of a record as a table: what really started, and when its nodes were clean again.

Rule: a record does not say how long epilogs last. Nodes are clean after the site's usual epilog, but before that once a
job really starts on one of them, or a job that waited for this one is eligible.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import AFTER_START, HISTORY
from .job_columns import Coded, SiteJobs
from .job_tables import NodeSets
from .site import Site

#: Later than any time, seconds since the epoch.
_LATEST_S = float(2**32)


def history_table(site: Site, tables: Mapping[str, Array], sets: NodeSets) -> Array:
    """Return the runs that really started. O(nodes of all runs x log of them).

    Args:
        site: the site, completed.
        tables: its `jobs`, `job_parts` and `after`.
        sets: takes the nodes of runs.
    """
    columns, jobs = SiteJobs.of(site.jobs), tables["jobs"]
    runs, partitions = columns.runs, {partition.name: row for row, partition in enumerate(site.partitions)}
    started = np.flatnonzero(~np.isnan(runs.start))
    owner = np.repeat(np.arange(len(jobs)), np.diff(columns.first_run))[started]
    history = np.zeros(len(started), HISTORY)
    history["finish"] = np.where(np.isnan(runs.end), np.inf, runs.end)[started]
    history["job"], history["start"], history["cpus"] = owner, runs.start[started], runs.cpus[started]
    rows = np.array([partitions.get(name, -1) for name in runs.partition.values], INT)[runs.partition.codes[started]]
    history["part"] = np.where(rows >= 0, rows, tables["job_parts"][jobs["part0"][owner]])
    ways = [{"main": 0, "backfill": 1}.get(name, 2) for name in runs.started_by.values]
    history["by"] = np.array(ways, INT)[runs.started_by.codes[started]]
    nodes = Coded(runs.nodes.values, runs.nodes.codes[started]).compact()
    history["nodes"] = np.array([sets.named(names) for names in nodes.values], INT)[nodes.codes]
    rows_of = {node.name: row for row, node in enumerate(site.nodes)}
    members = [np.array([rows_of[name] for name in names if name in rows_of], INT) for names in nodes.values]
    is_over = np.isfinite(history["finish"])
    clean = np.minimum(_next_use(history, members, nodes.codes), history["finish"] + sum(site.rules.epilog_s) / 2)
    is_last = started == columns.last_run[owner]
    clean[is_last] = np.minimum(clean, _first_dependent(columns, tables)[owner])[is_last]
    history["clean"] = np.where(is_over, np.maximum(clean, history["finish"]), 0.0)
    return history


def _next_use(history: Array, members: list[Array], sets: Array) -> Array:
    """Return when a job first started on a node of each run after its end; infinite if none did.

    Args:
        history: the runs.
        members: nodes of each set.
        sets: the set of each run.
    """
    uses = np.full(len(history), np.inf)
    counts = np.array([len(nodes) for nodes in members], INT)[sets]
    if not counts.sum():
        return uses
    nodes, run = np.concatenate([members[code] for code in sets.tolist()]), np.repeat(np.arange(len(history)), counts)
    starts, ends = history["start"][run].astype(float), history["finish"][run]
    order = np.lexsort((starts, nodes))
    places = np.searchsorted(nodes[order] * _LATEST_S + starts[order], nodes * _LATEST_S + np.floor(ends))
    following = order[np.minimum(places, len(order) - 1)]
    is_used = (places < len(order)) & (nodes[following] == nodes)
    np.minimum.at(uses, run[is_used], starts[following][is_used])
    return uses


def _first_dependent(columns: SiteJobs, tables: Mapping[str, Array]) -> Array:
    """Return when the first job that waited for the end of each job was eligible; infinite if none was."""
    jobs, after, runs = tables["jobs"], tables["after"], columns.runs
    first = np.minimum(columns.first_run[:-1], max(len(runs.start) - 1, 0))
    has_runs = columns.last_run >= 0
    eligible = np.full(len(jobs), np.inf)
    if len(runs.start):
        times = np.where(np.isnan(runs.eligible[first]), runs.start[first], runs.eligible[first])
        eligible = np.where(has_runs & ~np.isnan(times), times, np.inf)
    earliest, owner = np.full(len(jobs), np.inf), np.repeat(np.arange(len(jobs)), jobs["afters"])
    waits = after["kind"][: len(owner)] != AFTER_START
    np.minimum.at(earliest, owner[waits], eligible[after["job"][: len(owner)][waits]])
    return earliest

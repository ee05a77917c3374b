"""The jobs of a site replayed under a queue policy of pilotfish, in the place of Slurm's rules.

Rule: the policy sees numbered resources, requested times and run times, and nothing else of the site: no partitions,
priorities, limits, reservations, node events, memory or GPUs. The resources are nodes if all jobs get whole ones and
the nodes are alike, else CPUs, node by node. A job waits for jobs that it depends on, and until it is released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.slurm.tables import AFTER_ANY, AFTER_OK
from ..model.machine import Machine
from ..model.workload import Dependencies, Workload
from ..queue_policies.policy_facts import PolicySpec
from ..queue_policies.policy_specs import text_of
from ..slurm.job_columns import Coded, SiteJobs, offsets, spans
from ..slurm.job_tables import NodeSets, job_tables
from ..slurm.site import Site
from ..slurm.site_changes import first_submission
from ..slurm.site_tables import completed
from ..slurm.start_columns import SiteStarts
from ..slurm.twin import SiteReplay
from .replay import replay
from .replay_case import ReplayOptions

#: What a policy does not see of a site.
UNSEEN = "the policy sees neither partitions, priorities, limits, reservations, node events, memory nor GPUs"


def seen_by_policy(site: Site) -> Site:
    """Return a site whose sentences on what is not known begin with what a policy does not see of it."""
    return replace(site, unknown=(UNSEEN, *site.unknown))


def refuse_policy(policy: PolicySpec) -> None:
    """Raise ConfigError if a policy needs more of a machine than a site says."""
    if policy.needs_nodes or policy.saves or policy.machine is not None:
        problem = f"{text_of(policy)} needs the power or the memory bandwidth of nodes, or another site"
        raise ConfigError("policy", "", problem, "easy, strict, conservative")


@dataclass(frozen=True, slots=True)
class SiteWorkload:
    """The jobs of a site as a workload.

    Args:
        jobs: the workload; its times are seconds after the first submission.
        machine: nodes or CPUs of the site.
        rows: the row in `Site.jobs` of each job; jobs that never ran are left out.
        begin: the site's time at second 0.
    """

    jobs: Workload
    machine: Machine
    rows: Array
    begin: float


def workload_of_site(site: Site) -> SiteWorkload:
    """Return the jobs of a site as a workload. O(jobs log jobs)."""
    tables = job_tables(completed(site), NodeSets(site))
    table, cpus = tables["jobs"], {node.name: node.cpus for node in site.nodes}
    of_partition = [min((cpus[name] for name in part.nodes), default=1) for part in site.partitions]
    node_cpus = np.array(of_partition)[tables["job_parts"][table["part0"]]]
    is_closed = np.array([part.is_exclusive for part in site.partitions])
    is_whole = (table["exclusive"] == 1) | is_closed[tables["job_parts"][table["part0"]]]
    nodes = np.maximum(table["min_nodes"], -(-table["min_cpus"] // node_cpus))
    size = np.where(is_whole, nodes * node_cpus, table["min_cpus"])
    total = sum(cpus.values())
    if is_whole.all() and len(set(cpus.values())) == 1:
        size, total = nodes, len(site.nodes)
    columns = SiteJobs.of(site.jobs)
    ready = np.fmax(np.fmax(columns.submit, columns.begin), columns.released)
    begin = first_submission(site)
    order = np.argsort(ready, kind="stable")
    rows = order[_have_run(columns)[order]]
    place = np.full(len(columns), -1)
    place[rows] = np.arange(len(rows))
    limit = table["limit"][rows] * 60.0
    workload = Workload(
        "site", rows.astype(np.int64), ready[rows] - begin, np.minimum(table["run"][rows], limit), limit,
        size[rows].astype(np.int64), more={"returns": 1 - table["successful"][rows]},
        dependencies=_dependencies(table, tables["after"], place),
    )  # fmt: skip
    return SiteWorkload(workload, Machine(int(total), powers=None), rows, begin)


def _have_run(jobs: SiteJobs) -> Array:
    """Return whether each job ran, as far as the record says."""
    runs = np.diff(jobs.first_run)
    started = np.bincount(np.repeat(np.arange(len(jobs)), runs)[~np.isnan(jobs.runs.start)], minlength=len(jobs))
    have_run: Array = (runs == 0) | (started > 0)
    return have_run


def _dependencies(table: Array, after: Array, place: Array) -> Dependencies | None:
    """Return the dependencies of jobs on ends of others.

    Args:
        table: the jobs of the site.
        after: dependents of each.
        place: row of each job in the workload, -1 for those that are left out.
    """
    before = place[np.repeat(np.arange(len(table)), table["afters"])]
    pairs = after[: len(before)]
    following = place[pairs["job"]] if len(before) else before
    counts = np.isin(pairs["kind"], (AFTER_ANY, AFTER_OK)) & (before >= 0) & (following >= 0)
    if not counts.any():
        return None
    delay, kind = pairs["delay"][counts].astype(np.float64), pairs["kind"][counts]
    return Dependencies(before[counts], following[counts], delay, kind == AFTER_ANY)


def replay_site_under(site: Site, policy: object, seed: int = 0) -> SiteReplay:
    """Replay the jobs of a site under a queue policy. Raises ConfigError, PolicyError, see `replay`.

    Args:
        site: the site.
        policy: a built-in policy, or one in Python.
        seed: of random choices.
    """
    workload = workload_of_site(site)
    result = replay(workload.jobs, workload.machine, policy, ReplayOptions(seed))  # type: ignore[arg-type]
    counts_nodes = workload.machine.processors == len(site.nodes)
    widths = [1 if counts_nodes else node.cpus for node in site.nodes]
    ends, names = np.cumsum(widths), [node.name for node in site.nodes]
    first, last = (np.searchsorted(ends, result.pieces[name], side="right") for name in ("first", "last"))
    columns, rows = SiteJobs.of(site.jobs), np.flatnonzero(~result.rejected)
    rows = rows[np.lexsort((workload.rows[rows], result.start_time[rows]))]
    jobs, pieces = workload.rows[rows], spans(result.piece0[rows], result.piece_count[rows])
    widths_of_pieces = last[pieces] - first[pieces] + 1
    owners = np.repeat(np.repeat(np.arange(len(rows)), result.piece_count[rows]), widths_of_pieces)
    places = np.unique(owners * len(names) + spans(first[pieces], widths_of_pieces))  # pieces may share a node
    return SiteReplay(SiteStarts(
        node_names=names,
        job=jobs,
        partition=Coded([",".join(pattern.partitions) for pattern in columns.patterns], columns.pattern[jobs]),
        start=result.start_time[rows] + workload.begin,
        end=result.finish_time[rows] + workload.begin,
        begin=offsets(np.bincount(places // len(names), minlength=len(rows))),
        nodes=places % len(names),
        by=Coded(("",), np.zeros(len(rows), np.int8)),
        priority=np.zeros(len(rows), np.int64),
        cpus=workload.jobs.size[rows] * (site.nodes[0].cpus if counts_nodes else 1),
    ))  # fmt: skip

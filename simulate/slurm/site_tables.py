"""A site as the state of the kernels.

Rule: nothing here decides anything; what cannot be said in tables is in `Site.unknown`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import (
    ASLEEP_WEIGHT,
    CLEAN,
    DRAINED,
    FREE,
    HISTORY,
    IDLE,
    MOST_ADDED,
    MOST_BLOCKS,
    MOST_BOUNDS,
    MOST_DECAYS,
    MOST_KINDS,
    MOST_SIZES,
    NODE_SETS,
    SCRATCH_ROWS,
    TAKING,
    UP,
    Slurm,
)
from .history_tables import history_table
from .job_columns import SiteJobs, distinct
from .job_tables import NodeSets, agenda, job_tables, node_words
from .limit_tables import limit_tables, limits_accrual
from .ordered_jobs import OrderedJobs, order_tables, seen_late
from .preemption_tables import preemption_tables, set_preemption
from .reservation_tables import instances, reservation_tables
from .share_tables import set_shares, share_tables
from .site import Site, SiteAssociation, SitePartition, SiteQos
from .switch_tables import switch_tables, without_nodes_below_no_switch
from .version_rules import version_rules

#: Tables that no kernel writes; copies of a state share them.
_FIXED = (
    "kinds", "kind_nodes", "switch_nodes", "partition_nodes", "allowed_nodes", "job_parts", "after", "agenda",
    "history", "preemptible", "turn_records", "part_turn",
)  # fmt: skip
#: Tables whose shapes depend on SchedulerParameters; each pass begins with empty ones.
_OF_PASSES = (
    "slices", "slice_nodes", "open_nodes", "free_rows", "room", "reach", "user_counts", "user_part_counts",
)  # fmt: skip
#: Tables that are too large to be there twice: a state takes them over.
_COPIED = ("jobs",)


def completed(site: Site) -> Site:
    """Return the site with an association and a QOS for entry of its jobs, and entry instance of a reservation.

    A node below no switch of topology/tree runs no job: it never works.
    """
    site = without_nodes_below_no_switch(site)
    jobs, qos = SiteJobs.of(site.jobs), list(site.qos)
    names = {entry.name for entry in qos}
    first, _ = distinct(jobs.pattern)
    for name in ["normal", *(jobs.patterns[code].qos for code in jobs.pattern[first].tolist())]:
        if name not in names:
            names.add(name)
            qos.append(SiteQos(name))
    associations = list(site.associations) or [SiteAssociation("root")]
    accounts = {entry.account: row for row, entry in enumerate(associations) if not entry.user}
    users = {(entry.account, entry.user) for entry in associations if entry.user}
    first, _ = distinct(jobs.users.codes, jobs.accounts.codes)
    for row in first.tolist():
        account, user = jobs.accounts[row] or "root", jobs.users[row]
        if account not in accounts:
            accounts[account] = len(associations)
            associations.append(SiteAssociation(account, parent=0))
        if (account, user) not in users:
            users.add((account, user))
            associations.append(SiteAssociation(account, user or "?", parent=accounts[account]))
    usage = (*site.usage, *(len(associations) - len(site.usage)) * [0.0]) if site.usage else ()
    return replace(
        site, jobs=jobs, qos=tuple(qos), associations=tuple(associations), reservations=instances(site), usage=usage
    )


@dataclass(frozen=True, slots=True)
class Phases:
    """Phases of slurmctld's clocks when a replay begins; seconds after its begin."""

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


def site_block(
    site: Site, phases: Phases, *, seed: int = 1, repeats: bool = False, begin: float | None = None,
    handed: OrderedJobs | None = None,
) -> Slurm:  # fmt: skip
    """Return the state of a site before its first submission.

    Args:
        site: the site, `completed`.
        phases: of its clocks.
        seed: of what is random later.
        repeats: whether jobs start as the record says, and passes start none.
        begin: when the clocks begin, epoch seconds, if the site goes on after its record; None: with the first event.
        handed: jobs that pilotfish holds and orders; None: none.
    """
    site, sets = seen_late(site, handed), NodeSets(site)
    tables = job_tables(site, sets)
    jobs, parts = tables["jobs"], tables["job_parts"]
    tables["agenda"] = agenda(site, repeats=repeats)
    tables["history"] = history_table(site, tables, sets) if repeats else np.zeros(0, HISTORY)
    tables |= order_tables(site, jobs, parts, handed)
    tables |= {"allowed_nodes": sets.table(), "partition_nodes": _partition_nodes(site), **_kinds_of_nodes(site)}
    tables |= switch_tables(site)
    tables |= (
        reservation_tables(site, jobs) | share_tables(site) | limit_tables(site, jobs, parts) | preemption_tables(site)
    )
    fixed, copied = ({name: tables.pop(name) for name in names} for names in (_FIXED, _COPIED))
    shapes = {name: table.shape for name, table in tables.items()}
    block = Slurm(fixed, shapes | _shapes(site, jobs, parts, repeats=repeats), copied)
    for name, table in tables.items():
        getattr(block, name)[:] = table
    _fill_nodes(block, site)
    _fill_node_sets(block)
    _fill_partitions(block, site)
    _fill_rules(block, site)
    set_preemption(block, site)
    set_shares(block, site)
    if repeats:
        block.rules["epilog_least"] = block.rules["epilog_most"] = 0.0  # the record says when nodes were free
    first = float(block.agenda["time"][0]) if len(block.agenda) else 0.0
    block.count["jobs"], block.count["history"], block.clock["now"] = len(jobs), int(repeats), first
    block.rules["placement"] = round(float(np.median(handed.seen_s))) if handed else 0
    if not repeats:
        set_power(block, site, int(first if begin is None else begin))
    set_clocks(block, site, phases, first if begin is None else begin, seed)
    return block


def set_power(block: Slurm, site: Site, begin: int) -> None:
    """Let nodes save power from a time on, epoch seconds, if the site does; those with jobs are awake."""
    rules, sleeps = site.rules, block.sleeps
    if rules.suspend_time_s is None:
        return
    block.rules["suspend_time"] = max(int(rules.suspend_time_s), 1)
    block.rules["suspend_timeout"], block.rules["resume_timeout"] = rules.suspend_timeout_s, rules.resume_timeout_s
    block.rules["suspend_rate"], block.rules["resume_rate"] = rules.suspend_rate, rules.resume_rate
    sleeps["stays_on"], sleeps["idle_since"] = [node.stays_on for node in site.nodes], begin
    sleeps["asleep"] = np.array([node.is_asleep for node in site.nodes]) & (block.views["jobs"][0] == 0)
    sleeps["slept_at"] = np.where(sleeps["asleep"] == 1, begin - int(rules.suspend_timeout_s), 0)
    block.nodes["weight"] += sleeps["asleep"] * ASLEEP_WEIGHT


def set_clocks(block: Slurm, site: Site, phases: Phases, begin: float, seed: int) -> None:
    """Let the clocks of a state begin at a time, epoch seconds; `seed`: of what is random from then on."""
    count, clock = block.count, block.clock
    count["random"], count["limit_phase"] = 1 + seed % 2147483645, phases.limit
    count["last_full"] = int(begin + phases.full - site.rules.scheduler.sched_interval)
    count["last_sched"] = count["changed"] = count["usage_aged"] = int(begin)
    clock["tick_phase"] = phases.tick
    clock["next_backfill"], clock["next_period"] = begin + phases.backfill, begin + phases.period


def _shapes(site: Site, jobs: Array, parts: Array, *, repeats: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tables that begin empty."""
    users = int(jobs["user"].max(initial=0)) + 1
    nodes, number, words = len(site.nodes), len(jobs), -(-len(site.nodes) // 64)
    runs, pieces = number, _most_pieces(site, jobs)
    if repeats:  # jobs may start after the record, too
        recorded = SiteJobs.of(site.jobs).runs
        runs += len(recorded.nodes)
        pieces += int(np.array([len(nodes) for nodes in recorded.nodes.values], np.int64)[recorded.nodes.codes].sum())
    if _may_restart(site):  # a pass may start all jobs, and each has a CPU on each of its nodes
        runs, pieces = runs + number, pieces + sum(node.cpus for node in site.nodes)
    slices = 2 * max(site.rules.scheduler.bf_node_space_size, site.rules.scheduler.bf_max_job_test) + 4
    records, queue, blocks = (2 * len(parts) + 1,), (max(number, 1),), (min(max(number, 1), MOST_BLOCKS), words)
    return {
        "nodes": (nodes,), "sleeps": (nodes,), "pauses": queue,
        "views": (2, nodes), "partitions": (len(site.partitions),), "part_priority": (len(parts),),
        "pieces": (pieces + 1,), "starts": (runs + 1,), "running": queue, "waiting": queue, "staying": queue,
        "waiting_places": queue, "planned": queue, "decays": (MOST_DECAYS,),
        "victims": queue, "victim_keys": queue, "records": records, "merged": records, "put_off": records,
        "hopes": records, "ends_at": queue, "ends_job": queue, "ends_place": queue, "epilogs_at": queue,
        "epilogs_job": queue, "running_ends": queue, "latest_ends": queue, "block_nodes": blocks, "wide_nodes": blocks,
        "ended_nodes": blocks, "added_running": (MOST_ADDED,), "roomy": (MOST_SIZES,),
        "roomy_nodes": (MOST_SIZES, nodes), "roomy_ends": (MOST_SIZES, nodes), "roomy_cpus": (MOST_SIZES, nodes),
        "slices": (slices,), "slice_nodes": (slices, words), "open_nodes": (slices, words), "free_rows": (slices,),
        "room": (len(site.partitions), slices), "reach": (len(site.partitions), slices),
        "startable": (len(site.partitions), 2), "bounds": (MOST_BOUNDS,),
        "startable_nodes": (2 * len(site.partitions), words), "node_sets": (NODE_SETS, words),
        "scratch": (SCRATCH_ROWS, words), "usable_cpus": (nodes,), "taken_cpus": (nodes,), "chosen": (nodes,),
        "chosen_words": (words,),
        "part_cores": (2 * len(_bounding_cpus(site)), nodes), "runs": (nodes,), "run_sizes": (nodes,),
        "user_counts": (users,), "association_counts": (len(site.associations),),
        "user_part_counts": (users if site.rules.scheduler.bf_max_job_user_part else 1, len(site.partitions)),
    }  # fmt: skip


def _may_restart(site: Site) -> bool:
    """Return whether a job may start more than once: after a preemption, or after a node failed."""
    return site.rules.preempt_type != "" or any(event.kills for event in site.events)


def grown(block: Slurm) -> Slurm:
    """Return a state with twice as many rows for starts and what they take; a requeued job starts again.

    The jobs pass over to it.
    """
    shapes = block.shapes | {name: tuple(2 * size for size in block.shapes[name]) for name in ("starts", "pieces")}
    larger = Slurm(block.fixed, shapes, block.copied)
    for name, shape in block.shapes.items():
        getattr(larger, name)[tuple(slice(size) for size in shape)] = getattr(block, name)
    return larger


def with_rules(block: Slurm, site: Site) -> Slurm:
    """Return a copy of a state under other SchedulerParameters, before its first pass.

    Args:
        block: the state.
        site: its site with the other parameters, `completed`.
    """
    jobs, parts = block.jobs, block.part_priority
    shapes = {name: shape for name, shape in _shapes(site, jobs, parts, repeats=False).items() if name in _OF_PASSES}
    copied = {name: table.copy() for name, table in block.copied.items()}
    twin = Slurm(block.fixed | {"agenda": block.agenda.copy()}, block.shapes | shapes, copied)
    for name in block.shapes.keys() - shapes.keys():
        getattr(twin, name)[...] = getattr(block, name)
    _fill_rules(twin, site)
    return twin


def _most_pieces(site: Site, jobs: Array) -> int:
    """Return on how many nodes all jobs together can run."""
    most = np.where(jobs["max_nodes"] > 0, jobs["max_nodes"], np.maximum(jobs["min_nodes"], jobs["min_cpus"]))
    most = np.maximum(most, max((partition.min_nodes for partition in site.partitions), default=0))
    return int(np.minimum(most, len(site.nodes)).sum())


def _partition_nodes(site: Site) -> Array:
    rows = {node.name: row for row, node in enumerate(site.nodes)}
    sets = [[rows[name] for name in partition.nodes if name in rows] for partition in site.partitions]
    return node_words(sets, -(-len(site.nodes) // 64))


def _kinds_of_nodes(site: Site) -> dict[str, Array]:
    """Return the first node, and all nodes, of each kind, the lightest kind first.

    Nothing with more than MOST_KINDS, or where nodes sleep.
    """
    kinds = defaultdict[tuple[int, ...], list[int]](list)
    for row, node in enumerate(site.nodes):
        kinds[node.cpus, node.cores, node.threads, node.memory_mib, node.gpus, node.weight].append(row)
    sets = (
        [kinds[kind] for kind in sorted(kinds, key=lambda kind: kind[-1])]
        if len(kinds) <= MOST_KINDS and site.rules.suspend_time_s is None
        else []
    )
    first = np.array([rows[0] for rows in sets], INT)
    return {"kinds": first, "kind_nodes": node_words(sets, -(-len(site.nodes) // 64))}


def _fill_nodes(block: Any, site: Site) -> None:
    is_by_cpu = site.rules.selects == "cpus"
    for row, view, node in zip(block.nodes, block.views[0], site.nodes, strict=True):
        cores, threads = (node.cpus, 1) if is_by_cpu else (node.cores, node.threads)
        if site.rules.selects == "sockets":  # a socket is what jobs do not share
            cores, threads = max(node.sockets, 1), max(node.cpus // max(node.sockets, 1), 1)
        elif site.rules.one_task_per_core:
            threads = 1
        row["cpus"], row["cores"], row["threads"] = cores * threads, cores, threads
        row["memory"], row["weight"], row["gpus"] = node.memory_mib, node.weight, node.gpus
        row["state"] = UP if node.works else DRAINED
        view["cores"], view["memory"], view["gpus"] = cores, node.memory_mib, node.gpus


def _fill_node_sets(block: Any) -> None:
    """Say which nodes take jobs, are clean, free and idle: at the beginning, no job runs."""
    nodes = len(block.nodes)
    everywhere = node_words([range(nodes)], block.node_sets.shape[1])[0]
    block.node_sets[TAKING] = node_words([np.flatnonzero(block.nodes["state"] == UP).tolist()], len(everywhere))[0]
    for row in (CLEAN, FREE, IDLE):
        block.node_sets[row] = everywhere


def _fill_partitions(block: Any, site: Site) -> None:
    cpus = {node.name: node.cpus for node in site.nodes}
    qos = {entry.name: row for row, entry in enumerate(site.qos)}
    cpu_rows = {partition.name: row for row, partition in enumerate(_bounding_cpus(site))}
    over = site.rules.over_time_limit_min
    for row, partition in zip(block.partitions, site.partitions, strict=True):
        late = over if partition.over_time_limit_min is None else partition.over_time_limit_min
        values = {
            "factor": partition.job_factor, "tier": partition.tier, "max_time": _unset(partition.max_time_min),
            "min_nodes": partition.min_nodes, "max_nodes": _unset(partition.max_nodes),
            "max_cpus_per_node": _unset(partition.max_cpus_per_node), "exclusive": partition.is_exclusive,
            "least_loaded": partition.is_least_loaded, "up": partition.state in ("UP", "DRAIN"),
            "qos": qos.get(partition.qos, -1), "cpus": sum(cpus.get(name, 0) for name in partition.nodes),
            "nodes": len(partition.nodes), "over_time": _unset(late), "cpu_row": cpu_rows.get(partition.name, -1),
        }  # fmt: skip
        for name, value in values.items():
            row[name] = value


def _bounding_cpus(site: Site) -> list[SitePartition]:
    """Return the partitions that bound the CPUs of their jobs on a node."""
    return [partition for partition in site.partitions if partition.max_cpus_per_node is not None]


def _unset(value: int | None) -> int:
    return -1 if value is None else value


def _fill_rules(block: Any, site: Site) -> None:
    rules, scheduler, priority = site.rules, site.rules.scheduler, site.rules.priority
    values: dict[str, float] = {
        "weight_age": priority.age, "weight_assoc": priority.association, "weight_fair_share": priority.fair_share,
        "weight_size": priority.size, "weight_part": priority.partition, "weight_qos": priority.qos,
        "max_age": priority.max_age_s, "half_life": priority.half_life_s, "dampening": priority.dampening,
        "epilog_least": rules.epilog_s[0], "epilog_most": rules.epilog_s[1],
        "pass_least": rules.pass_s[0], "pass_most": rules.pass_s[1],
        "deferred": scheduler.is_deferred or not rules.has_epilog,
        "backfills": rules.is_backfilling and scheduler.bf_interval > 0,
        "bf_window": scheduler.bf_window_min * 60, "assoc_limit_stop": not scheduler.goes_past_limits,
        "multifactor": priority.is_multifactor, "period": priority.period_s,
        "enforces_limits": rules.enforces_limits, "enforces_qos": rules.enforces_qos, "safe": rules.is_safe,
        "complete_wait": rules.complete_wait_s, "kill_wait": rules.kill_wait_s,
        "over_time_limit": _unset(rules.over_time_limit_min),
        "resv_over_run": _unset(rules.resv_over_run_min), "restarts": _may_restart(site),
        "counts_memory": rules.counts_memory, "least_loaded": rules.is_least_loaded,
        "threads": int(block.nodes["threads"].max(initial=1)),
        "cpus_total": sum(node.cpus for node in site.nodes), "nodes_total": len(site.nodes),
        "drops_jobs": rules.kills_invalid_dependents or bool((block.jobs["deadline"] > 0).any()),
        "kills_dependents": rules.kills_invalid_dependents, "pack_serial": scheduler.pack_serial_at_end,
        "bf_node_space_size": scheduler.bf_node_space_size, "test_s": rules.test_s,
        "most_records": math.ceil(scheduler.max_sched_time / rules.record_s) if rules.record_s > 0 else 0,
        "limits_accrual": limits_accrual(site), **version_rules(rules),
    }  # fmt: skip
    for name in block.rules.dtype.names:
        if name in values:
            block.rules[name] = values[name]
        elif hasattr(scheduler, name):
            block.rules[name] = getattr(scheduler, name)

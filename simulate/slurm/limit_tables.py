"""Tables of the limits of partitions, QOS and associations: a site's hierarchy of limits, resolved.

Rule: of each kind of limit, and of each trackable resource, the first level that sets it binds: the QOS of the
partition, the QOS of the job (first if it has OverPartQOS), then the associations. Group limits bind at every
association up to root; the other limits of an account hold for those below it that set none. A limit is a comparison
with one counter.
Source: sacctmgr(1), slurm.conf(5), resource_limits of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..kernels.slurm import job_limits as kinds
from ..kernels.slurm import tables
from .job_columns import SiteJobs, distinct, spans
from .partition_limits import PartitionSlots, has_flag
from .site import TRES, Site, SiteLimits

#: Who shares the counter of a limit: all jobs of a QOS, or those of a user or an account in it; all jobs of an
#: association; ALONE: there is no counter.
_TOGETHER, _USER, _ACCOUNT, _ASSOCIATION, _ALONE = range(5)
#: A counter: who shares it, row of the QOS or association, and row of the user or account, else -1.
Counter = tuple[int, int, int]
_NO_COUNTER = (_ALONE, -1, -1)


class _Kind(NamedTuple):
    """A kind of limit.

    `family`: what a QOS's limit hides at associations; `of`: its value in `SiteLimits`; `column`: None if that is
    amounts; `sharers`: who shares the counter of a QOS's limit; `at`: the associations of a job whose limit binds it.
    """

    family: str
    of: Callable[[SiteLimits], Any]
    test: int
    column: int | None
    sharers: int
    at: int


#: No association has this limit; the job's own has it; all up to root have it.
_NOWHERE, _OWN, _UPWARDS = range(3)
_KINDS = (
    _Kind("group_jobs", lambda limits: limits.group_jobs, kinds.HELD, tables.JOBS, _TOGETHER, _UPWARDS),
    _Kind("group_wall_min", lambda limits: limits.group_wall_min, kinds.SPENT, tables.WALL, _TOGETHER, _UPWARDS),
    _Kind("group_tres_minutes", lambda limits: limits.group_tres_minutes, kinds.SPENT, None, _TOGETHER, _UPWARDS),
    _Kind("group_tres", lambda limits: limits.group_tres, kinds.HELD, None, _TOGETHER, _UPWARDS),
    _Kind("group_run_minutes", lambda limits: limits.group_run_minutes, kinds.PROMISED, None, _TOGETHER, _UPWARDS),
    _Kind("max_jobs", lambda limits: limits.max_jobs, kinds.HELD, tables.JOBS, _USER, _OWN),
    _Kind("max_jobs", lambda limits: limits.user_jobs, kinds.HELD, tables.JOBS, _USER, _NOWHERE),
    _Kind("max_jobs", lambda limits: limits.account_jobs, kinds.HELD, tables.JOBS, _ACCOUNT, _NOWHERE),
    _Kind("max_wall_min", lambda limits: limits.max_wall_min, kinds.LONGEST, tables.CPU, _ALONE, _OWN),
    _Kind("max_tres", lambda limits: limits.max_tres, kinds.MOST, None, _ALONE, _OWN),
    _Kind("max_tres_per_node", lambda limits: limits.max_tres_per_node, kinds.PER_NODE, None, _ALONE, _OWN),
    _Kind("max_tres_minutes", lambda limits: limits.max_tres_minutes, kinds.MOST_MINUTES, None, _ALONE, _OWN),
    _Kind("min_tres", lambda limits: limits.min_tres, kinds.LEAST, None, _ALONE, _NOWHERE),
    _Kind("user_tres", lambda limits: limits.user_tres, kinds.HELD, None, _USER, _NOWHERE),
    _Kind("account_tres", lambda limits: limits.account_tres, kinds.HELD, None, _ACCOUNT, _NOWHERE),
    _Kind("user_run_minutes", lambda limits: limits.user_run_minutes, kinds.PROMISED, None, _USER, _NOWHERE),
    _Kind("account_run_minutes", lambda limits: limits.account_run_minutes, kinds.PROMISED, None, _ACCOUNT, _NOWHERE),
    _Kind("group_submit", lambda limits: limits.group_submit, kinds.HELD, tables.SUBMITTED, _TOGETHER, _UPWARDS),
    _Kind("max_submit", lambda limits: limits.max_submit, kinds.HELD, tables.SUBMITTED, _USER, _OWN),
    _Kind("max_submit", lambda limits: limits.user_submit, kinds.HELD, tables.SUBMITTED, _USER, _NOWHERE),
    _Kind("max_submit", lambda limits: limits.account_submit, kinds.HELD, tables.SUBMITTED, _ACCOUNT, _NOWHERE),
)


#: The limit of an association on the jobs whose age counts. Of all such limits a job has one, see `_accrual_limit`.
_MAX_ACCRUE = _Kind("max_accrue", lambda limits: limits.max_accrue, kinds.HELD, tables.ACCRUING, _USER, _OWN)
#: Families of limits that LimitFactor multiplies, and those that are percentages in a QOS with the flag Relative.
_SCALED = frozenset({"group_tres", "max_tres"})
_PERCENTAGES = frozenset({"group_tres", "max_tres", "user_tres", "account_tres", "min_tres", "max_tres_per_node"})


class _Limit(NamedTuple):
    bound: float
    test: int
    counter: Counter
    column: int


@dataclass(frozen=True, slots=True)
class _Owner:
    """The owner of a job, who decides which limits bind it, as rows; `qos`: the first level first."""

    qos: tuple[int, ...]
    job_qos: int
    association: int
    user: int
    account: int


@dataclass(slots=True)
class _Groups:
    """The groups of jobs that the same limits bind, and the counters of these limits."""

    site: Site
    limits_accrual: bool
    rows: dict[_Owner, int] = field(default_factory=dict)
    limits: list[list[_Limit]] = field(default_factory=list)
    counters: dict[Counter, int] = field(default_factory=dict)

    def row_of(self, owner: _Owner) -> int:
        """Return the row of a group, which is added if it is new."""
        row = self.rows.get(owner)
        if row is None:
            row = self.rows[owner] = len(self.limits)
            self.limits.append(_limits_of(self.site, owner))
            if self.limits_accrual:
                self.limits[row] += _accrual_limit(self.site, owner)
            for limit in self.limits[row]:
                if limit.counter != _NO_COUNTER:
                    self.counters.setdefault(limit.counter, len(self.counters))
        return row


def limit_tables(site: Site, jobs: Array, job_parts: Array) -> dict[str, Array]:
    """Return the tables of `job_limits` by name, as they are when no job runs.

    Args:
        site: the site.
        jobs: rows of `tables.JOB`, of the jobs of the site in their order; the columns limit, time_min, min_nodes,
            max_nodes, min_cpus, user, account, assoc, qos, reservation, part0 and parts are read; licence0
            and licences are filled.
        job_parts: rows of partitions of each job.
    """
    slots = PartitionSlots(site, jobs, job_parts)
    groups, group_of = _groups_of(site, slots)
    least, most = slots.node_numbers()
    allowed = slots.allowances(least, most)
    denied = _denials(site, slots, groups, group_of) | slots.rejections(least, most)
    bounds = np.array([_most_nodes(limits) for limits in groups.limits])[group_of]
    most = np.where(most < 0, bounds, np.minimum(most, bounds))
    most = np.where(np.isinf(most), -1, np.minimum(most, tables.LARGEST)).astype(np.int64)
    columns = {
        "part_allowed": (allowed, 0), "part_denied": (denied, 0),
        "part_least_nodes": (least, -1), "part_most_nodes": (most, -1), "part_group": (group_of, -1),
    }  # fmt: skip
    empty = len(job_parts) - len(least)  # a table has a row, also without jobs
    return {
        **{name: np.append(column, np.full(empty, fill, np.int64)) for name, (column, fill) in columns.items()},
        "delayed": np.zeros(len(jobs), np.int64),
        **_group_tables(site, groups), **_counter_tables(site, groups, len(jobs)), **_licence_tables(site, jobs),
    }  # fmt: skip


def _most_nodes(limits: list[_Limit]) -> float:
    """Return the most nodes of a job by its limits; infinite without any."""
    bounds = (limit for limit in limits if limit.column == tables.NODE_COUNT)
    return min((limit.bound for limit in bounds if limit.test in (kinds.HELD, kinds.MOST)), default=np.inf)


def _groups_of(site: Site, slots: PartitionSlots) -> tuple[_Groups, Array]:
    """Return the groups of jobs that the same limits bind, and that of each row."""
    groups, binding = _Groups(site, limits_accrual(site)), site.rules.enforces_limits
    part_qos = np.array(_partition_qos(site), np.int64)[slots.part]
    keys = (part_qos, *slots.of_jobs("qos", "assoc", "user", "account"))
    first, owners = distinct(*keys)
    rows = list[int]()
    for partition_qos, qos, association, user, account in zip(*(key[first].tolist() for key in keys), strict=True):
        order = _qos_order(site, partition_qos, qos) if binding else ()
        rows.append(groups.row_of(_Owner(order, qos, association if binding else -1, user, account)))
    return groups, np.array(rows, np.int64)[owners]


def _denials(site: Site, slots: PartitionSlots, groups: _Groups, group_of: Array) -> Array:
    """Return 1 where sbatch rejects the job of a row for the limits of its group, by the flag DenyOnLimit."""
    denied = np.zeros(len(group_of), np.int64)
    denies = [any(has_flag(site.qos[qos], "DenyOnLimit") for qos in owner.qos) for owner in groups.rows]
    rows = np.flatnonzero(np.array(denies, bool)[group_of])
    keys = (group_of, *slots.of_jobs("min_cpus", "min_nodes", "limit"))
    first, requests = distinct(*(key[rows] for key in keys))
    answers = [
        _is_denied(groups.limits[group], cpus, nodes, limit)
        for group, cpus, nodes, limit in zip(*(key[rows[first]].tolist() for key in keys), strict=True)
    ]
    denied[rows] = np.array(answers, np.int64)[requests]
    return denied


def limits_accrual(site: Site) -> bool:
    """Return whether a limit bounds the jobs whose age counts; with ACCRUE_ALWAYS none does."""
    if not site.rules.enforces_limits or "ACCRUE_ALWAYS" in site.rules.priority.flags:
        return False
    owners = (*(one.limits for one in site.qos), *(one.limits for one in site.associations))
    return any(bound is not None for limits in owners for bound in _accruals(limits))


def unfollowed_limits(site: Site) -> list[str]:
    """Return a sentence for each limit of the site that the replay does not follow."""
    owners = [(f"QOS {qos.name}", qos.limits) for qos in site.qos]
    owners += [(f"association {row.account}/{row.user}".rstrip("/"), row.limits) for row in site.associations]
    return [
        f"{owner}: {kind.family} of {name} is not followed: its jobs start too early"
        for owner, limits in owners
        for kind in _KINDS
        if kind.column is None
        for name in kind.of(limits)
        if name not in TRES
    ]


# --- which limits bind ---
def _limits_of(site: Site, owner: _Owner) -> list[_Limit]:
    """Return the limits that bind the jobs of an owner: the tests before nodes are picked, then the others."""
    limits, hidden = list[_Limit](), set[tuple[_Kind, int]]()
    hidden_families = set[tuple[str, int]]()
    for qos in owner.qos:
        for kind in _KINDS:
            counter = _qos_counter(kind.sharers, qos, owner)
            for column, bound in _qos_bounds(site, qos, kind):
                if (kind, column) not in hidden:
                    limits += _with_safety(site, _Limit(bound, kind.test, counter, column))
                    hidden.add((kind, column))
                    hidden_families.add((kind.family, column))
    level = owner.association
    while level >= 0:
        for kind in _KINDS:
            if kind.at == _UPWARDS or (kind.at == _OWN and level == owner.association):
                counter = _NO_COUNTER if kind.sharers == _ALONE else (_ASSOCIATION, level, -1)
                factor = _limit_factor(site, owner.job_qos) if kind.family in _SCALED else 1.0
                for column, bound in _inherited(site, level, kind):
                    if (kind.family, column) not in hidden_families:
                        limits += _with_safety(site, _Limit(bound * factor, kind.test, counter, column))
        level = site.associations[level].parent
    return sorted(limits, key=_stage)


def _accruals(limits: SiteLimits) -> tuple[int | None, ...]:
    """Return the bounds on the jobs whose age counts."""
    return limits.group_accrue, limits.account_accrue, limits.user_accrue, limits.max_accrue


def _accrual_limit(site: Site, owner: _Owner) -> list[_Limit]:
    """Return the limit on the jobs of an owner whose age counts: the first one that is set, of its QOS or upwards."""
    bounds, level = list[tuple[float | None, Counter]](), owner.association
    if owner.qos and owner.job_qos >= 0:
        group, account, user, _ = _accruals(site.qos[owner.job_qos].limits)
        bounds = [
            (bound, _qos_counter(sharers, owner.job_qos, owner))
            for bound, sharers in ((group, _TOGETHER), (account, _ACCOUNT), (user, _USER))
        ]
    while level >= 0:
        counter = (_ASSOCIATION, level, -1)
        bounds.append((site.associations[level].limits.group_accrue, counter))
        if level == owner.association:
            bounds += [(bound, counter) for _, bound in _inherited(site, level, _MAX_ACCRUE)]
        level = site.associations[level].parent
    limits = (_Limit(bound, kinds.HELD, counter, tables.ACCRUING) for bound, counter in bounds if bound is not None)
    return [*limits][:1]


def _qos_counter(sharers: int, qos: int, owner: _Owner) -> Counter:
    if sharers == _ALONE:
        return _NO_COUNTER
    return (sharers, qos, {_USER: owner.user, _ACCOUNT: owner.account}.get(sharers, -1))


def _stage(limit: _Limit) -> int:
    """Return when a limit is tested: 0 before nodes are picked, 1 after that, 2 at the submission, 3 for its age."""
    if limit.column == tables.ACCRUING:
        return 3
    if limit.column == tables.SUBMITTED and limit.test == kinds.HELD:
        return 2
    return (
        0
        if limit.test in (kinds.SPENT, kinds.LONGEST) or (limit.test == kinds.HELD and limit.column == tables.JOBS)
        else 1
    )


def _with_safety(site: Site, limit: _Limit) -> Iterator[_Limit]:
    yield limit
    if limit.test == kinds.SPENT and limit.column != tables.WALL and site.rules.is_safe:
        yield limit._replace(test=kinds.SAFE)


def _bounds(limits: SiteLimits, kind: _Kind) -> Iterator[tuple[int, float]]:
    """Yield the column and the bound of each limit of a kind."""
    value = kind.of(limits)
    if kind.column is None:
        yield from ((TRES.index(name), float(amount)) for name, amount in value.items() if name in TRES)
    elif value is not None:
        yield kind.column, float(value)


def _qos_bounds(site: Site, qos: int, kind: _Kind) -> Iterator[tuple[int, float]]:
    """Yield the same of a QOS; amounts of one with the flag Relative are percentages, from Slurm 23.11 on.

    They are percentages of the partition whose QOS it is, else of the cluster.
    """
    row = site.qos[qos]
    if kind.family not in _PERCENTAGES or not has_flag(row, "Relative") or site.rules.version < (23, 11):
        yield from _bounds(row.limits, kind)
        return
    names = {name for part in site.partitions if part.qos == row.name for name in part.nodes}
    nodes = [node for node in site.nodes if not names or node.name in names]
    totals = {
        tables.CPU: sum(node.cpus for node in nodes), tables.MEM: sum(node.memory_mib for node in nodes),
        tables.NODE_COUNT: len(nodes), tables.GPU: sum(node.gpus for node in nodes),
    }  # fmt: skip
    for column, share in _bounds(row.limits, kind):
        yield column, float(totals[column] * share // 100) if column in totals else share


def _limit_factor(site: Site, qos: int) -> float:
    """Return by what a job's QOS multiplies the amounts of its associations (LimitFactor)."""
    return site.qos[qos].limit_factor if qos >= 0 else 1.0


def _inherited(site: Site, level: int, kind: _Kind) -> Iterator[tuple[int, float]]:
    """Yield the bounds of an association; those of its own come from the nearest level that sets them."""
    bounds = dict(_bounds(site.associations[level].limits, kind))
    parent = site.associations[level].parent
    while parent >= 0 and kind.at == _OWN:
        bounds = dict(_bounds(site.associations[parent].limits, kind)) | bounds
        parent = site.associations[parent].parent
    yield from bounds.items()


def _qos_order(site: Site, partition_qos: int, job_qos: int) -> tuple[int, ...]:
    """Return the rows of the QOS that bind a job, the one that wins first."""
    order = [partition_qos, job_qos]
    if job_qos >= 0 and has_flag(site.qos[job_qos], "OverPartQOS"):
        order.reverse()
    return tuple(dict.fromkeys(row for row in order if row >= 0))


def _partition_qos(site: Site) -> list[int]:
    rows = {qos.name: row for row, qos in enumerate(site.qos)}
    return [rows.get(partition.qos, -1) for partition in site.partitions]


def _is_denied(limits: list[_Limit], cpus: int, nodes: int, minutes: int) -> bool:
    """Return whether sbatch rejects a job that would wait for ever: DenyOnLimit, and its request alone is too large."""
    request = {tables.CPU: cpus, tables.NODE_COUNT: nodes}
    return any(
        (limit.test == kinds.LONGEST and minutes > limit.bound)
        or (limit.test in (kinds.MOST, kinds.HELD) and request.get(limit.column, 0) > limit.bound)
        or (limit.test == kinds.LEAST and request.get(limit.column, limit.bound) < limit.bound)
        for limit in limits
    )


# --- arrays ---
def _group_tables(site: Site, groups: _Groups) -> dict[str, Array]:
    group_rows, limit_rows = np.zeros(len(groups.rows), tables.LIMIT_GROUP), list[_Limit]()
    counters = list[int]()
    for owner, group in groups.rows.items():
        limits, row = groups.limits[group], group_rows[group]
        stages = [_stage(limit) for limit in limits]
        ends = np.cumsum([len(limit_rows), *(stages.count(stage) for stage in range(4))])
        row["limits0"], row["after0"], row["limits1"], row["submit1"], row["accrual1"] = ends
        limit_rows += limits
        row["counters0"] = len(counters)
        counters += [groups.counters[key] for key in _counters_of(site, owner) if key in groups.counters]
        row["counters1"] = len(counters)
        row["usage_factor"] = row["time_factor"] = 1.0
        if owner.job_qos >= 0:
            qos = site.qos[owner.job_qos]
            row["usage_factor"] = qos.usage_factor
            row["time_factor"] = qos.usage_factor if has_flag(qos, "UsageFactorSafe") else 1.0
    table = np.zeros(len(limit_rows), tables.LIMIT)
    for place, limit in enumerate(limit_rows):
        table[place] = (limit.bound, limit.test, groups.counters.get(limit.counter, -1), limit.column)
    return {"limit_groups": group_rows, "limits": table, "group_counters": np.array(counters, np.int64)}


def _counters_of(site: Site, owner: _Owner) -> Iterator[Counter]:
    """Yield all counters that a job of an owner could move."""
    for qos in owner.qos:
        yield from (_qos_counter(sharers, qos, owner) for sharers in (_TOGETHER, _USER, _ACCOUNT))
    level = owner.association
    while level >= 0:
        yield (_ASSOCIATION, level, -1)
        level = site.associations[level].parent


def _counter_tables(site: Site, groups: _Groups, jobs: int) -> dict[str, Array]:
    rows = np.zeros(len(groups.counters), tables.COUNTER)
    rows["nodes"] = -1
    on_nodes = {
        groups.counters[limit.counter]
        for limits in groups.limits
        for limit in limits
        if limit.column == tables.NODE_COUNT and limit.test == kinds.HELD
    }
    for place, counter in enumerate(sorted(on_nodes)):
        rows[counter]["nodes"] = place
    spent = np.zeros((len(rows), tables.TRES_COUNT + 1))
    for (sharers, owner, _), counter in groups.counters.items():
        rows[counter]["decays"] = sharers == _ASSOCIATION or not has_flag(site.qos[owner], "NoDecay")
        if sharers == _ASSOCIATION and owner < len(site.usage):  # Slurm shows billing seconds alone
            spent[counter, [tables.CPU, tables.BILLING]] = site.usage[owner]
    return {
        "counters": rows, "spent": spent, "counted_nodes": np.zeros((len(on_nodes), len(site.nodes)), tables.COUNTED),
        "held": np.zeros((len(rows), tables.ACCRUING + 1), np.int64),
        "promised": np.zeros((len(rows), tables.TRES_COUNT), np.int64),
        "promised_seconds": np.zeros(jobs, np.int64), "usage_until": np.zeros(jobs, np.int64),
        "request": np.zeros(tables.TRES_COUNT, np.int64),
    }  # fmt: skip


def _licence_tables(site: Site, jobs: Array) -> dict[str, Array]:
    """Return the tables of licences, and fill the columns of the jobs; a licence that the site lacks is free."""
    rows = {name: row for row, name in enumerate(site.rules.licences)}
    columns, needs = SiteJobs.of(site.jobs), list[tuple[int, int]]()
    counts = np.zeros(len(columns.patterns), np.int64)
    for place, job in enumerate(columns.patterns):
        licences = [(rows[name], number) for name, number in job.licences.items() if name in rows]
        counts[place] = len(licences)
        needs += licences
    jobs["licences"] = counts[columns.pattern]
    jobs["licence0"] = np.cumsum(jobs["licences"]) - jobs["licences"]
    table = np.array(needs, tables.LICENCE)[spans((np.cumsum(counts) - counts)[columns.pattern], jobs["licences"])]
    free = np.array(list(site.rules.licences.values()), np.int64)
    return {"job_licences": table, "free_licences": free}

"""Tables of a site's shares: associations, QOS, and what its priorities weigh.

Rule: `share_tables` gives whole tables, `set_shares` fills the fields of tables that others made. Both read the site
alone. See `simulate.kernels.slurm.fair_shares` and `priority`, which work on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.slurm import tables
from ..kernels.slurm.tables import ASSOCIATION, QOS, TRES_COUNT
from .job_columns import Coded, SiteJobs, distinct
from .site import TRES, Amounts, PriorityRules, Site

_FLAGS = {
    "SMALL_RELATIVE_TO_TIME": tables.SMALL_RELATIVE_TO_TIME,
    "ACCRUE_ALWAYS": tables.ACCRUE_ALWAYS,
    "NO_NORMAL_TRES": tables.NO_NORMAL_TRES,
    "INCR_ONLY": tables.INCR_ONLY,
    "MAX_TRES": tables.MAX_TRES,
    "MAX_TRES_GRES": tables.MAX_TRES_GRES,
    "DEPTH_OBLIVIOUS": tables.DEPTH_OBLIVIOUS,
}


_DAY_S = 86_400
#: Flags that bill the largest resource, and not the sum of all.
MAX_TRES_FLAGS = frozenset({"MAX_TRES", "MAX_TRES_GRES"})
#: Flags that leave a factor as it is, not divided by the largest one of the site.
_RAW_FLAGS = frozenset({"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"})
_EFFECTS = {"CALCULATE_RUNNING": "running jobs keep their priority"}
#: Trackable resources that can have weights.
_WEIGHED = TRES[:4]


def share_tables(site: Site) -> dict[str, Array]:
    """Return the tables of the block `Slurm` that are made of associations, QOS and weights, by name."""
    associations, siblings = _associations(site)
    return {
        "associations": associations,
        "siblings": siblings,
        "sibling_space": np.zeros_like(siblings),
        "qos": _qos(site),
        "job_list": np.zeros(len(site.jobs), np.int64),
        "tres_weights": _amounts(site.rules.priority.tres),
        "partition_tres": _partition_tres(site),
        "billing_weights": billing_weights(site),
        "usage_resets": _usage_resets(site),
    }


def set_shares(world: Any, site: Site) -> None:
    """Fill the fields of `rules`, `partitions`, and `jobs` that priorities are made of and that are no plain copies.

    Args:
        world: the block `Slurm`; its rows stand as those of the site.
        site: the site.
    """
    priority, rules = site.rules.priority, world.rules
    rules["priority_flags"], rules["weighs_tres"] = _flags(priority), any(priority.tres.values())
    rules["max_age"], rules["dampening"] = max(priority.max_age_s, 1.0), max(priority.dampening, 1.0)
    world.partitions["factor"] = _by_largest([part.job_factor for part in site.partitions], priority, "NO_NORMAL_PART")


def association_rows(site: Site) -> Array:
    """Return the association of each job: the one of its first partition, else the user's own; -1 without any.

    Args:
        site: the site, completed.
    """
    columns = SiteJobs.of(site.jobs)
    users = {(row.account, row.user): number for number, row in enumerate(site.associations)}
    in_parts = {(row.account, row.user, row.partition): number for number, row in enumerate(site.associations)}
    partitions = Coded.of(job.partitions[0] if job.partitions else "" for job in columns.patterns)
    codes = partitions.codes[columns.pattern]
    first, owner = distinct(columns.users.codes, columns.accounts.codes, codes)
    numbers = list[int]()
    for row in first.tolist():
        names = columns.accounts[row] or "root", columns.users[row] or "?"
        plain = in_parts.get((*names, ""), users.get(names, -1))
        numbers.append(in_parts.get((*names, partitions.values[codes[row]]), plain))
    return np.array(numbers, np.int64)[owner]


def unfollowed_shares(site: Site) -> Iterator[str]:
    """Yield a sentence for each flag and weight of priorities that the replay does not follow."""
    for flag in sorted(_names(site.rules.priority) - {*_FLAGS, *_RAW_FLAGS, "NO_FAIR_TREE", "FAIR_TREE"}):
        yield f"PriorityFlags {flag}: not followed; {_EFFECTS.get(flag, 'priorities may differ')}"
    if "DEPTH_OBLIVIOUS" in site.rules.priority.flags:
        yield "PriorityFlags DEPTH_OBLIVIOUS: as documented; 22.05 was measured to share otherwise among siblings"
    if names := sorted(set(site.rules.priority.tres) - set(_WEIGHED)):
        yield f"PriorityWeightTRES {', '.join(names)}: not followed; jobs get no points for it"
    billed = {name for part in site.partitions for name in part.billing_weights or ()}
    if names := sorted(billed - set(_WEIGHED)):
        yield f"TRESBillingWeights {', '.join(names)}: not followed; the usage of jobs that have it is lower"


def _names(priority: PriorityRules) -> frozenset[str]:
    """Return PriorityFlags; NO_NORMAL_ALL is all of its kind."""
    flags = priority.flags
    return flags - {"NO_NORMAL_ALL"} | _RAW_FLAGS if "NO_NORMAL_ALL" in flags else flags


def _flags(priority: PriorityRules) -> int:
    """Return PriorityFlags as bits; Fair Tree is on unless a flag chooses another rule."""
    names = _names(priority)
    bits = sum(bit for name, bit in _FLAGS.items() if name in names)
    if not names & {"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"}:
        bits |= tables.FAIR_TREE
    return bits | (tables.FAVOR_SMALL if priority.favours_small else 0)


def _by_largest(values: list[int], priority: PriorityRules, raw_flag: str) -> Array:
    """Return values by their largest one, 0 to 1; as they are if the site's flags say so."""
    largest = max([1, *values]) if raw_flag not in _names(priority) else 1
    return np.array(values, float) / largest


def _associations(site: Site) -> tuple[Array, Array]:
    """Return the table of associations, and their rows ordered by the account below which they compete."""
    rows = site.associations
    table = np.zeros(len(rows), ASSOCIATION)
    if not rows:
        return table, np.zeros(0, np.int64)
    table["priority"] = _by_largest([row.priority for row in rows], site.rules.priority, "NO_NORMAL_ASSOC")
    table["usage"] = site.usage if site.usage and site.rules.priority.usage_reset != "NOW" else 0.0
    table["parent"] = [row.parent for row in rows]
    table["is_user"] = [row.user != "" for row in rows]
    table["shares_parent"] = [row.shares is None for row in rows]
    table["fair_parent"] = -1
    children: list[list[int]] = [[] for _ in rows]
    for number, row in enumerate(rows[1:], 1):
        above = row.parent
        while rows[above].shares is None and rows[above].parent >= 0:
            above = rows[above].parent
        table["fair_parent"][number] = above
        if row.user or row.shares is not None:
            children[above].append(number)
    table["share"][0] = table["norm_share"][0] = 1.0
    totals = [sum(rows[child].shares or 0 for child in below) for below in children]
    for number, row in enumerate(rows[1:], 1):
        parent = table["fair_parent"][number]
        total = totals[parent]
        if row.shares is None:
            table["norm_share"][number] = table["norm_share"][parent]
        elif total:
            table["share"][number] = row.shares / total
            table["norm_share"][number] = table["norm_share"][parent] * row.shares / total
    counts = np.array([len(below) for below in children])
    table["child0"], table["children"] = np.cumsum(counts) - counts, counts
    return table, np.array([child for below in children for child in below], np.int64)


def _qos(site: Site) -> Array:
    table = np.zeros(len(site.qos), QOS)
    table["factor"] = _by_largest([row.priority for row in site.qos], site.rules.priority, "NO_NORMAL_QOS")
    for row, values in zip(site.qos, table, strict=True):
        values["priority"], values["usage_factor"] = row.priority, row.usage_factor
        values["least_priority"] = row.min_priority
        flags = {flag.casefold() for flag in row.flags}
        for name, flag in (("no_reserve", "noreserve"), ("no_decay", "nodecay")):
            values[name] = flag in flags
    return table


# --- resources ---
def _amounts(amounts: Amounts) -> Array:
    """Return amounts of trackable resources as a row."""
    return np.array([amounts.get(name, 0.0) for name in TRES])


def _partition_tres(site: Site) -> Array:
    """Return what each partition has of each trackable resource; [partitions, TRES_COUNT]."""
    nodes = {node.name: np.array([node.cpus, node.memory_mib, 1.0, node.gpus, 0.0]) for node in site.nodes}
    table = np.zeros((len(site.partitions), TRES_COUNT))
    for part, row in zip(site.partitions, table, strict=True):
        for name in part.nodes:
            row += nodes[name]
    return table


def billing_weights(site: Site) -> Array:
    """Return TRESBillingWeights of each partition, by MiB of memory; -1 for CPUs where a partition has none."""
    table = np.zeros((len(site.partitions), TRES_COUNT))
    for part, row in zip(site.partitions, table, strict=True):
        if part.billing_weights is None:
            row[tables.CPU] = -1.0
        else:
            row[:] = _amounts(part.billing_weights)
    return table


# --- PriorityUsageResetPeriod ---
def _usage_resets(site: Site) -> Array:
    """Return the midnights of the site's period, and of a year after it, at which its usage becomes 0."""
    period = site.rules.priority.usage_reset
    if period in ("NONE", "NOW") or not site.jobs:
        return np.zeros(0)
    first, last = (SiteJobs.of(site.jobs).submit[[0, -1]] // _DAY_S).astype(int).tolist()
    days = np.arange(first + 1, last + 366).astype("M8[D]")
    months = days.astype("M8[M]")
    if period == "WEEKLY":
        days = days[(days.astype(int) + 4) % 7 == 0]  # day 0 was a Thursday, weeks begin on Sunday
    elif period != "DAILY":
        step = {"MONTHLY": 1, "QUARTERLY": 3, "YEARLY": 12}[period]
        days = days[(days == months.astype("M8[D]")) & (months.astype(int) % step == 0)]
    return days.astype(float) * _DAY_S

"""Usage of associations at a time from the runs in an accounting, as the decay thread of slurmctld books it.

Rule: a run counts its billing, times the UsageFactor of its QOS, for each second, decayed from then on. What it used
since the last calculation before its end counts only where limits are enforced; the phase of the calculations is not
known, so the mean part is left out.
Source: slurm.conf(5), PriorityDecayHalfLife and PriorityCalcPeriod; sshare(1).
Complexity: O(runs).
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..kernels.slurm.tables import CPU, GPU, MEM, NODE_COUNT
from .job_columns import SiteJobs
from .job_tables import requested_memory
from .share_tables import MAX_TRES_FLAGS, association_rows, billing_weights
from .site import PriorityRules, Site
from .site_tables import completed

#: Slurm's natural logarithm of 2.
_LN_2 = 0.693


def period_begin(site: Site) -> float:
    """Return when a replay of a site begins, epoch seconds: with its first submission or event."""
    times = [float(SiteJobs.of(site.jobs).submit.min(initial=math.inf))]
    times += [event.start for event in site.events]
    times += [one.start for one in site.reservations]
    return min(times)


def decay_over(priority: PriorityRules, seconds: float) -> float:
    """Return what is left of usage after a time, 0 to 1."""
    return math.exp(_log_decay(priority) * seconds)


def usage_of_runs(site: Site, until: float) -> Array:
    """Return the usage of each association at a time from the runs of a site alone; billing seconds.

    Args:
        site: the site; associations of its jobs that it lacks follow its own, as in `completed`.
        until: the time, epoch seconds; what ran later does not count.
    """
    site = completed(site)
    columns, priority = SiteJobs.of(site.jobs), site.rules.priority
    runs, owner = columns.runs, np.repeat(np.arange(len(columns)), np.diff(columns.first_run))
    end = np.where(np.isnan(runs.end), until, np.minimum(runs.end, until))
    rows = np.flatnonzero(runs.start < end)  # not those without a start, which is NaN
    owner, start, end, is_over = owner[rows], runs.start[rows], end[rows], ~(runs.end[rows] > until)
    is_booked = is_over & ~np.isnan(runs.end[rows]) & site.rules.enforces_limits
    end -= np.where(is_booked, 0.0, _unbooked(end - start, priority.period_s))
    factors = np.array([one.usage_factor for one in site.qos])
    names = {one.name: row for row, one in enumerate(site.qos)}
    of_pattern = np.array([factors[names.get(job.qos or "normal", 0)] for job in columns.patterns])
    amounts = _billing(site, rows, owner) * of_pattern[columns.pattern[owner]] * _decayed(priority, start, end, until)
    usage = np.zeros(len(site.associations))
    associations = association_rows(site)[owner]
    np.add.at(usage, associations[associations >= 0], amounts[associations >= 0])
    for row in range(len(usage) - 1, 0, -1):  # parents stand before children
        if site.associations[row].parent >= 0:
            usage[site.associations[row].parent] += usage[row]
    return usage


def usage_at_begin(site: Site, usage: Array, at: float) -> Array | None:
    """Return the usage with which a site's period began, from that at a later time; None if it was reset or is gone.

    The runs of the period are subtracted, and the decay is taken back. What is left of an account is at least what is
    left of those below it.

    Args:
        site: the site, with all runs of the period.
        usage: of each of its associations at the later time, billing seconds.
        at: that time, epoch seconds.
    """
    remains = decay_over(site.rules.priority, at - period_begin(site))
    if site.rules.priority.usage_reset not in ("NONE", "NOW") or remains <= 0.0:
        return None
    used = usage_of_runs(site, at)[: len(usage)]
    before = np.maximum(usage - used, 0.0) / remains
    sums = np.zeros(len(before))
    for row in range(len(before) - 1, -1, -1):
        before[row] = max(before[row], sums[row])
        if site.associations[row].parent >= 0:
            sums[site.associations[row].parent] += before[row]
    return np.asarray(before)


def _log_decay(priority: PriorityRules) -> float:
    """Return the logarithm of what is left of usage after a second; 0 without decay."""
    return math.log1p(-_LN_2 / priority.half_life_s) if priority.half_life_s > _LN_2 else 0.0


def _unbooked(seconds: Array, period_s: float) -> Array:
    """Return the mean time from the last calculation until the end of runs, at most all of a run."""
    short = seconds - seconds**2 / (2.0 * period_s)
    return np.where(seconds < period_s, short, period_s / 2.0)


def _decayed(priority: PriorityRules, start: Array, end: Array, until: float) -> Array:
    """Return the seconds of runs, each decayed until a time."""
    log = _log_decay(priority)
    if log == 0.0:
        return end - start
    return np.asarray((np.exp(log * (until - end)) - np.exp(log * (until - start))) / -log)


def _billing(site: Site, rows: Array, owner: Array) -> Array:
    """Return the billing of some runs.

    Args:
        site: the site, completed.
        rows: of the runs.
        owner: the job of each.
    """
    columns = SiteJobs.of(site.jobs)
    runs, weights = columns.runs, billing_weights(site)
    parts = {part.name: row for row, part in enumerate(site.partitions)}
    codes = np.array([parts.get(name.partition(",")[0], 0) for name in runs.partition.values], np.int64)
    part = codes[runs.partition.codes[rows]]
    cpus = runs.cpus[rows].astype(np.float64)
    if (weights[:, CPU] < 0).all():
        return cpus
    sizes = np.array([len(names) for names in runs.nodes.values], np.int64)
    nodes = np.maximum(sizes[runs.nodes.codes[rows]], 1)
    pattern = columns.pattern[owner]
    memory, is_per_cpu = requested_memory(site)
    amounts = {
        CPU: cpus, NODE_COUNT: nodes, MEM: memory[pattern] * np.where(is_per_cpu[pattern] == 1, cpus, nodes),
        GPU: np.array([job.gpus_per_node for job in columns.patterns])[pattern] * nodes,
    }  # fmt: skip
    parts_of_it = {column: weights[part, column] * amount for column, amount in amounts.items()}
    flags = site.rules.priority.flags & MAX_TRES_FLAGS
    on_nodes = [parts_of_it[column] for column in (CPU, MEM, NODE_COUNT)]
    if "MAX_TRES_GRES" in flags:
        total = np.maximum.reduce(on_nodes) + parts_of_it[GPU]
    elif flags:
        total = np.maximum.reduce([*on_nodes, parts_of_it[GPU]])
    else:
        total = sum(parts_of_it.values(), np.zeros(len(rows)))
    return np.where(weights[part, CPU] < 0, cpus, total)

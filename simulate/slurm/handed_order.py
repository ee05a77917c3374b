"""The jobs of a site that would be handed over to pilotfish, and their order under a queue policy.

Rule: jobs that job_submit.lua leaves alone are left to Slurm: arrays, and jobs with a dependency, a begin time, a
reservation or a user's hold. Only orders that do not change with time are known here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, did_you_mean
from ..queue_policies.order_ranks import static_keys
from .job_columns import SiteJobs
from .ordered_jobs import OrderedJobs
from .site import Site
from .site_outcome import requested_cpus
from .start_delay import NO_DELAY, StartDelay

#: Why a job is left to Slurm, in the order of the codes from 1 on; 0: it is handed over.
LEFT = (
    "in another partition", "of an array", "with a dependency", "with a begin time", "in a reservation",
    "held by users",
)  # fmt: skip


def left_to_slurm(site: Site, partitions: Collection[str] = ()) -> Array:
    """Return why each job is left to Slurm: a place in LEFT plus 1, or 0 for a job that is handed over. O(jobs).

    Args:
        site: the site.
        partitions: whose jobs are handed over; a job of several partitions is if all are among them. Empty: all.

    Raises:
        ConfigError: the site has no such partition.
    """
    names = [one.name for one in site.partitions]
    for name in partitions:
        if name not in names:
            raise ConfigError("", "", f"{name!r} is not a partition{did_you_mean(name, names)}", ", ".join(names))
    jobs = SiteJobs.of(site.jobs)
    defaults = tuple(one.name for one in site.partitions if one.is_default)
    is_elsewhere = [
        bool(partitions) and not set(job.partitions or defaults) <= set(partitions) for job in jobs.patterns
    ]
    has_reservation = [bool(job.reservation) for job in jobs.patterns]
    reasons = (
        np.array(is_elsewhere, bool)[jobs.pattern],
        np.array([bool(one) for one in jobs.arrays.values], bool)[jobs.arrays.codes],
        np.array([bool(one) for one in jobs.dependencies.values], bool)[jobs.dependencies.codes],
        ~np.isnan(jobs.begin),
        np.array(has_reservation, bool)[jobs.pattern],
        ~np.isnan(jobs.released),
    )
    codes = np.zeros(len(jobs), np.int8)
    for code, mask in reversed(list(enumerate(reasons, 1))):
        codes[mask] = code
    return codes


@dataclass(frozen=True, slots=True)
class Handling:
    """The treatment of jobs that are handed over, by the service.

    Args:
        hold_s: longest time that a job is held after its submission, seconds, 0 or more; infinite: always.
        wide_nodes: jobs of so many nodes or more are held for one backfill pass only; None: those of 2 nodes and more
            that ask for more than a quarter of their partition.
        start_delay: from the submission of a job, or the moment when its nodes are free, until it starts.
    """

    hold_s: float
    wide_nodes: int | None = None
    start_delay: StartDelay = NO_DELAY


def ordered_jobs(
    site: Site, order: str, left: Array, handling: Handling, run_s: Array | None = None
) -> OrderedJobs:  # fmt: skip
    """Return the jobs that are handed over, in one of the orders of queue policies.

    Args:
        site: the site.
        order: one of `order_ranks.ORDERS` that does not change with time.
        left: of `left_to_slurm`.
        handling: of these jobs.
        run_s: expected run times by which jobs are ordered, seconds [jobs], NaN where nothing is known; None: by
            their time limits. A job is never expected to run beyond its limit.
    """
    jobs = SiteJobs.of(site.jobs)
    length, size = limits_s(site), np.array([requested_cpus(job) for job in jobs.patterns], float)[jobs.pattern]
    if run_s is not None:
        length = np.where(np.isnan(run_s), length, np.minimum(run_s, length))
    since = jobs.submit - jobs.submit.min(initial=np.inf)
    keys = static_keys(order, length, size, since, 0).astype(np.float64)
    pause_s = min(max(site.rules.scheduler.bf_interval, 0.0), handling.hold_s)
    holds = np.where(_is_wide(site, handling.wide_nodes), pause_s, handling.hold_s)
    return OrderedJobs(np.where(left == 0, keys, np.nan), holds, handling.start_delay.mean_s)


def _is_wide(site: Site, wide_nodes: int | None) -> Array:
    """Return whether each job needs so many nodes that only a reservation frees them together, as the adapter says."""
    cpus = {node.name: node.cpus for node in site.nodes}
    machines = {
        part.name: (len(part.nodes), max((cpus[name] for name in part.nodes), default=1)) for part in site.partitions
    }
    default, jobs = next((one.name for one in site.partitions if one.is_default), ""), SiteJobs.of(site.jobs)
    is_wide = np.zeros(len(jobs.patterns), bool)
    for row, job in enumerate(jobs.patterns):
        size, largest = machines.get((job.partitions or (default,))[0], (0, 1))
        nodes = max(job.min_nodes, -(-requested_cpus(job) // largest))
        is_wide[row] = nodes >= wide_nodes if wide_nodes is not None else nodes >= 2 and 4 * nodes > size > 0
    return np.asarray(is_wide[jobs.pattern])


def limits_s(site: Site) -> Array:
    """Return the time limit of each job, seconds: its own, or that of its partition; infinite without any."""
    jobs = SiteJobs.of(site.jobs)
    of_partition: Mapping[str, int | None] = {
        one.name: one.default_time_min or one.max_time_min for one in site.partitions
    }
    defaults = tuple(one.name for one in site.partitions if one.is_default) or ("",)
    limits = [job.limit_min or of_partition.get((job.partitions or defaults)[0]) for job in jobs.patterns]
    seconds = np.array([np.inf if one is None else 60.0 * one for one in limits], np.float64)
    return np.asarray(seconds[jobs.pattern])

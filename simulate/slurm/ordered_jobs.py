"""Jobs of a site that pilotfish holds and orders: the world that would have been if they had been handed over.

Rule: a held job has no place in Slurm's queue. It stands behind the jobs that are not held, in an order among those of
one partition (and, with preemption, of one QOS). As the service does, the world releases held jobs while any other job
waits in their partition; see `kernels.slurm.held_order`. Everything else is Slurm's: passes, nodes, limits,
shares and reservations. The age of a job counts from the end of its hold, because Slurm does not count the wait for a
begin time (`PriorityFlags=ACCRUE_ALWAYS` apart).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import TURN
from .job_columns import SiteJobs, distinct
from .site import Site

#: A hold without an end, seconds.
_ALWAYS_S = float(2**60)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedJobs:
    """The jobs that were handed over, and their order.

    Args:
        keys: of each job; of two handed-over jobs of a partition, the one with the smaller key stands first, then the
            one that was submitted first. NaN: the job is left to Slurm.
        hold_s: how long after its submission a job is held, of all jobs or of each, seconds, 0 or more; infinite:
            always.
        seen_s: from a submission, or the moment when its nodes are free, until a held job starts, of all jobs or of
            each, seconds, 0 or more; no hold lasts longer for it. Nodes wait for the median of the jobs.
    """

    keys: Array
    hold_s: float | Array
    seen_s: float | Array = 0.0

    @property
    def jobs(self) -> Array:
        """Return whether each job was handed over."""
        return np.asarray(~np.isnan(self.keys))


def seen_late(site: Site, handed: OrderedJobs | None) -> Site:
    """Return a site in which no job that is handed over can start before pilotfish has seen and placed it."""
    if handed is None or not np.any(handed.seen_s):
        return site
    jobs = SiteJobs.of(site.jobs)
    late_s = np.minimum(handed.seen_s, handed.hold_s)
    released = np.where(handed.jobs & (late_s > 0), jobs.submit + late_s, jobs.released)
    return replace(site, jobs=replace(jobs, released=released))


def order_tables(site: Site, jobs: Array, parts: Array, handed: OrderedJobs | None) -> dict[str, Array]:
    """Return the tables of the kernels that say which jobs are held, and in which order. O(parts log parts).

    Args:
        site: the site, completed.
        jobs: the table of its jobs, in which holds are written; ages begin with the end of the hold.
        parts: partition of each record.
        handed: the jobs; None: none.
    """
    nothing = np.zeros(0, INT)
    if handed is None or not handed.jobs.any():
        return {"turn_records": np.zeros(0, TURN), "part_turn": nothing, "turns": nothing, "next_turn": nothing}
    hold_s = np.broadcast_to(handed.hold_s, len(jobs))[handed.jobs]
    until = jobs["submit"][handed.jobs] + np.minimum(hold_s, _ALWAYS_S).astype(np.int64)
    jobs["held_until"][handed.jobs] = until
    jobs["accrue"][handed.jobs] = np.where(np.isinf(hold_s), 0, until)
    owner = np.repeat(np.arange(len(jobs)), jobs["parts"])
    slots = np.flatnonzero(handed.jobs[owner])
    qos = jobs["qos"][owner[slots]] if site.rules.preempt_type else np.zeros(len(slots), np.int64)
    _, group = distinct(parts[slots], qos)
    order = np.lexsort((slots, SiteJobs.of(site.jobs).submit[owner[slots]], handed.keys[owner[slots]], group))
    turns = np.zeros(len(slots), TURN)
    turns["job"], turns["slot"], turns["group"] = owner[slots[order]], slots[order], group[order]
    part_turn = np.full(len(parts), -1, INT)
    part_turn[slots[order]] = np.arange(len(slots))
    return {
        "turn_records": turns, "part_turn": part_turn, "turns": np.zeros(2 * len(parts) + 1, INT),
        "next_turn": np.zeros(int(group.max()) + 1, INT),
    }  # fmt: skip

"""Jobs of a site that pilotfish orders: the world that would have been if they had been handed over.

Rule: jobs that were handed over exchange their places in Slurm's queue among those of one partition (and, with
preemption, of one QOS), and nothing else changes: passes, nodes, limits, shares and reservations are Slurm's, and every
other job keeps its place. A job takes part for `hold_s` after its submission; its age counts from then on, because
Slurm does not count the wait for a begin time (`PriorityFlags=ACCRUE_ALWAYS` apart).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import TURN
from .job_columns import SiteJobs, distinct
from .site import Site


@dataclass(frozen=True, slots=True, eq=False)
class OrderedJobs:
    """The jobs that were handed over, and their order.

    Args:
        keys: of each job; of two handed-over jobs of a partition, the one with the smaller key stands first, then the
            one that was submitted first. NaN: the job is left to Slurm.
        hold_s: how long after its submission a job is ordered, seconds, 0 or more; infinite: always.
    """

    keys: Array
    hold_s: float

    @property
    def jobs(self) -> Array:
        """Return whether each job was handed over."""
        return np.asarray(~np.isnan(self.keys))


def order_tables(site: Site, jobs: Array, parts: Array, handed: OrderedJobs | None) -> dict[str, Array]:
    """Return the tables of the kernels that say which jobs exchange places in which order. O(parts log parts).

    Args:
        site: the site, completed.
        jobs: the table of its jobs; the ages of those that are handed over begin with the end of their hold.
        parts: partition of each record.
        handed: the jobs; None: none.
    """
    nothing = np.zeros(0, INT)
    if handed is None or not handed.jobs.any():
        return {"turn_records": np.zeros(0, TURN), "part_turn": nothing, "turns": nothing, "next_turn": nothing}
    if np.isfinite(handed.hold_s):
        jobs["accrue"][handed.jobs] = jobs["submit"][handed.jobs] + int(handed.hold_s)
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

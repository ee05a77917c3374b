"""Jobs that will still be submitted to a site, drawn from those that were submitted lately.

Rule: each user submits again what they have submitted in the last WINDOW_S, at the same distances, from a random moment
of it on; so bursts, sizes and users are as before, and only times and numbers are drawn. A share of these jobs comes,
most often a small one: a queue that is long has seen more jobs than a site can run for long. Such a job waits for no
other job, and has no begin time and no deadline of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..arrays import Array
from .site import JobRecord, SiteJob

#: How far is looked back, seconds: a day has all hours. Least seconds that are looked back, and most jobs that come.
WINDOW_S, LEAST_S, MOST = 86_400.0, 600.0, 10_000
#: The share of jobs that come is a random number between 0 and 1 to this power. Measured on recordings of a real Slurm:
#: with 3, medians are no worse than without such jobs, and with 1 they are; the intervals hold as many starts.
POWER = 3.0
#: A job that does not come is submitted so much later, seconds.
_NEVER_S = 1e8


class Arrivals:
    """Jobs from now on, for as long as is looked back.

    Args:
        past: jobs that were submitted before; of those with the same id the last one counts.
        now: epoch seconds.

    Attributes:
        past: those that may come again, by the time of their submission.
        jobs: the jobs that may come, one for each of `past`; only their submissions are drawn.
    """

    def __init__(self, past: Iterable[SiteJob], now: float) -> None:
        once = {job.id: job for job in past if now - WINDOW_S < job.submit <= now}
        recent = sorted(once.values(), key=lambda job: (job.submit, job.id))[-MOST:]
        self._now, self._window_s = now, max(LEAST_S, now - recent[0].submit) if recent else LEAST_S
        users = dict[str, int]()
        self._user = np.array([users.setdefault(job.user, len(users)) for job in recent], np.int64)
        self._place = np.array([job.submit for job in recent], float) - (now - self._window_s)
        self._users = len(users)
        self.past, self.jobs = recent, [_again(job, now + _NEVER_S) for job in recent]

    def drawn(self, seed: int) -> Array:
        """Return when each job is submitted, epoch seconds, [jobs]; the same seed draws the same."""
        draws = np.random.default_rng([seed, 1])
        moved = draws.random(self._users)[self._user] * self._window_s
        submit = self._now + 1.0 + (self._place + moved) % self._window_s
        comes = draws.random(len(submit)) < draws.random() ** POWER
        return np.asarray(np.where(comes, submit, self._now + _NEVER_S))


def _again(job: SiteJob, later: float) -> SiteJob:
    """Return a job like one of the past, which is submitted later."""
    return replace(
        job, id=f"{job.id}+", submit=later, runs=(JobRecord("PENDING"),), begin=None, released=None, deadline=None,
        dependency="", array=f"{job.array}+" if job.array else "",
    )  # fmt: skip


def quantiles(draws: Array, level: float) -> tuple[Array, Array, Array]:
    """Return bounds that hold with at least a probability, and the median, of few draws; O(draws log draws).

    Each bound is a draw: the interval between the i-th and the j-th of n draws holds the next one with probability
    (j - i) / (n + 1). With fewer draws than that needs, it reaches from the first to the last.

    Args:
        draws: [draws, ...]; inf: never.
        level: 0 to 1.

    Returns:
        Low bound, median, high bound, each [...].
    """
    ordered, number = np.sort(draws, axis=0), len(draws)
    low = max(0, int((1.0 - level) / 2.0 * (number + 1) + 1e-9) - 1)
    return ordered[low], ordered[(number - 1) // 2], ordered[number - 1 - low]

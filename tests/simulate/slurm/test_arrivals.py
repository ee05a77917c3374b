"""Jobs that will still be submitted: users, sizes and bursts as before, and starts that they delay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.slurm.arrivals import WINDOW_S, Arrivals, quantiles
from pilotfish.simulate.slurm.job_columns import SiteJobs
from pilotfish.simulate.slurm.present import Present
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteNode, SitePartition, SiteRules

NOW = 1_000_000.0
JOB = SiteJob("1", "sim", "ann", "lab", "", ("main",), NOW - 3600.0, limit_min=10)
SITE = Site(SiteRules(), (SiteNode("n1", 1, 1),), (SitePartition("main", ("n1",), is_default=True),))


def past(*submitted_s: float, user: str = "ann") -> list[SiteJob]:
    """Return jobs of a user, submitted so many seconds ago."""
    return [replace(JOB, id=f"{user}{at}", user=user, submit=NOW - at) for at in submitted_s]


def coming(arrivals: Arrivals, seed: int) -> list[float]:
    """Return when jobs come, seconds from now, those that do."""
    times = arrivals.drawn(seed) - NOW
    return sorted(times[times < 2 * WINDOW_S].tolist())


@given(st.lists(st.floats(0.0, 2 * WINDOW_S), max_size=30), st.integers(0, 100))
def test_each_job_comes_at_most_once_within_the_time_that_is_known(ages: list[float], seed: int) -> None:
    arrivals = Arrivals([*past(*ages), *past(*ages, user="bob")], NOW)
    assert [(job.user, job.limit_min) for job in arrivals.jobs] == [(job.user, job.limit_min) for job in arrivals.past]
    assert all(NOW - WINDOW_S < job.submit <= NOW for job in arrivals.past)
    times = coming(arrivals, seed)
    assert len(times) <= len(arrivals.jobs) and all(0.0 < time <= WINDOW_S + 1.0 for time in times)
    assert times == coming(arrivals, seed), "the same seed draws the same"
    assert not any(job.runs[-1].start for job in arrivals.jobs)


def test_a_burst_stays_a_burst_and_fewer_come_than_lately() -> None:
    arrivals = Arrivals(past(*(1800.0 + number for number in range(50)), 3600.0), NOW)
    numbers = [len(coming(arrivals, seed)) for seed in range(200)]
    assert max(numbers) > 40 and 5 < np.mean(numbers) < 25
    spans = [max(times) - min(times) for seed in range(200) if len(times := coming(arrivals, seed)) > 5]
    assert np.median(spans) < 60.0


def test_jobs_that_come_first_in_the_queue_delay_those_that_wait() -> None:
    run = JobRecord("RUNNING", NOW - 3600.0, NOW - 3600.0, nodes=("n1",), cpus=1)
    runs = replace(JOB, id="1", submit=NOW - 3600.0, limit_min=70, runs=(run,))
    waits = replace(JOB, id="2", submit=NOW - 600.0, runs=(JobRecord("PENDING", NOW - 600.0, priority=1),))
    site = replace(SITE, jobs=SiteJobs.of((runs, waits)))
    urgent = replace(SITE.partitions[0], name="urgent", tier=10)
    site = replace(site, partitions=(*SITE.partitions, urgent))
    lately = [replace(job, partitions=("urgent",)) for job in past(*range(60, 3600, 60))]
    alone = Present(site, NOW)
    busy = Present(site, NOW, Arrivals(lately, NOW))
    assert alone.waits.tolist() == [False, True] and busy.waits.sum() == 1 and len(busy.waits) == 2 + len(lately)

    def starts(present: Present) -> np.ndarray:
        run_s = np.where(present.runs, 3900.0, 300.0)
        return np.array([present.outlook(run_s, WINDOW_S, seed).start[1] for seed in range(9)]) - NOW

    assert starts(alone).max() <= 300.0 + 90.0
    assert starts(busy).max() > 900.0 and np.nanmin(starts(busy)) < 600.0
    assert np.array_equal(starts(busy), starts(busy)), "no draw changes another"


@given(st.integers(1, 40))
def test_bounds_hold_the_next_draw_as_often_as_they_promise(number: int) -> None:
    low, middle, high = quantiles(np.arange(number, dtype=float)[:, None], 0.8)
    ranks = (high - low)[0] / (number + 1)
    assert low <= middle <= high and (ranks >= 0.8 - 1e-9 or ranks == (number - 1) / (number + 1))

"""The effect of a change: its intervals against known truths, and its numbers against ones counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_effect import Effect, effect
from pilotfish.simulate.slurm.site_outcome import HOUR_S, SiteOutcome, recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.twin import SiteReplay, SiteStart

DAY_S = 86_400.0
NODES = (SiteNode("n1", cpus=4, cores=4), SiteNode("n2", cpus=4, cores=4))
PARTITIONS = (SitePartition("batch", ("n1", "n2"), is_default=True),)


def site_of(*jobs: SiteJob) -> Site:
    return Site(SiteRules(), NODES, PARTITIONS, jobs=jobs)


def job(number: int, submit: float, *runs: JobRecord, user: str = "ann", qos: str = "") -> SiteJob:
    return SiteJob(f"{number}", f"j{number}", user, "x", qos, ("batch",), submit, runs)


def spread(number: int, days: int = 20) -> Site:
    """Return a site of jobs over some days, half of them of another user."""
    rows = range(number)
    return site_of(*(job(row, row * days * DAY_S / number, user="ann" if row % 2 else "bob") for row in rows))


def outcome(waits: np.ndarray, slowdowns: float | np.ndarray = 1.0, days: int = 20, **more: object) -> SiteOutcome:
    values = {
        "wait_s": waits, "turnaround_s": waits + 100.0, "slowdown": slowdowns * np.ones(len(waits)), "by_backfill": np.full(len(waits), np.nan),
        "used_cpu_s": np.full(24 * days, HOUR_S), "joules": None, "metered": None, "cpus": 8, "nodes": 2,
        "span_s": days * DAY_S, **more,
    }  # fmt: skip
    return SiteOutcome(**values)


def test_no_change_is_within_the_noise_and_a_large_one_is_not() -> None:
    site, draw = spread(400), np.random.default_rng(1)
    waits = [draw.exponential(100.0, 400) for _ in range(4)]
    before = [outcome(wait) for wait in waits]
    same = effect(site, before, before)
    assert same.wait.mean.is_noise and same.wait.mean.difference == 0.0 == same.wait.mean.low == same.wait.mean.high
    late = np.where(np.arange(400) % 2, 500.0, 0.0)
    result = effect(site, before, [outcome(wait + late, 3.0) for wait in waits])
    mean = result.wait.mean
    assert not mean.is_noise and mean.low and mean.high and 200.0 < mean.low < 250.0 < mean.high < 300.0
    assert result.slowdown.mean.low == pytest.approx(2.0) == result.slowdown.mean.high
    users = {one.name: one.wait.mean for one in result.group("user")}
    assert users["bob"].is_noise and not users["ann"].is_noise
    assert users["ann"].difference == pytest.approx(500.0)


def test_a_paired_difference_has_no_noise_of_the_replays() -> None:
    """The same shift of every replay is certain, however much the replays differ from each other."""
    site, draw = spread(200), np.random.default_rng(3)
    waits = [draw.exponential(100.0, 200) + 1000.0 * seed for seed in range(5)]
    result = effect(site, [outcome(wait) for wait in waits], [outcome(wait + 7.0) for wait in waits])
    assert result.wait.mean.low == pytest.approx(7.0) and result.wait.mean.high == pytest.approx(7.0)


@pytest.mark.long
def test_the_interval_covers_the_truth_in_most_draws() -> None:
    """95 % of the intervals of a difference of 0 hold 0, if days and replays are independent."""
    site, draw = spread(200), np.random.default_rng(2)
    held = {"mean": 0, "median": 0, "utilisation": 0, "fairness": 0}
    for _ in range(60):
        sides = [
            [
                outcome(draw.exponential(100.0, 200), draw.exponential(5.0, 200), used_cpu_s=draw.uniform(0, 1, 480))
                for _ in range(3)
            ]
            for _ in range(2)
        ]
        result = effect(site, *sides)
        assert result.utilisation and result.fairness
        held["mean"] += result.wait.mean.is_noise
        held["median"] += result.wait.median.is_noise
        held["utilisation"] += result.utilisation.is_noise
        held["fairness"] += result.fairness.is_noise
    assert all(52 <= number <= 60 for number in held.values()), held


def test_quantiles_are_those_of_all_jobs_and_replays() -> None:
    site, draw = spread(300), np.random.default_rng(4)
    sides = [[draw.exponential(size, 300) for _ in range(3)] for size in (100.0, 400.0)]
    result = effect(site, *([outcome(wait) for wait in side] for side in sides))
    for share, number in ((0.5, result.wait.median), (0.95, result.wait.p95)):
        before, after = (np.quantile(side, share) for side in sides)
        assert (number.before, number.after) == (before, after)
        assert number.low and number.high and number.low < after - before < number.high


def test_jobs_of_few_days_have_no_interval() -> None:
    site = spread(40)
    jobs = tuple(replace(one, user="eve") if int(one.id) < 4 else one for one in site.jobs)  # the first two days
    before, after = outcome(np.zeros(40)), outcome(np.full(40, 9.0))
    eve = next(one for one in effect(site_of(*jobs), [before], [after]).group("user") if one.name == "eve")
    assert (eve.jobs, eve.wait.mean.after, eve.wait.mean.low) == (4, 9.0, None) and eve.wait.mean.is_noise


def test_a_job_that_starts_on_one_side_is_counted_and_left_out() -> None:
    site, waits = spread(40), np.arange(40.0)
    shorter = np.where(np.arange(40) < 3, np.nan, waits)
    result = effect(site, [outcome(waits)], [outcome(shorter)])
    assert (result.jobs, result.only_before, result.only_after) == (37, 3, 0)
    assert result.wait.mean.before == waits[3:].mean() == result.wait.mean.after


def test_unknown_is_unknown() -> None:
    result = effect(spread(40), [outcome(np.zeros(40))], [outcome(np.zeros(40))])
    assert result.backfilled is result.energy_j is result.highest_power_w is result.metered is None


def test_fairness_is_jains_index_of_the_users_means() -> None:
    site = spread(40)
    even = np.ones(40)
    uneven = np.where(np.arange(40) % 2, 3.0, 1.0)  # ann 3, bob 1
    result = effect(site, [outcome(np.zeros(40), even)], [outcome(np.zeros(40), uneven)])
    assert result.fairness and (result.fairness.before, result.fairness.after) == (1.0, 4.0**2 / (2 * (9 + 1)))


def powered(after: bool = False) -> tuple[SiteOutcome, Effect]:
    """Return the outcome of 4 CPUs at 100 W for 2 of 10 days, and the effect of starting them a day later."""
    shift = DAY_S if after else 0.0
    run = JobRecord("COMPLETED", start=0.0, end=2 * DAY_S, cpus=4, nodes=("n1",), energy_j=100.0 * 2 * DAY_S)
    site = site_of(job(0, 0.0, run), *(job(row, row * DAY_S) for row in range(1, 11)))
    before = recorded_outcome(site)
    start = SiteStart(0, "batch", shift, shift + 2 * DAY_S, ("n1",), "main", 0)
    later = replayed_outcome(site, SiteReplay((start,)))
    return later, effect(site, [before], [later], idle_w=10.0)


def test_power_and_energy_are_counted_by_hour() -> None:
    later, result = powered()
    assert later.joules is not None and later.joules[:48] == pytest.approx(100.0 * HOUR_S)
    assert later.joules[48:] == pytest.approx(0.0) and later.metered == pytest.approx(1.0)
    assert later.utilisation == pytest.approx(4 * 2 / (8 * 10.0))
    assert result.energy_j and result.highest_power_w and result.lowest_power_w
    assert result.highest_power_w.after == pytest.approx(100.0 + 10.0)  # half of the machine is idle
    assert result.lowest_power_w.after == pytest.approx(20.0)
    assert result.energy_j.after == pytest.approx(DAY_S * (2 * 110.0 + 8 * 20.0)) == result.energy_j.before


def test_a_later_job_moves_its_power() -> None:
    later, result = powered(after=True)
    assert later.joules is not None and later.joules[24:72] == pytest.approx(100.0 * HOUR_S)
    assert later.joules[:24] == pytest.approx(0.0)
    assert result.energy_j and result.energy_j.difference == pytest.approx(0.0)

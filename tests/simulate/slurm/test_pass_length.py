"""How many records a backfill pass tests in its time, against a clock that is moved by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from pilotfish.simulate.kernels.slurm import pass_length
from pilotfish.simulate.slurm.site import SchedulerRules, SiteRules
from tests.simulate.slurm.small_sites import T0, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
CHANGES = (0.0, 1.0, 3.0, 7.0, 8.0, 1000.0)  # whole seconds, as all submissions


def hand(scheduler: SchedulerRules, test_s: float, change: float) -> Hand:
    """Return a site in which something changes after so many seconds: a submission."""
    rules = SiteRules(scheduler=scheduler, test_s=test_s)
    world = Hand(site([job(submit=T0 + change)], rules=rules))
    world.block.clock["next_period"] = T0 + 10_000
    return world


def by_hand(scheduler: SchedulerRules, test_s: float, change: float) -> int:
    """Return how many records a pass tests that begins at T0: it looks at the clock, sleeps, and tests, in turn."""
    clock, worked, tests = 0.0, 0.0, 0
    while tests < scheduler.bf_max_job_test and clock < (scheduler.bf_max_time or scheduler.bf_interval):
        if worked >= scheduler.bf_yield_interval:
            clock, worked = clock + scheduler.bf_yield_sleep, 0.0
            if change < clock and not scheduler.bf_continue:
                break
        clock, worked, tests = clock + test_s, worked + test_s, tests + 1
    return tests


def test_a_pass_ends_as_one_that_is_played_test_by_test() -> None:
    ranges = ((0.25, 1.0, 2.0, 5.0), (0.25, 2.0, 3.0), (0.25, 4.0), (0.0, 1.0, 9.0, 20.0), (True, False), CHANGES)
    for test_s, interval, sleep, longest, continues, change in product(*ranges):
        scheduler = SchedulerRules(
            bf_max_time=longest, bf_yield_interval=interval, bf_yield_sleep=sleep, bf_continue=continues,
            bf_max_job_test=50,
        )  # fmt: skip
        one = hand(scheduler, test_s, change)
        assert pass_length.most_tests(one.world) == by_hand(scheduler, test_s, change), (scheduler, test_s, change)


def test_without_a_measured_time_a_pass_tests_as_many_as_it_may() -> None:
    scheduler = SchedulerRules(bf_max_time=1.0, bf_max_job_test=77)
    assert pass_length.most_tests(hand(scheduler, 0.0, 0.0).world) == 77
    assert pass_length.most_tests(hand(replace(scheduler, bf_continue=True), 0.0, 0.0).world) == 77

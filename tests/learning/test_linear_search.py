"""A search is the same for a seed, begins at the best rule, and learns what a workload rewards."""

from __future__ import annotations

import math

import numpy as np

from pilotfish.learning.linear_search import RULES, SearchOptions, search, seen_quantiles, value_of
from pilotfish.learning.traces import Trace
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.learned_order import LearnedOrder

FEW = SearchOptions(generations=6, population=8)


def trace(seed: int, jobs: int = 300) -> Trace:
    """Return a trace whose limits say nothing and whose users always run for as long."""
    random = np.random.default_rng(seed)
    users = random.integers(0, 12, jobs)
    runs = np.where(users < 6, 30.0, 1500.0) * random.uniform(0.9, 1.1, jobs)
    arrivals = np.cumsum(random.exponential(170.0, jobs))
    size = random.choice([1, 2, 4, 8], jobs)
    return Trace("made", "", Workload("made", np.arange(jobs), arrivals, runs, np.full(jobs, 7200.0), size,
                                      more={"user": users}), 16)  # fmt: skip


def test_the_same_seed_finds_the_same_weights() -> None:
    first, again, other = (search([trace(1)], FEW, seed) for seed in (1, 1, 2))
    assert first == again and first.weights != other.weights
    assert len(first.course) == FEW.generations


def test_it_begins_at_the_rule_that_is_best() -> None:
    result = search([trace(1)], FEW, 1)
    assert result.start == "shortest expected run time first"  # limits say nothing
    assert result.value <= result.start_value + 0.05


def test_where_no_rule_is_tuned_the_search_finds_better_weights_on_other_jobs() -> None:
    options = SearchOptions("mix", generations=25, population=12, sigma=0.5)
    result = search([trace(1)], options, 1)
    others = [trace(2), trace(3), trace(4)]
    assert value_of(result.weights, others, options) < value_of(RULES["first come, first served"], others, options)
    assert result.value < result.start_value


def test_windows_and_halves_hold_each_job_once() -> None:
    entire = trace(1)
    for parts in (entire.windows(4), (entire.half(second=False), entire.half(second=True))):
        ids = np.concatenate([part.jobs.id for part in parts])
        assert ids.tolist() == entire.jobs.id.tolist()


def test_a_shaken_copy_has_the_same_jobs_at_most_five_minutes_later() -> None:
    entire = trace(1)
    copy = entire.shaken(3)
    rows = np.argsort(copy.jobs.id)
    moved = copy.jobs.submit_time[rows] - entire.jobs.submit_time
    assert (moved >= 0.0).all() and (moved <= 300.0).all() and len(set(moved.tolist())) > 100
    assert (np.diff(copy.jobs.submit_time) >= 0.0).all()
    assert copy.jobs.run_time[rows].tolist() == entire.jobs.run_time.tolist()
    assert entire.shaken(3).jobs.submit_time.tolist() == copy.jobs.submit_time.tolist()


def test_quantiles_of_what_was_seen_are_finite_and_ascend() -> None:
    columns = seen_quantiles([trace(1)], LearnedOrder("", RULES["shortest limit first"]))
    for values in columns.values():
        assert len(values) == 33 and np.isfinite(values).all() and (np.diff(values) >= 0.0).all()
    assert math.isclose(columns["share"][-1], 0.5)

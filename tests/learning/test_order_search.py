"""A search is the same for a seed, begins at the best rule, and learns what a workload rewards."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from pilotfish.formats.models.order_model import ORDER_KINDS
from pilotfish.learning.contenders import RULES, Predicting, RecordedRunTimes, contender, numbers_of, replayed
from pilotfish.learning.objectives import OBJECTIVES
from pilotfish.learning.order_kinds import KINDS
from pilotfish.learning.order_search import (
    LAST_RESORT,
    PATIENCE,
    Search,
    SearchOptions,
    search,
    seen_quantiles,
    start_of,
)
from pilotfish.learning.traces import LOADS, Trace
from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.learned_order import UNKNOWN_USER, LearnedOrder

FEW = SearchOptions(generations=6, population=8, judged=3)


def trace(seed: int, jobs: int = 300) -> Trace:
    """Return a trace whose limits say nothing and whose users always run for as long."""
    random = np.random.default_rng(seed)
    users = random.integers(0, 12, jobs)
    runs = np.where(users < 6, 30.0, 1500.0) * random.uniform(0.9, 1.1, jobs)
    arrivals = np.cumsum(random.exponential(170.0, jobs))
    size = random.choice([1, 2, 4, 8], jobs)
    return Trace("made", "", Workload("made", np.arange(jobs), arrivals, runs, np.full(jobs, 7200.0), size,
                                      more={"user": users}), 16)  # fmt: skip


def predicted(one: Trace) -> OnlineRunTimes:
    return OnlineRunTimes(one.jobs)


def test_the_same_seed_finds_the_same_weights() -> None:
    start = start_of([trace(1)], FEW)
    first, again, other = (search([trace(1)], FEW, start, seed) for seed in (1, 1, 2))
    assert first == again and first.weights != other.weights
    assert len(first.course) == FEW.generations


@pytest.mark.parametrize("predict", [None, predicted])
def test_a_search_in_stages_finds_the_same(predict: Predicting | None) -> None:
    start, earlier = start_of([trace(1)], FEW, predict), None
    for until in range(1, FEW.generations + 1):
        stage = search([trace(1)], FEW, start, 1, predict, until=until, earlier=earlier)
        assert len(stage.course) == until
        earlier = json.loads(json.dumps(asdict(stage)))  # as a journal has it
    assert stage == search([trace(1)], FEW, start, 1, predict)


def test_it_begins_at_the_rule_that_is_best() -> None:
    start = start_of([trace(1)], FEW)
    assert start.rule == "shortest expected run first"  # limits say nothing
    results = [search([trace(1)], FEW, start, seed) for seed in range(1, 5)]
    assert all(result.value + result.excess <= start.value + start.excess for result in results)
    assert all((result.weights == RULES[start.rule]) is result.is_rule for result in results)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_begins_with_the_schedules_of_the_rule_and_is_no_worse(kind: str) -> None:
    options, one = replace(FEW, kind=kind), trace(1)
    start = start_of([one], options)
    for name, rule in RULES.items():
        orders = [LearnedOrder("m", rule), KINDS[kind].order(KINDS[kind].first(rule, 3).tolist(), rule, math.inf)]
        first, rule_starts = (
            replayed(one, contender(replace(order, max_wait=math.inf), predicted=False), None).start_time
            for order in orders
        )
        assert first.tolist() == rule_starts.tolist(), name
    result = search([one], options, start, 1)
    assert result.value + result.excess <= start.value + start.excess
    assert result == search([one], options, start, 1)
    assert len(result.weights) == ORDER_KINDS["linear" if kind == "fill" else kind]


def test_the_kinds_are_those_of_model_files() -> None:
    assert KINDS.keys() == ORDER_KINDS.keys()


def test_the_bound_follows_the_longest_wait_of_the_best_variant() -> None:
    plain = start_of([trace(1)], FEW)
    longer = start_of([trace(1)], replace(FEW, patience=2.0))
    assert plain.max_wait == LAST_RESORT * PATIENCE * plain.longest_wait > 3600.0
    assert longer.max_wait == LAST_RESORT * 2.0 * plain.longest_wait
    assert start_of([trace(1)], replace(FEW, max_wait=5e5)).max_wait == 5e5
    assert start_of([trace(1)], replace(FEW, patience=1e-6)).max_wait == 3600.0


@pytest.mark.long
def test_predictions_are_used_where_they_make_a_rule_better() -> None:
    random = np.random.default_rng(3)
    entire = trace(1)
    jobs = replace(entire.jobs, more={"user": random.permutation(entire.jobs.more["user"])})  # users say nothing, too
    one = replace(entire, jobs=replace(jobs, more={**jobs.more, "executable": (jobs.run_time > 300).astype(np.int64)}))
    start = start_of([one], FEW, predicted)
    assert start.predicted and start.rule == "shortest expected run first"
    assert start.value < start_of([one], FEW).value
    assert isinstance(search([one], FEW, start, 1, predicted), Search)


def test_recorded_predictions_give_the_replay_that_they_are_of() -> None:
    side = contender(LearnedOrder("m", RULES["shortest expected run first"]), predicted=True)
    recorded = RecordedRunTimes(trace(2), side, predicted)
    plain = replayed(trace(2), side, predicted)
    assert replayed(trace(2), side, lambda _: recorded).start_time.tolist() == plain.start_time.tolist()


def test_a_second_half_begins_with_the_queue_of_the_first() -> None:
    entire, side = trace(1), contender(LearnedOrder("m", RULES["first come, first served"]), predicted=False)
    late = entire.half(second=True)
    waits = replayed(entire, side, None).start_time - entire.jobs.submit_time
    assert numbers_of(late, side, None)["wait"] == waits[len(waits) // 2 :].mean()
    copy = late.shaken(4)
    assert copy.counts is not None and set(copy.jobs.id[copy.counts].tolist()) == set(range(150, 300))


def test_where_no_rule_is_tuned_the_search_finds_better_weights_on_other_jobs() -> None:
    options = SearchOptions("mix", generations=25, population=12, sigma=0.5, judged=3)
    start = replace(start_of([trace(1)], options), rule="first come, first served")
    result = search([trace(1)], options, start, 1)
    learned, rule = (
        contender(LearnedOrder("", weights, start.max_wait), predicted=False)
        for weights in (result.weights, RULES["first come, first served"])
    )
    for other in (trace(2), trace(3), trace(4)):
        better, usual = (OBJECTIVES["mix"](numbers_of(other, side, None)) for side in (learned, rule))
        assert better < usual


def test_windows_and_halves_hold_each_job_once() -> None:
    entire = trace(1)
    first, second = entire.half(second=False), entire.half(second=True)
    assert second.counts is not None
    ids = np.concatenate([first.jobs.id, second.jobs.id[second.counts]])
    assert ids.tolist() == entire.jobs.id.tolist()
    for cut, jobs in ((entire, entire.jobs), (second, second.jobs.take(second.counts))):
        ids = np.concatenate([part.jobs.id for part in cut.windows(4)])
        assert ids.tolist() == jobs.id.tolist()


def test_windows_of_a_half_have_as_many_of_its_jobs() -> None:
    second = trace(1).half(second=True)
    assert [len(window.jobs) for window in second.windows(5)] == [30] * 5
    assert all(len(window.redrawn(3).jobs) > 0 for window in second.windows(5))


def test_a_shaken_copy_has_the_same_jobs_at_most_five_minutes_later() -> None:
    entire = trace(1)
    copy = entire.shaken(3)
    rows = np.argsort(copy.jobs.id)
    moved = copy.jobs.submit_time[rows] - entire.jobs.submit_time
    assert (moved >= 0.0).all() and (moved <= 300.0).all() and len(set(moved.tolist())) > 100
    assert (np.diff(copy.jobs.submit_time) >= 0.0).all()
    assert copy.jobs.run_time[rows].tolist() == entire.jobs.run_time.tolist()
    assert entire.shaken(3).jobs.submit_time.tolist() == copy.jobs.submit_time.tolist()


def test_a_redrawn_copy_has_all_jobs_of_a_user_as_often_as_it_drew_the_user() -> None:
    entire = trace(1)
    copies = [entire.redrawn(seed) for seed in range(40)]
    drawn = []
    for copy in copies:
        times = np.bincount(copy.jobs.id, minlength=len(entire.jobs))
        rows = {user: set(times[entire.jobs.more["user"] == user].tolist()) for user in range(12)}
        assert all(len(numbers) == 1 for numbers in rows.values())
        drawn.append(sum(number for numbers in rows.values() for number in numbers))
        assert (np.diff(copy.jobs.submit_time) >= 0.0).all()
    assert set(drawn) == {12}
    assert len({copy.jobs.id.tobytes() for copy in copies}) == len(copies)
    again = entire.redrawn(7).jobs
    assert (
        again.submit_time.tolist() == copies[7].jobs.submit_time.tolist()
        and again.id.tolist() == copies[7].jobs.id.tolist()
    )


def test_a_redrawn_copy_has_a_like_load() -> None:
    entire = trace(1, jobs=3000)
    work = (entire.jobs.size * entire.jobs.run_time).sum()
    for seed in range(40):
        copy = entire.redrawn(seed).jobs
        share = (copy.size * copy.run_time).sum() / work
        slower = np.ptp(copy.submit_time) / np.ptp(entire.jobs.submit_time)
        assert LOADS[0] * 0.98 < share / slower < LOADS[1] * 1.02


def test_jobs_of_few_or_unknown_users_are_drawn_one_by_one() -> None:
    entire = trace(1)
    three_users = replace(entire, jobs=replace(entire.jobs, more={"user": entire.jobs.more["user"] % 3}))
    nameless = replace(entire, jobs=replace(entire.jobs, more={}))
    unknown = np.where(entire.jobs.more["user"] == 11, UNKNOWN_USER, entire.jobs.more["user"])
    partly_known = replace(entire, jobs=replace(entire.jobs, more={"user": unknown}))
    assert three_users.redrawn(5).jobs.id.tolist() == nameless.redrawn(5).jobs.id.tolist()
    assert len(three_users.redrawn(5).jobs) == len(entire.jobs)  # as many draws as jobs
    times = np.bincount(partly_known.redrawn(5).jobs.id, minlength=len(entire.jobs))
    assert len(set(times[unknown == UNKNOWN_USER].tolist())) > 1 and len(set(times[unknown == 3].tolist())) == 1


def test_a_redrawn_copy_has_a_job_that_counts() -> None:
    entire = trace(1)
    one = replace(entire, counts=entire.jobs.more["user"] == 4)
    for seed in range(30):
        copy = one.redrawn(seed)
        assert copy.counts is not None and copy.counts.any()
        assert set(copy.jobs.more["user"][copy.counts].tolist()) == {4}


def test_long_waits_count_against_a_point_and_short_ones_do_not() -> None:
    strict, lax = (replace(FEW, patience=factor) for factor in (0.1, 50.0))
    narrow, wide = (start_of([trace(1)], options) for options in (strict, lax))
    assert wide.excess == 0.0 and narrow.excess > 1.0  # ten times the allowed wait are a factor of ten
    assert narrow.value + narrow.excess > wide.value


def test_quantiles_of_what_was_seen_are_finite_and_ascend() -> None:
    columns = seen_quantiles([trace(1)], contender(LearnedOrder("", RULES["shortest limit first"]), predicted=False))
    for values in columns.values():
        assert len(values) == 33 and np.isfinite(values).all() and (np.diff(values) >= 0.0).all()
    assert math.isclose(columns["share"][-1], 0.5)

"""A learned order: its kernel equals its form in Python, and it sees nothing that a scheduler does not know."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.learned_order import FEATURES, LearnedOrder, OrderFile
from pilotfish.simulate.queue_policies.order_score import NETWORK
from pilotfish.simulate.queue_policies.policy_specs import Easy, Strict, parse, parse_planned, text_of
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from tests.simulate.queue_policies.test_uncompiled import TIGHT, assert_same, depending
from tests.simulate.replay.test_replay import workload

WEIGHT = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.37, -2.5, 8.0])
WEIGHTS = st.lists(WEIGHT, min_size=len(FEATURES), max_size=len(FEATURES)).map(tuple)
NETWORKS = st.integers(0, 99).map(lambda seed: tuple(np.random.default_rng(seed).normal(0.0, 2.0, NETWORK).tolist()))
WAITS = st.sampled_from([5.0, 20.0, math.inf])
ORDERED = st.one_of(
    st.builds(LearnedOrder, st.just("m"), WEIGHTS | NETWORKS, WAITS),
    st.builds(LearnedOrder, st.just("m"), WEIGHTS, WAITS, WEIGHTS | NETWORKS),
)
USERS = st.lists(st.integers(-1, 3), min_size=30, max_size=30)


def of_users(jobs: Workload, users: list[int]) -> Workload:
    return replace(jobs, more={"user": np.array(users[: len(jobs)], np.int64)})


def weights_of(**by_place: float) -> tuple[float, ...]:
    return tuple(by_place.get(f"f{place}", 0.0) for place in range(len(FEATURES)))


@given(st.lists(TIGHT, max_size=30), USERS, ORDERED, st.booleans(), st.lists(st.tuples(*[st.integers(0, 29)] * 2)))
@settings(max_examples=300, deadline=None)
def test_the_kernel_gives_the_schedule_of_python(
    rows: list[tuple[float, float, float, int]], users: list[int], order: LearnedOrder, fills: bool,
    pairs: list[tuple[int, int]],
) -> None:  # fmt: skip
    jobs = depending(of_users(workload(rows), users), pairs)
    policy = Easy(order=order) if fills else Strict(order=order)
    assert_same(replay(jobs, 8, uncompiled(policy, 0)), replay(jobs, 8, policy))


@given(st.lists(TIGHT, max_size=25), USERS, ORDERED)
@settings(max_examples=100, deadline=None)
def test_predicted_run_times_take_the_place_of_the_last_two(
    rows: list[tuple[float, float, float, int]], users: list[int], order: LearnedOrder
) -> None:
    jobs = of_users(workload(rows), users)
    sides = [replay(jobs, 8, policy, run_times=OnlineRunTimes(jobs)) for policy in (Easy(order=order), parts_of(order))]
    assert_same(*sides)


def parts_of(order: LearnedOrder) -> object:
    return uncompiled(Easy(order=order), 0)


@given(st.lists(TIGHT, max_size=30), USERS)
@settings(max_examples=100, deadline=None)
def test_a_model_that_equals_sjf_gives_its_schedule(
    rows: list[tuple[float, float, float, int]], users: list[int]
) -> None:
    jobs = of_users(workload(rows), users)
    model = Easy(order=LearnedOrder("m", weights_of(f0=1.0), math.inf))
    assert_same(replay(jobs, 8, model), replay(jobs, 8, Easy(order="sjf")))


@given(st.lists(TIGHT, min_size=2, max_size=30), USERS, ORDERED, st.integers(1, 29), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_later_run_times_and_the_names_of_users_change_no_earlier_start(
    rows: list[tuple[float, float, float, int]], users: list[int], order: LearnedOrder, since: int, random: object
) -> None:
    jobs, policy = of_users(workload(rows), users), Easy(order=order)
    first = replay(jobs, 8, policy)
    ends = np.sort(first.finish_time[~np.isnan(first.finish_time)])
    moment = float(ends[min(since, len(ends) - 1)]) if len(ends) else 0.0
    runs_on = ~(first.finish_time <= moment)
    longer = replace(jobs, run_time=np.where(runs_on, jobs.walltime, jobs.run_time))
    names = {-1: -1, 0: 7, 1: 5, 2: 9, 3: 0}
    renamed = replace(longer, more={"user": np.array([names[user] for user in jobs.more["user"].tolist()], np.int64)})
    second = replay(renamed, 8, policy)
    early = first.start_time < moment
    assert np.array_equal(first.start_time[early], second.start_time[early])


def test_jobs_behind_the_reservation_may_have_an_order_of_their_own() -> None:
    jobs = workload([(0.0, 10.0, 10.0, 6), (1.0, 9.0, 9.0, 8), (2.0, 3.0, 3.0, 2), (3.0, 4.0, 4.0, 2)])
    jobs = replace(jobs, submit_time=np.array([0.0, 1.0, 1.0, 1.0]))
    first_come = weights_of(f3=-1.0)
    starts = {
        fill: replay(jobs, 8, Easy(order=LearnedOrder("m", first_come, math.inf, fill))).start_time.tolist()
        for fill in ((), weights_of(f0=1.0), weights_of(f0=-1.0))
    }
    assert starts[()] == starts[weights_of(f0=1.0)] == [0.0, 10.0, 1.0, 4.0]
    assert starts[weights_of(f0=-1.0)] == [0.0, 10.0, 5.0, 1.0]


def test_an_order_behind_the_reservation_goes_with_no_further_parts() -> None:
    order = LearnedOrder("m.pfmodel.json", weights_of(f3=-1.0), math.inf, weights_of(f0=1.0))
    saving = replace(parse("easy+opportunistic"), base=Easy(order=order))
    with pytest.raises(ConfigError, match=r"m.pfmodel.json: an order behind the reservation"):
        uncompiled(saving, 0)


def test_a_job_that_waited_too_long_goes_before_all_others() -> None:
    rows = [(0.0, 8.0, 8.0, 8), (0.0, 9.0, 9.0, 8), *[(1.0, 5.0, 5.0, 8)] * 12]
    jobs = workload(rows)
    starts = {bound: replay(jobs, 8, Easy(order=LearnedOrder("m", weights_of(f0=1.0), bound))).start_time[1]
              for bound in (math.inf, 30.0)}  # fmt: skip
    assert starts == {math.inf: 68.0, 30.0: 33.0}


def test_a_file_is_named_in_a_policy_and_only_replays_read_it() -> None:
    policy = parse("easy:order=a/mine.pfmodel.json")
    assert policy.order == OrderFile("a/mine.pfmodel.json") and text_of(policy) == "easy:order=a/mine.pfmodel.json"
    with pytest.raises(ConfigError, match="replays alone"):
        parse_planned("easy:order=a/mine.pfmodel.json")
    with pytest.raises(ConfigError, match=r"fcfs, sjf.*pfmodel\.json"):
        parse("easy:order=mine.json")


def test_jobs_without_a_limit_are_refused() -> None:
    jobs = workload([(0.0, 1.0, math.inf, 1)])
    with pytest.raises(ConfigError, match="a learned order"):
        replay(jobs, 8, Easy(order=LearnedOrder("m", weights_of(f0=1.0))))

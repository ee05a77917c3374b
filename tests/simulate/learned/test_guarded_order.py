"""A learned order with a net: trusted, it is the order; not trusted, it is the baseline; a job is never passed over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.learned.guarded_order import GuardedOrder, GuardedQueue, Seen
from pilotfish.simulate.learned.model_calls import LIMIT
from pilotfish.simulate.queue_policies.easy_policy import Backfilling
from pilotfish.simulate.queue_policies.interface import QueueView
from pilotfish.simulate.queue_policies.learned_order import FEATURES, LearnedOrder
from pilotfish.simulate.queue_policies.order_score import NETWORK
from pilotfish.simulate.queue_policies.policy_specs import Easy, parse
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from tests.simulate.queue_policies.test_learned_order import ORDERED, USERS, of_users
from tests.simulate.queue_policies.test_uncompiled import TIGHT, assert_same
from tests.simulate.replay.test_replay import workload
from tests.support.learned_models import LIAR, weights_of

ANY = Seen((0.0, math.inf), (0.0, 1.0), math.inf, (8, 8))
BASELINES = st.sampled_from(["fcfs", "sjf", "smallest", "f1", "wfp3"])
ROWS = st.lists(TIGHT, min_size=1, max_size=25)
Rows = list[tuple[float, float, float, int]]


def guarded(order: LearnedOrder, seen: Seen = ANY, baseline: str = "sjf") -> Backfilling:
    return Backfilling(GuardedQueue(GuardedOrder(order, baseline, seen, "0")), fills=True)


@given(ROWS, USERS, ORDERED, BASELINES)
@settings(max_examples=100, deadline=None)
def test_where_it_is_trusted_it_is_the_order(rows: Rows, users: list[int], order: LearnedOrder, baseline: str) -> None:
    jobs = of_users(workload(rows), users)
    assert_same(replay(jobs, 8, guarded(order, baseline=baseline)), replay(jobs, 8, Easy(order=order)))


@given(
    ROWS, USERS, ORDERED, BASELINES,
    st.sampled_from([
        replace(ANY, limit=(1e8, 1e9)), replace(ANY, share=(2.0, 3.0)), replace(ANY, processors=(17, 64)),
        replace(ANY, processors=(1, 3)), replace(ANY, wait=-1.0),
    ]),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_jobs_or_machines_that_it_was_not_trained_on_are_the_baselines(
    rows: Rows, users: list[int], order: LearnedOrder, baseline: str, seen: Seen
) -> None:
    jobs, order = of_users(workload(rows), users), replace(order, max_wait=math.inf)
    expected = replay(jobs, 8, parse(f"easy:order={baseline}"))
    assert_same(replay(jobs, 8, guarded(order, seen, baseline)), expected)


@given(ROWS, USERS, st.sampled_from([math.nan, math.inf]))
@settings(max_examples=50, deadline=None)
def test_scores_that_are_no_numbers_are_the_baselines(rows: Rows, users: list[int], weight: float) -> None:
    jobs, order = of_users(workload(rows), users), LearnedOrder("m", (weight,) * len(FEATURES), math.inf)
    assert_same(replay(jobs, 8, guarded(order)), replay(jobs, 8, parse("easy:order=sjf")))


@pytest.mark.parametrize("seen", [ANY, replace(ANY, limit=(1e8, 1e9))])
def test_under_both_a_job_that_waited_too_long_goes_first(seen: Seen) -> None:
    rows = [(0.0, 8.0, 8.0, 8), (0.0, 9.0, 9.0, 8), *[(1.0, 5.0, 5.0, 8)] * 12]
    jobs = workload(rows)
    starts = replay(jobs, 8, guarded(LearnedOrder("m", weights_of(f0=1.0), 30.0), seen)).start_time
    assert starts[1] == 33.0


def test_each_decision_about_waiting_jobs_is_counted_with_its_reason() -> None:
    """Job 1 waits 10 s for the machine, job 2 until 20 s; job 3 has a limit unlike those of the training."""
    rows = [(0.0, 10.0, 10.0, 8), (1.0, 10.0, 10.0, 8), (2.0, 5.0, 500.0, 8), (40.0, 5.0, 500.0, 8)]
    model = GuardedOrder(LearnedOrder("m", weights_of(f0=1.0), math.inf), "sjf", replace(ANY, limit=(1.0, 60.0)), "0")
    result = replay(workload(rows), 8, model.replayed(0))
    use = result.model_use
    assert use is not None and use.baseline == "easy:order=sjf"
    assert use.by_model == 2 and dict(use.by_baseline) == {LIMIT: 4}  # at 0 and 1; at 2, 10, 20 and 40
    assert dict(use.jobs) == {LIMIT: 2} and summarise(result).model_share == use.share == pytest.approx(2 / 6)
    assert use.examples == {LIMIT: "a waiting job has a limit of 500 s, in training 1 to 60 s"}


def test_a_policy_without_a_baseline_has_no_such_counts() -> None:
    result = replay(workload([(0.0, 10.0, 10.0, 8)]), 8, parse("easy:order=sjf"))
    assert result.model_use is None and summarise(result).model_share is None


class Watching:
    """Keeps what a queue explains at each call."""

    def __init__(self, order: LearnedOrder, seen: Seen) -> None:
        self._order, self._seen = order, seen
        self.queues = list[tuple[list[int], GuardedQueue]]()

    def decide(self, now: QueueView) -> object:
        """Let a new queue explain this call, which sees all waiting jobs as new."""
        if now.waiting and not self.queues:
            queue = GuardedQueue(GuardedOrder(self._order, "sjf", self._seen, "0"), explains=True)
            first, *others = queue.sorted(now)
            self.queues.append(([job.number for job in (first, *queue.behind(others))], queue))
        return Backfilling(self.queues[0][1], fills=True).decide(now) if self.queues else ()


@given(ROWS, USERS, ORDERED, st.sampled_from([ANY, replace(ANY, limit=(1e8, 1e9))]))
@settings(max_examples=50, deadline=None)
def test_what_it_explains_is_what_it_did(rows: Rows, users: list[int], order: LearnedOrder, seen: Seen) -> None:
    watching = Watching(order, seen)
    replay(of_users(workload([(0.0, *row[1:]) for row in rows]), users), 8, watching)
    for numbers, queue in watching.queues:
        ranks = [queue.scored[number].rank for number in numbers]
        assert ranks == list(range(1, len(numbers) + 1))
        assert sorted(one.baseline_rank for one in queue.scored.values()) == ranks
        for one in queue.scored.values():
            parts = [abs(part) for _, part in one.features]
            assert len(parts) == 3 and parts == sorted(parts, reverse=True)
            assert bool(one.doubt) is (seen is not ANY)


@given(ROWS, USERS, ORDERED, BASELINES, st.integers(1, 24), st.permutations(range(5)))
@settings(max_examples=100, deadline=None)
def test_later_run_times_submissions_and_names_change_no_earlier_start(
    rows: Rows, users: list[int], order: LearnedOrder, baseline: str, since: int, names: list[int]
) -> None:
    """The law of a learned policy: it sees what a scheduler knows, and no name."""
    jobs, training = of_users(workload(rows), users), replace(ANY, limit=(0.0, 6.0))
    first = replay(jobs, 8, guarded(order, training, baseline))
    ends = np.sort(first.finish_time[~np.isnan(first.finish_time)])
    moment = float(ends[min(since, len(ends) - 1)]) if len(ends) else 0.0
    runs_on, is_later = ~(first.finish_time <= moment), jobs.submit_time > moment
    longer = replace(
        jobs,
        run_time=np.where(runs_on, jobs.walltime, jobs.run_time),
        size=np.where(is_later, 8, jobs.size),
        id=jobs.id[::-1] + 1000,
        more={"user": np.array([-1 if user < 0 else names[user] for user in jobs.more["user"].tolist()], np.int64)},
    )
    second = replay(longer, 8, guarded(order, training, baseline))
    early = first.start_time < moment
    assert np.array_equal(first.start_time[early], second.start_time[early])


@pytest.mark.parametrize("weights", [LIAR, (0.1,) * NETWORK], ids=["linear", "tanh"])
def test_the_time_of_256_waiting_jobs(
    weights: tuple[float, ...], record_property: Callable[[str, object], None]
) -> None:
    """The time of one decision with its ordering, as the least of several."""
    jobs = [(0.0, 10.0 + number % 7, 20.0 + number % 50, 1 + number % 8) for number in range(256)]
    spent = list[float]()

    class Timed(GuardedQueue):
        """Measures the second call, which sees no job for the first time."""

        def sorted(self, now: QueueView) -> list[object]:  # type: ignore[override]
            """Return the waiting jobs in order."""
            super().sorted(now)
            began = time.process_time()
            order = super().sorted(now)
            if len(order) >= 240:
                spent.append(time.process_time() - began)
            return list(order)

    order = GuardedOrder(LearnedOrder("m", weights), "sjf", ANY, "0")
    replay(workload(jobs), 8, Backfilling(Timed(order), fills=True))
    assert len(spent) >= 3
    record_property("measured", f"256 jobs, {len(weights)} weights: {1e3 * min(spent):.2f} ms of CPU time a decision")


def test_the_names_of_features_are_as_many_as_the_features() -> None:
    from pilotfish.simulate.queue_policies.learned_order import FEATURE_NAMES

    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == len(FEATURES)

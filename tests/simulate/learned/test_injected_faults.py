"""A broken, foreign, drifting or slow model changes no start: 1,000 injected faults against the baseline."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pilotfish.simulate.arrays import Array
from pilotfish.simulate.learned.guarded_order import GuardedOrder, GuardedQueue, LateFirst
from pilotfish.simulate.learned.guarded_pairs import GuardedPairQueue, GuardedPairs
from pilotfish.simulate.learned.kept_model import REST_S, KeptModel
from pilotfish.simulate.learned.model_calls import FAILED, LIMIT, SLOW, SLOWEST_S, ModelCalls
from pilotfish.simulate.model.snapshot import Snapshot
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.easy_policy import Backfilling
from pilotfish.simulate.queue_policies.model_use import Doubt
from pilotfish.simulate.queue_policies.order import Order
from pilotfish.simulate.replay.replay import replay
from tests.simulate.learned.test_pair_queue import cluster, jobs_of
from tests.support.learned_models import LIAR, model_of
from tests.support.pair_models import SEEN, pair_model, random_layers

FAULTS, CORES, LATE_S = 1000, 8, 60.0
NODES = cluster()
Clock = Callable[[], float]


def slow() -> Clock:
    """Return a clock by which each call takes a little too long."""
    ticks = iter(range(10**9))
    return lambda: next(ticks) * 1.01 * SLOWEST_S


def raising() -> Any:
    raise OSError("the model is away")


def broken_order(model: GuardedOrder, draw: np.random.Generator) -> tuple[GuardedOrder, Clock | None]:
    """Return a model with a drawn fault."""
    kind, order, place = draw.integers(6), model.order, int(draw.integers(10))
    if kind == 0:
        return model, slow()
    if kind == 1:  # an exception in the middle of a score
        return replace(model, order=replace(order, weights=order.weights[:place])), None
    if kind in (2, 3):
        wrong: Any = float(draw.choice([math.nan, math.inf, -math.inf, 1e308])) if kind == 2 else "2"
        weights = (*order.weights[:place], wrong, *order.weights[place + 1 :])
        return replace(
            model, order=replace(order, weights=weights if kind == 3 or wrong < 1e307 else (wrong,) * 10)
        ), None
    low, high = draw.choice([(1e-3, 1e-2), (1e5, 1e6)])
    if kind == 4:  # jobs have drifted
        return replace(model, seen=replace(model.seen, limit=(low, high))), None
    return replace(model, seen=replace(model.seen, processors=(int(low) + 1, int(low) + 1 + int(high > 1)))), None


def broken_pairs(model: GuardedPairs, draw: np.random.Generator) -> tuple[GuardedPairs, Clock | None]:
    """Return a model with a drawn fault."""
    kind, (low, high) = draw.integers(6), draw.choice([(1e-3, 1e-2), (1e5, 1e6)])
    if kind == 0:
        return model, slow()
    if kind == 1:
        return replace(model, make=raising), None
    if kind == 2:
        wrong = float(draw.choice([math.nan, math.inf, -math.inf]))
        (rows, biases), *others = random_layers(int(draw.integers(100)))
        layers = (((tuple(wrong for _ in rows[0]), *rows[1:]), biases), *others)
        return replace(model, make=lambda: pair_model(layers=layers).policy("m")), None
    if kind == 3:  # layers that do not go together
        layers = random_layers(1)[: int(draw.integers(1, 4))] + random_layers(2, (7, 1))
        return replace(model, make=lambda: pair_model(layers=layers).policy("m")), None
    if kind == 4:  # jobs have drifted
        name = str(draw.choice(["limit", "size"]))
        return replace(model, seen=replace(model.seen, **{name: (low, high)})), None
    nodes = ((3, 1.0), (8, float(draw.uniform(2.1, 9.0))))  # another cluster
    return replace(model, make=lambda: pair_model(nodes=nodes).policy("m")), None


def starts(jobs: Workload, policy: Any, *, pairs: bool) -> Array:
    machine: Any = NODES if pairs else CORES
    return replay(jobs, machine, policy, contention=pairs).start_time


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_fault_changes_no_start(record_property: Callable[[str, object], None]) -> None:
    draw, counts = np.random.default_rng(40), Counter[str]()
    for fault in range(FAULTS):
        columns = draw.integers((0, 1, 1), (5, 30, 9), (12, 3)).tolist()
        jobs, seed, pairs = jobs_of([tuple(row) for row in columns]), int(draw.integers(100)), fault % 2 == 1
        spec = str(draw.choice(["easy:order=sjf", "easy:order=fcfs", "easy:order=smallest"]))
        order = LateFirst(Order(spec.partition("=")[2]), LATE_S)
        expected = starts(jobs, Backfilling(order, fills=True), pairs=pairs)
        intact: Any = (
            pair_model(seed, seen=SEEN, baseline=spec, max_wait=LATE_S)
            if pairs
            else model_of(LIAR, processors=CORES, max_wait=LATE_S, baseline=spec)
        )
        model = intact.guarded("m", "")
        counts["changed by the model without the fault"] += not np.array_equal(
            starts(jobs, model.replayed(0), pairs=pairs), expected
        )
        if pairs:
            hurt, clock = broken_pairs(model, draw)
            queue: Any = GuardedPairQueue(hurt, 0, clock, explains=True)
            policy = queue
        else:
            hurt_order, clock = broken_order(model, draw)
            queue = GuardedQueue(hurt_order, 0, None, clock, explains=True)
            policy = Backfilling(queue, fills=True)
        counts["changed"] += not np.array_equal(starts(jobs, policy, pairs=pairs), expected)
        assert all(one.doubt for one in queue.scored.values()) and queue.scored
    record_property("measured", f"{FAULTS} injected faults: {dict(counts)}")
    assert counts["changed"] == 0
    assert counts["changed by the model without the fault"] > FAULTS // 4


def test_a_model_is_asked_once_after_it_failed() -> None:
    calls, questions = ModelCalls(), list[int]()

    def fails() -> None:
        questions.append(1)
        raise ValueError("x" * 1000)

    assert calls.ask(fails) is None and calls.ask(fails) is None and questions == [1]
    assert calls.doubt.text.startswith("the model failed: ValueError: x") and len(calls.doubt.text) < 300


@pytest.mark.parametrize(("starts_made", "seconds", "trusted"), [(0, 0.05, True), (0, 0.06, False), (4, 0.06, True)])
def test_each_decision_may_take_its_time(starts_made: int, seconds: float, trusted: bool) -> None:
    times = iter((0.0, seconds))
    calls = ModelCalls(lambda: next(times))
    answer = calls.ask(lambda: [0] * starts_made, len)
    assert (answer is not None) == trusted == (not calls.doubt)


@pytest.mark.parametrize("reason", [FAILED, SLOW])
def test_a_model_that_goes_on_to_fail_rests_for_an_hour(reason: str) -> None:
    state, doubt = KeptModel(model_of(LIAR).guarded("m", "a")), Doubt(reason, "it failed")
    state.observe(Snapshot(100.0, 1, NODES, (), ()))
    for one in (doubt, doubt, Doubt(), Doubt(), Doubt(), doubt):  # never three of five
        state.note_plan(one)
        assert state.overruled() is None and state.doubt() == one
    state.note_plan(doubt)
    assert state.overruled() is None
    state.note_plan(doubt)
    overruled = state.overruled()
    assert overruled is not None and overruled[0] == "easy:order=sjf" and overruled[1].startswith("it failed, in 3 of")
    again = KeptModel(model_of(LIAR).guarded("m", "a"))  # after a restart
    again.restore(json.loads(json.dumps(state.state())))
    for time, rests in ((100.0 + REST_S - 1.0, True), (100.0 + REST_S, False)):
        for model in (state, again):
            model.observe(Snapshot(time, 1, NODES, (), ()))
            assert (model.overruled() is not None) == rests
    state.note_plan(doubt)
    assert state.overruled() is None  # begins to count again


def test_jobs_unlike_those_of_the_training_are_no_failure() -> None:
    state = KeptModel(model_of(LIAR).guarded("m", "a"))
    for _ in range(10):
        state.note_plan(Doubt(LIMIT, "a job"))
    assert state.overruled() is None

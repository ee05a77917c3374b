"""Scores of a whole queue: those of each job alone, in the order of submission where they are equal, and quickly."""

from __future__ import annotations

from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pilotfish.simulate.kernels.queue.tables import FEATURE_COUNT
from pilotfish.simulate.queue_policies.learned_order import LearnedOrder, LearnedQueue
from pilotfish.simulate.queue_policies.order_score import NETWORK, score_of
from pilotfish.simulate.queue_policies.queued_job import QueuedJob

PROCESSORS = 1024


def queue_of(count: int, kinds: int) -> Any:
    """Return a view of waiting jobs of so many kinds, in the order of submission."""
    draw = np.random.default_rng(1)
    shapes = draw.integers((1, 60), (PROCESSORS, 86_400), (kinds, 2)).tolist()
    chosen = [shapes[kind] for kind in draw.integers(kinds, size=count).tolist()]
    jobs = [
        QueuedJob(number, str(number), size, float(limit), float(number if kinds == count else 0))
        for number, (size, limit) in enumerate(chosen)
    ]
    machine = SimpleNamespace(processors=PROCESSORS)
    return SimpleNamespace(time=20_000.0, waiting=jobs, submitted=jobs, ended=(), machine=machine, free=100)


def order_of(size: int, max_wait: float = 1e9, fill: int = 0) -> LearnedOrder:
    weights = np.random.default_rng(2).normal(size=size + fill).tolist()
    return LearnedOrder("m", tuple(weights[:size]), max_wait, tuple(weights[size:]))


@pytest.mark.parametrize("max_wait", [15_000.0, 1e9])
@pytest.mark.parametrize(("size", "fill"), [(FEATURE_COUNT, 0), (NETWORK, 0), (FEATURE_COUNT, FEATURE_COUNT)])
def test_scores_are_those_of_each_job_alone(size: int, fill: int, max_wait: float) -> None:
    order, view = order_of(size, max_wait, fill), queue_of(300, 300)
    queue = LearnedQueue(order)
    queue.learn(view)
    scores, behind = queue.scores(view).tolist(), queue.fill_scores(view.waiting)
    for job, score in zip(view.waiting, scores, strict=True):
        late, values = view.time - job.submit_time > max_wait, queue.values(job, view)
        assert score == (-np.inf if late else pytest.approx(score_of(order.weights, values), rel=1e-11))
        if fill:
            assert behind[job] == (-np.inf if late else pytest.approx(score_of(order.fill, values), rel=1e-11))
    assert len(behind) == (len(scores) if fill else 0)


def test_equal_scores_go_by_submission() -> None:
    view = queue_of(500, 5)
    queue = LearnedQueue(LearnedOrder("m", (1.0,) * FEATURE_COUNT, 1e9, (-1.0,) * FEATURE_COUNT))
    order = queue.sorted(view)
    scores = dict(zip(view.waiting, queue.scores(view).tolist(), strict=True))
    assert order == sorted(view.waiting, key=lambda job: (scores[job], job.number)) and len(set(scores.values())) <= 5
    behind = queue.fill_scores(view.waiting)
    assert queue.behind(order) == sorted(view.waiting, key=lambda job: (behind[job], job.number))


def test_an_empty_queue_has_no_scores() -> None:
    assert LearnedQueue(order_of(NETWORK)).sorted(queue_of(0, 1)) == []


@pytest.mark.parametrize("size", [FEATURE_COUNT, NETWORK])
def test_the_time_of_ten_thousand_jobs(size: int, record_property: Any) -> None:
    view, seconds = queue_of(10_000, 10_000), []
    queue = LearnedQueue(order_of(size))
    queue.learn(view)
    for _ in range(20):
        begin = process_time()
        order = queue.arranged(view, queue.scores(view))
        seconds.append(process_time() - begin)
    record_property("measured", f"10,000 waiting jobs, {size} weights: {1e3 * min(seconds):.2f} ms of CPU time")
    assert len(order) == 10_000

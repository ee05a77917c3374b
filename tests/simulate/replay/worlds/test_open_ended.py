"""Policies that kill jobs, submit jobs of their own, and are called when no job is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pilotfish.api import Kill, PolicyError, Reject, Start, Submit, Wake, Workload, replay
from pilotfish.simulate.model.workload import Dependencies
from pilotfish.simulate.world.known_run_times import ACTUAL

JOBS = Workload(
    "t", np.array([1, 2, 3]), np.array([5.0, 6.0, 8.0]), np.array([10.0, 10.0, 5.0]), np.full(3, 20.0),
    np.array([2, 9, 1]), more={"profile": np.array(["a", "b", "c"], object), "volume": np.zeros(3)},
)  # fmt: skip


class Asked:
    """First come, first served, with further decisions by a function of the snapshot."""

    def __init__(self, more: Callable[[Any], Any], open_ended: bool = True) -> None:
        self.more, self.open_ended, self.calls = more, open_ended, list[float]()

    def decide(self, now: Any) -> Iterator[Any]:
        self.calls.append(now.time)
        free = now.free
        for job in now.waiting:
            if job.size > 4:
                yield Reject(job)
            elif job.size <= free:
                free -= job.size
                yield Start(job)
        yield from self.more(now) or ()


def test_is_called_at_zero_and_when_no_job_is_left_and_sees_every_job() -> None:
    policy = Asked(lambda now: [Wake(40.0)] if now.time == 15.0 else [])
    done = replay(JOBS, 4, policy)
    assert policy.calls == [0.0, 5.0, 6.0, 8.0, 13.0, 15.0, 40.0]
    assert done.rejected.tolist() == [False, True, False]


def test_kills_a_running_job_and_sees_it_at_once() -> None:
    seen = list[Any]()

    def more(now: Any) -> Any:
        seen.extend((now.time, it.job.id, now.free) for it in now.ended)
        return [Kill(now.running[0]), Wake(now.time)] if now.time == 6.0 and now.running else []

    done = replay(JOBS, 4, Asked(more, open_ended=False))
    assert seen == [(6.0, 1, 4), (13.0, 3, 4)]
    assert done.finish_time[0] == 6.0 and done.killed is not None
    assert done.killed.tolist() == [True, False, False] and not done.overran.any()


def test_no_job_follows_one_that_was_killed() -> None:
    follows = Workload(
        "t", JOBS.id, JOBS.submit_time, JOBS.run_time, JOBS.walltime, np.ones(3, int),
        dependencies=Dependencies(np.array([0]), np.array([2])),
    )  # fmt: skip
    done = replay(follows, 4, Asked(lambda now: [Kill(now.running[0])] if now.time == 6.0 else [], open_ended=False))
    assert done.stranded.tolist() == [False, False, True]


def test_its_own_jobs_are_in_the_results_in_the_order_of_submission() -> None:
    def more(now: Any) -> Any:
        if now.time == 7.0 and not now.submitted:
            return [Submit("x!1", 1, 50.0, 3.0, {"profile": "mine"}), Wake(7.0)]
        return [Wake(7.0)] if now.time == 0.0 else []

    done = replay(JOBS, 4, Asked(more))
    assert done.workload.more["name"].tolist() == ["1", "2", "x!1", "3"]
    assert done.workload.more["profile"].tolist() == ["a", "b", "mine", "c"]
    assert done.start_time[[0, 2, 3]].tolist() == [5.0, 7.0, 8.0]
    assert done.finish_time[[0, 2, 3]].tolist() == [15.0, 10.0, 13.0]
    assert [done.pieces["first"][done.piece0[row]] for row in (0, 2, 3)] == [0, 2, 3]


@pytest.mark.parametrize(
    "decision, how, complaint",
    [
        (lambda now: Kill(now.ended[0]) if now.ended else Wake(99.0), {}, "job 3, at 13.0 s: it is killed"),
        (lambda now: Submit("x", 1, 1.0, 1.0), {"open": False}, "it submits job x"),
        (lambda now: Submit("x", 1, 1.0, 1.0), {"run_times": "predicted"}, "on numbered resources"),
    ],
)
def test_what_cannot_be_done_is_an_error(decision: Any, how: dict[str, Any], complaint: str) -> None:
    predicted = {"run_times": _Walltimes()} if "run_times" in how else {"run_times": ACTUAL}
    with pytest.raises(PolicyError, match=complaint):
        replay(JOBS, 4, Asked(lambda now: [decision(now)], how.get("open", True)), **predicted)


class _Walltimes:
    """Predicts the walltime."""

    def expected(self, row: int) -> None:
        """Expect the walltime."""

    def ended(self, row: int, ran: float | None = None) -> None:
        """Learn nothing."""

"""What can start now: every way to find it agrees with counting, whatever a policy asks in which order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.backfill import CountedBackfill
from pilotfish.simulate.queue_policies.interface import QueueView, Start
from pilotfish.simulate.queue_policies.node_backfill import NodeBackfill
from pilotfish.simulate.queue_policies.queued_job import QueuedJob
from pilotfish.simulate.replay.replay import replay
from tests.simulate.queue_policies.test_uncompiled import TIGHT
from tests.simulate.replay.test_replay import ENDLESS, JOB, workload
from tests.support import python_policies


class Counted:
    """The same, by adding up what is free at a time."""

    def __init__(self, now: QueueView) -> None:
        self.now, self.taken = now, list[QueuedJob]()
        self.head: QueuedJob | None = None
        self.reserved, self.spare = math.inf, 0

    def free_at(self, time: float) -> int:
        """Return how many resources are free once all that end by this time have ended."""
        back = sum(it.job.size for it in self.now.running if it.until <= time)
        back += sum(job.size for job in self.taken if self.now.time + job.walltime <= time)
        return self.now.free - sum(job.size for job in self.taken) + back

    def start(self, job: QueuedJob) -> bool:
        if job is self.head and job.size <= self.free_at(-1.0):
            self.head = None
        late = self.head is not None and self.now.time + job.walltime > self.reserved
        if job.size > self.free_at(-1.0) or (late and job.size > self.spare):
            return False
        self.spare -= job.size if late else 0
        self.taken.append(job)
        return True

    def reserve(self, head: QueuedJob) -> None:
        self.head, self.reserved, self.spare = head, self.now.time, self.free_at(-1.0) - head.size
        if self.spare < 0:
            ends = [it.until for it in self.now.running] + [self.now.time + job.walltime for job in self.taken]
            self.reserved = min(end for end in ends if self.free_at(end) >= head.size)
            self.spare = self.free_at(self.reserved) - head.size

    def start_all(self) -> list[QueuedJob]:
        jobs = [job for job in self.now.waiting if job is not self.head and job not in self.taken]
        return [job for job in jobs if self.start(job)]


@given(
    st.one_of(st.lists(TIGHT, min_size=8, max_size=30), st.lists(JOB, max_size=30), st.lists(ENDLESS, max_size=30)),
    st.one_of(st.integers(8, 12), st.integers(1, 130)),
    st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_all_ways_agree(rows: list[Any], machine: int, seed: int) -> None:
    draw, reserved = np.random.default_rng(seed), 0

    class Asks:
        def decide(self, now: QueueView) -> list[Start]:
            nonlocal reserved
            found, counted = [now.backfill(), CountedBackfill(now), NodeBackfill(now)], Counted(now)
            for job in [[*now.waiting][i] for i in draw.permutation(len(now.waiting))]:
                if job in counted.taken:
                    continue
                if draw.random() < 0.3:
                    started = [one.start(job) for one in found]
                    assert {start is not None for start in started} == {counted.start(job)}
                    assert all(start.job is job for start in started if start)
                elif draw.random() < 0.3:
                    for one in found:
                        one.reserve(job)
                    counted.reserve(job)
                    reserved += 1
                elif draw.random() < 0.2:
                    wanted = counted.start_all()
                    assert [[start.job for start in one.start_all()] for one in found] == [wanted] * 3
                if draw.random() < 0.3:
                    wanted_time = math.inf if counted.head is None else counted.reserved
                    assert [one.reserved for one in found] == [wanted_time] * 3
            counted.start_all()
            found[draw.integers(3)].start_all()
            if not now.running and not counted.taken:
                return [Start(job) for job in [*now.waiting][:1]]
            return [Start(job) for job in counted.taken]

    jobs = workload([row for row in rows if row[3] <= machine])
    done = replay(jobs, machine, Asks())
    assert not np.isnan(done.start_time).any()


@given(st.one_of(st.lists(TIGHT, min_size=8, max_size=30), st.lists(JOB, max_size=40)), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_a_policy_that_only_starts_jobs_is_called_less_often_with_the_same_schedule(
    rows: list[Any], machine: int
) -> None:
    calls = list[tuple[int, float]]()

    class Easy(python_policies.Easy):
        def decide(self, now: QueueView) -> Any:
            calls.append((min([job.size for job in now.waiting], default=machine + 1), now.free))
            return super().decide(now)

    jobs = workload(rows)
    rarely = replay(jobs, machine, Easy())
    assert all(least <= free for least, free in calls)
    always = replay(jobs, machine, python_policies.FromScratch())
    assert _same(rarely, always) and rarely.instants == always.instants


def _same(one: Any, other: Any) -> bool:
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("start_time", "finish_time", "rejected", "pieces", "piece0", "piece_count")
    )


def test_the_reservation_is_at_the_first_time_at_which_enough_is_free() -> None:
    seen = list[Any]()

    class Asks:
        def decide(self, now: QueueView) -> Any:
            fill = now.backfill()
            started = [start for job in now.waiting if job.size < 4 and (start := fill.start(job))]
            for job in now.waiting:
                if job.size == 4:
                    fill.reserve(job)
                    seen.append((now.time, fill.reserved))
                    started += [fill.start(job)] if now.free == 4 else []
            return [start for start in started if start]

    one = np.ones(3)
    trace = Workload("w", np.arange(3), np.zeros(3), 4 * one, np.array([5.0, 7.0, 9.0]), np.array([1, 2, 4]))
    replay(trace, 4, Asks())
    assert seen[0] == (0.0, 7.0)

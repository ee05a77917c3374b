"""Python policies: schedules equal compiled ones; snapshots, invalid decisions, decision time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies import policy_specs as policies
from pilotfish.simulate.queue_policies.interface import QueueView, Reject, Start, Wake
from pilotfish.simulate.queue_policies.queued_job import QueuedJob
from pilotfish.simulate.replay.energy import track
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.world import slices
from tests.simulate.replay.test_replay import ENDLESS, JOB, places, workload
from tests.support import python_policies
from tests.support.python_policies import Says

ROWS = st.one_of(st.lists(JOB, max_size=40), st.lists(ENDLESS, max_size=40))


def same(one: Replayed, other: Replayed) -> bool:
    """Return whether two replays are equal to the last bit, including resources."""
    return one.instants == other.instants and all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("start_time", "finish_time", "rejected", "pieces", "piece0", "piece_count", "taken_time")
    )


@given(ROWS, st.integers(1, 130), st.booleans(), st.one_of(st.just(0.0), st.sampled_from([1e-12, 0.25, 1.0, 7.5])))
@settings(max_examples=200, deadline=None)  # the first compiles
def test_a_python_policy_gives_the_schedule_of_the_compiled_one(
    rows: list[Any], machine: int, fills: bool, takes: float
) -> None:
    jobs, name = workload(rows), "Easy" if fills else "Strict"
    own = replay(jobs, machine, getattr(python_policies, name)(), decision_time=takes)
    assert same(own, replay(jobs, machine, getattr(policies, name)(), decision_time=takes))


def free_again(now: QueueView, machine: int) -> list[int]:
    """Return the free resources, derived from the running jobs."""
    busy = {one for it in now.running for first, last in it.resources for one in range(first, last + 1)}
    return [one for one in range(machine) if one not in busy]


@given(ROWS, st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([0.0, 0.5, 3.0]))
@settings(deadline=None)
def test_random_decisions_keep_the_laws_and_snapshots_are_consistent(
    rows: list[Any], machine: int, seed: int, takes: float
) -> None:
    jobs, draw, gone = workload(rows), np.random.default_rng(seed), set[int]()

    def decide(now: QueueView) -> Any:
        free = free_again(now, machine)
        assert [one for first, last in now.free_resources for one in range(first, last + 1)] == free
        assert now.free == len(free) and [it.until for it in now.running] == sorted(it.until for it in now.running)
        known = np.flatnonzero((jobs.submit_time <= now.time) & (jobs.size <= machine)).tolist()
        running = {it.job.number for it in now.running}
        gone.update(it.job.number for it in now.ended)
        assert [job.number for job in now.waiting] == [one for one in known if one not in running | gone]
        columns = now.columns()
        assert columns["number"].tolist() == [job.number for job in now.waiting]
        assert columns["walltime"].tolist() == [job.walltime for job in now.waiting]
        for job in now.waiting:
            what = draw.integers(0, 5)
            if what == 0 and job.size <= len(free):
                some = sorted(draw.permutation(free)[: job.size].tolist())
                free = [one for one in free if one not in some]
                yield Start(job, [(one, one) for one in some])
            elif what == 1:
                gone.add(job.number)
                yield Reject(job)
        yield Wake(now.time + float(draw.integers(1, 4)))

    done = replay(jobs, machine, Says(decide), decision_time=takes)
    ran = np.flatnonzero(~done.rejected).tolist()
    assert all(done.start_time[i] >= jobs.submit_time[i] + takes for i in ran)
    assert all(len(set(places(done, i))) == jobs.size[i] for i in ran)
    for i in ran:
        together = [k for k in ran if k != i and done.start_time[k] < done.finish_time[i]
                    and done.start_time[i] < done.finish_time[k]]  # fmt: skip
        assert all(not set(places(done, i)) & set(places(done, k)) for k in together)


@given(st.lists(JOB, min_size=2, max_size=40), st.integers(1, 80), st.data())
@settings(deadline=None)
def test_snapshots_do_not_reveal_run_times(rows: list[Any], machine: int, data: st.DataObject) -> None:
    """Snapshots until a time do not depend on the run times of jobs that have not ended by then."""
    jobs, easy = workload(rows), python_policies.Easy()
    one, other = Says(easy.decide), Says(easy.decide)
    done = replay(jobs, machine, one)
    then = data.draw(st.sampled_from(sorted({*jobs.submit_time.tolist()})))
    going = ~(done.finish_time <= then)
    replay(replace(jobs, run_time=np.where(going, jobs.run_time + 1.0, jobs.run_time)), machine, other)
    until = [[seen for seen in policy.seen if seen[0] <= then] for policy in (one, other)]
    assert until[0] == until[1] and len(until[0]) > 0


FOUR = [(0.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 4), (1.0, 5.0, 9.0, 9)]


def first(now: QueueView) -> QueuedJob:
    return next(iter(now.waiting))


def once(decide: Callable[[QueueView], Any]) -> Callable[[QueueView], Any]:
    """Return a policy that decides this once all jobs are known, and follows strict order before."""
    return lambda now: decide(now) if now.time == 3.0 else python_policies.Strict().decide(now)


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (lambda now: [Start(first(now))], "job 3, at 3.0 s: it asks for 4 resources, and 0 are free"),
        (
            lambda now: [Start(now.running[0].job)],
            "job 1, at 3.0 s: it is already running (allowed: a job of",
        ),
        (lambda now: [Start(QueuedJob(3, 4, 1, 1.0, 0.0))], "job 4, at 3.0 s: it was rejected"),
        (lambda now: [Start(QueuedJob(4, 5, 1, 1.0, 0.0))], "job 5, at 3.0 s: no such job was shown"),
        (lambda now: [Start(QueuedJob(2, 3, 1, 1.0, 0.0))], "job 3, at 3.0 s: no such job was shown"),
        (lambda now: [Start(7)], "at 3.0 s: a decision is about 7"),
        (lambda now: [Reject(first(now)), Reject(first(now))], "job 3, at 3.0 s: it was rejected"),
        (lambda now: [Wake(3.0)], "invalid Wake(3.0) (allowed: a time later than now, 3.0 s, or now after"),
        (lambda now: [Wake(math.inf)], "Wake(inf)"),
        (lambda now: [Wake(math.nan)], "Wake(nan)"),
        (lambda now: [Wake("soon")], "Wake('soon')"),
        (lambda now: first(now), "TypeError: 'QueuedJob' object is not iterable"),
        (lambda now: [first(now)], "invalid decision QueuedJob("),
        (lambda now: 1 / 0, "policy tests.support.python_policies:Says: at 3.0 s: ZeroDivisionError: division by zero"),
    ],
)
def test_invalid_decisions_are_rejected(decide: Callable[[QueueView], Any], why: str) -> None:
    with pytest.raises(PolicyError) as caught:
        replay(workload(FOUR), 4, Says(once(decide)))
    assert why in str(caught.value) and str(caught.value).startswith("policy tests.support.python_policies:Says: ")


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ([(0, 1)], "resource 0 is not free"),
        ([(2, 3), (3, 3)], "resource 3 is given twice"),
        ([(3, 4)], "invalid resources 3 to 4 (allowed: pairs of first and last, 2 resources in all, from 0 to 3)"),
        ([(-1, 0)], "invalid resources -1 to 0"),
        ([(3, 2)], "invalid resources 3 to 2"),
        ([(2, 2)], "it is given 1 resource (allowed: 2, the size it asks for)"),
        ([2, 3], "its resources are [2, 3]"),
        ("2-3", "its resources are '2-3'"),
        (7, "its resources are 7"),
        ([(2.0, 3.0)], "its resources are [(2.0, 3.0)]"),
    ],
)
def test_invalid_resources_are_rejected(resources: Any, why: str) -> None:
    def decide(now: QueueView) -> Any:
        return [Start(job, resources if job.number else None) for job in now.waiting]

    with pytest.raises(PolicyError) as caught:
        replay(workload(FOUR[:2]), 4, Says(decide))
    assert "job 2, at 1.0 s: " in str(caught.value) and why in str(caught.value)


def test_a_job_that_has_ended_or_is_not_submitted_yet() -> None:
    kept, rows = list[QueuedJob](), [(0.0, 1.0, 1.0, 1), (5.0, 1.0, 1.0, 1), (5.0, 1.0, 1.0, 1)]

    def decide(now: QueueView) -> Any:
        kept.extend(now.submitted)
        return [Start(job) for job in (now.waiting if now.time < 5 else kept)]

    with pytest.raises(PolicyError, match=r"job 1, at 5\.0 s: it has ended"):
        replay(workload(rows), 4, Says(decide))
    with pytest.raises(PolicyError, match=r"job 3, at 0\.0 s: it is not submitted yet"):
        replay(workload(rows), 4, Says(lambda now: [Start(QueuedJob(2, 3, 1, 1.0, 10.0))]))


def test_jobs_that_wait_forever_are_reported() -> None:
    with pytest.raises(PolicyError, match=r"job 1, at 3\.0 s: it waits forever, like 2 others: nothing runs"):
        replay(workload(FOUR), 4, Says(lambda now: None))


def test_wake() -> None:
    """Wakes without other events are called; wakes after the end of all jobs are not."""

    def decide(now: QueueView) -> Any:
        ready = [Start(job) for job in now.waiting if now.time - job.submit_time >= 2.5]
        return [*ready, *(Wake(job.submit_time + 2.5) for job in now.submitted), Wake(np.int64(99))]

    policy = Says(decide)
    done = replay(workload([(1.0, 1.0, 1.0, 1), (1.0, 1.0, 1.0, 1)]), 1, policy)
    assert done.start_time.tolist() == [3.5, 4.5] and [seen[0] for seen in policy.seen] == [1.0, 2.0, 3.5, 4.5, 5.5]


def one_by_one(now: QueueView) -> Any:
    """Start one job a call, as strict order does, and ask to be called again at once."""
    starts = [*python_policies.Strict().decide(now)]
    return [*starts[:1], *[Wake(now.time)] * len(starts[:1])]


@given(ROWS, st.integers(1, 60), st.sampled_from((0.0, 0.5)))
@settings(max_examples=60, deadline=None)
def test_another_call_at_once_sees_what_was_decided(rows: list[Any], machine: int, decision_time: float) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine, Says(one_by_one), decision_time=decision_time)
    if decision_time == 0.0:
        whole = replay(jobs, machine, python_policies.Strict())
        assert np.array_equal(done.start_time, whole.start_time, equal_nan=True)
    assert not np.isnan(done.start_time[~done.rejected]).any()


def test_a_call_at_once_follows_a_start_only() -> None:
    policy = Says(one_by_one)
    replay(workload([(0.0, 1.0, 1.0, 1), (0.0, 1.0, 1.0, 1)]), 2, policy)
    assert [(seen[0], seen[1]) for seen in policy.seen] == [(0.0, 2), (0.0, 1), (0.0, 0), (1.0, 2)]


def test_a_job_of_zero_run_time_ends_at_its_start_and_another_call_follows() -> None:
    policy = Says(python_policies.Strict().decide)
    done = replay(workload([(0.0, 0.0, 5.0, 4), (0.0, 1.0, 1.0, 4)]), 4, policy)
    assert done.finish_time.tolist() == [0.0, 1.0] and [seen[0] for seen in policy.seen] == [0.0, 0.0, 1.0]


def test_decisions_are_applied_when_the_call_ends() -> None:
    """Events in between are shown in a call right afterwards; without events there is no further call."""
    policy = Says(python_policies.Strict().decide)
    done = replay(workload([(0.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 2), (0.0, 5.0, 9.0, 2)]), 4, policy, decision_time=2.0)
    assert done.start_time.tolist() == [2.0, 4.0, 9.0] and done.finish_time.tolist() == [7.0, 9.0, 14.0]
    assert [(seen[0], seen[-2], seen[-1]) for seen in policy.seen] == [
        (0.0, (0,), ()), (2.0, (1, 2), ()), (7.0, (), (0,)), (9.0, (), (1,)), (14.0, (), (2,)),
    ]  # fmt: skip


def test_resources_freed_during_a_decision_can_be_allocated() -> None:
    rows = [(0.0, 3.0, 9.0, 1), (2.0, 9.0, 9.0, 1)]
    done = replay(workload(rows), 2, Says(python_policies.Strict().decide), decision_time=1.5)
    assert done.start_time.tolist() == [1.5, 3.5] and [places(done, i) for i in (0, 1)] == [[0], [1]]
    done = replay(workload(rows), 2, Says(python_policies.Strict().decide), decision_time=2.5)
    assert done.start_time.tolist() == [2.5, 5.0] and places(done, 1) == [1]
    later = Says(lambda now: [Start(job) for job in now.waiting if job.number == 0 or now.ended])
    done = replay(workload([(0.0, 0.5, 9.0, 1), (0.0, 9.0, 9.0, 1)]), 2, later, decision_time=0.25)
    assert done.start_time.tolist() == [0.25, 1.0]


def test_a_wake_due_during_a_decision_is_called_afterwards() -> None:
    policy = Says(lambda now: [Wake(now.time + 1.0)] if now.time < 4 else [Start(job) for job in now.waiting])
    done = replay(workload([(0.0, 1.0, 1.0, 1)]), 1, policy, decision_time=3.0)
    assert [seen[0] for seen in policy.seen] == [0.0, 3.0, 6.0, 10.0] and done.start_time.tolist() == [9.0]
    always = Says(lambda now: [*map(Start, now.waiting), Wake(now.time + 1.0)])
    replay(workload([(0.0, 1.0, 1.0, 1)]), 1, always, decision_time=3.0)
    assert [seen[0] for seen in always.seen] == [0.0, 3.0, 6.0]


def test_measured_decision_time_is_that_of_the_clock() -> None:
    """The clock advances by half a second at each reading."""
    ticks = count()
    done = replay(
        workload([(0.0, 5.0, 9.0, 2), (9.0, 5.0, 9.0, 2)]), 4, python_policies.Strict(), decision_time=None,
        clock=lambda: next(ticks) / 2,
    )  # fmt: skip
    assert done.start_time.tolist() == [0.5, 9.5]
    jobs = workload([(1e9, 5.0, 9.0, 2)])
    tiny = replay(jobs, 4, python_policies.Strict(), decision_time=1e-12)  # below the resolution of the time
    assert same(tiny, replay(jobs, 4, python_policies.Strict()))


def test_invalid_decision_times_are_rejected() -> None:
    jobs = workload(FOUR)
    for wrong in (-1.0, math.inf, math.nan, 1.1e15):
        with pytest.raises(ConfigError, match="seconds from 0 to 1e"):
            replay(jobs, 4, python_policies.Easy(), decision_time=wrong)
        with pytest.raises(ConfigError, match="for easy, strict and conservative also seconds above 0"):
            replay(jobs, 4, policies.Easy(), decision_time=wrong)
    for policy, takes in (
        (policies.Easy(), None),
        (policies.parse("conservative:allocation=local"), None),
        (policies.parse("easy+powercap"), None),
    ):
        with pytest.raises(ConfigError, match="for easy, strict and conservative also seconds above 0"):
            replay(jobs, 4, policy, decision_time=takes)


def test_snapshots_show_the_machine_and_users() -> None:
    seen = list[Any]()

    def decide(now: QueueView) -> Any:
        seen.extend((now.machine, job.user, job.id) for job in now.submitted)
        return [Start(job, [now.machine.groups[1]]) for job in now.waiting]

    jobs = workload([(0.0, 1.0, 1.0, 2)])
    named = Workload("w", jobs.id, jobs.submit_time, jobs.run_time, jobs.walltime, jobs.size, {
        "user": np.array([3]), "name": np.array(["w0!a"], object)})  # fmt: skip
    done = replay(named, 4, Says(decide), groups=((0, 1), (2, 3)))
    assert seen == [(Machine(4, ((0, 1), (2, 3)), TAURUS_POWERS), 3, "w0!a")] and places(done, 0) == [2, 3]


def test_metrics_and_energy_of_a_python_policy() -> None:
    jobs = workload(FOUR)
    own, ours = replay(jobs, 4, python_policies.Easy()), replay(jobs, 4)
    assert summarise(own, TAURUS_POWERS) == summarise(ours, TAURUS_POWERS)
    assert np.array_equal(track(own, TAURUS_POWERS).joules, track(ours, TAURUS_POWERS).joules)
    assert len(replay(workload([]), 4, python_policies.Easy()).start_time) == 0


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MOST", 2)
    seen = list[float]()
    replay(workload(FOUR), 4, python_policies.Strict(), progress=seen.append)
    assert seen == sorted(seen) and len(seen) > 1


def test_progress_of_a_slow_policy_is_reported_at_each_instant() -> None:
    jobs, seen, passed = workload([(1.0, 0.5, 0.5, 1)] * 100), list[float](), [0.0]
    strict = python_policies.Strict()

    class Slow:
        def decide(self, snapshot: Any) -> Any:
            passed[0] += 30.0
            return strict.decide(snapshot)

    done = replay(jobs, 1, Slow(), progress=seen.append, clock=lambda: passed[0])
    assert len(seen) + 1 == done.instants == 200
    seen.clear()
    replay(jobs, 1, strict, progress=seen.append)
    assert len(seen) == 3

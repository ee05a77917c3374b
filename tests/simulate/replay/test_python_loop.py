"""A policy of one's own: schedules as compiled ones give them, what it is shown, what it may not do, time to decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import own_policies
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_policies import Says
from test_replay import ENDLESS, JOB, places, workload

from pilotfish.simulate.batch import pace, spec
from pilotfish.simulate.batch.custom import Job, Reject, Snapshot, Start, Wake
from pilotfish.simulate.batch.energy import track
from pilotfish.simulate.batch.machine import Machine
from pilotfish.simulate.batch.metrics import summarise
from pilotfish.simulate.batch.powers import TAURUS
from pilotfish.simulate.batch.replay import Replayed, replay
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.workload import Workload

ROWS = st.one_of(st.lists(JOB, max_size=40), st.lists(ENDLESS, max_size=40))


def same(one: Replayed, other: Replayed) -> bool:
    """Whether two replays are alike to the last bit, resources included."""
    return one.instants == other.instants and all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("start_time", "finish_time", "rejected", "pieces", "piece0", "piece_count", "taken_time")
    )


@given(ROWS, st.integers(1, 130), st.booleans(), st.one_of(st.just(0.0), st.sampled_from([1e-12, 0.25, 1.0, 7.5])))
@settings(max_examples=400, deadline=None)  # the first compiles
def test_what_is_compiled_can_be_written_as_ones_own_with_the_same_schedule(
    rows: list[Any], machine: int, fills: bool, takes: float
) -> None:
    jobs, name = workload(rows), "Easy" if fills else "Strict"
    own = replay(jobs, machine, getattr(own_policies, name)(), decision_time=takes)
    assert same(own, replay(jobs, machine, getattr(spec, name)(), decision_time=takes))


def free_again(now: Snapshot, machine: int) -> list[int]:
    """What is free, from what runs."""
    busy = {one for it in now.running for first, last in it.resources for one in range(first, last + 1)}
    return [one for one in range(machine) if one not in busy]


@given(ROWS, st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([0.0, 0.5, 3.0]))
@settings(deadline=None)
def test_whatever_it_decides_the_laws_hold_and_what_it_is_shown_is_so(
    rows: list[Any], machine: int, seed: int, takes: float
) -> None:
    jobs, draw, gone = workload(rows), np.random.default_rng(seed), set[int]()

    def decide(now: Snapshot) -> Any:
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
def test_how_long_jobs_will_run_is_not_to_be_seen(rows: list[Any], machine: int, data: st.DataObject) -> None:
    """With other run times of what has not ended by then, all calls until then are shown the same."""
    jobs, easy = workload(rows), own_policies.Easy()
    one, other = Says(easy.decide), Says(easy.decide)
    done = replay(jobs, machine, one)
    then = data.draw(st.sampled_from(sorted({*jobs.submit_time.tolist()})))
    going = ~(done.finish_time <= then)
    replay(replace(jobs, run_time=np.where(going, jobs.run_time + 1.0, jobs.run_time)), machine, other)
    until = [[seen for seen in policy.seen if seen[0] <= then] for policy in (one, other)]
    assert until[0] == until[1] and len(until[0]) > 0


FOUR = [(0.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 4), (1.0, 5.0, 9.0, 9)]


def first(now: Snapshot) -> Job:
    return next(iter(now.waiting))


def once(decide: Callable[[Snapshot], Any]) -> Callable[[Snapshot], Any]:
    """This at the first call at which all jobs are known, else what is in strict order."""
    return lambda now: decide(now) if now.time == 3.0 else own_policies.Strict().decide(now)


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (lambda now: [Start(first(now))], "job 3, at 3.0 s: it asks for 4 resources, and 0 are free"),
        (lambda now: [Start(now.running[0].job)], "job 1, at 3.0 s: it runs already (allowed: a job of `waiting`)"),
        (lambda now: [Start(Job(3, 4, 1, 1.0, 0.0))], "job 4, at 3.0 s: it was rejected"),
        (lambda now: [Start(Job(4, 5, 1, 1.0, 0.0))], "job 5, at 3.0 s: there is no such job"),
        (lambda now: [Start(Job(2, 3, 1, 1.0, 0.0))], "job 3, at 3.0 s: there is no such job; it is not one that was"),
        (lambda now: [Start(7)], "at 3.0 s: it decided about 7"),
        (lambda now: [Reject(first(now)), Reject(first(now))], "job 3, at 3.0 s: it was rejected"),
        (lambda now: [Wake(3.0)], "it wants to be called at 3.0 (allowed: a time later than 3.0 s)"),
        (lambda now: [Wake(math.inf)], "called at inf"),
        (lambda now: [Wake(math.nan)], "called at nan"),
        (lambda now: [Wake("soon")], "called at 'soon'"),
        (lambda now: first(now), "TypeError: 'Job' object is not iterable"),
        (lambda now: [first(now)], "it decided Job("),
        (lambda now: 1 / 0, "policy own_policies:Says: at 3.0 s: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_carried_out_is_said(decide: Callable[[Snapshot], Any], why: str) -> None:
    with pytest.raises(PolicyError) as caught:
        replay(workload(FOUR), 4, Says(once(decide)))
    assert why in str(caught.value) and str(caught.value).startswith("policy own_policies:Says: ")


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ([(0, 1)], "resource 0 is not free"),
        ([(2, 3), (3, 3)], "resource 3 is there twice"),
        ([(3, 4)], "said to be 3 to 4 (allowed: pairs of first and last, of 2 in all, from 0 to 3)"),
        ([(-1, 0)], "said to be -1 to 0"),
        ([(3, 2)], "said to be 3 to 2"),
        ([(2, 2)], "it is given 1 resources (allowed: 2, as it asks for)"),
        ([2, 3], "its resources are [2, 3]"),
        ("2-3", "its resources are '2-3'"),
        (7, "its resources are 7"),
        ([(2.0, 3.0)], "its resources are [(2.0, 3.0)]"),
    ],
)
def test_resources_that_cannot_be_given(resources: Any, why: str) -> None:
    def decide(now: Snapshot) -> Any:
        return [Start(job, resources if job.number else None) for job in now.waiting]

    with pytest.raises(PolicyError) as caught:
        replay(workload(FOUR[:2]), 4, Says(decide))
    assert "job 2, at 1.0 s: " in str(caught.value) and why in str(caught.value)


def test_a_job_that_has_ended_or_is_to_come() -> None:
    kept, rows = list[Job](), [(0.0, 1.0, 1.0, 1), (5.0, 1.0, 1.0, 1), (5.0, 1.0, 1.0, 1)]

    def decide(now: Snapshot) -> Any:
        kept.extend(now.submitted)
        return [Start(job) for job in (now.waiting if now.time < 5 else kept)]

    with pytest.raises(PolicyError, match=r"job 1, at 5\.0 s: it has ended"):
        replay(workload(rows), 4, Says(decide))
    with pytest.raises(PolicyError, match=r"job 3, at 0\.0 s: it is not submitted yet"):
        replay(workload(rows), 4, Says(lambda now: [Start(Job(2, 3, 1, 1.0, 10.0))]))


def test_who_never_starts_what_waits_is_told() -> None:
    with pytest.raises(PolicyError, match=r"job 1, at 3\.0 s: it waits for ever as 2 others: nothing runs"):
        replay(workload(FOUR), 4, Says(lambda now: None))


def test_it_is_called_when_it_wants() -> None:
    """Also where nothing else happens; and no more once all jobs have ended."""

    def decide(now: Snapshot) -> Any:
        ready = [Start(job) for job in now.waiting if now.time - job.submit_time >= 2.5]
        return [*ready, *(Wake(job.submit_time + 2.5) for job in now.submitted), Wake(np.int64(99))]

    policy = Says(decide)
    done = replay(workload([(1.0, 1.0, 1.0, 1), (1.0, 1.0, 1.0, 1)]), 1, policy)
    assert done.start_time.tolist() == [3.5, 4.5] and [seen[0] for seen in policy.seen] == [1.0, 2.0, 3.5, 4.5, 5.5]


def test_a_job_of_no_length_ends_where_it_starts_and_another_call_follows() -> None:
    policy = Says(own_policies.Strict().decide)
    done = replay(workload([(0.0, 0.0, 5.0, 4), (0.0, 1.0, 1.0, 4)]), 4, policy)
    assert done.finish_time.tolist() == [0.0, 1.0] and [seen[0] for seen in policy.seen] == [0.0, 0.0, 1.0]


def test_what_a_call_decides_is_carried_out_when_it_ends() -> None:
    """What comes in between is told at once afterwards; a call that nothing follows is followed by none."""
    policy = Says(own_policies.Strict().decide)
    done = replay(workload([(0.0, 5.0, 9.0, 2), (1.0, 5.0, 9.0, 2), (0.0, 5.0, 9.0, 2)]), 4, policy, decision_time=2.0)
    assert done.start_time.tolist() == [2.0, 4.0, 9.0] and done.finish_time.tolist() == [7.0, 9.0, 14.0]
    assert [(seen[0], seen[-2], seen[-1]) for seen in policy.seen] == [
        (0.0, (0,), ()), (2.0, (1, 2), ()), (7.0, (), (0,)), (9.0, (), (1,)), (14.0, (), (2,)),
    ]  # fmt: skip


def test_resources_that_come_free_while_it_decides_are_the_lowest_then() -> None:
    rows = [(0.0, 3.0, 9.0, 1), (2.0, 9.0, 9.0, 1)]
    done = replay(workload(rows), 2, Says(own_policies.Strict().decide), decision_time=1.5)
    assert done.start_time.tolist() == [1.5, 3.5] and [places(done, i) for i in (0, 1)] == [[0], [1]]
    done = replay(workload(rows), 2, Says(own_policies.Strict().decide), decision_time=2.5)
    assert done.start_time.tolist() == [2.5, 5.0] and places(done, 1) == [1]
    later = Says(lambda now: [Start(job) for job in now.waiting if job.number == 0 or now.ended])
    done = replay(workload([(0.0, 0.5, 9.0, 1), (0.0, 9.0, 9.0, 1)]), 2, later, decision_time=0.25)
    assert done.start_time.tolist() == [0.25, 1.0]


def test_a_call_that_is_due_while_it_decides_is_made_when_it_has() -> None:
    policy = Says(lambda now: [Wake(now.time + 1.0)] if now.time < 4 else [Start(job) for job in now.waiting])
    done = replay(workload([(0.0, 1.0, 1.0, 1)]), 1, policy, decision_time=3.0)
    assert [seen[0] for seen in policy.seen] == [0.0, 3.0, 6.0, 10.0] and done.start_time.tolist() == [9.0]
    always = Says(lambda now: [*map(Start, now.waiting), Wake(now.time + 1.0)])
    replay(workload([(0.0, 1.0, 1.0, 1)]), 1, always, decision_time=3.0)
    assert [seen[0] for seen in always.seen] == [0.0, 3.0, 6.0]


def test_measured_time_is_the_clocks() -> None:
    """By a clock that goes on by half a second each time it is looked at."""
    ticks = count()
    done = replay(
        workload([(0.0, 5.0, 9.0, 2), (9.0, 5.0, 9.0, 2)]), 4, own_policies.Strict(), decision_time=None,
        clock=lambda: next(ticks) / 2,
    )  # fmt: skip
    assert done.start_time.tolist() == [0.5, 9.5]
    jobs = workload([(1e9, 5.0, 9.0, 2)])
    tiny = replay(jobs, 4, own_policies.Strict(), decision_time=1e-12)  # too short to be told from none
    assert same(tiny, replay(jobs, 4, own_policies.Strict()))


def test_times_to_decide_that_are_none() -> None:
    jobs = workload(FOUR)
    for wrong in (-1.0, math.inf, math.nan, 1.1e15):
        with pytest.raises(ConfigError, match="seconds from 0 to 1e"):
            replay(jobs, 4, own_policies.Easy(), decision_time=wrong)
        with pytest.raises(ConfigError, match="of easy and strict also seconds above 0"):
            replay(jobs, 4, spec.Easy(), decision_time=wrong)
    for policy, takes in ((spec.Easy(), None), (spec.Conservative(), 1.0), (spec.parse("easy+powercap"), 1.0)):
        with pytest.raises(ConfigError, match="of easy and strict also seconds above 0"):
            replay(jobs, 4, policy, decision_time=takes)


def test_it_sees_the_machine_and_whose_a_job_is() -> None:
    seen = list[Any]()

    def decide(now: Snapshot) -> Any:
        seen.extend((now.machine, job.user, job.id) for job in now.submitted)
        return [Start(job, [now.machine.groups[1]]) for job in now.waiting]

    jobs = workload([(0.0, 1.0, 1.0, 2)])
    named = Workload("w", jobs.id, jobs.submit_time, jobs.run_time, jobs.walltime, jobs.size, {
        "user": np.array([3]), "name": np.array(["w0!a"], object)})  # fmt: skip
    done = replay(named, 4, Says(decide), groups=((0, 1), (2, 3)))
    assert seen == [(Machine(4, ((0, 1), (2, 3)), TAURUS), 3, "w0!a")] and places(done, 0) == [2, 3]


def test_numbers_and_energy_are_as_of_any_replay() -> None:
    jobs = workload(FOUR)
    own, ours = replay(jobs, 4, own_policies.Easy()), replay(jobs, 4)
    assert summarise(own, TAURUS) == summarise(ours, TAURUS)
    assert np.array_equal(track(own, TAURUS).joules, track(ours, TAURUS).joules)
    assert len(replay(workload([]), 4, own_policies.Easy()).start_time) == 0


def test_the_caller_hears_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MOST", 2)
    seen = list[float]()
    replay(workload(FOUR), 4, own_policies.Strict(), progress=seen.append)
    assert seen == sorted(seen) and len(seen) > 1


def test_the_caller_hears_at_each_instant_of_a_policy_that_is_slow() -> None:
    jobs, seen, passed = workload([(1.0, 0.5, 0.5, 1)] * 100), list[float](), [0.0]
    strict = own_policies.Strict()

    class Slow:
        def decide(self, snapshot: Any) -> Any:
            passed[0] += 30.0
            return strict.decide(snapshot)

    done = replay(jobs, 1, Slow(), progress=seen.append, clock=lambda: passed[0])
    assert len(seen) + 1 == done.instants == 200
    seen.clear()
    replay(jobs, 1, strict, progress=seen.append)
    assert len(seen) == 3

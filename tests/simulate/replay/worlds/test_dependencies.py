"""Dependencies: under every policy the schedule equals the reference, and no job starts too early."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.machine import TAURUS_POWERS, Powers, machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload, joined
from pilotfish.simulate.queue_policies.energy.power_policies import EnergyBudget, PowerCap
from pilotfish.simulate.queue_policies.interface import Start
from pilotfish.simulate.queue_policies.order_ranks import CHANGING, ORDERS, SUBMITTED
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import (
    ALLOCATIONS,
    Conservative,
    Contending,
    Easy,
    Policy,
    Saving,
    Strict,
)
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.tables import FEW
from tests.reference.plain_contended import Plain
from tests.reference.plain_replay import conservative, plain
from tests.simulate.replay import test_powered
from tests.simulate.replay.test_replay import JOB, places, workload
from tests.simulate.replay.worlds import test_contended
from tests.simulate.replay.worlds.test_python_loop import same
from tests.support import python_policies
from tests.support.instances import rows_of

#: Most jobs are submitted together, as the tasks of a workflow, and succeed.
TASK = st.one_of(JOB, JOB.map(lambda job: (0.0, min(job[1:3]), max(job[1:3]), job[3] % 9 + 1)))
TASKS = st.lists(TASK, min_size=1, max_size=30)
MACHINES = st.one_of(st.integers(1, 12), st.integers(60, 130))


@st.composite
def graphs(draw: st.DrawFn, jobs: Workload) -> Workload:
    """Return the workload with random dependencies, also on later rows."""
    rows = range(len(jobs))
    place = random.Random(draw(st.integers(0, 2**16))).sample(rows, len(rows))
    drawn = draw(st.sets(rows_of(rows, rows), max_size=2 * len(jobs)))
    pairs = sorted((min(pair, key=lambda i: place[i]), max(pair, key=lambda i: place[i])) for pair in drawn)
    pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    jobs = with_pairs(jobs, pairs)
    if draw(st.booleans()):
        return jobs
    delays = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5, 40.0]), min_size=len(pairs), max_size=len(pairs)))
    any_end = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return replace(jobs, dependencies=replace(
        jobs.dependencies, delay=np.array(delays, float), any_end=np.array(any_end, bool)
    ))  # fmt: skip


def with_pairs(jobs: Workload, pairs: list[tuple[int, int]]) -> Workload:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return replace(jobs, dependencies=Dependencies(table[:, 0].copy(), table[:, 1].copy()))


WORKLOADS = TASKS.map(workload).flatmap(graphs)


def drawn(jobs: Workload, seed: int = 0) -> list[int]:
    found: list[int] = np.random.default_rng(seed).permutation(len(jobs)).tolist()
    return found


def obeys(done: Replayed) -> None:
    """Check that each job is submitted exactly when its dependencies are met, and that others are stranded."""
    jobs, given = done.workload, done.workload.dependencies
    assert given is not None
    well = ~(done.rejected | done.overran)
    met = (well[given.before] | given.at_any_end) & ~done.rejected[given.before]
    for i in range(len(jobs)):
        pairs = given.after == i
        assert done.stranded[i] == (not met[pairs].all())
        if done.stranded[i]:
            assert done.rejected[i] and done.submit_time[i] == jobs.submit_time[i]
        else:
            times = done.finish_time[given.before[pairs]] + given.delays[pairs]
            assert done.submit_time[i] == max([jobs.submit_time[i], *times.tolist()])
            assert not done.start_time[i] < done.submit_time[i]


@given(WORKLOADS, MACHINES, st.sampled_from(list(ORDERS)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_easy_and_strict_equal_the_reference(jobs: Workload, machine: int, order: str, fills: bool) -> None:
    done = replay(jobs, machine, Easy(order) if fills else Strict(order))
    start, finish, where = plain(jobs, machine, order, fills=fills, drawn=drawn(jobs))
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert np.array_equal(done.finish_time, finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where
    obeys(done)


@given(WORKLOADS, MACHINES, st.sampled_from([name for name in ORDERS if name not in CHANGING]),
       st.sampled_from(list(ALLOCATIONS)))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_conservative_equals_the_reference(jobs: Workload, machine: int, order: str, allocation: str) -> None:
    groups = [(0, machine // 2), (machine // 2 + 1, machine - 1)] if machine > 2 else [(0, machine - 1)]
    done = replay(jobs, machine, Conservative(order, allocation), groups=groups)
    start, where, _ = conservative(jobs, machine, allocation, groups, order=order, drawn=drawn(jobs))
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where
    obeys(done)


SPANS = st.tuples(st.sampled_from([-math.inf, 0.0, 2.0, 5.0]), st.sampled_from([8.0, 16.0, 400.0]))
BASES = st.builds(lambda kind, order: kind(order), st.sampled_from([Easy, Easy, Strict]),
                  st.sampled_from([name for name in ORDERS if name not in CHANGING | SUBMITTED]))  # fmt: skip
LIMITS = st.one_of(
    st.none(),
    st.builds(lambda limit, span: replace(limit, begin=span[0], end=span[1]),
              st.one_of(test_powered.CAPS, test_powered.BUDGETS), SPANS),
)  # fmt: skip
SAVING = st.builds(Saving, BASES, test_powered.SHUTDOWNS, LIMITS, test_powered.KEEPERS)
POWERED = st.lists(test_powered.JOB, min_size=1, max_size=24).map(workload).flatmap(graphs)


@given(POWERED, test_powered.MACHINES, SAVING, test_powered.POWERS)
@settings(max_examples=200, deadline=None)
def test_energy_saving_equals_the_reference(jobs: Workload, machine: int, policy: Saving, powers: Powers) -> None:
    obeys(test_powered.alike(jobs, machine, policy, powers, 0))


CONTENDED = st.lists(test_contended.JOB, min_size=1, max_size=20).map(test_contended.workload).flatmap(graphs)


@given(CONTENDED, st.lists(test_contended.KINDS, min_size=1, max_size=3), test_contended.POLICY)
@settings(max_examples=100, deadline=None)
def test_contending_tasks_equal_the_reference(jobs: Workload, kinds: list[Any], policy: Contending) -> None:
    machine = test_contended.cluster(*kinds)
    done, by_hand = replay(jobs, machine_of(machine), policy), Plain(jobs, machine, policy)
    assert np.array_equal(done.start_time, by_hand.start, equal_nan=True)
    assert np.array_equal(done.finish_time, by_hand.finish, equal_nan=True)
    assert done.overran.tolist() == by_hand.overran
    obeys(done)


@given(WORKLOADS, MACHINES, st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_python_policy_sees_jobs_once_they_are_submitted(jobs: Workload, machine: int, fills: bool) -> None:
    kind, seen = python_policies.Easy() if fills else python_policies.Strict(), dict[int, float]()

    def decide(now: Any) -> Any:
        seen.update({job.number: job.submit_time for job in now.submitted})
        assert now.columns()["submit_time"].tolist() == [job.submit_time for job in now.waiting]
        return kind.decide(now)

    done = replay(jobs, machine, python_policies.Says(decide))
    assert same(done, replay(jobs, machine, Easy() if fills else Strict()))
    assert seen == {i: done.submit_time[i] for i in np.flatnonzero(~done.rejected)}
    obeys(done)


@given(TASKS.map(workload), MACHINES, st.sampled_from(list(ORDERS)))
@settings(max_examples=100, deadline=None)
def test_no_dependency_equals_no_table_of_dependencies(jobs: Workload, machine: int, order: str) -> None:
    policies: list[Policy] = [Easy(order), Strict(order)]
    if order not in CHANGING:
        policies.append(Conservative(order))
        policies += [Saving(Easy(order))] if order not in SUBMITTED else []
    for policy in policies:
        assert same(replay(with_pairs(jobs, []), machine, policy), replay(jobs, machine, policy))


#: Three chains with a task of zero run time between two others.
CHAINS = [(0.0, float(i % 3 % 2 == 0) * 4, 4.0, 2) for i in range(9)]


def test_ends_precede_submissions_which_are_in_file_order() -> None:
    """The last row depends on the first; the other two start before it because they were submitted before."""
    done = replay(with_pairs(workload([(0.0, 2.0, 2.0, 1), (1.0, 3.0, 3.0, 4), (1.0, 3.0, 3.0, 4)]), [(0, 1)]), 4)
    assert done.submit_time.tolist() == [0.0, 2.0, 2.0] and done.start_time.tolist() == [0.0, 2.0, 5.0]
    chains = with_pairs(workload(CHAINS), [(i, i + 1) for i in range(8) if i % 3 < 2])
    assert replay(chains, 6).start_time.tolist() == [0.0, 4.0, 4.0] * 3


def test_followers_of_failed_jobs_are_stranded() -> None:
    """The second job is too large, the fourth is killed; the others depend on one or both of them."""
    rows = [(0.0, 1.0, 1.0, 1), (0.0, 1.0, 1.0, 9), (0.0, 1.0, 1.0, 1), (0.0, 3.0, 2.0, 1), *[(0.0, 1.0, 1.0, 1)] * 2]
    jobs = with_pairs(workload(rows), [(0, 2), (1, 2), (3, 4), (2, 5), (4, 5)])
    for policy in (Easy(), Conservative(), Saving(Easy()), python_policies.Easy()):
        done = replay(jobs, 4, policy)
        assert done.stranded.tolist() == [False, False, True, False, True, True]
        numbers = summarise(done)
        assert (numbers.nb_jobs_rejected, numbers.nb_jobs_killed, numbers.nb_jobs_success) == (4, 1, 1)
    failing = replace(jobs, more={"returns": np.array([1, 0, 0, 0, 0, 0])})
    assert replay(failing, 16).stranded.tolist() == [False, False, True, False, True, True]


def test_many_jobs_released_at_once() -> None:
    """All jobs depend on one, some also on another: they are submitted in the order of rows, whichever ends first."""
    count = FEW + 6
    rows = [(0.0, 1.0, 5.0, 1), *[(0.0, 2.0 + i % 3, 5.0 - i % 2, 1 + i % 4) for i in range(count + 9)]]
    pairs = [(0, i + 1) for i in range(count)] + [(i + 1, count + 9 - i) for i in range(9)]
    jobs = with_pairs(workload(rows), pairs)
    for order in ("fcfs", "sjf"):
        start, where, _ = conservative(jobs, 40, order=order)
        done = replay(jobs, 40, Conservative(order))
        assert np.array_equal(done.start_time, start) and [places(done, i) for i in range(len(jobs))] == where
        assert np.array_equal(replay(jobs, 40, Easy(order)).start_time, plain(jobs, 40, order)[0])


def test_a_budget_needs_a_known_last_submission() -> None:
    jobs = with_pairs(workload([(0.0, 1.0, 1.0, 1)] * 3), [(0, 1)])
    assert not replay(jobs, 4, Saving(Easy("f1"))).rejected.any()
    cap, budget = PowerCap(cap=Amount(0.9, share=True)), EnergyBudget(budget=Amount(0.5, share=True))
    with pytest.raises(ConfigError, match="end: missing: a budget needs an end, because jobs have dependencies"):
        replay(jobs, 4, Saving(Easy(), limit=budget))
    for limit in (cap, replace(cap, end=9.0), replace(budget, end=9.0)):
        assert not replay(jobs, 4, Saving(Easy(), limit=limit), powers=TAURUS_POWERS).rejected.any()


def test_a_job_that_is_not_submitted_yet_cannot_be_started() -> None:
    jobs, kept = with_pairs(workload([(0.0, 1.0, 1.0, 1)] * 2), [(0, 1)]), list[Any]()

    def decide(now: Any) -> Any:
        kept.extend(now.submitted)
        return [Start(replace(kept[0], number=1))]

    with pytest.raises(PolicyError, match="it is not submitted yet"):
        replay(jobs, 4, python_policies.Says(decide))


def test_a_released_job_waits_for_its_own_submit_time() -> None:
    jobs = with_pairs(workload([(0.0, 2.0, 2.0, 1), (5.0, 1.0, 1.0, 1)]), [(0, 1)])
    assert replay(jobs, 4).submit_time.tolist() == [0.0, 5.0]


def test_a_delay_begins_at_the_end_of_the_other_job_however_that_ends() -> None:
    """The second job is killed at 2 s; the third job follows 3 s later, the fourth never; the last one waits for all."""
    rows = [(0.0, 2.0, 2.0, 1), (0.0, 9.0, 2.0, 1), (0.0, 1.0, 1.0, 1), (0.0, 1.0, 1.0, 1), (8.5, 1.0, 1.0, 1)]
    jobs = with_pairs(workload(rows), [(1, 2), (1, 3), (0, 4), (2, 4)])
    given = replace(
        jobs.dependencies, delay=np.array([3.0, 3.0, 4.0, 0.5]), any_end=np.array([True, False, True, True])
    )
    jobs = replace(jobs, dependencies=given)
    for policy in (Easy(), Conservative(), Saving(Easy()), python_policies.Easy(), Easy("wfp3")):
        done = replay(jobs, 4, policy)
        assert done.submit_time.tolist() == [0.0, 0.0, 5.0, 0.0, 8.5]
        assert done.stranded.tolist() == [False, False, False, True, False]
        assert done.start_time[[2, 4]].tolist() == [5.0, 8.5]


def test_rows_that_are_taken_keep_their_delays() -> None:
    jobs = with_pairs(workload([(0.0, 1.0, 1.0, 1)] * 4), [(0, 3), (1, 2), (2, 3)])
    given = replace(jobs.dependencies, delay=np.array([1.0, 2.0, 3.0]), any_end=np.array([True, False, True]))
    kept = replace(jobs, dependencies=given).take(np.array([3, 2, 1]))
    pairs = zip(
        *(getattr(kept.dependencies, name).tolist() for name in ("before", "after", "delay", "any_end")), strict=True
    )
    assert sorted(pairs) == [(1, 0, 3.0, True), (2, 1, 2.0, False)]
    both = joined([kept, kept]).dependencies
    assert both.delays.tolist() == kept.dependencies.delays.tolist() * 2 and len(both) == 4

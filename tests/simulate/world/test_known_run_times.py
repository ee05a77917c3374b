"""Replays whose policies know predictions or actual run times: against a reference, the Python forms, and by laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.interface import QueueView, Start
from pilotfish.simulate.queue_policies.order_ranks import ORDERS
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative, Easy, Strict
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.reference.plain_expected import plain_expected
from tests.simulate.replay.test_replay import JOB, places, workload
from tests.support.instances import rows_of

#: Conservative backfilling with each of its allocations.
ALLOCATED = [partial(Conservative, allocation=each) for each in ALLOCATIONS]
#: The orders that do not depend on the seed.
FIXED = [name for name in ORDERS if name != "random"]
#: Gap, run time, walltime, size; and a prediction, which is None where nothing is known.
LONG = st.one_of(st.integers(0, 900).map(float), st.floats(0, 2000, allow_subnormal=False))
EXPECTED = st.one_of(st.none(), st.integers(0, 12).map(float), LONG, st.just(1e9))
ROW = st.one_of(
    st.tuples(JOB, EXPECTED),
    st.tuples(
        st.tuples(st.integers(0, 400).map(float), LONG, st.one_of(LONG, st.just(np.inf)), st.integers(1, 60)), EXPECTED
    ),
)
#: Jobs that outlast their predictions while others wait, on a small machine; many times coincide.
LATE = st.tuples(
    rows_of([0.0, 0.0, 0.0, 1.0, 30.0], [1.0, 10.0, 61.0, 365.0, 900.0, 4000.0], [370.0, 2000.0, 9000.0], range(1, 5)),
    st.sampled_from([1.0, 5.0, 10.0, 30.0, 50.0, 60.0, 200.0]),
)
FEW, MACHINES = st.lists(ROW, max_size=30), st.one_of(st.integers(4, 5), st.integers(1, 70))
ROWS = st.one_of(FEW, st.lists(LATE, min_size=8, max_size=16))


class Table:
    """Predicts given values, and keeps what it was asked and told."""

    def __init__(self, values: Sequence[float | None]) -> None:
        self.values, self.calls = values, list[tuple[str, int]]()

    def expected(self, row: int) -> float | None:
        self.calls.append(("expected", row))
        return self.values[row]

    def ended(self, row: int, ran: float | None = None) -> None:
        self.calls.append(("ended", row))


def parts(rows: list[Any]) -> tuple[Workload, list[float | None]]:
    return workload([row for row, _ in rows]), [expected for _, expected in rows]


def assert_same(one: Replayed, other: Replayed) -> None:
    for name in ("start_time", "finish_time", "rejected", "overran", "stranded", "pieces", "piece0", "piece_count"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name.endswith("time")), name


@given(ROWS, MACHINES, st.sampled_from(FIXED), st.booleans())
@settings(max_examples=400, deadline=None)
def test_the_kernel_equals_the_reference(rows: list[Any], machine: int, order: str, fills: bool) -> None:
    (jobs, values), policy = parts(rows), Easy(order) if fills else Strict(order)
    ours, reference = Table(values), Table(values)
    done = replay(jobs, machine, policy, run_times=ours)
    start, finish, moves = plain_expected(jobs, machine, reference, order, fills=fills)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert np.array_equal(done.finish_time, finish, equal_nan=True)
    assert ours.calls == reference.calls
    assert done.instants >= len({*moves, *jobs.submit_time.tolist()})


@st.composite
def dependent(draw: st.DrawFn) -> tuple[Workload, list[float | None]]:
    """Return jobs, some of which depend on earlier ones."""
    jobs, values = parts(draw(st.lists(ROW, min_size=2, max_size=25)))
    pairs = draw(st.sets(st.tuples(st.integers(0, len(jobs) - 1), st.integers(0, len(jobs) - 1)), max_size=12))
    found = sorted((a, b) for a, b in pairs if a < b)
    before, after = (np.array([pair[k] for pair in found], np.int64) for k in (0, 1))
    return replace(jobs, dependencies=Dependencies(before, after)), values


@given(st.one_of(ROWS.map(parts), dependent()), MACHINES, st.sampled_from(FIXED), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_python_form_equals_the_kernel(case: Any, machine: int, order: str, fills: bool) -> None:
    (jobs, values), policy = case, Easy(order) if fills else Strict(order)
    compiled, python = Table(values), Table(values)
    first = replay(jobs, machine, policy, run_times=compiled)
    again = replay(jobs, machine, uncompiled(policy, 0), run_times=python)
    assert_same(first, again)
    assert first.instants == again.instants and compiled.calls == python.calls


@given(ROWS, MACHINES, st.sampled_from(FIXED), st.sampled_from([Easy, Strict, Conservative, *ALLOCATED]))
@settings(max_examples=400, deadline=None)
def test_predictions_that_are_the_walltimes_change_nothing(
    rows: list[Any], machine: int, order: str, kind: Any
) -> None:
    jobs, _ = parts(rows)
    if kind not in (Easy, Strict):
        jobs = jobs.take(np.isfinite(jobs.walltime) & (jobs.size <= machine))
        order = "fcfs" if order in ("wfp3", "unicep") else order
    for values in (jobs.walltime.tolist(), [None] * len(jobs)):
        assert_same(replay(jobs, machine, kind(order), run_times=Table(values)), replay(jobs, machine, kind(order)))


@given(ROWS, MACHINES, st.sampled_from(FIXED), st.sampled_from([Easy, Strict, Conservative]))
@settings(max_examples=200, deadline=None)
def test_actual_run_times_are_those_of_a_trace_whose_walltimes_are_exact(
    rows: list[Any], machine: int, order: str, kind: Any
) -> None:
    jobs, _ = parts(rows)
    jobs = jobs.take(jobs.size <= machine)
    policy = kind("fcfs" if kind is Conservative and order in ("wfp3", "unicep") else order)
    lasts = np.minimum(jobs.run_time, jobs.walltime)
    exact = replay(replace(jobs, run_time=lasts, walltime=lasts), machine, policy)
    actual = replay(jobs, machine, policy, run_times="actual")
    assert np.array_equal(actual.overran, jobs.run_time > jobs.walltime) and not exact.overran.any()
    assert_same(replace(actual, overran=exact.overran), exact)
    if np.isfinite(jobs.walltime).all() or kind is not Conservative:
        assert_same(replay(jobs, machine, policy, run_times=Table(lasts.tolist())), actual)


@given(
    ROWS, MACHINES, st.sampled_from([name for name in FIXED if name not in ("wfp3", "unicep")]),
    st.sampled_from(list(ALLOCATIONS)), st.booleans(),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_laws_of_conservative_backfilling_with_any_predictions(
    rows: list[Any], machine: int, order: str, allocation: str, takes: bool
) -> None:
    """Or with decisions that take time."""
    jobs, values = parts([row for row in rows if row[0][2] < np.inf])
    told: dict[str, Any] = {"decision_time": 7.5} if takes else {"run_times": Table(values)}
    done = replay(jobs, machine, Conservative(order, allocation), **told)
    if allocation == "contiguous":
        assert (done.piece_count[~done.rejected] == 1).all()
    assert np.array_equal(done.rejected, jobs.size > machine)
    ran = np.flatnonzero(~done.rejected).tolist()
    assert (done.start_time[ran] >= jobs.submit_time[ran]).all()
    lasts = np.minimum(jobs.run_time, jobs.walltime)
    assert np.array_equal(done.finish_time[ran], (done.start_time + lasts)[ran])
    for i in (i for i in ran if done.finish_time[i] > done.start_time[i]):
        at = done.start_time[i]
        beside = [k for k in ran if k != i and done.start_time[k] <= at < done.finish_time[k]]
        assert all(not set(places(done, i)) & set(places(done, k)) for k in beside)


class Watching:
    """Starts jobs in order, and keeps what it is shown."""

    def __init__(self) -> None:
        self.shown, self.called = dict[int, list[float]](), list[float]()

    def decide(self, now: QueueView) -> list[Start]:
        self.called.append(now.time)
        assert [it.until for it in now.running] == sorted(it.until for it in now.running)
        for it in now.running:
            assert it.job.predicted and it.until > now.time
            self.shown.setdefault(it.job.number, []).append(it.until - it.start_time)
        assert now.columns()["walltime"].tolist() == [job.walltime for job in now.waiting]
        return [Start(job) for job in now.waiting if job.size <= now.free][:1]


def test_a_python_policy_sees_predictions_and_growing_expected_ends() -> None:
    """A job that is expected to take 10 s takes 3,000 s of its 2,000 s walltime: killed at that, never before."""
    policy = Watching()
    done = replay(workload([(5.0, 3000.0, 2000.0, 4)]), 4, policy, run_times=Table([10.0]))
    assert done.finish_time.tolist() == [2005.0] and done.overran.tolist() == [True]
    assert [time - 5.0 for time in policy.called] == [0.0, 10.0, 70.0, 370.0, 1270.0, 2000.0]
    assert policy.shown == {0: [70.0, 370.0, 1270.0, 2000.0]}
    assert replay(workload([(5.0, 3000.0, 2000.0, 4)]), 4, run_times=Table([10.0])).instants == 6


def test_a_job_that_outlasts_its_prediction_moves_the_reservation() -> None:
    """The head is expected to start at 10 s, then at 70 s: a job of 50 s is backfilled at 10 s, not before."""
    rows = [(0.0, 500.0, 900.0, 3), (0.0, 1.0, 900.0, 4), (0.0, 50.0, 900.0, 1)]
    done = replay(workload(rows), 4, run_times=Table([10.0, 5.0, 50.0]))
    assert done.start_time.tolist() == [0.0, 500.0, 10.0]
    longer = replay(workload(rows), 4, run_times=Table([60.0, 5.0, 50.0]))
    assert longer.start_time.tolist() == [0.0, 500.0, 0.0]


def test_a_prediction_knows_what_ended_after_a_correction() -> None:
    """The third job is backfilled when the first outlasts its expected end, and ends before the fourth is submitted."""
    rows = [(0.0, 500.0, 900.0, 3), (0.0, 1.0, 900.0, 4), (0.0, 5.0, 900.0, 1), (20.0, 1.0, 900.0, 1)]
    for policy in (Easy(), uncompiled(Easy(), 0)):
        table = Table([10.0, 5.0, 50.0, 900.0])
        assert replay(workload(rows), 4, policy, run_times=table).start_time[2] == 10.0
        assert table.calls[3:5] == [("ended", 2), ("expected", 3)]


def test_reservations_move_when_a_job_ends_after_its_prediction() -> None:
    """The first job is expected to end at 10 s, then at 70 s, and ends at 30 s: the next one starts then."""
    rows = [(0.0, 30.0, 900.0, 4), (0.0, 1.0, 900.0, 4), (20.0, 1.0, 900.0, 4)]
    done = replay(workload(rows), 4, Conservative(), run_times=Table([10.0, 1.0, 1.0]))
    assert done.start_time.tolist() == [0.0, 30.0, 31.0]


def test_the_order_sjf_is_that_of_the_predictions() -> None:
    rows = [(0.0, 5.0, 9.0, 1), (1.0, 5.0, 20.0, 1), (0.0, 5.0, 10.0, 1)]
    assert replay(workload(rows), 1, Strict("sjf")).start_time.tolist() == [0.0, 10.0, 5.0]
    assert replay(workload(rows), 1, Strict("sjf"), run_times=Table([5.0, 3.0, 4.0])).start_time.tolist() == [0, 5, 10]


ONE = [(0.0, 1.0, 1.0, 1)]


@given(ROWS, MACHINES, st.sampled_from(FIXED), st.sampled_from([Easy, Strict]), st.sampled_from([0.5, 30.0]))
@settings(max_examples=200, deadline=None)
def test_decisions_also_take_time_where_run_times_are_predicted(
    rows: list[Any], machine: int, order: str, kind: Any, takes: float
) -> None:
    jobs, values = parts(rows)
    compiled = replay(jobs, machine, kind(order), decision_time=takes)
    for same in (jobs.walltime.tolist(), [None] * len(jobs)):
        assert_same(replay(jobs, machine, kind(order), decision_time=takes, run_times=Table(same)), compiled)
    told = Table(values)
    done = replay(jobs, machine, kind(order), decision_time=takes, run_times=told)
    assert (done.start_time >= done.submit_time + takes)[~done.rejected].all()
    assert sum(what == "expected" for what, _ in told.calls) == len(jobs)


def test_conservative_backfilling_needs_walltimes_with_predictions_too() -> None:
    with pytest.raises(ConfigError, match="job 1: it has no walltime"):
        replay(workload([(0.0, 1.0, np.inf, 1)]), 4, Conservative(), run_times=Table([1.0]))
    assert replay(workload([(0.0, 1.0, np.inf, 1)]), 4, Conservative(), run_times="actual").finish_time.tolist() == [
        1.0
    ]

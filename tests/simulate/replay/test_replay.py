"""The compiled replay equals the reference, including resources, and satisfies its laws."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import Inertial, PowerCap
from pilotfish.simulate.queue_policies.order_ranks import ORDERS
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import Conservative, Easy, Saving, Strict
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.replay_case import ReplayOptions, ReplaySettings
from pilotfish.simulate.replay.tables import grow
from pilotfish.simulate.world import slices
from tests.reference.plain_replay import plain
from tests.support.instances import rows_of

#: Times that often coincide, and some that are sensitive to rounding.
SPANS = st.one_of(st.integers(0, 12).map(float), st.floats(0, 12, allow_subnormal=False))
GAPS = st.one_of(st.just(0.0), st.integers(0, 6).map(float), st.floats(0, 6, allow_subnormal=False))
WHOLE = [float(n) for n in range(13)]
WHOLE_GAPS = [*(6 * [0.0]), *WHOLE[:7]]
JOB = st.one_of(rows_of(WHOLE_GAPS, WHOLE, WHOLE, range(1, 81)), st.tuples(GAPS, SPANS, SPANS, st.integers(1, 80)))
#: Some jobs without a walltime.
ENDLESS = st.one_of(
    rows_of(WHOLE_GAPS, WHOLE, [*WHOLE, *(13 * [math.inf])], range(1, 81)),
    st.tuples(GAPS, SPANS, st.one_of(SPANS, st.just(math.inf)), st.integers(1, 80)),
)


def workload(rows: list[tuple[float, float, float, int]]) -> Workload:
    """Return a workload from rows of (gap since the last submission, run time, walltime, size)."""
    gaps, runs, walls, sizes = zip(*rows, strict=True) if rows else ((), (), (), ())
    times = [np.array(column, np.float64) for column in (np.cumsum(gaps), runs, walls)]
    return Workload("w", np.arange(1, len(rows) + 1), *times, size=np.array(sizes, np.int64))


def places(done: Replayed, i: int) -> list[int]:
    """Return the resources of a job."""
    begin = done.piece0[i]
    pieces = done.pieces[begin : begin + done.piece_count[i]].tolist()
    return [number for first, last in pieces for number in range(first, last + 1)]


@given(
    st.one_of(st.lists(JOB, max_size=40), st.lists(ENDLESS, max_size=40)),
    *(st.integers(1, 130), st.sampled_from(list(ORDERS)), st.booleans(), st.integers(0, 3)),
)
@settings(max_examples=400, deadline=None)  # the first compiles
def test_replay_equals_the_reference(rows: list[Any], machine: int, order: str, fills: bool, seed: int) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine, Easy(order) if fills else Strict(order), seed=seed)
    drawn = np.random.default_rng(seed).permutation(len(jobs)).tolist()
    start, finish, where = plain(jobs, machine, order, fills=fills, drawn=drawn)
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert np.array_equal(done.finish_time, finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where
    assert done.rejected.tolist() == [size > machine for size in jobs.size]


@given(st.lists(JOB, min_size=1, max_size=60), st.integers(1, 100), st.sampled_from(list(ORDERS)))
def test_no_resource_is_shared_and_no_job_starts_before_its_submission(
    rows: list[Any], machine: int, order: str
) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine, Easy(order))
    ran = np.flatnonzero(~done.rejected)
    assert (done.start_time[ran] >= jobs.submit_time[ran]).all()
    for i in ran.tolist():
        mine = places(done, i)
        assert len(set(mine)) == jobs.size[i] and min(mine) >= 0 and max(mine) < machine
        together = [
            k for k in ran.tolist() if k != i and done.start_time[k] < done.finish_time[i]
            and done.start_time[i] < done.finish_time[k]
        ]  # fmt: skip
        assert all(not set(mine) & set(places(done, k)) for k in together)


@given(st.lists(JOB, min_size=2, max_size=40), st.integers(1, 80), st.data())
def test_decisions_do_not_depend_on_the_future(rows: list[Any], machine: int, data: st.DataObject) -> None:
    """Starts until a time do not depend on the run times of jobs that have not ended by then."""
    jobs = workload(rows)
    done = replay(jobs, machine)
    then = data.draw(st.sampled_from(sorted({*jobs.submit_time.tolist()})))
    going = ~(done.finish_time <= then)
    other = np.where(going, jobs.run_time + 1.0, jobs.run_time)
    late = np.where(going, jobs.walltime, np.minimum(jobs.run_time, jobs.walltime))
    again = replay(replace(jobs, run_time=np.maximum(other, 0.0)), machine)
    began = done.start_time <= then
    unchanged = began & (done.start_time + np.where(going, np.minimum(jobs.run_time, late), 0.0) >= 0)
    assert np.array_equal(again.start_time[unchanged], done.start_time[unchanged])


def test_table_of_pieces_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second resource is free repeatedly, so jobs have many pieces."""
    rows = [(0.0, 1.0 + (i % 2) * 1000.0, 2000.0, 1) for i in range(128)]
    rows += [(2.0 if not i else 0.0, 1.0, 1.0, 64) for i in range(40)]
    jobs, grown = workload(rows), list[int]()
    where = "pilotfish.simulate.replay.compiled_replay.grow"
    monkeypatch.setattr(where, lambda world: (grown.append(len(world.pieces)), grow(world))[1])
    done = replay(jobs, 128)
    assert grown and done.piece_count.max() == 64
    assert np.array_equal(done.start_time, plain(jobs, 128)[0], equal_nan=True)


def test_pauses_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(4)
    rows = [(float(draw.integers(0, 3)), float(draw.integers(0, 9)), 9.0, int(draw.integers(1, 9))) for _ in range(300)]
    whole, seen = replay(workload(rows), 16), list[float]()
    monkeypatch.setattr(slices, "MOST", 7)
    steps = replay(workload(rows), 16, progress=seen.append)
    assert np.array_equal(whole.start_time, steps.start_time) and np.array_equal(whole.pieces, steps.pieces)
    assert seen == sorted(seen) and len(seen) == 1 + (whole.instants - 1) // 7


def test_progress_is_reported_after_each_slice() -> None:
    jobs, seen, ticks = workload([(1.0, 0.5, 0.5, 1)] * 1000), list[float](), itertools.count()
    replay(jobs, 1, progress=seen.append)
    assert seen[0] == 1.0 and len(seen) == 4  # 1, 8, 64 and 512 of 2,000 instants
    seen.clear()
    replay(jobs, 1, progress=seen.append, clock=lambda: float(next(ticks)))
    assert len(seen) == 1999


@pytest.mark.parametrize("machine", [0, -1, 2**31])
def test_invalid_machines_are_rejected(machine: int) -> None:
    with pytest.raises(ConfigError, match="1 to 2147483584"):
        replay(workload([]), machine)


def test_jobs_without_walltime_do_not_prevent_backfilling() -> None:
    """There is no reservation behind a job without a walltime, so all jobs that fit are backfilled."""
    rows = [(0.0, 5.0, math.inf, 3), (0.0, 1.0, 1.0, 4), (0.0, 9.0, math.inf, 1), (0.0, 1.0, 1.0, 1)]
    assert replay(workload(rows), 4).start_time.tolist() == [0.0, 9.0, 0.0, 5.0]
    half, base = PowerCap(cap=Amount(0.5, share=True)), Easy()
    for policy in (Conservative(), Saving(base, limit=half), Saving(base, keeper=Inertial())):
        with pytest.raises(ConfigError, match="job 1: it has no walltime"):
            replay(workload(rows), 4, policy, powers=TAURUS_POWERS)


def test_an_empty_workload() -> None:
    done = replay(workload([]), 4)
    assert len(done.start_time) == 0 and done.instants == 0


def test_a_job_of_zero_run_time_ends_at_its_start_and_another_pass_follows() -> None:
    done = replay(workload([(0.0, 0.0, 5.0, 4), (0.0, 1.0, 1.0, 4)]), 4)
    assert done.start_time.tolist() == [0.0, 0.0] and done.finish_time.tolist() == [0.0, 1.0]


def test_jobs_submitted_together_start_by_rank() -> None:
    """Also if another job waits before them, and only the last of them is examined directly."""
    rows = [(0.0, 0.0, 0.0, 1)] * 13 + [(0.0, 0.0, 0.0, 3), (0.0, 2.0, 2.0, 6), (1.0, 0.0, 0.0, 1), (0.0, 0.0, 0.0, 1)]
    done = replay(workload(rows), 8, Easy("largest"))
    assert [places(done, i) for i in (15, 16)] == [[6], [7]]


def test_a_job_larger_than_the_machine_is_rejected_and_blocks_no_other() -> None:
    done = replay(workload([(0.0, 5.0, 5.0, 9), (0.0, 1.0, 1.0, 4)]), 4)
    assert done.rejected.tolist() == [True, False] and math.isnan(done.start_time[0]) and done.start_time[1] == 0.0


def test_settings_have_the_names_and_types_of_the_options_and_of_the_machine() -> None:
    hints = {name: hint.__forward_arg__ for name, hint in ReplaySettings.__annotations__.items()}
    of_machine = {name: Machine.__annotations__[name] for name in ("groups", "powers", "network")}
    assert hints == ReplayOptions.__annotations__ | of_machine

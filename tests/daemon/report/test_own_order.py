"""Turnarounds in the resource manager's own order: simulated after the jobs have ended, with what they really took."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.report.accuracy import ENOUGH_JOBS, turnaround_gain
from pilotfish.daemon.report.own_order import own_turnarounds, with_own_order
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome, QueueRecord
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

NOW = 1e6
SIX = Cluster("six", tuple(Node(f"n{i}", NodeType("t", 4, 1e9, 1e9)) for i in range(6)))


def record(name: str, submit: float, start: float, run: float | None, size: int = 4, **more: float) -> QueueRecord:
    end = None if run is None else NOW + start + run
    times = {"submit_time": NOW + submit, "start_time": NOW + start, "finish_time": end}
    return QueueRecord(f"slurm/{name}", size=size, **{"walltime": 3600.0, **times, **more})


def outcome(of: QueueRecord, forecast_s: float) -> ForecastOutcome:
    assert of.start_time is not None and of.finish_time is not None and of.submit_time is not None
    took = of.finish_time - of.submit_time
    return ForecastOutcome(of.key, of.finish_time, forecast_s, of.finish_time - of.start_time, turnaround_s=took)


@pytest.mark.parametrize("forecast_s", [5.0, 50.0, 3600.0])
def test_a_wait_that_we_caused_is_a_loss_however_wrong_forecasts_were(forecast_s: float) -> None:
    """Jobs of 5 s that waited for 15 s while nodes were idle."""
    records = [record(f"{i}", 60.0 * i, 60.0 * i + 15.0, 5.0) for i in range(ENOUGH_JOBS)]
    jobs = with_own_order([outcome(each, forecast_s) for each in records], records, SIX, NOW)
    gain = turnaround_gain(jobs)
    assert gain is not None and (gain.turnaround_s, gain.plain_turnaround_s) == (20.0, 5.0)


@pytest.mark.parametrize("forecast_s", [5.0, 50.0, 3600.0])
def test_no_order_gains_where_each_job_has_a_node(forecast_s: float) -> None:
    """Five jobs of 20 s at a time, on six equal nodes."""
    records = [record(f"{i}", 60.0 * (i // 5), 60.0 * (i // 5), 20.0) for i in range(ENOUGH_JOBS)]
    jobs = with_own_order([outcome(each, forecast_s) for each in records], records, SIX, NOW)
    gain = turnaround_gain(jobs)
    assert gain is not None and gain.turnaround_s == gain.plain_turnaround_s == 20.0


def test_a_better_order_is_a_gain_and_other_jobs_take_part() -> None:
    """One core; a job of 100 s, which runs, is followed by one of 100 s, and by one of 10 s that was placed first."""
    records = [record("a", 0.0, 0.0, 100.0, 1), record("b", 1.0, 110.0, 100.0, 1), record("c", 2.0, 100.0, 10.0, 1)]
    assert own_turnarounds(records, 1, NOW + 210.0) == {"slurm/a": 100.0, "slurm/b": 199.0, "slurm/c": 208.0}


def test_jobs_that_still_run_take_their_cores_and_have_no_turnaround() -> None:
    records = [record("a", 0.0, 0.0, None, 1), record("b", 1.0, 50.0, 10.0, 1), record("large", 0.0, 0.0, 5.0, 9)]
    records.append(replace(record("early", 0.0, 0.0, 1.0), submit_time=None))
    assert own_turnarounds(records, 1, NOW + 60.0) == {"slurm/b": 69.0}
    assert own_turnarounds([], 1, NOW) == {}


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50), st.floats(1, 50)), min_size=1, max_size=8))
def test_without_contention_a_turnaround_is_the_run_time(jobs: list[tuple[float, float, float]]) -> None:
    records = [record(f"{i}", submit, submit + wait, run, 1) for i, (submit, wait, run) in enumerate(jobs)]
    turnarounds = own_turnarounds(records, len(jobs), NOW + 1000.0)
    assert list(turnarounds.values()) == pytest.approx([run for *_, run in jobs], abs=1e-6)

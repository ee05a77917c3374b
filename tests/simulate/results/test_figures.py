"""Metrics of a recorded run equal those of the replay; power is the derivative of the energy."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.results_read import read_run
from pilotfish.formats.replays.results_write import write_results
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.results.figures import distribution, figures
from pilotfish.simulate.results.recorded_run import Energy, Jobs, RecordedRun
from pilotfish.simulate.results.timeseries import joules_at, watts_over

#: Milliseconds, in seconds.
MOMENT = st.integers(0, 10**7).map(lambda value: value / 1000)
ROWS = st.lists(
    st.tuples(st.floats(0, 1e4), st.floats(0, 1e3), st.floats(0, 1e3), st.integers(1, 9)), min_size=1, max_size=30
)


def workload(rows: list[tuple[float, float, float, int]]) -> Workload:
    submit, run, wall, size = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Workload("w", np.arange(len(rows)), submit, run, wall, size)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_metrics_survive_writing_and_reading(rows: list[tuple[float, float, float, int]], tmp_path_factory) -> None:
    folder: Path = tmp_path_factory.mktemp("run")
    done = replay(workload(rows), 8)
    said = summarise(done)
    write_results(folder, done, said, {"policy": "easy", "machine": 8})
    run = read_run(folder)
    assert (run.workload, run.policy, run.machine, run.sure) == ("w", "easy", 8, True)
    np.testing.assert_array_equal(run.jobs.start, done.start_time)
    np.testing.assert_array_equal(run.jobs.held[run.jobs.ran], run.jobs.size[run.jobs.ran])
    assert run.jobs.ran.tolist() == (~done.rejected).tolist()
    assert (run.jobs.ending == 1).sum() == said.nb_jobs_killed
    found, wanted = asdict(figures(run)), asdict(said)
    for name, other in (("mean_waiting", "mean_waiting_time"), ("mean_bounded_slowdown",) * 2, ("makespan",) * 2,
                        ("utilisation",) * 2):  # fmt: skip
        assert found[name] == (wanted[other] if wanted[other] is None else pytest.approx(wanted[other], rel=1e-9))


def test_a_window_takes_the_jobs_submitted_in_it(tmp_path: Path) -> None:
    done = replay(workload([(0.0, 10.0, 10.0, 8), (5.0, 10.0, 10.0, 8), (50.0, 10.0, 10.0, 4)]), 8)
    write_results(tmp_path, done, summarise(done), {"machine": 8})
    found = figures(read_run(tmp_path), (5.0, 50.0))
    assert (found.mean_waiting, found.makespan, found.utilisation) == (5.0, 20.0, pytest.approx(15 / 45))
    assert found.joules is None
    nothing = figures(read_run(tmp_path), (60.0, 61.0))
    assert (nothing.mean_waiting, nothing.makespan, nothing.utilisation) == (None, None, 0.0)


@settings(deadline=None)
@given(st.lists(st.tuples(MOMENT, st.floats(0, 1e6)), min_size=1, max_size=20),
       st.lists(MOMENT, min_size=2, max_size=20, unique=True))  # fmt: skip
def test_power_integrates_to_the_energy(parts: list[tuple[float, float]], cuts: list[float]) -> None:
    long, grown = np.array(parts).T
    energy = Energy(np.cumsum(long), np.cumsum(grown))
    edges = np.unique(np.concatenate([energy.time[[0, -1]], np.clip(cuts, energy.time[0], energy.time[-1])]))
    if len(edges) > 1:
        inside = joules_at(energy, edges[[0, -1]])
        used = float((watts_over(energy, edges) * np.diff(edges)).sum())
        assert used == pytest.approx(inside[1] - inside[0], rel=1e-9, abs=1e-3)


def test_energy_of_a_window() -> None:
    energy, empty = Energy(np.array([10.0, 20.0, 40.0]), np.array([5.0, 55.0, 75.0])), np.empty(0)
    jobs = Jobs(*[empty] * 6, pieces=np.empty((0, 2), np.int64), owner=empty.astype(np.int64))
    run = RecordedRun("w", "p", 4, True, jobs, energy=energy)
    windows = None, (0.0, 15.0), (15.0, 30.0), (50.0, 60.0)
    assert [figures(run, window).joules for window in windows] == [70, 25, 35, None]
    assert figures(replace(run, joules=90.0)).joules == 90.0 and figures(replace(run, energy=None)).joules is None


def test_power_is_nan_outside_of_the_measured_time() -> None:
    energy = Energy(np.array([10.0, 20.0]), np.array([0.0, 50.0]))
    np.testing.assert_array_equal(joules_at(energy, np.array([9.0, 15.0, 21.0])), [np.nan, 25.0, np.nan])
    np.testing.assert_array_equal(watts_over(energy, np.array([0.0, 5.0, 15.0, 30.0])), [np.nan, 5.0, 5.0])
    assert np.isnan(watts_over(Energy(np.empty(0), np.empty(0)), np.array([0.0, 1.0]))).all()


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=2000))
def test_distribution_is_exact_at_its_points_and_has_both_ends(values: list[float]) -> None:
    x, y = distribution(np.array(values), 64)
    assert len(x) <= 64 and x[0] == min(values) and (x[-1], y[-1]) == (max(values), 1.0)
    for value, share in zip(x, y, strict=True):
        assert share == pytest.approx(np.mean(np.array(values) <= value))

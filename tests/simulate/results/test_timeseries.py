"""Step functions: means preserve the area, and extremes are values of the function."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.results import timeseries
from pilotfish.simulate.results.recorded_run import DONE, REJECTED, Jobs, RecordedRun, StateCounts, span

#: Milliseconds, in seconds.
TIME = st.integers(0, 10**9).map(lambda value: value / 1000)
ROWS = st.lists(st.tuples(TIME, TIME, TIME, st.integers(1, 50)), max_size=30)
CUTS = st.lists(st.integers(-(10**8), 3 * 10**9).map(lambda value: value / 1000), min_size=2, max_size=40, unique=True)


def jobs_of(rows: list[tuple[float, float, float, int]]) -> Jobs:
    """Return jobs from rows of (submission, wait, run time, size)."""
    submit, wait, run, size = (np.array(column, float) for column in (zip(*rows, strict=True) if rows else [[]] * 4))
    pieces = np.stack([np.zeros(len(rows)), size - 1], axis=1).astype(np.int64)
    start = submit + wait
    names = np.array([str(i) for i in range(len(rows))], object)
    ending = np.full(len(rows), DONE, np.int8)
    return Jobs(names, submit, start, start + run, size.astype(np.int64), ending, pieces, np.arange(len(rows)))


def at(function: timeseries.StepFunction, time: float) -> int:
    """Return the value at a time by scanning all steps."""
    found = [value for begin, value in zip(function.times, function.values, strict=True) if begin <= time]
    return int(found[-1]) if found else 0


@settings(deadline=None)
@given(ROWS, CUTS)
def test_means_preserve_core_seconds(rows: list[tuple[float, float, float, int]], cuts: list[float]) -> None:
    jobs, inner = jobs_of(rows), np.sort(cuts)
    edges = np.concatenate([[-2e5], inner, [4e6]])
    done = float(((jobs.finish - jobs.start) * jobs.held).sum())
    drawn = float((timeseries.busy(jobs).mean_over(edges) * np.diff(edges)).sum())
    assert drawn == pytest.approx(done, rel=1e-9, abs=1e-3)
    waited = float(((jobs.start - jobs.submit) * jobs.size).sum())
    drawn = float((timeseries.wanted(jobs).mean_over(edges) * np.diff(edges)).sum())
    assert drawn == pytest.approx(waited, rel=1e-9, abs=1e-3)


@settings(deadline=None)
@given(ROWS, CUTS)
def test_means_lie_between_the_extremes_which_are_values(
    rows: list[tuple[float, float, float, int]], cuts: list[float]
) -> None:
    function, edges = timeseries.waiting(jobs_of(rows)), np.sort(cuts)
    low, high = function.extremes_over(edges)
    mean = function.mean_over(edges)
    assert (mean >= low - 1e-6).all() and (mean <= high + 1e-6).all()
    for i, (begin, end) in enumerate(pairwise(edges)):
        within = function.times[(function.times > begin) & (function.times < end)]
        inside = [at(function, time) for time in (begin, *within)]
        assert (low[i], high[i]) == (min(inside), max(inside))


def test_changes_at_the_same_time_are_summed() -> None:
    function = timeseries.busy(jobs_of([(0, 0, 10, 3), (0, 10, 5, 4)]))
    assert function.times.tolist() == [0, 10, 15] and function.values.tolist() == [3, 4, 0]


def test_no_jobs_give_zero() -> None:
    function = timeseries.busy(jobs_of([]))
    assert function.mean_over(np.array([0.0, 1.0, 2.0])).tolist() == [0, 0]
    assert [each.tolist() for each in function.extremes_over(np.array([0.0, 1.0]))] == [[0], [0]]


def test_rejected_jobs_neither_wait_nor_run() -> None:
    jobs = jobs_of([(0, 5, 10, 3), (1, 1, 1, 1)])
    jobs.ending[1], jobs.start[1], jobs.finish[1] = REJECTED, np.nan, np.nan
    assert timeseries.busy(jobs).values.tolist() == [3, 0] and timeseries.waiting(jobs).values.tolist() == [1, 0]


def test_the_last_of_several_states_at_one_time_counts() -> None:
    counts = np.array([[4, 0, 0, 0, 0], [0, 0, 0, 4, 0], [0, 0, 0, 1, 3], [2, 1, 0, 0, 1]])
    found = timeseries.states(StateCounts(np.array([0.0, 0.0, 5.0, 9.0]), counts))
    assert [function.mean_over(np.array([0.0, 10.0])).tolist() for function in found] == [
        [0.2], [0.1], [0.0], [2.4], [1.3]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "seen"), [([], (0.0, 1.0)), ([(7, 0, 0, 1)], (7.0, 8.0)), ([(7, 1, 2, 1)], (7.0, 10.0))]
)
def test_span(rows: list[tuple[float, float, float, int]], seen: tuple[float, float]) -> None:
    assert span([RecordedRun("w", "p", 50, True, jobs_of(rows))]) == seen

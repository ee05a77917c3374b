"""Jobs that compute and communicate: their selection and their amounts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.communication import Factors, JobSelection, communicating
from pilotfish.simulate.model.workload import Workload


def trace(run: list[float], size: list[int]) -> Workload:
    """Return jobs one second apart, whose users request ten times what they need."""
    count = len(run)
    numbers, times = np.arange(1, count + 1), np.array(run)
    return Workload("t", numbers, numbers * 1.0, times, times * 10.0, np.array(size), more={"user": numbers * 1.0})


def test_the_formulas_of_the_thesis() -> None:
    made = communicating(trace([100.0, 7.0], [3, 2]), Factors(1e6, 2e7, 4.0))
    assert made.more["computation"].tolist() == [1e8, 7e6] and made.more["communication"].tolist() == [2e9, 1.4e8]
    assert made.walltime.tolist() == [1000.0, 70.0]  # the requested time is more than 4 times the run time
    assert communicating(trace([100.0], [3])).walltime.tolist() == [1e5]
    assert made.submit_time.tolist() == [0.0, 0.0] and made.more["user"].tolist() == [1.0, 2.0]
    assert communicating(trace([5.0, 5.0], [1, 1]), arrivals=True).submit_time.tolist() == [1.0, 2.0]


@given(
    st.lists(st.tuples(st.floats(0.0, 1e5), st.integers(1, 32)), min_size=1, max_size=40),
    st.integers(1, 10),
    st.integers(0, 99),
)
def test_only_jobs_within_the_bounds_are_picked(jobs: list[tuple[float, int]], count: int, seed: int) -> None:
    whole = trace([run for run, _ in jobs], [size for _, size in jobs])
    pick = JobSelection(count, least=3600.0, most=86400.0, largest=16)
    fitting = [i + 1 for i, (run, size) in enumerate(jobs) if 3600.0 <= run <= 86400.0 and size <= 16]
    if len(fitting) < count:
        with pytest.raises(ConfigError, match=f"{len(fitting)} of its jobs ran"):
            pick.of(whole, seed)
        return
    chosen = pick.of(whole, seed)
    ids = chosen.id.tolist()
    assert len(ids) == count and ids == sorted(set(ids)) and set(ids) <= set(fitting)
    assert chosen.run_time.tolist() == [jobs[i - 1][0] for i in ids] and pick.of(whole, seed).id.tolist() == ids


def test_all_jobs_are_picked_equally_often() -> None:
    whole = trace([5000.0] * 10, [1] * 10)
    times = np.zeros(11)
    for seed in range(2000):
        times[JobSelection(3).of(whole, seed).id] += 1
    assert np.abs(times[1:] - 600).max() < 100  # five standard errors

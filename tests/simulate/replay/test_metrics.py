"""The summary of a replay: its percentiles are those of numpy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.metrics import TAU_S, summarise
from pilotfish.simulate.replay.replay import replay

JOBS = st.lists(st.tuples(st.floats(0, 50), st.floats(0.5, 40), st.integers(1, 3)), min_size=1, max_size=40)


@given(JOBS)
def test_percentiles(jobs: list[tuple[float, float, int]]) -> None:
    gaps, run, size = map(np.array, zip(*jobs, strict=True))
    workload = Workload("w", np.arange(len(jobs)), np.cumsum(gaps), run, run + 1.0, size)
    done = replay(workload, 4, Easy())
    found = summarise(done, None)
    waiting, ran = done.start_time - done.submit_time, done.finish_time - done.start_time
    slowdown = np.maximum(1.0, (done.finish_time - done.submit_time) / np.maximum(ran, TAU_S))
    for name, values in (("waiting_time", waiting), ("bounded_slowdown", slowdown)):
        for part, percent in (("median", 50), ("p95", 95), ("p99", 99)):
            assert getattr(found, f"{part}_{name}") == np.percentile(values, percent)


def test_percentiles_over_no_jobs() -> None:
    none = np.zeros(0)
    found = summarise(replay(Workload("w", none.astype(int), none, none, none, none.astype(int)), 4, Easy()), None)
    assert found.median_waiting_time is None and found.p99_bounded_slowdown is None and found.p95_stretch is None


@pytest.mark.parametrize("run", [[4.0], [4.0, 8.0]])
def test_no_job_is_slowed_down(run: list[float]) -> None:
    count = len(run)
    workload = Workload("w", np.arange(count), np.zeros(count), np.array(run), np.array(run), np.ones(count, int))
    assert summarise(replay(workload, 4, Easy()), None).p95_stretch == 1.0

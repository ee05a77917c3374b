"""Delays of placements: what a replay draws is of the sample, and its mean is as sure as the measurements are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.slurm.start_delay import StartDelay

SECONDS = st.lists(st.floats(0.0, 1e4), min_size=1, max_size=50).map(tuple)


@given(SECONDS, st.integers(0, 50), st.integers(0, 100), st.integers(0, 9))
def test_each_job_draws_a_delay_of_the_sample_and_again_the_same(
    seconds: tuple[float, ...], measured: int, jobs: int, seed: int
) -> None:
    delay = StartDelay(seconds, measured)
    drawn = delay.drawn(jobs, seed)
    assert len(drawn) == jobs and set(drawn.tolist()) <= set(seconds)
    assert drawn.tolist() == delay.drawn(jobs, seed).tolist()
    low, high = delay.within_s
    assert min(seconds) <= low <= high <= max(seconds)


def test_few_measurements_leave_the_mean_of_a_replay_open() -> None:
    seconds = tuple(np.random.default_rng(0).exponential(10.0, 1000).tolist())
    wide, narrow = (
        np.std([StartDelay(seconds, measured).drawn(5000, seed).mean() for seed in range(50)])
        for measured in (10, 1000)
    )
    assert wide > 5 * narrow

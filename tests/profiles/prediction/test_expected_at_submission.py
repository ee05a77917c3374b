"""Run times that were expected at submission rest on jobs that had really ended by then, and on nothing later."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.prediction.site_run_times import expected_at_submission
from pilotfish.simulate.slurm.site import JobRecord, SiteJob


def job(number: int, submit: float, run_s: float, wait_s: float = 0.0) -> SiteJob:
    start = submit + wait_s
    run = JobRecord("COMPLETED", submit, start, start + run_s)
    return SiteJob(str(number), "sim", "ann", "x", "normal", ("batch",), submit, (run,), limit_min=100)


def test_the_first_job_is_unknown_and_later_ones_run_as_those_before() -> None:
    expected = expected_at_submission([job(row, 1000.0 * row, 300.0) for row in range(6)])
    assert np.isnan(expected[0]) and np.allclose(expected[1:], 300.0)


def test_a_job_that_still_runs_teaches_nothing() -> None:
    assert np.isnan(expected_at_submission([job(0, 0.0, 500.0), job(1, 400.0, 500.0)])).all()


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 900), st.integers(0, 300)), min_size=2, max_size=8))
@settings(max_examples=30, deadline=None)
def test_the_future_changes_no_expectation(rows: list[tuple[int, int, int]]) -> None:
    """Jobs that end after a submission may have run for any time."""
    jobs = [job(number, float(submit), float(run), float(wait)) for number, (submit, run, wait) in enumerate(rows)]
    expected = expected_at_submission(jobs)
    for number, one in enumerate(jobs):
        ended = [other.runs[0].end is not None and other.runs[0].end <= one.submit for other in jobs]
        other = [
            past if is_over or past is one else job(row, past.submit, 4000.0, 300.0)
            for row, (past, is_over) in enumerate(zip(jobs, ended, strict=True))
        ]
        np.testing.assert_equal(expected_at_submission(other)[number], expected[number])

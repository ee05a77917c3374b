"""Busy periods and their makespans, against a plain count."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.slurm.busy_periods import WAITED_S, BusyPeriods

jobs = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from([0, 59, 60, 100, 400]), st.integers(1, 300), st.booleans()),
    max_size=12,
)


def plain_periods(rows: list[tuple[int, int, int, bool]]) -> list[set[int]]:
    """Return the jobs of each period: a second is busy if a job waits then that waits a minute or more."""
    submits = [60 * submit for submit, *_ in rows]
    busy = {
        second for submit, (_, wait, _, counted) in zip(submits, rows, strict=True)
        if counted and wait >= WAITED_S for second in range(submit, submit + wait + 1)
    }  # fmt: skip
    periods = dict[int, set[int]]()
    for row, (submit, (*_, counted)) in enumerate(zip(submits, rows, strict=True)):
        if counted and submit in busy:
            begin = submit
            while begin - 1 in busy:
                begin -= 1
            periods.setdefault(begin, set()).add(row)
    return [members for _, members in sorted(periods.items()) if len(members) > 1]


@given(jobs)
def test_periods_and_makespans_are_those_of_a_plain_count(rows: list[tuple[int, int, int, bool]]) -> None:
    submit, wait, run, counted = (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 4
    submit, counted = 60.0 * submit, counted.astype(bool)
    # Periods that touch are one in the plain count: a gap of less than a second is none here.
    busy = BusyPeriods.of(submit, wait.astype(float), counted)
    periods = [set(busy.job[busy.period == number].tolist()) for number in range(busy.number)]
    assert periods == plain_periods(rows)
    makespans = busy.makespans(np.array([submit + wait + run]))
    expected = [
        max(submit[row] + wait[row] + run[row] for row in members) - min(submit[row] for row in members)
        for members in periods
    ]
    assert makespans[~np.isnan(makespans)].tolist() == expected


def test_a_site_without_waiting_jobs_is_never_busy() -> None:
    busy = BusyPeriods.of(np.arange(3.0), np.full(3, 59.0), np.ones(3, bool))
    assert busy.number == 0 and all(map(math.isnan, busy.makespans(np.ones((1, 3)))[0]))

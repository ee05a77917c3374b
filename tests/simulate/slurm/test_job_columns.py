"""Columns of jobs: the same values as a tuple of jobs, and tables that are made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.slurm.job_columns import Coded, SiteJobs, distinct, spans
from pilotfish.simulate.slurm.site import JobRecord, SiteJob

from .small_sites import job

TIMES = st.none() | st.integers(0, 2**33).map(float)
RUNS = st.builds(
    JobRecord, state=st.sampled_from(["COMPLETED", "FAILED"]), eligible=TIMES, start=TIMES, end=TIMES,
    partition=st.sampled_from(["main", ""]), nodes=st.sampled_from([(), ("n1",), ("n2", "n1")]),
    cpus=st.integers(0, 9), priority=st.none() | st.integers(0, 2**53), started_by=st.sampled_from(["", "main"]),
)  # fmt: skip
JOBS = st.builds(
    SiteJob, id=st.text(max_size=3), name=st.text(max_size=3), user=st.sampled_from("ab"), account=st.sampled_from("xy"),
    qos=st.sampled_from("ab"), partitions=st.sampled_from([(), ("main",)]), submit=st.integers(0, 2**33).map(float),
    runs=st.lists(RUNS, max_size=3).map(tuple), limit_min=st.none() | st.integers(0, 9), begin=TIMES, released=TIMES,
    deadline=TIMES, licences=st.sampled_from([{}, {"a": 1}, {"a": 2}]), array=st.sampled_from(["", "7"]),
    task=st.integers(-1, 9), dependency=st.sampled_from(["", "afterok:1"]), run_s=st.sampled_from([1.0, float("inf")]),
)  # fmt: skip


@given(st.lists(JOBS, max_size=12).map(tuple))
def test_columns_are_a_sequence_of_the_same_jobs(jobs: tuple[SiteJob, ...]) -> None:
    columns = SiteJobs.of(jobs)
    assert columns == jobs and jobs == columns and tuple(columns) == jobs
    assert [columns[row] for row in range(-len(jobs), len(jobs))] == [*jobs, *jobs]
    assert columns[1:-1:2] == jobs[1:-1:2]
    assert SiteJobs.of(columns) is columns and SiteJobs.of(list(jobs)) == columns
    assert columns.last_run.tolist() == [
        sum(len(one.runs) for one in jobs[: row + 1]) - 1 if jobs[row].runs else -1 for row in range(len(jobs))
    ]


def test_jobs_that_request_the_same_share_a_pattern() -> None:
    jobs = tuple(job(id=f"{number}", user=f"u{number}", submit=float(number)) for number in range(100))
    assert len(SiteJobs.of(jobs).patterns) == 1
    assert len(SiteJobs.of((*jobs, replace(jobs[0], tasks=2))).patterns) == 2


@given(st.lists(JOBS, min_size=1, max_size=5), st.integers(0, 4), st.data())
def test_another_job_is_not_equal(jobs: list[SiteJob], place: int, data: Any) -> None:
    others = [*jobs]
    others[place % len(jobs)] = data.draw(JOBS)
    assert (SiteJobs.of(jobs) == SiteJobs.of(others)) == (jobs == others)


@given(st.data(), st.integers(0, 12), st.integers(1, 4))
def test_distinct_combinations(data: Any, rows: int, columns: int) -> None:
    numbers = st.integers(-2, 2) | st.sampled_from([-(2**40), 2**40])
    table = [data.draw(st.lists(numbers, min_size=rows, max_size=rows)) for _ in range(columns)]
    combinations = list(zip(*table, strict=True))
    first, codes = distinct(*(np.array(column, np.int64) for column in table))
    assert [combinations[row] for row in first] == list(dict.fromkeys(combinations))
    assert [combinations[first[code]] for code in codes] == combinations
    assert first.tolist() == [combinations.index(one) for one in dict.fromkeys(combinations)]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 4)), max_size=8))
def test_spans(parts: list[tuple[int, int]]) -> None:
    starts, counts = (
        (np.array(column, np.int64) for column in zip(*parts, strict=True)) if parts else (np.zeros(0, int),) * 2
    )
    expected = [start + step for start, number in parts for step in range(number)]
    assert spans(starts, counts).tolist() == expected


@given(st.lists(st.text(max_size=2), max_size=9))
def test_coded_columns(texts: list[str]) -> None:
    column = Coded.of(texts)
    assert list(column) == texts and [column[row] for row in range(len(texts))] == texts
    part = Coded(column.values, column.codes[::2]).compact()
    assert list(part) == texts[::2] and list(part.values) == list(dict.fromkeys(texts[::2]))

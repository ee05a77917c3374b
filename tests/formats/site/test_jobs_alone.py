"""The law of the reader of jobs: a job among others is what it is when its records are read alone."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import SiteJob
from tests.support import effort
from tests.support.slurm_site_files import COLUMNS, DONE, records, write_site

_TIMES = [f"2026-03-02T{hour:02d}:{minute:02d}:10" for hour in (6, 7, 9) for minute in (0, 30)]
_OPTIONS = [
    "-n2", "-N1-3", "--exclusive", "--exclusive=user", "-t 10", "--mem=3G", "--mem-per-cpu=100", "-p fast", "-J a b", "-o x",
    "-d afterok:1", "--dependency=none", "-b now+60", "--begin=teatime", "--deadline=2026-03-03", "--nice=5", "-L a:2",
    "--no-requeue", "--requeue", "-A lab", "-A other", "--time-min=3", "-x n1", "-C thin", "--frob", "-G 4", "-c 4", "-N0x",
    "-a 1-9%3", ":", "-H",
]  # fmt: skip
_CHOICES = {
    "JobID": ["1", "2", "7", "8", "9", "10", "3_1", "3_2", "4_[1-2%5]", "5+0", "5+1", "007", "6.batch", "x"],
    "JobName": ["job", "a b", " job", "x"], "User": ["ann", "bob"], "Account": ["lab", "", "other"], "QOS": ["normal", "high"],
    "Partition": ["main", "fast", "main,fast", "gone"],
    "State": ["COMPLETED", "TIMEOUT", "CANCELLED by 1", "PENDING", "RESIZING", "PREEMPTED"],
    "Submit": _TIMES, "Eligible": [*_TIMES, "Unknown"], "Start": [*_TIMES, "Unknown", "None"], "End": [*_TIMES, "Unknown"],
    "ElapsedRaw": ["90", "0", "", "x"], "TimelimitRaw": ["10", "", "UNLIMITED", "Partition_Limit"], "ReqNodes": ["1", "2", ""],
    "AllocNodes": ["1", "0"], "ReqCPUS": ["2", "4", "", "many"], "AllocCPUS": ["2", "8", "16", "0"],
    "ReqMem": ["2000M", "4000Mn", "2Gc", "0"], "ReqTRES": ["cpu=2,mem=2000M,node=1", "cpu=4", ""],
    "NodeList": ["n1", "n[1-2]", "None assigned", "n[2,1]", "n[1-"], "Priority": ["1000", "", "x"],
    "Flags": ["SchedMain", "SchedBackfill", ""],
    "SubmitLine": ["", "sbatch job.sh"],
}  # fmt: skip
_LINES = st.lists(st.sampled_from(_OPTIONS), max_size=3).map(lambda words: " ".join(("sbatch", *words)))
_FIELDS = st.sampled_from([(name, value) for name, values in _CHOICES.items() for value in values])
_CHANGES = st.lists(_FIELDS, max_size=2).map(dict[str, str])
_IDS = st.sampled_from(_CHOICES["JobID"])


@st.composite
def _dumps(draw: st.DrawFn) -> list[dict[str, str]]:
    """Draw records that differ in few fields, so that jobs share what they can."""
    base = {**DONE, **draw(_CHANGES), "SubmitLine": draw(_LINES)}
    lines = [base["SubmitLine"], draw(_LINES), base["SubmitLine"] + " " + draw(st.sampled_from(_OPTIONS))]
    return [
        {**base, **draw(_CHANGES), "JobID": draw(_IDS), "SubmitLine": draw(st.sampled_from(lines))}
        for _ in range(draw(st.integers(0, 8)))
    ]


#: A job whose end is that of the dump, so that no other record changes it.
_LAST = {**DONE, "JobID": "99", "JobName": "last", "End": "2026-03-09T06:00:00", "ElapsedRaw": "90"}


def _jobs(dump: list[dict[str, str]]) -> list[SiteJob]:
    with tempfile.TemporaryDirectory() as name:
        rows = ("|".join(record[column] for column in COLUMNS.split("|")) for record in [*dump, _LAST])
        return [job for job in read_site(write_site(Path(name), sacct_psv=records(*rows))).jobs if job.id != "99"]


def _owner(record: dict[str, str]) -> tuple[str, str, str]:
    """Return what tells jobs apart; tasks of one array are read together."""
    return record["JobID"].partition("_")[0].lstrip("0"), record["User"], record["JobName"].strip()


@settings(max_examples=60, deadline=None)
@given(_dumps())
def test_a_job_is_the_same_alone_and_among_others(dump: list[dict[str, str]]) -> None:
    alone = [job for _, mine in groupby(sorted(dump, key=_owner), key=_owner) for job in _jobs(list(mine))]
    assert sorted(map(str, map(asdict, _jobs(dump)))) == sorted(map(str, map(asdict, alone)))


@settings(max_examples=40, deadline=None)
@given(_dumps())
def test_jobs_are_in_the_order_of_their_submission(dump: list[dict[str, str]]) -> None:
    jobs = _jobs(dump)
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
    starts = [run.start for job in jobs for run in job.runs if run.start is not None]
    assert all(start >= 1772431200.0 for start in starts)


@pytest.mark.parametrize(
    "fields",
    effort.some([
        {}, {"TimelimitRaw": "", "SubmitLine": "sbatch -n2"}, {"JobName": "a b", "SubmitLine": "sbatch -J a b -n4"},
        {"SubmitLine": "sbatch job.sh", "AllocCPUS": "16", "NodeList": "n[1-2]", "Account": "", "End": "Unknown"},
    ]),
)  # fmt: skip
def test_a_change_of_one_field_counts_for_its_job_alone(fields: dict[str, str]) -> None:
    base = {**DONE, **fields}
    dump = [{**base, name: value} for name, values in _CHOICES.items() if name != "JobID" for value in values]
    dump += [{**base, "SubmitLine": base["SubmitLine"].replace(" ", f" {option} ", 1)} for option in _OPTIONS]
    dump = [{**record, "JobID": f"{number}"} for number, record in enumerate(dump, 1000)]
    alone = {job.id: job for record in dump for job in _jobs([record])}
    assert {job.id: job for job in _jobs(dump)} == alone and len(alone) > 90

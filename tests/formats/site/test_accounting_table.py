"""Records of sacct: runs of a job, array tasks, times, missing columns, and odd records."""

from __future__ import annotations

import math
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site, SiteJob
from tests.support.slurm_site_files import COLUMNS, records, row, write_site


def site(folder: Path, *rows: str) -> Site:
    return read_site(write_site(folder, sacct_psv=records(*rows)))


def only(folder: Path, **fields: str) -> SiteJob:
    (job,) = site(folder, row(**fields)).jobs
    return job


def test_a_job_that_completed(tmp_path: Path) -> None:
    job = only(tmp_path)
    (run,) = job.runs
    assert (job.run_s, job.limit_min, job.tasks, job.min_cpus) == (90.0, 10, 2, 2)
    assert (run.start, run.end, run.nodes, run.started_by, run.priority) == (
        1772431210.0, 1772431300.0, ("n1",), "main", 1000,
    )  # fmt: skip


def test_runs_of_a_requeued_job(tmp_path: Path) -> None:
    first = row(State="PREEMPTED", ElapsedRaw="30")
    again = row(Submit="2026-03-02T06:00:41", Start="2026-03-02T06:05:00", End="2026-03-02T06:07:00", ElapsedRaw="120")
    for rows in ((first, again), (again, first)):
        (job,) = site(tmp_path, *rows).jobs
        assert [run.state for run in job.runs] == ["PREEMPTED", "COMPLETED"]
        assert (job.submit, job.run_s) == (1772431200.0, 120.0)


def test_ids_begin_again_some_day(tmp_path: Path) -> None:
    later = row(Submit="2026-05-02T06:00:00", Start="2026-05-02T06:00:10", End="2026-05-02T06:01:40")
    assert [len(job.runs) for job in site(tmp_path, row(), later).jobs] == [1, 1]
    assert len(site(tmp_path, row(), row(User="bob")).jobs) == 2


def test_a_resized_job_is_one_run_and_a_record_twice_is_one_job(tmp_path: Path) -> None:
    first = row(State="RESIZING", ElapsedRaw="40", NodeList="n[1-2]", AllocCPUS="4")
    second = row(Start="2026-03-02T06:00:50", ElapsedRaw="50")
    (job,) = site(tmp_path, first, second).jobs
    assert (len(job.runs), job.run_s, job.runs[0].nodes, job.runs[0].start) == (1, 90.0, ("n1", "n2"), 1772431210.0)
    (job,) = site(tmp_path, row(), row()).jobs
    assert (len(job.runs), job.run_s) == (1, 90.0)


@pytest.mark.parametrize("state", ["TIMEOUT", "NODE_FAIL", "PREEMPTED", "RUNNING"])
def test_jobs_that_would_have_run_on(tmp_path: Path, state: str) -> None:
    assert only(tmp_path, State=state, End="Unknown" if state == "RUNNING" else "2026-03-02T06:01:40").run_s == math.inf


def test_a_job_that_was_cancelled_while_it_waited(tmp_path: Path) -> None:
    end = "2026-03-02T06:30:00"
    for start in ("None", end):  # older versions print the end as the start
        job = only(tmp_path, State="CANCELLED by 1001", Start=start, End=end, NodeList="None assigned", AllocNodes="0",
                   AllocCPUS="0", ElapsedRaw="0")  # fmt: skip
        (run,) = job.runs
        assert (run.state, run.start, run.end, run.nodes) == ("CANCELLED", None, 1772433000.0, ())
        assert job.run_s == math.inf


def test_a_job_that_was_cancelled_while_it_ran(tmp_path: Path) -> None:
    assert only(tmp_path, State="CANCELLED by 0").run_s == 90.0


def test_array_tasks_and_the_rest_that_never_started(tmp_path: Path) -> None:
    line = "sbatch -a 1-10%4 -n1 --wrap=x"
    rest = row(JobID="77_[5-7,9%2]", State="PENDING", Start="Unknown", NodeList="None assigned", SubmitLine=line)
    jobs = site(tmp_path, row(JobID="77_2", SubmitLine=line), rest, row(JobID="77_10", SubmitLine=line)).jobs
    assert [(job.id, job.array, job.task, job.array_limit) for job in jobs] == [
        ("77_2", "77", 2, 4), ("77_5", "77", 5, 2), ("77_6", "77", 6, 2), ("77_7", "77", 7, 2), ("77_9", "77", 9, 2),
        ("77_10", "77", 10, 4),
    ]  # fmt: skip
    assert all(run.start is None for job in jobs[1:5] for run in job.runs)


def test_a_list_of_tasks_that_was_cut_off_or_is_too_long(tmp_path: Path) -> None:
    result = site(tmp_path, row(JobID="7_[1-2,5,...]"), row(JobID="8_[1-9999999]"), row(JobID="9_0"))
    assert [job.id for job in result.jobs] == ["7_1", "7_2", "7_5", "9_0"]
    assert any("1 list of waiting array tasks that Slurm cut off" in sentence for sentence in result.unknown)
    assert any("1 list of more waiting array tasks" in sentence for sentence in result.unknown)


def test_steps_are_no_jobs_and_components_are_told(tmp_path: Path) -> None:
    line = "sbatch -n1 : -n3 x.sh"
    result = site(tmp_path, row(JobID="5+0", SubmitLine=line), row(JobID="5+1", SubmitLine=line), row(JobID="5.batch"))
    assert [(job.id, job.tasks) for job in result.jobs] == [("5+0", 1), ("5+1", 3)]
    assert any("1 record of steps" in sentence for sentence in result.unknown)
    assert any("2 components of heterogeneous jobs" in sentence for sentence in result.unknown)


def test_times_as_epochs_and_in_a_zone(tmp_path: Path) -> None:
    assert only(tmp_path, Submit="1772431200").submit == 1772431200.0
    folder = write_site(tmp_path, sacct_psv=records(row(Submit="2026-10-25T02:30:00", Start="Unknown", End="Unknown")))
    result = read_site(folder, zone=ZoneInfo("Europe/Berlin"))
    assert result.jobs[0].submit == 1792888200.0  # the first pass of the hour, UTC + 2 h
    assert any("1 job submitted in an hour that a change of the clock" in sentence for sentence in result.unknown)


def test_missing_columns_are_told_and_other_columns_ignored(tmp_path: Path) -> None:
    text = "Comment|JobID|Submit|State|Start|End\nx|1|2026-03-02T06:00:00|COMPLETED|2026-03-02T06:00:10|2026-03-02T06:00:15\n"
    result = read_site(write_site(tmp_path, sacct_psv=text))
    assert (result.jobs[0].run_s, result.jobs[0].partitions, result.jobs[0].limit_min) == (5.0, ("main",), None)
    assert any(sentence.startswith("sacct without submitline: options such as") for sentence in result.unknown)
    assert not any("submitted as a script" in sentence for sentence in result.unknown)


def test_odd_records_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = (
        row(JobID="x"), row(JobID="2", Submit="None"), row(JobID="3", Start="yesterday, perhaps"),
        row(JobID="4", NodeList="n[1-"), row(JobID="5", End="2026-03-01T06:00:00"), row(JobID="6", SubmitLine="sbatch -N0x"),
        row(JobID="7", ReqCPUS="many"),
    )  # fmt: skip
    result = site(tmp_path, row(), *odd)
    assert [job.id for job in result.jobs] == ["1"]
    (sentence,) = [sentence for sentence in result.unknown if "sacct.psv: left out" in sentence]
    for part in (
        "1 record without a JobID", "1 record without a time of submission", "3 records with a value that cannot be read",
        "2 jobs with an option or a request that cannot be read",
    ):  # fmt: skip
        assert part in sentence


def test_columns_in_another_order(tmp_path: Path) -> None:
    names = COLUMNS.split("|")
    values = row().split("|")
    text = "\n".join("|".join(reversed(line)) for line in (names, values))
    assert (
        read_site(write_site(tmp_path, sacct_psv=text)).jobs
        == read_site(write_site(tmp_path, sacct_psv=records(row()))).jobs
    )

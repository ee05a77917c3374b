"""Submitting from a login node: whatever happens at whichever sbatch, every job is there once, or none is, or it is
said."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.cli.user_client.client import _make_outputs
from pilotfish.cli.user_client.settings import SubmissionSettings
from pilotfish.cli.user_client.submission_records import BEGUN, TAKEN_BACK, WHOLE, SubmissionRecord, read
from pilotfish.cli.user_client.submit import LOCK_S, NotKnownError, Submitter
from pilotfish.cli.user_client.watch import read_workflows
from pilotfish.simulate.errors import ConfigError, InvalidJobError, PilotfishError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.model.snapshot import JobState
from tests.support.login_slurm import LATE_S, FakeSlurm, Killed

NAMES = "abcd"
AFTER = {"a": "", "b": "a", "c": "", "d": "bc"}
FLOW = Workflow("dag", tuple(Job(n, DEFAULT_PROFILE, tuple(AFTER[n]), command=("true",)) for n in NAMES))
HOLD = dict.fromkeys(NAMES, 600)
FAULTS = st.sampled_from(["", "refused", "lost", "answer", "late", "killed before", "killed after"])


def intent(folder: Path) -> SubmissionRecord:
    return begun(SubmissionRecord("dag.aaaaaa", "k", FLOW, 1_000_000.0, folder / "out", hold=dict(HOLD)), folder)


def begun(record: SubmissionRecord, folder: Path) -> SubmissionRecord:
    """Write the intent and make the folders, as the client does."""
    record.claims.mkdir(parents=True, exist_ok=True)
    record.create(folder)
    return record


def submitter(slurm: FakeSlurm, record: SubmissionRecord, said: list[str] | None = None, **options: Any) -> Submitter:
    user_jobs, to = slurm.own(), SubmissionSettings(patience_seconds=30)
    say = [].append if said is None else said.append
    return Submitter(user_jobs, record, to, say, clock=slurm.clock, sleep=slurm.sleep, wall=slurm.wall, **options)


def attempt(slurm: FakeSlurm, record: SubmissionRecord) -> str:
    """One run of the command; what came of it."""
    if record.stage == TAKEN_BACK:
        fresh = SubmissionRecord(record.id, record.key, record.workflow, slurm.now, record.outputs, hold=dict(HOLD))
        record = begun(replace(fresh, earlier=record.earlier + 1), record.path.parent)
    submission = submitter(slurm, record)
    submission.find_submitted()
    try:
        submission.submit()
    except Killed:
        return "killed"
    except NotKnownError:
        return "not known"
    except PilotfishError:
        return "refused"
    return "whole"


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(1, 10), FAULTS, max_size=6), st.sampled_from([-40.0, 0.0, 40.0]))
def test_every_job_is_there_once_or_none_is(
    tmp_path_factory: pytest.TempPathFactory, faults: dict[int, str], skew: float
) -> None:
    slurm, folder = FakeSlurm(faults, skew), tmp_path_factory.mktemp("s")
    record = intent(folder)
    for _ in range(12):
        came = attempt(slurm, record)
        record = read(record.path)
        if came == "whole":
            assert slurm.alive() == sorted(map(record.key_of, NAMES)) and record.stage == WHOLE
            break
        if came == "refused":
            assert not slurm.alive() and record.stage == TAKEN_BACK
        else:
            assert record.stage == BEGUN and len(set(slurm.alive())) == len(slurm.alive())
        slurm.sleep(20.0)
    assert came == "whole"
    held = [job["begin"] - job["submit"] for job in slurm.jobs.values() if job["State"] == "PENDING"]
    assert all(600 - LATE_S - 1 <= hold <= 601 for hold in held)  # late: counted from when it was asked for


LATE = st.integers(1, 300).map("late:{}".format)


@pytest.mark.real
@settings(max_examples=60, deadline=None)
@example({1: "late:11", 3: "refused"}, Random(0))  # the first job comes when its submission has been taken back
@given(st.dictionaries(st.integers(1, 10), FAULTS | LATE, max_size=6), st.randoms(use_true_random=False))
def test_however_late_slurm_carries_a_submission_out_each_job_runs_once(
    tmp_path_factory: pytest.TempPathFactory, faults: dict[int, str], random: Random
) -> None:
    slurm, folder = FakeSlurm(faults), tmp_path_factory.mktemp("s")
    trail = folder / "trail"
    jobs = (Job(n, DEFAULT_PROFILE, command=("sh", "-c", f"echo {n} >> {trail}")) for n in NAMES)
    record = begun(
        SubmissionRecord("w.a", "k", Workflow("w", tuple(jobs)), slurm.now, folder / "out", hold=dict(HOLD)), folder
    )
    while attempt(slurm, record) != "whole":
        record = read(record.path)
        slurm.sleep(20.0)
    slurm.sleep(600.0)  # what was given up is there now, too
    waiting = [number for number, job in slurm.jobs.items() if job["State"] == "PENDING"]
    started = random.sample(waiting, len(waiting)) + random.sample(waiting, 2)  # two are requeued
    for number in started:
        environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": str(number)}
        ours = number in read(record.path).ids.values()  # others do nothing, as cancelled or as submitted twice
        subprocess.run(["sh", "-c", slurm.jobs[number]["wrap"]], env=environment, check=ours, capture_output=True)
    requeued = [key for number in started[-2:] for key, job in read(record.path).ids.items() if job == number]
    assert sorted(trail.read_text().split()) == sorted([*NAMES, *requeued])


def test_the_status_after_a_submission_that_was_taken_back_is_that_of_the_next_one(tmp_path: Path) -> None:
    slurm, record = FakeSlurm({1: "late:60", 3: "refused"}), intent(tmp_path)
    assert attempt(slurm, record) == "refused"
    assert attempt(slurm, read(record.path)) == "whole"
    slurm.sleep(60.0)  # the first job of the earlier submission comes
    assert len(slurm.alive()) == 5
    for submissions in [read(record.path)], []:  # where the workflow was submitted, and elsewhere
        (watched,) = read_workflows(slurm.own(), submissions)
        assert watched.id == "dag.aaaaaa" and {job.state for job in watched.jobs.values()} == {JobState.PENDING}
        assert {name: job.id for name, job in watched.jobs.items()} == read(record.path).ids


def test_a_workflow_that_is_cancelled_during_its_submission_is_taken_back(tmp_path: Path) -> None:
    slurm, record = FakeSlurm(), intent(tmp_path)
    submission = submitter(slurm, record)
    submission.find_submitted()
    sbatch = slurm._sbatch

    def cancelled(argv: Any) -> str:
        if slurm.calls == 2:
            read(record.path).reached(TAKEN_BACK)  # by another process
        return sbatch(argv)

    slurm._sbatch = cancelled
    with pytest.raises(
        PilotfishError, match=r"dag\.aaaaaa was cancelled meanwhile; taken back: 3 jobs; none had begun"
    ):
        submission.submit()
    assert read(record.path).stage == TAKEN_BACK and not slurm.alive()


def test_nothing_can_begin_before_all_is_there(tmp_path: Path) -> None:
    slurm = FakeSlurm({4: "killed after"})
    assert attempt(slurm, intent(tmp_path)) == "killed"
    free = [job for job in slurm.jobs.values() if not job["Dependency"]]
    assert len(free) == 2 and all(job["begin"] >= job["submit"] + LOCK_S + 600 for job in free)
    assert [job["Dependency"] for job in slurm.jobs.values()] == ["", "", "afterok:1", "afterok:3:2"]


def test_a_job_without_a_hold_begins_at_once_and_says_nothing_of_one(tmp_path: Path) -> None:
    slurm, record = FakeSlurm(), intent(tmp_path)
    record.hold = {}
    assert attempt(slurm, record) == "whole"
    assert {job["begin"] for job in slurm.jobs.values()} == {slurm.now}
    assert not any("hold" in job["Comment"] for job in slurm.jobs.values())


def test_an_absent_controller_is_waited_for_and_then_it_is_said(tmp_path: Path) -> None:
    slurm = FakeSlurm({3: "answer"})
    record = intent(tmp_path)
    submission = submitter(slurm, record)
    submission.find_submitted()
    sbatch, slurm._sbatch = slurm._sbatch, lambda argv: _then_away(slurm, sbatch, argv)
    with pytest.raises(NotKnownError, match=r"2 of 4 jobs were.*--key k.*cancel dag.aaaaaa"):
        submission.submit()
    assert read(record.path).ids.keys() == {"a", "c"}


def _then_away(slurm: FakeSlurm, sbatch: Any, argv: Any) -> str:
    try:
        return str(sbatch(argv))
    finally:
        slurm.away_until = slurm.now + 1e6 if slurm.calls == 3 else 0.0


def test_an_interrupt_takes_back_and_says_it(tmp_path: Path) -> None:
    slurm, lines, record = FakeSlurm(), list[str](), intent(tmp_path)
    submission = submitter(slurm, record, lines)
    submission.find_submitted()
    sbatch = slurm._sbatch

    def interrupted(argv: Any) -> str:
        sbatch(argv)
        if slurm.calls == 3:
            raise KeyboardInterrupt
        return f"{len(slurm.jobs)}\n"

    slurm._sbatch = interrupted
    with pytest.raises(KeyboardInterrupt):
        submission.submit()
    assert lines == ["interrupted; taken back: 3 jobs; none had begun"] and not slurm.alive()


def test_what_has_failed_meanwhile_or_left_the_queue_is_not_built_upon(tmp_path: Path) -> None:
    """Slurm takes a job that it has forgotten for one that completed."""
    for state in ("FAILED", "gone"):
        slurm, record = FakeSlurm({3: "killed before"}), intent(tmp_path)
        assert attempt(slurm, record) == "killed"
        record = read(record.path)
        assert len(record.ids) == 2
        number = record.ids["a"]
        if state == "gone":
            del slurm.jobs[number]
        else:
            slurm.jobs[number]["State"] = state
        submission = submitter(slurm, record)
        submission.find_submitted()
        with pytest.raises(PilotfishError, match="a, for which others wait, has"):
            submission.submit()
        assert not slurm.alive()


def test_what_can_never_be_submitted_is_said_first(tmp_path: Path) -> None:
    slurm = FakeSlurm()
    long = Job("x" * 1100, DEFAULT_PROFILE, command=("true",))
    for job, words in ((Job("x", DEFAULT_PROFILE), "no command"), (long, "too long")):
        record = SubmissionRecord("dag.aaaaaa", "k", Workflow("dag", (job,)), 0.0, tmp_path)
        with pytest.raises(InvalidJobError, match=words):
            submitter(slurm, record).find_submitted()
    assert not slurm.ran


def test_jobs_of_another_workflow_under_the_key_are_left_alone(tmp_path: Path) -> None:
    slurm = FakeSlurm()
    assert attempt(slurm, intent(tmp_path)) == "whole"
    small = SubmissionRecord("dag.aaaaaa", "k", Workflow("dag", FLOW.jobs[:1]), 0.0, tmp_path)
    with pytest.raises(InvalidJobError, match="not in this workflow"):
        submitter(slurm, small).find_submitted()


@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so no folder can be given to another user")
def test_outputs_go_into_no_folder_of_another_user(tmp_path: Path) -> None:
    """Its name can be foreseen, so another user may have made it, or a link in its place."""
    occupied, link = tmp_path / "taken", tmp_path / "link"
    occupied.mkdir()
    link.symlink_to(tmp_path)
    os.chown(occupied, 61001, 61001)
    for folder, why in ((occupied, "belongs to user 61001"), (link, "symbolic link")):
        with pytest.raises(ConfigError, match=f"cannot hold the outputs: .*{why}"):
            _make_outputs(tmp_path / "mine", folder)

"""A user's commands to Slurm: dependencies, the hold, the key, and their answers."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.keys import plain_name
from pilotfish.adapters.slurm import dependency
from pilotfish.adapters.slurm.handed_over.ownership import (
    Ownership,
    SlurmSelection,
    hold_seconds,
    is_held,
    ownership_of,
    precursors,
)
from pilotfish.adapters.slurm.job_views import job_of, key_of
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.submission import (
    command,
    comment_for,
    key_in,
    profile_in,
    script,
    script_checksum,
    script_in,
    users_command,
)
from pilotfish.adapters.slurm.submission import start_guard as guard
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.adapters.slurm.user_client import OwnJobs, too_long
from pilotfish.adapters.start_claim import NO_JOB, claim
from pilotfish.adapters.user_jobs import SubmissionRequest, UserJob, by_key
from pilotfish.formats.workflows.job_rules import check_jobs
from pilotfish.profiles.identity import signature
from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState

PROFILE = Profile((ThreadGroup(2, 10.0),), name="align")
JOB = Job("align", PROFILE, ("prepare",), memory=2.0**30, walltime=90.0, command=("./align", "a b"), directory="/w")
FILES = Path("/o/100%.out"), Path("/o/100%.err"), Path("/o/.jobs/align")


@pytest.mark.parametrize(
    ("text", "ids"),
    [  # as Slurm 22.05 prints them
        ("", ()),
        ("afterok:12(unfulfilled)", (12,)),
        ("afterok:4(unfulfilled),afterok:2(unfulfilled)", (4, 2)),
        ("afterok:4(unfulfilled),afterany:2(unfulfilled)", (4, 2)),
        ("afterok:12:13", (12, 13)),
        ("afterok:12(fulfilled),afterok:13(unfulfilled)", (13,)),
        ("afterany:4(unfulfilled)?afterok:2(unfulfilled)", None),
        ("afterok:4(failed),afterok:2(unfulfilled)", None),
        ("afternotok:4(unfulfilled)", None),
        ("after:2+1(unfulfilled)", None),
        ("aftercorr:2(unfulfilled)", None),
        ("afterok:12_*(unfulfilled)", None),
        ("singleton(unfulfilled)", None),
        ("afterok:", None),
        ("afterok:12(unful", None),
        ("expand:7", None),
    ],
)
def test_dependencies_are_parsed(text: str, ids: tuple[int, ...] | None) -> None:
    assert dependency.followed(text) == ids


@given(st.lists(st.integers(1, 10**9), unique=True))
def test_a_written_dependency_is_read_back(ids: list[int]) -> None:
    text = "".join(dependency.options(ids)[:1]).removeprefix("--dependency=")
    assert dependency.followed(text) == tuple(ids)


@given(st.text())
def test_any_dependency_text_is_parsed_or_left_to_slurm(text: str) -> None:
    assert dependency.followed(text) is None or not text or "after" in text or set(text) <= {","}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (6,)),
        ({"dependency": ""}, ()),
        ({"dependency": "singleton(unfulfilled)"}, ()),
        ({"dependency": "afterok:6(failed)", "reason": "DependencyNeverSatisfied"}, ()),  # it pends for ever
        ({"begin": 5_000.0}, ()),  # its user wants it to begin later
        ({"priority": 0}, ()),  # held
        ({"comment": ""}, ()),
    ],
)
def test_a_job_is_planned_after_others_if_nothing_else_blocks_it(
    changed: dict[str, object], expected: tuple[int, ...]
) -> None:
    job = SlurmJob(
        7, JobState.PENDING, "Dependency", submit=990.0, begin=1050.0, priority=1, comment="pilotfish:hold=60",
        dependency="afterok:6(unfulfilled)",
    )  # fmt: skip
    assert ownership_of(job, SlurmSelection(), 1000.0)[0] is Ownership.WAITING
    assert precursors(replace(job, **changed), SlurmSelection(), 1000.0) == expected


def test_the_sbatch_of_a_users_job() -> None:
    argv = users_command(JOB, comment_for("w.a/align", hold=70, profile="align"), 70, [4, 5], FILES, ["--partition=x"])
    assert argv == [
        "sbatch", "--parsable", "--comment=pilotfish:hold=70;key=w.a/align;profile=align", "--begin=now+70",
        "--dependency=afterok:4:5", "--kill-on-invalid-dep=yes", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
        "--cpus-per-task=2", "--time=2", "--mem=1024M", "--output=/o/100%%.out", "--error=/o/100%%.err",
        "--open-mode=append", "--partition=x", "--export=ALL", "--job-name=align", "--chdir=/w",
        f"--wrap={guard(FILES[2])}; exec ./align 'a b'",
    ]  # fmt: skip
    plain = users_command(JOB, comment_for("w.a/align"), 0, [], FILES, [])
    assert not [word for word in plain if word.startswith(("--begin", "--dep", "--kill", "--nodelist", "--no-req"))]


@given(st.text(min_size=1), st.integers(1, 86_400), st.text(), st.lists(st.text(), min_size=1))
def test_a_comment_contains_key_hold_profile_and_script(key: str, hold: int, profile: str, command: list[str]) -> None:
    script = script_checksum(command)
    comment = comment_for(key, hold=hold, profile=profile, script=script)
    assert (key_in(comment), hold_seconds(comment), profile_in(comment)) == (key, hold, profile)
    assert script_in(comment) == script and len(script) == 8 and script.isalpha()
    assert comment.isascii() and comment.isprintable() and too_long(comment) is (len(comment) >= 1024)
    held_job = SlurmJob(1, JobState.PENDING, submit=100.0, begin=100.0 + hold, comment=comment)
    assert is_held(held_job, 100.0) and not is_held(
        replace(held_job, begin=100.0 + hold + 60), 100.0
    )  # locked: see submitting


def test_jobs_of_one_name_that_run_something_else_are_not_alike() -> None:
    """A name says little: `run.sh` may be anything."""
    comments = [
        f"pilotfish:hold=60;script={script_checksum(argv)}" for argv in (["./a", "1"], ["/x/a", "1"], ["./a", "2"])
    ]
    same, elsewhere, different, unknown, forged = (
        job_of(SlurmJob(1, JobState.PENDING, name="run.sh", uid=1005, account="bio", comment=comment))
        for comment in (*comments, "pilotfish:hold=60", "pilotfish:script=12345678")
    )
    assert signature(same) == signature(elsewhere) != signature(different) and same.traits == elsewhere.traits
    assert signature(unknown) == signature(forged) == "job: run.sh of bio/1005, 1 core"
    assert dict(different.traits)["executable"] == "run.sh" and "script" not in dict(unknown.traits)


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_plain_and_unique(one: str, other: str) -> None:
    assert not set(plain_name(one)) & set("/%\0 \n") and not plain_name(one).startswith(".")
    assert one == other or plain_name(one) != plain_name(other)
    assert plain_name("align-1") == "align-1"


def test_of_several_jobs_under_one_key_the_last_counts() -> None:
    jobs = [UserJob(number, JobState.PENDING, "w/a") for number in (8, 9, 7)]
    assert {key: job.id for key, job in by_key([*jobs, UserJob(99, JobState.PENDING)]).items()} == {"w/a": 9}


def test_a_job_is_ours_by_name_and_key_not_by_key_alone() -> None:
    """The account that runs the daemon may submit workflows over Slurm as any user does."""
    argvs = [
        command("w.a/align", JOB, ["n1"], [], None),
        users_command(JOB, comment_for("w.a/align", hold=70), 70, [], FILES, []),
    ]
    options = [dict(word.partition("=")[::2] for word in argv) for argv in argvs]
    own_job, users = (
        SlurmJob(7, JobState.PENDING, uid=5, name=words["--job-name"], comment=words["--comment"]) for words in options
    )
    assert [key_of(own_job, 5), key_of(users, 5), key_of(own_job, 6)] == ["w.a/align", "slurm/7", "slurm/7"]


def test_requests_are_split_and_none_is_sent_for_no_jobs() -> None:
    argvs: list[Sequence[str]] = []
    client = OwnJobs(lambda argv: argvs.append(argv) or "", lambda argv: "7;pilot", uid=5)
    client.cancel([])
    client.begin([], 5)
    request = SubmissionRequest(JOB, "w/a", 0, 0, (), FILES[:2], FILES[2])
    assert not argvs and client.submit(request) == 7
    client.begin(range(1, 502), 5)
    client.begin([3], 0)
    client.cancel([1, 2], waiting=True)
    assert argvs[0][-1] == argvs[1][-1] == "StartTime=now+5" and argvs[1][2] == "JobId=501"
    assert argvs[2:] == [["scontrol", "update", "JobId=3", "StartTime=now"], ["scancel", "--state=PENDING", "1", "2"]]


@pytest.mark.real
def test_a_users_environment_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SBATCH_WAIT": "1", "SBATCH_ACCOUNT": "a", "TZ": "Asia/Tokyo", "SLURM_CLUSTERS": "x"}.items():
        monkeypatch.setenv(name, value)
    line = "echo ${SBATCH_WAIT-no} ${SBATCH_ACCOUNT-no} ${SLURM_CLUSTERS-no} $TZ"
    assert CommandRunner(as_user=True)(["sh", "-c", line]) == "no a no Asia/Tokyo\n"
    assert CommandRunner()(["sh", "-c", line]) == "no no no UTC\n"


@pytest.mark.real
def test_the_services_own_variables_stay_out_of_slurms_commands_and_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE_DIRECTORY", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "SLURM_JWT"):
        monkeypatch.setenv(name, "secret")
    assert CommandRunner()(["env"]).count("secret") == 1  # the token, which Slurm's own commands may need
    line = command("k", replace(JOB, command=("env",)), ["n1"], [], None)[-1].removeprefix("--wrap=")
    assert "secret" not in CommandRunner()(["sh", "-c", line])


@pytest.mark.real
def test_the_wrapped_line_is_quoted_for_the_shell() -> None:
    job = replace(JOB, command=("printf", "%s|", "a'b", "$HOME", "x;y"), environment=(("A", "1 2"),))
    line = users_command(job, "", 0, [], FILES, [])[-1].removeprefix("--wrap=")
    printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True).stdout
    assert printed == "a'b|$HOME|x;y|" and shlex.split(line)


@pytest.mark.real
@pytest.mark.parametrize("name", ["A;echo in", "A$(echo in)", "A`echo in`", "A\necho in", "-n A", "A B", ""])
def test_the_name_of_a_variable_is_never_run(name: str) -> None:
    """No such name is taken (`job_rules`), and none would do harm."""
    job = replace(JOB, command=("true",), environment=((name, "1"),))
    with pytest.raises(InvalidJobError, match="environment: a name is letters"):
        check_jobs([job], "w")
    result = subprocess.run(["sh", "-c", script(job)], capture_output=True, text=True)
    assert "in" not in result.stdout.split() and result.returncode != 0


@pytest.mark.real
def test_a_claim_has_one_winner_and_a_job_that_lost_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "it's 100 %"

    def runs(job: int) -> bool:
        line = f"{guard(file)}; echo worked"
        result = subprocess.run(["sh", "-c", line], env={"SLURM_JOB_ID": str(job)}, capture_output=True, text=True)
        assert result.returncode == 0 and bool(result.stdout) != bool(result.stderr), result
        return bool(result.stdout)

    assert [runs(7), runs(7), runs(8), claim(file, 8), claim(file, 7)] == [True, True, False, 7, 7]
    file.unlink()
    assert [claim(file, 8), runs(7), runs(8)] == [8, False, True]
    file.unlink()


@pytest.mark.real
def test_a_job_whose_work_was_cancelled_ends_as_cancelled(tmp_path: Path) -> None:
    file, scancel = tmp_path / "x", tmp_path / "scancel"
    scancel.write_text(f"#!/bin/sh\necho $* > {tmp_path}/asked\n")
    scancel.chmod(0o755)
    assert claim(file, NO_JOB) == NO_JOB
    environment = {"SLURM_JOB_ID": "7", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", f"{guard(file)}; echo worked"], env=environment, capture_output=True, text=True
    )
    assert (result.returncode, result.stdout, (tmp_path / "asked").read_text()) == (1, "", "7\n")
    assert "was cancelled before Slurm had it" in result.stderr and claim(file, 7) == NO_JOB


@pytest.mark.real
def test_a_job_runs_where_no_claim_can_be_made_or_read(tmp_path: Path) -> None:
    for file in (tmp_path / "gone" / "x", tmp_path / "file"):
        tmp_path.joinpath("file").touch()
        result = subprocess.run(
            ["sh", "-c", f"{guard(file)}; echo worked"], env={"SLURM_JOB_ID": "7"}, capture_output=True
        )
        assert (result.returncode, result.stdout, claim(file, 7)) == (0, b"worked\n", 7)

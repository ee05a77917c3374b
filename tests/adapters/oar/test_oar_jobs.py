"""A user's job over OAR: its line of the shell runs once, only after what must have completed, and says so if not."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.own_jobs import OarJobs, user_job, users_command
from pilotfish.adapters.oar.records.requests import OarResources
from pilotfish.adapters.oar.submission import OTHER, SKIPPED, command, done_link
from pilotfish.adapters.start_claim import NO_JOB, claim
from pilotfish.adapters.user_jobs import SubmissionRequest
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.snapshot import JobState
from tests.support.oar_records import job, world


def request(folder: Path, name: str, line: str, *before: str) -> SubmissionRequest:
    job = Job(name, DEFAULT_PROFILE, command=("sh", "-c", line), environment=(("A", "1 2"),), walltime=90.0)
    links = [folder / link_name for link_name in (name, *before)]
    after = tuple(range(7, 7 + len(before)))
    return SubmissionRequest(
        job, f"w/{name}", 0, 0, after, (folder / "out", folder / "err"), links[0], links[1:], ["-q", "x"]
    )


def run(asked: SubmissionRequest, number: int = 7) -> subprocess.CompletedProcess[str]:
    """Run the line as OAR does, the job's first id being `number`."""
    line, env = users_command(asked)[-1], {"OAR_ARRAY_ID": str(number), "PATH": "/usr/bin:/bin"}
    return subprocess.run(["/bin/bash", "-c", line], env=env, capture_output=True, text=True)


def test_the_oarsub_of_a_users_job(tmp_path: Path) -> None:
    argv = users_command(request(tmp_path, "b", "true", "a", "c"))
    limit = "/nodes=1/core=1,walltime=0:01:30"
    files = [f"--stdout={tmp_path}/out", f"--stderr={tmp_path}/err"]
    assert argv[:-1] == ["oarsub", "--name=w/b", "-l", limit, *files, "-a", "7", "-a", "8", "-q", "x"]
    assert argv[-1].startswith(": pilotfish:key=w/b; ")


@pytest.mark.real
def test_a_job_runs_only_after_those_that_must_have_completed(tmp_path: Path) -> None:
    folder = tmp_path / "it's 100 %"
    folder.mkdir()
    last = request(folder, "c", "echo $A", "a", "b")
    assert run(request(folder, "a", "exit 0")).returncode == 0
    skipped = run(last)
    assert (skipped.returncode, skipped.stdout) == (SKIPPED, "") and "it does nothing" in skipped.stderr
    assert run(request(folder, "b", "exit 3"), 8).returncode == 3
    assert run(last).returncode == SKIPPED
    assert run(request(folder, "b", "kill -9 $PPID"), 8).returncode != 0 and run(last).returncode == SKIPPED
    assert run(request(folder, "b", "true"), 8).returncode == 0  # submitted again by OAR, under its first id
    assert (run(last).stdout, run(last).returncode) == ("1 2\n", 0)


@pytest.mark.real
def test_a_job_of_the_daemon_leaves_a_link_and_misses_one(tmp_path: Path) -> None:
    links = {name: done_link(tmp_path, f"w/{name}") for name in "ab"}

    def ended(name: str, line: str, *before: str) -> int:
        job = Job(name, DEFAULT_PROFILE, command=("sh", "-c", line))
        argv = command(f"w/{name}", job, [], tmp_path, [links[link_name] for link_name in before], links[name])
        return subprocess.run(["/bin/sh", "-c", argv[-1]], capture_output=True).returncode

    assert ended("b", "true", "a") == SKIPPED and not links["b"].is_symlink()
    assert [ended("a", "exit 3"), ended("b", "true", "a")] == [3, SKIPPED]
    assert [ended("a", "true"), ended("a", "true"), ended("b", f"exit {SKIPPED}", "a")] == [0, 0, OTHER]
    assert ended("b", "true", "a") == 0 and links["b"].is_symlink()
    plain = command("w/c", Job("c", DEFAULT_PROFILE, command=("true",)), [], tmp_path, [], None)
    assert plain[-1] == ": pilotfish:key=w/c; exec true"


@pytest.mark.real
def test_of_two_submissions_one_works_and_what_was_cancelled_does_not(tmp_path: Path) -> None:
    first = request(tmp_path, "a", "echo worked")
    assert [run(first, number).stdout for number in (7, 8, 7)] == ["worked\n", "", "worked\n"]
    cancelled = request(tmp_path, "b", "echo worked")
    claim(cancelled.link, NO_JOB)
    result = run(cancelled)
    assert (result.returncode, result.stdout) == (SKIPPED, "") and "cancelled before OAR had it" in result.stderr


def test_what_was_skipped_is_shown_as_cancelled() -> None:
    fields = {"name": "w/a", "user": "u", "command": ": pilotfish:key=w/a; exit", "state": "Terminated", "on": [1]}
    state = world(job(exit=SKIPPED << 8, began=1795471950, stop=1795471960, **fields))
    view = user_job(state.jobs[0], OarResources(state.resources), "u")
    assert (view.state, view.start, view.nodes, view.key) == (JobState.CANCELLED, None, (), "w/a")
    assert "did not complete" in view.reason and not view.follows
    plain = replace(state.jobs[0], status=0)
    assert user_job(plain, OarResources(state.resources), "u").follows
    foreign = user_job(state.jobs[0], OarResources(state.resources), "other")
    assert (foreign.state, foreign.exit_code, foreign.key) == (JobState.FAILED, SKIPPED, "")


@pytest.mark.parametrize(("queue", "handed_over"), [("pilotfish", True), ("default", False)])
def test_a_job_in_the_queue_of_the_guide_was_handed_over(queue: str, handed_over: bool) -> None:
    state = world(job(name="align", user="u", queue=queue))
    view = user_job(state.jobs[0], OarResources(state.resources), "u")
    assert (view.handed_over, view.partition, view.name, view.key) == (handed_over, queue, "align", "")


@pytest.mark.parametrize("word", ["--queue=x", "-qx", "--property=mem > 3", "--type=besteffort"])
def test_options_of_the_user_and_not_ours(word: str) -> None:
    client = OarJobs(OarCommands(5.0), "u")
    assert client.takes(word)
    assert not any(map(client.takes, ("--name=x", "-n", "-lx", "--hold", "x", "-a7", "--anterior=7")))

"""A decision component in a process of its own, over ZeroMQ: its schedules are those of the same policy of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

FCFS = Path(__file__).with_name("fcfs_component.py")
JOBS = 150


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "lublin", "--jobs", str(JOBS), "--procs", "16", "--load", "0.9", "-o", "trace.swf"]) == 0
    return tmp_path


def schedule(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["simulate", "trace.swf", "--procs", "16", "--json", *argv]) == 0
    found = json.loads(capsys.readouterr().out)
    return {key: found[key] for key in ("nb_jobs_success", "makespan", "mean_waiting_time", "mean_bounded_slowdown")}


@contextmanager
def serving(folder: Path, policy: str) -> Iterator[str]:
    """Run `pilotfish edc` until the simulation ends."""
    endpoint = f"ipc://{folder}/edc"
    command = [sys.executable, "-m", "pilotfish.cli", "edc", endpoint, "-p", policy, "--timeout", "60"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as component:
        yield endpoint
        assert component.wait(60) == 0


def test_a_component_that_knows_nothing_of_us_schedules_as_strict(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = f"ipc://{folder}/fcfs"
    command = f"{sys.executable} {FCFS} {endpoint}"
    found = schedule(capsys, "--edc", endpoint, "--edc-command", command)
    assert found == schedule(capsys, "-p", "strict") and found["nb_jobs_success"] == JOBS


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_our_policies_schedule_the_same_as_components(
    folder: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(folder, policy) as endpoint:
        found = schedule(capsys, "--edc", endpoint)
    assert found == schedule(capsys, "-p", policy) and found["nb_jobs_success"] == JOBS


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("nonsense", "nonsense"),
        (
            '{"now": 1e9, "events": [{"timestamp": 0, "type": "EXECUTE_JOB", "data": {"job_id": "w!x", "alloc": "0"}}]}',
            "x",
        ),
        ('{"now": -5, "events": []}', "-5"),
    ],
)
def test_an_answer_that_makes_no_sense_is_quoted(
    folder: Path, reply: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint, script = f"ipc://{folder}/bad", folder / "bad.py"
    script.write_text(
        f"import zmq\ns = zmq.Context().socket(zmq.REP)\ns.bind({endpoint!r})\ns.recv()\ns.send({reply.encode()!r})\n"
        "s.recv()\n"
    )
    code = main(
        ["simulate", "trace.swf", "--procs", "16", "--edc", endpoint, "--edc-command", f"{sys.executable} {script}"]
    )
    said = capsys.readouterr().err
    assert code == 1 and says in said and "Traceback" not in said


def test_a_component_that_ends_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--edc", f"ipc://{folder}/none", "--edc-command", f"{sys.executable} -c pass", "--edc-timeout", "20"]
    assert main(["simulate", "trace.swf", "--procs", "16", *argv]) == 1
    assert "Traceback" not in (said := capsys.readouterr().err) and "pilotfish: error" in said

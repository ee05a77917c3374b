"""A decision component in a process of its own, over ZeroMQ: its schedules are those of the same policy of ours."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

FCFS = {4: "fcfs_component.py", 5: "fcfs_component_5.py"}
JOBS = 150


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "lublin", "--jobs", str(JOBS), "--procs", "16", "--load", "0.9", "-o", "trace.swf"]) == 0
    return tmp_path


def schedule(folder: Path, *argv: str) -> list[tuple[str, ...]]:
    """Return each job's id, start, end and processors."""
    command = "batsim" if "--endpoint" in argv else "simulate"
    assert main([command, "trace.swf", "--procs", "16", "--out", "run", *argv]) == 0
    with (folder / "run" / "jobs.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["job_id"]))
    assert len(rows) == JOBS and {row["success"] for row in rows} == {"1"}
    return [
        tuple(row[key] for key in ("job_id", "starting_time", "finish_time", "allocated_resources")) for row in rows
    ]


@contextmanager
def serving(folder: Path, policy: str) -> Iterator[str]:
    """Run `pilotfish edc` until the simulation ends."""
    endpoint = f"ipc://{folder}/edc"
    command = [sys.executable, "-m", "pilotfish.cli", "edc", endpoint, "-p", policy, "--timeout", "60"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as component:
        yield endpoint
        assert component.wait(60) == 0


@pytest.mark.real
@pytest.mark.parametrize("protocol", FCFS)
def test_a_component_that_knows_nothing_of_us_schedules_as_strict(folder: Path, protocol: int) -> None:
    endpoint = f"ipc://{folder}/fcfs"
    command = f"{sys.executable} {Path(__file__).with_name(FCFS[protocol])} {endpoint}"
    result = schedule(folder, "--endpoint", endpoint, "--command", command, "--protocol", str(protocol))
    assert result == schedule(folder, "-p", "strict")


@pytest.mark.real
@pytest.mark.parametrize("policy, protocol", [("easy", 4), ("conservative", 4), ("easy", 5), ("conservative", 5)])
def test_our_policies_schedule_the_same_as_components(folder: Path, policy: str, protocol: int) -> None:
    with serving(folder, policy) as endpoint:
        result = schedule(folder, "--endpoint", endpoint, "--protocol", str(protocol))
    assert result == schedule(folder, "-p", policy)


@pytest.mark.real
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
        ["batsim", "trace.swf", "--procs", "16", "--endpoint", endpoint, "--command", f"{sys.executable} {script}"]
    )
    message = capsys.readouterr().err
    assert code == 1 and says in message and "Traceback" not in message


@pytest.mark.real
def test_a_component_of_version_4_that_is_asked_in_version_5_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint, script = f"ipc://{folder}/bad", folder / "bad.py"
    script.write_text(
        f"import zmq\ns = zmq.Context().socket(zmq.REP)\ns.bind({endpoint!r})\ns.recv()\n"
        's.send(b\'{"now":0,"events":[]}\')\n'
    )
    command = f"{sys.executable} {script}"
    argv = ["--procs", "16", "--endpoint", endpoint, "--command", command, "--protocol", "5"]
    assert main(["batsim", "trace.swf", *argv]) == 1
    message = capsys.readouterr().err
    assert "without --protocol 5" in message and "Traceback" not in message


@pytest.mark.parametrize(
    "argv, says",
    [
        (["--protocol", "6"], "4 or 5"),
        (["--protocol", "5", "--set", "dynamic-jobs-enabled=true"], "sched-config=TEXT"),
        (["--set", "allow-compute-sharing=true"], "a host runs one job at a time"),
        (["--set", "enable_compute_sharing=true"], "(allowed: enable_compute_sharing=false)"),
        (["--set", "allow-storage-sharing=false"], "jobs share storages"),
        (["--set", "redis-enabled=true"], "Redis"),
    ],
)
def test_wrong_options_of_the_protocol_are_usage_errors(
    folder: Path, argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batsim", "trace.swf", "--procs", "16", "--endpoint", "ipc://x", *argv]) == 64
    assert says in " ".join(capsys.readouterr().err.split())


def test_where_pybatsim_is_not_installed_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "batsim", None)
    assert main(["batsim", "trace.swf", "--endpoint", "pybatsim:easyBackfill"]) == 1
    assert "pybatsim:easyBackfill: it cannot be imported: " in capsys.readouterr().err


@pytest.mark.parametrize("edc", ["pybatsim:", "pybatsim:x --command y"])
def test_a_scheduler_in_this_process_has_a_name_and_no_command(
    folder: Path, edc: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batsim", "trace.swf", "--endpoint", *edc.split()]) == 64
    assert "pybatsim:SCHEDULER" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("argv", [["batsim", "trace.swf", "--endpoint", "head:9"], ["edc", "foo://x"]])
def test_what_is_no_endpoint_is_a_usage_error(
    folder: Path, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 64
    assert "tcp://127.0.0.1:28000" in capsys.readouterr().err


@pytest.mark.real
def test_a_component_that_ends_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--endpoint", f"ipc://{folder}/none", "--command", f"{sys.executable} -c pass", "--timeout", "20"]
    assert main(["batsim", "trace.swf", "--procs", "16", *argv]) == 1
    message = capsys.readouterr().err
    assert "its reply: its process has ended" in message and "Traceback" not in message


@pytest.mark.real
def test_a_walltime_that_is_0_in_messages_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [{"id": f"j{i}", "subtime": i, "res": 1, "profile": "p", "walltime": 10.0**-i} for i in range(9)]
    (tmp_path / "w.json").write_text(
        json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1}}})
    )
    endpoint = f"ipc://{tmp_path}/fcfs"
    command = f"{sys.executable} {Path(__file__).with_name(FCFS[4])} {endpoint}"
    assert main(["batsim", "w.json", "--endpoint", endpoint, "--command", command]) == 0
    message = " ".join(capsys.readouterr().err.split())
    assert (
        "job j7: a walltime of 1e-07 s, which messages have as 0.000000, like 1 other; batsched aborts on it" in message
    )

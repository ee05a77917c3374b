"""`pilotfish run`: real processes through the local adapter."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.text import width


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


def write(path: Path, *jobs: str) -> str:
    path.write_text("schema: pilotfish/workflow/v1\nname: dag-1\njobs:\n" + "".join(f"  {job}\n" for job in jobs))
    return str(path)


SHORT = "profile: {service_demand: 0.02}"


@pytest.mark.real
def test_a_workflow_runs_and_is_compared_with_its_forecast(tmp_path, capsys):
    flow = write(
        tmp_path / "dag.yaml",
        f"one: {{command: 'echo one >> order', {SHORT}}}",
        f"two: {{command: 'echo two >> order', after: [one], {SHORT}}}",
        f"three: {{command: 'echo three >> order; pwd', after: [two], {SHORT}}}",
    )
    assert main(["run", flow, "--policy", "mom", "--plot", "run.html"]) == 0
    output = capsys.readouterr()
    page = (tmp_path / "run.html").read_text()
    assert "the picture is in run.html" in output.err and "actual run time" in page and "three" in page
    assert (tmp_path / "order").read_text().split() == ["one", "two", "three"]
    lines = output.out.splitlines()
    assert lines[0].startswith("dag-1 on ") and lines[2].split()[0] == "JOB"
    assert [line.split()[0] for line in lines[3:6]] == ["one", "two", "three"]
    assert all(line.endswith("  ok") for line in lines[3:6]) and lines[-2] == "jobs      3 of 3 completed"
    assert lines[-1] == "classes   3 unknown (memory bandwidth is not known)"
    assert max(map(width, lines)) <= 80 and "\x1b" not in output.out + output.err
    assert output.err.count("  start  ") == output.err.count("  end    ") == 3


@pytest.mark.real
def test_a_failed_job_fails_the_run_and_its_dependants_never_start(tmp_path, capsys):
    flow = write(
        tmp_path / "dag.yaml",
        f"bad: {{command: 'echo why >&2; exit 3', {SHORT}}}",
        f"never: {{command: 'touch ran', after: [bad], {SHORT}}}",
    )
    assert main(["run", flow, "--policy", "mom", "--json", "--state-dir", str(tmp_path / "jobs")]) == 1
    output = capsys.readouterr()
    document = json.loads(output.out)
    assert [job["state"] for job in document["jobs"]] == ["failed", "cancelled"]
    assert document["jobs"][0]["exit_code"] == 3 and document["exit_code"] == 1
    assert Path(document["jobs"][0]["stderr"]).read_text() == "why\n"
    assert not (tmp_path / "ran").exists()
    assert "job 'bad' failed: exit code 3; stderr: /" in " ".join(output.err.split())


def assert_as_wide_as_the_terminal(lines: list[str]) -> None:
    """Assert that each line has 80 cells at most, or one word alone, which has no room."""
    assert lines and not [line for line in lines if width(line) > 80 and len(line.split()) > 1]


@pytest.mark.real
def test_every_line_of_a_run_is_as_wide_as_the_terminal(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    names = [f"a-long-name-of-a-job-in-a-workflow-of-{role}" for role in ("one-that-fails", "another-after-it", "most")]
    flow = write(
        tmp_path / "dag.yaml",
        f"{names[0]}: {{command: 'exit 3', {SHORT}}}",
        f"{names[1]}: {{command: 'true', after: [{names[0]}], {SHORT}}}",
        f"{names[2]}: {{command: 'true'}}",
    )
    assert main(["run", flow, "--policy", "mom"]) == 1
    output = capfd.readouterr()
    words = " ".join(output.err.split())
    assert "planned with the default" in words and "failed: exit code 3; stderr: /" in words
    assert "the output of the jobs is in /" in words and "(forecast " in words
    assert_as_wide_as_the_terminal(output.out.splitlines() + output.err.splitlines())


@pytest.mark.parametrize("option", ["--plot", "--report"])
def test_a_picture_of_an_unknown_form_is_refused_before_anything_runs(tmp_path, capsys, option):
    flow = write(tmp_path / "dag.yaml", f"one: {{command: 'touch ran', {SHORT}}}")
    assert main(["run", flow, option, "run.txt"]) == 64
    assert "--plot" in (stderr := capsys.readouterr().err) and ".html" in stderr and not (tmp_path / "ran").exists()


@pytest.mark.real
def test_a_job_without_a_profile_has_one_afterwards(tmp_path, capsys):
    busy = "one: {command: \"exec python3 -c 'sum(range(4000000))'\"}"
    flow = write(tmp_path / "dag.yaml", busy)
    assert main(["run", flow, "--policy", "mom", "--json"]) == 0
    first = capsys.readouterr()
    assert "planned with the default" in first.err
    assert main(["run", flow, "--policy", "mom", "--json"]) == 0
    second = capsys.readouterr()
    assert "planned with the default" not in second.err
    assert json.loads(second.out)["plan"]["makespan"] < json.loads(first.out)["plan"]["makespan"] / 2


@pytest.mark.real
def test_a_sequence_of_programs_is_learned_as_one_thread(tmp_path, capsys):
    busy = f"{sys.executable} -ISc 'sum(range(4000000))'"
    flow = write(tmp_path / "dag.yaml", f'one: {{command: "{busy}; {busy}; {busy}"}}')
    assert main(["run", flow, "--policy", "mom", "--json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert main(["profile", "list", "--json"]) == 0
    profiles = json.loads(capsys.readouterr().out)["profiles"]
    (profile_of_sum,) = [profile for name, profile in profiles.items() if "sum(range" in name]
    assert profile_of_sum.get("threads", 1) == 1 and profile_of_sum["service_demand"] <= 1.05 * job["run_time"]


@pytest.mark.real
def test_only_the_latest_runs_are_kept(tmp_path, capsys, monkeypatch):
    from pilotfish.cli.workflows import run as command

    monkeypatch.setattr(command, "KEPT_RUNS", 2)
    flow = write(tmp_path / "dag.yaml", f"one: {{command: 'echo said', {SHORT}}}")
    homes = []
    for turn in range(4):
        monkeypatch.setattr(command, "_run_id", lambda name, turn=turn: f"{name}.{turn}")
        assert main(["run", flow, "--policy", "mom", "--json"]) == 0
        homes.append(Path(json.loads(capsys.readouterr().out)["jobs"][0]["stdout"]))
    assert [home.exists() for home in homes] == [False, False, True, True]
    assert main(["run", flow, "--policy", "mom", "--state-dir", str(tmp_path / "mine")]) == 0
    assert [home.exists() for home in homes] == [False, False, True, True]


def test_a_workflow_without_commands_cannot_be_run(tmp_path, capsys):
    flow = write(tmp_path / "dag.yaml", f"one: {{{SHORT}}}")
    assert main(["run", flow]) == 1
    output = capsys.readouterr()
    assert output.out == "" and "job 'one' has no command" in output.err and output.err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_working_directory_that_was_removed_is_one_line(command, tmp_path, capsys, monkeypatch):
    flow = write(tmp_path / "dag.yaml", f"a: {{command: 'true', {SHORT}}}")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main([command, flow]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1) and "working directory: it was removed" in output.err


def test_a_bad_node_list_is_one_line(tmp_path, capsys):
    flow = write(tmp_path / "dag.yaml", f"one: {{command: 'true', {SHORT}}}")
    lab = tmp_path / "lab.yaml"
    lab.write_text(
        "schema: pilotfish/cluster/v1\nname: lab\n"
        "node_types: {half: {cores: 1, memory: 1GiB, memory_bandwidth: 8GB/s}}\n"
        "nodes: [{names: a, type: half}]\n"
    )
    assert main(["run", flow, "--cluster", str(lab), "--policy", "mom"]) == 1
    assert "cpus" in capsys.readouterr().err


@pytest.mark.real
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_running_jobs_and_reports(number, code, tmp_path):
    flow = write(
        tmp_path / "dag.yaml",
        f"long: {{command: 'touch begun; exec sleep 60', {SHORT}}}",
        f"never: {{command: 'touch ran', after: [long], {SHORT}}}",
    )
    command = [sys.executable, "-m", "pilotfish.cli", "run", flow, "--policy", "mom"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == code, err
    assert "0 of 2 completed, 2 cancelled" in out and not (tmp_path / "ran").exists()


@pytest.mark.real
@pytest.mark.parametrize(("command", "code"), [("touch ran", 0), ("touch ran; exit 3", 1)])
def test_a_reader_who_goes_away_stops_nothing(command, code, tmp_path):
    flow = write(tmp_path / "dag.yaml", f"one: {{command: '{command}', {SHORT}}}")
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "pilotfish.cli", "run", flow, "--policy", "mom"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    result = subprocess.run(arguments, stdout=writer, stderr=writer, cwd=tmp_path, timeout=60, env=buffered)
    os.close(writer)
    assert result.returncode == code and (tmp_path / "ran").exists()


def test_the_help_says_what_a_signal_does_to_the_exit_code(capsys):
    assert main(["run", "--help"]) == 0
    assert "130 after Ctrl-C, 143 after TERM" in " ".join(capsys.readouterr().out.split())


@pytest.mark.real
def test_metrics_are_served_while_it_runs(tmp_path, capsys):
    probe = (
        "import urllib.request, pathlib; "
        "pathlib.Path('seen').write_bytes(urllib.request.urlopen('http://127.0.0.1:%d/metrics').read())"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = json.dumps([sys.executable, "-c", probe % port])
    flow = write(tmp_path / "dag.yaml", f"one: {{command: {command}, {SHORT}}}")
    assert main(["run", flow, "--policy", "mom", "--metrics-port", str(port)]) == 0
    assert "pilotfish_jobs{" in (tmp_path / "seen").read_text()
    assert f"http://127.0.0.1:{port}/metrics" in capsys.readouterr().err

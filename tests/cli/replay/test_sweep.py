"""`pilotfish sweep`, as it is typed: its rows, what is wrong, and that it goes on whatever stopped it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import pilotfish
from pilotfish.cli.__main__ import main
from pilotfish.cli.sweeps import prepare, tasks

HEADER = "; MaxProcs: 8\n"


def trace(jobs: int, shift: int = 0) -> str:
    return HEADER + "".join(
        f"{i} {i} -1 {3 + (i + shift) % 5} {1 + i % 9} -1 -1 -1 20 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n"
        for i in range(1, jobs + 1)
    )


SWEEP: dict[str, Any] = {
    "schema": "pilotfish/sweep/v1",
    "workloads": ["a.swf", {"file": "b.swf", "load": [1, 2], "users": [1, 2]}],
    "machines": [8, 16],
    "policies": [{"policy": "easy", "order": ["fcfs", "sjf"]}, "strict"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a sweep, on a machine with one CPU: a sweep starts one worker, unless the test asks for more."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.swf").write_text(trace(40))
    (tmp_path / "b.swf").write_text(trace(60, 2))
    write(tmp_path)
    return tmp_path


def write(folder: Path, name: str = "s.yaml", **keys: Any) -> None:
    (folder / name).write_text(json.dumps(SWEEP | keys))


def rows(folder: Path, name: str = "s.results") -> list[dict[str, str]]:
    return list(csv.DictReader((folder / name / "results.csv").open()))


def unmeasured(path: Path) -> list[str]:
    """The lines of a results.csv without their last column, which is the time that was measured."""
    lines = path.read_text().splitlines()
    assert lines[0].endswith(",simulation_time")
    return [line.rpartition(",")[0] for line in lines]


@pytest.mark.real
def test_a_row_for_each_combination(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--workers", "2"]) == 0
    table, output = rows(folder), capsys.readouterr()
    assert [row["run"] for row in table] == [str(i) for i in range(18)]
    assert {(row["workload"], row["load"], row["machine"], row["policy"]) for row in table} == {
        (name, load, machine, policy)
        for name, load in (("a.swf", "1.0"), ("b.swf", "1.0"), ("b.swf", "2.0"))
        for machine in ("8", "16")
        for policy in ("easy", "easy:order=sjf", "strict")
    }
    assert {row["status"] for row in table} == {"done"} and table[0]["users"] == "" and table[6]["users"] == "1 2"
    assert "b.swf, users 1 2, load 2: 6 runs" in output.out and max(map(len, output.out.splitlines())) <= 80
    assert "pilotfish: 18 runs in " in output.err and "s.results/results.csv has 18 runs" in output.err
    assert sorted(path.name for path in (folder / "s.results").iterdir()) == [
        "journal.jsonl", "results.csv", "sweep.json",
    ]  # fmt: skip


@pytest.mark.real
def test_run_times_are_varied_as_simulate_knows_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["walltime", "predicted", "actual"]
    write(folder, workloads=["a.swf"], machines=[8], policies=["easy:order=sjf", "conservative"], runtimes=kinds)
    assert main(["sweep", "s.yaml", "--workers", "1"]) == 0
    assert "easy:order=sjf" in capsys.readouterr().out
    table = rows(folder)
    assert [row["runtimes"] for row in table] == 2 * kinds
    for row in table:
        assert main(["simulate", "a.swf", "-p", row["policy"], "--runtimes", row["runtimes"], "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert float(row["mean_waiting_time"]) == alone["mean_waiting_time"]
    assert len({row["mean_waiting_time"] for row in table}) > 3


@pytest.mark.real
def test_a_row_holds_what_simulate_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    argv = ["--select", "users=1,users=2,load=2", "--procs", "8", "-p", "easy:order=sjf", "--json"]
    assert main(["simulate", "b.swf", *argv]) == 0
    alone = json.loads(capsys.readouterr().out)
    (row,) = [
        row for row in runs
        if (row["workload"], row["load"], row["machine"], row["policy"]) == ("b.swf", 2.0, "8", "easy:order=sjf")
    ]  # fmt: skip
    numbers = set(prepare.NUMBERS) - {prepare.MEASURED}
    assert {name: row[name] for name in numbers} == {name: alone[name] for name in numbers}


@pytest.mark.real
def test_json_says_what_is_best_by_the_numbers_of_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["inputs"]) == {"a.swf", "b.swf"} and len(document["cases"]) == 3
    for case in document["cases"]:
        of_case = [row for row in document["runs"] if all(row[name] == case[name] for name in ("workload", "load"))]
        best = min(row["mean_waiting_time"] for row in of_case)
        assert document["runs"][case["best"]["mean_waiting_time"]]["mean_waiting_time"] == best
        assert case["pareto"]["of"] == ["utilisation", "mean_waiting_time"] and case["pareto"]["runs"]


@pytest.mark.real
def test_the_number_of_workers_changes_nothing(folder: Path) -> None:
    for workers in ("1", "2", "3"):
        assert main(["sweep", "s.yaml", "--workers", workers, "--out", workers]) == 0
    one, two, three = (unmeasured(folder / name / "results.csv") for name in "123")
    assert one == two == three and len(one) == 19


@pytest.mark.real
def test_it_goes_on_with_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, policies=["easy"])
    assert main(["sweep", "s.yaml"]) == 0
    first = (folder / "s.results" / "journal.jsonl").read_bytes()
    write(folder)
    assert main(["sweep", "s.yaml"]) == 0
    assert "6 of 18 runs are done already" in capsys.readouterr().err
    assert (folder / "s.results" / "journal.jsonl").read_bytes().startswith(first)
    (folder / "a.swf").write_text(trace(41))
    assert main(["sweep", "s.yaml"]) == 0
    assert "12 of 18 runs are done already" in capsys.readouterr().err, "another trace is another run"
    assert {row["nb_jobs"] for row in rows(folder) if row["workload"] == "a.swf"} == {"41"}


@pytest.mark.real
def test_two_names_of_one_trace_are_replayed_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "twin.swf").write_text(trace(40))
    write(folder, workloads=["a.swf", "twin.swf"])
    assert main(["sweep", "s.yaml"]) == 0
    table = rows(folder)
    assert [row["workload"] for row in table] == ["a.swf"] * 6 + ["twin.swf"] * 6
    assert (folder / "s.results" / "journal.jsonl").read_text().count("\n") == 1 + 6
    assert [row["mean_waiting_time"] for row in table[:6]] == [row["mean_waiting_time"] for row in table[6:]]


CLUSTER = """
schema: pilotfish/cluster/v1
node_types: {t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-4]", type: t}]
clusters: {left: "n[1-2]", right: "%s"}
"""


@pytest.mark.real
def test_a_run_that_fails_is_a_row_and_is_tried_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that is changed while the sweep runs, say: here, before anybody has read it."""
    write(folder, machines=[8])

    def changes(*_: object) -> set[object]:
        (folder / "a.swf").write_text(trace(7))
        return set()

    monkeypatch.setattr(prepare, "check", changes)
    assert main(["sweep", "s.yaml", "--workers", "2"]) == 1
    output, table = capsys.readouterr(), rows(folder)
    failed = [row for row in table if row["status"] == "failed"]
    assert [row["workload"] for row in failed] == ["a.swf"] * 3 and len(table) == 9
    assert all("changed while the sweep ran" in row["error"] and row["makespan"] == "" for row in failed)
    assert "3 of them failed" in output.err and "run 0 failed: a.swf: it was changed" in output.err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert main(["sweep", "s.yaml"]) == 0
    assert {row["status"] for row in rows(folder)} == {"done"}


@pytest.mark.real
def test_a_cluster_file_is_a_machine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lab.yaml").write_text(CLUSTER % "n[3-4]")
    write(folder, workloads=["a.swf"], machines=["lab.yaml"], policies=["conservative:allocation=local"])
    assert main(["sweep", "s.yaml"]) == 0
    (row,) = rows(folder)
    assert (row["machine"], row["nb_computing_machines"], row["nb_jobs_rejected"]) == ("lab.yaml", "16", "4")
    (folder / "lab.yaml").write_text(CLUSTER % "n[1,4]")
    assert main(["sweep", "s.yaml"]) == 1
    assert "lab.yaml: clusters.right: its nodes are not adjacent" in capsys.readouterr().err


@pytest.mark.real
def test_a_dry_run_says_what_would_be_run_and_leaves_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--dry-run"]) == 0
    output = capsys.readouterr()
    assert "18 runs, 0 of them done already; nothing was run" in output.err
    assert output.out.count("easy:order=sjf") == 6 and max(map(len, output.out.splitlines())) <= 80
    assert main(["sweep", "s.yaml", "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 18
    assert not (folder / "s.results").exists()


@pytest.mark.real
def test_parquet_holds_what_the_csv_holds(folder: Path) -> None:
    from pyarrow import parquet

    assert main(["sweep", "s.yaml", "--parquet"]) == 0
    table = parquet.read_table(folder / "s.results" / "results.parquet").to_pylist()
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in table] == rows(folder)
    assert type(table[0]["mean_waiting_time"]) is float and type(table[0]["nb_jobs"]) is int


def test_parquet_without_pyarrow_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["sweep", "s.yaml", "--parquet"]) == 1
    assert "pip install 'pilotfish[parquet]'" in " ".join(capsys.readouterr().err.split())
    assert not (folder / "s.results").exists()


@pytest.mark.real
@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"polices": ["easy"]}, "s.yaml: polices: unknown key; did you mean 'policies'?"),
        ({"policies": ["esy"]}, "s.yaml: policies[0]: 'esy' is unknown; did you mean easy?"),
        ({"workloads": ["gone.swf"]}, "s.yaml: workloads[0]: no such file"),
        ({"workloads": ["a.swf", "bad.swf"]}, "s.yaml: workloads[1]: bad.swf:2: found 3 numbers"),
        ({"workloads": ["bad.swf"]}, "or skip_invalid: true in the sweep's file)"),
        ({"workloads": [{"file": "bad.swf", "skip_invalid": True}]}, "no jobs to replay; left out: 1 line without"),
        ({"workloads": ["plain.swf"], "machines": [8]}, ""),
        ({"workloads": ["plain.swf"], "machines": ["lab.yaml"]}, "lab.yaml: line 2: not YAML"),
        ({"workloads": [{"file": "a.swf", "from": 1000}]}, "s.yaml: workloads[0]: a.swf: no jobs to replay; left out:"),
    ],
)
def test_all_is_checked_before_anything_runs(
    folder: Path, keys: dict[str, Any], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.swf").write_text(HEADER + "1 2 3\n")
    (folder / "plain.swf").write_text(trace(9).removeprefix(HEADER))
    (folder / "lab.yaml").write_text("{")
    write(folder, **keys)
    assert main(["sweep", "s.yaml"]) == int(bool(why))
    stderr = capsys.readouterr().err
    assert why in stderr and "Traceback" not in stderr and (folder / "s.results").exists() is not bool(why)


@pytest.mark.real
def test_a_missing_machine_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "b.swf").write_text(trace(9).removeprefix(HEADER))
    (folder / "s.yaml").write_text(json.dumps({name: part for name, part in SWEEP.items() if name != "machines"}))
    assert main(["sweep", "s.yaml"]) == 1
    assert "s.yaml: workloads[1]: b.swf: MaxProcs: missing: the size of the machine" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["s.yaml", "--workers", "0"], ["s.yaml", "--workers", "x"]])
def test_a_wrong_command_line(folder: Path, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", *argv]) == 64
    assert "Error" in capsys.readouterr().err


@pytest.mark.real
@pytest.mark.parametrize("out", ["a.swf", "a.swf/below"])
def test_a_folder_that_cannot_be(folder: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--out", out]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("pilotfish: error: a.swf")


def started(folder: Path, least: int) -> subprocess.Popen[str]:
    """A sweep of 60 runs of some 20 ms in a process of its own, of which some are in the journal already."""
    (folder / "long.swf").write_text(trace(2000))
    write(folder, "many.yaml", workloads=["long.swf"], seeds=15, policies=["easy:order=wfp3", "easy:order=unicep"])
    argv = [sys.executable, "-m", "pilotfish.cli", "sweep", "many.yaml", "--workers", "2"]
    process = subprocess.Popen(argv, cwd=folder, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and ended(folder) < least:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    return process


def ended(folder: Path) -> int:
    """How many runs are in the journal."""
    journal = folder / "many.results" / "journal.jsonl"
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0


@pytest.mark.real
def test_a_sweep_that_is_stopped_twice_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C says how; kill -9 loses no result and leaves no process; in the end it is as if nothing had happened."""
    with started(folder, 8) as process:
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 60 runs have ended; the same command continues" in stderr and "Traceback" not in stderr
    run_numbers = [int(row["run"]) for row in rows(folder, "many.results")]
    assert run_numbers == sorted(run_numbers) and 8 <= len(run_numbers) < 50, "it was stopped in the middle"
    with started(folder, len(run_numbers) + 4) as process:
        workers = psutil.Process(process.pid).children()
        process.kill()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    with (folder / "many.results" / "journal.jsonl").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 30)  # as a power cut may leave it
    run_count = ended(folder)
    assert len(run_numbers) + 3 <= run_count < 60, "it was stopped in the middle"
    capsys.readouterr()
    assert main(["sweep", "many.yaml"]) == 0
    assert f"{run_count} of 60 runs are done already" in capsys.readouterr().err
    assert main(["sweep", "many.yaml", "--out", "never-stopped"]) == 0
    resumed, uninterrupted = (unmeasured(folder / name / "results.csv") for name in ("many.results", "never-stopped"))
    assert resumed == uninterrupted and len(uninterrupted) == 61


def test_a_worker_of_another_version_is_refused(folder: Path) -> None:
    """And what a task says is all that a worker needs."""
    prepared = prepare.prepare(folder / "s.yaml")
    first = prepared.tasks[0]
    assert tasks.carry_out(first)["nb_jobs"] == 40 and tasks.features_of_task(first) == frozenset()
    answer = tasks.attempt("0.0", tasks.carry_out, first)
    assert isinstance(answer, tasks.Failure) and "0.0, as the command that asks" in answer.why


def test_the_content_of_a_trace_will_do_where_the_file_cannot_be_seen(folder: Path) -> None:
    prepared = prepare.prepare(Path("s.yaml"))
    first, content = prepared.tasks[0], (folder / "a.swf").read_bytes()
    numbers = tasks.carry_out(first)
    (folder / "a.swf").unlink()
    unseen = tasks.carry_out(first, (content,))
    assert numbers | {"simulation_time": 0} == unseen | {"simulation_time": 0}
    answer = tasks.attempt(
        pilotfish.__version__, tasks.features_of_task, prepared.tasks[6], (HEADER.encode() + b"1 2 3\n",)
    )
    assert isinstance(answer, tasks.Failure) and answer.why.startswith("b.swf:2: found 3 numbers")


OWN = """
from pilotfish.simulate.queue_policies.interface import Start

class Strict:
    def __init__(self, least: int = 0):
        self.least = least

    def decide(self, now):
        free = now.free
        for job in now.waiting:
            if job.size > free:
                return
            free -= job.size
            yield Start(job)
        if self.least > 1 and now.time > 9:
            1 / 0
"""


@pytest.mark.real
def test_a_policy_of_ones_own_is_known_by_its_content(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.py").write_text(OWN)
    write(folder, policies=["strict", "./mine.py:Strict", {"policy": "./mine.py:Strict", "least": [1, 2]}])
    assert main(["sweep", "s.yaml", "--workers", "2"]) == 1
    assert re.search(r"policy ./mine.py:Strict: at [0-9.]+ s: ZeroDivisionError", capsys.readouterr().err)
    table = rows(folder)
    numbers = [name for name in table[0] if name.startswith(("mean", "max", "makespan", "consumed"))]
    for built_in, user_policy, first, second in zip(*(table[i::4] for i in range(4)), strict=True):
        assert {name: built_in[name] for name in numbers} == {name: user_policy[name] for name in numbers}
        assert (user_policy["policy"], first["policy"]) == ("./mine.py:Strict", "./mine.py:Strict:least=1")
        assert (user_policy["policy_least"], first["policy_least"]) == ("", "1")
        assert [row["status"] for row in (built_in, user_policy, first, second)] == ["done", "done", "done", "failed"]
    first = prepare.prepare(folder / "s.yaml")
    (folder / "mine.py").rename(folder / "moved.py")
    write(folder, policies=["strict", "./moved.py:Strict"])
    moved = prepare.prepare(folder / "s.yaml")
    assert [one.identity for one in moved.tasks][1] == first.tasks[1].identity
    (folder / "moved.py").write_text(OWN + "# another\n")
    changed = prepare.prepare(folder / "s.yaml")
    assert changed.tasks[0].identity == first.tasks[0].identity and changed.tasks[1].identity != first.tasks[1].identity
    (folder / "moved.py").unlink()
    assert tasks.carry_out(changed.tasks[1])["nb_jobs"] == 40


@pytest.mark.real
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_dry_run_executes_nothing_that_the_study_names(
    folder: Path, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trap = f"open({str(folder / 'ran')!r}, 'a').close()\n"
    (folder / "mine.py").write_text(trap + OWN + f"    def __init__(self):\n        {trap}")
    write(folder, policies=["strict", "./mine.py:Strict", {"policy": "./mine.py:Strict", "least": [1, 2]}])
    assert main(["sweep", "s.yaml", "--dry-run", "--workers", workers]) == 0
    stderr = capsys.readouterr().err
    assert "not loaded, and so not checked: ./mine.py:Strict, ./mine.py:Strict:least=1, " in stderr
    assert not (folder / "ran").exists() and not (folder / "s.results").exists()
    assert main(["sweep", "s.yaml"]) == 1 and (folder / "ran").exists()


@pytest.mark.parametrize("text", ["x = (", "\0", "(" * 10000])
def test_a_dry_run_refuses_what_is_not_python(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.py").write_text(text)
    write(folder, policies=["./mine.py:Strict"])
    assert main(["sweep", "s.yaml", "--dry-run"]) == 1
    assert "s.yaml: policies: ./mine.py:Strict: ./mine.py: not Python" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("./nowhere.py:Strict", "policies[0]: no such file: ./nowhere.py"),
        ("./mine.py:Other", "mine.py: Other: there is no such class (allowed: Strict)"),
        ("./mine.py:Strict:most=1", "policies: ./mine.py:Strict:most=1: Strict: 'most=1' (allowed: least=...)"),
        ("some.module:Strict", "policies[0]: found 'some.module:Strict' (allowed: ./file.py:Class"),
        ("./mine.py", "policies[0]: './mine.py' (allowed: ./file.py:Class"),
        ({"policy": "./mine.py:Strict", "least": ["x"]}, "Strict:least: 'x' (allowed: a whole number)"),
        ("./broken.py:Any", "as it was loaded: SyntaxError"),
    ],
)
def test_what_is_wrong_with_a_policy_of_ones_own(
    folder: Path, policy: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text(OWN)
    (folder / "broken.py").write_text("x = (")
    write(folder, policies=[policy])
    assert main(["sweep", "s.yaml"]) == 1
    assert why in " ".join(capsys.readouterr().err.split()) and not (folder / "s.results").exists()


def test_whoever_uses_dask_reads_whom_they_trust(capsys: pytest.CaptureFixture[str]) -> None:
    """Dask's workers and its client run what the scheduler sends: without TLS, what anybody in the network sends."""
    assert main(["sweep", "-h"]) == 0
    assert re.search(r"tls://HOST:8786[^.]*can\s+(?:│\s+)*run\s+code\s+as\s+you", capsys.readouterr().out)
    guide = " ".join((Path(__file__).parents[3] / "docs" / "guides" / "replay.md").read_text().split())
    assert "any user who can connect to it, can run code as you: use TLS" in guide and "--dask tcp://" not in guide

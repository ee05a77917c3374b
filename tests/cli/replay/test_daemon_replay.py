"""`pilotfish replay`, as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.replays.results_read import read_run
from tests.support import effort

SCRIPT = Path(sys.executable).with_name("pilotfish")
TRACE = "".join(
    f"{i} {i} -1 {30 + i % 50} {1 + i % 9} -1 -1 -1 100 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n" for i in range(60)
)
CLUSTER = """
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s, power: {idle: 50, computing: 100}}}
nodes: [{names: "n[1-%d]", type: t}]
"""
CONFIG = "schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: %s\nadapter: {name: slurm}\nbudget: 50\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.swf").write_text(TRACE)
    (tmp_path / "lab.yaml").write_text(CLUSTER % 2)
    (tmp_path / "large.yaml").write_text(CLUSTER % 3)
    for policy in ("slf", "lookahead"):
        (tmp_path / f"{policy}.yaml").write_text(CONFIG % policy)
    return tmp_path


def typed(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "replay", *argv], env=os.environ | environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.real
def test_the_installed_command_gives_the_same_files_each_time(folder: Path) -> None:
    runs = [
        typed("trace.swf", "--config", "lookahead.yaml", "--out", f"run{seed}", PYTHONHASHSEED=seed) for seed in "12"
    ]
    assert [run.returncode for run in runs] == [0, 0], runs
    assert "60 jobs on 8 processors (the cores of lab.yaml), policy daemon:lookahead" in runs[0].stdout
    assert "6 rejected: too large for the machine" in runs[0].stdout and "by lookahead" in runs[0].stdout
    for name in ("jobs.csv", "machine_states.csv", "consumed_energy.csv"):
        assert (folder / "run1" / name).read_bytes() == (folder / "run2" / name).read_bytes()
    assert len(read_run(folder / "run1").jobs) == 60


def test_json_says_what_the_daemon_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--config", "slf.yaml", "-c", "large.yaml", "--runtimes", "actual", "--json"]
    assert main(["replay", "trace.swf", *argv]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["machine"], document["policy"], document["nb_jobs_rejected"]) == (12, "daemon:slf", 0)
    assert document["daemon"]["runtimes"] == "actual" and document["daemon"]["plans"].keys() == {"slf"}
    assert document["runtimes"] == "actual" and "accuracy" not in document
    assert document["daemon"]["failures"] == {} and set(document["inputs"]) == {"trace.swf", "large.yaml", "slf.yaml"}


def test_the_daemon_plans_with_predictions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "trace.swf", "--config", "slf.yaml", "--runtimes", "predicted", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["daemon"]["runtimes"] == document["runtimes"] == "predicted"
    predicted, walltime = (document["accuracy"][name] for name in ("predicted", "walltime"))
    assert predicted["jobs"] == walltime["jobs"] == 54 and predicted["too_low"] > walltime["too_low"] == 0.0


SWITCHED = CLUSTER.replace(
    "computing: 100", "computing: 100, off: 5, switch_on: {watts: 80, seconds: 4}, switch_off: {watts: 60, seconds: 2}"
)


def test_a_policy_that_switches_nodes_saves_energy_as_in_a_replay(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = {}
    (folder / "trace.swf").write_text("".join(TRACE.splitlines(keepends=True)[:24]))
    (folder / "lab.yaml").write_text((SWITCHED % 3).replace("bandwidth: 10GB/s", "bandwidth: 10GB/s, contention: none"))
    for policy in ("easy", "easy+opportunistic:t_idle=5", "easy+proportional:rho=0.5,period=60", "easy+inertial"):
        (folder / "service.yaml").write_text(CONFIG % policy)
        for command, *words in (
            ["replay", "--config", "service.yaml"],
            ["simulate", "-p", policy, "-c", "lab.yaml", "--contention"],
        ):
            assert main([command, "trace.swf", *words, "--json"]) == 0
            documents[policy, command] = json.loads(capsys.readouterr().out)
        live, replayed = documents[policy, "replay"], documents[policy, "simulate"]
        assert live["daemon"]["failures"] == {} and live["nb_machine_switches"] == replayed["nb_machine_switches"]
        assert live["consumed_joules"] == pytest.approx(replayed["consumed_joules"], rel=1e-6)
        assert live["mean_waiting_time"] == pytest.approx(replayed["mean_waiting_time"], abs=1e-3)
    assert documents["easy+opportunistic:t_idle=5", "simulate"]["nb_machine_switches"] > 0


MIXED = """
schema: pilotfish/cluster/v1
name: lab
node_types:
  t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s}
  u: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s, power: {idle: 50, computing: 100}}
nodes: [{names: "n[1-2]", type: t}, {names: n3, type: u}]
"""


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        (CLUSTER % 2, "node_types.t.power: easy+inertial switches nodes, and their power off or being switched is not"),
        (MIXED, "node_types: easy+inertial switches nodes, and these differ in power"),
    ],
)
def test_nodes_that_cannot_be_switched_are_one_error(
    folder: Path, cluster: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "lab.yaml").write_text(cluster)
    (folder / "service.yaml").write_text(CONFIG % "easy+inertial")
    assert main(["replay", "trace.swf", "--config", "service.yaml"]) == 1
    error = capsys.readouterr().err
    assert "lab.yaml" in error and says in error and "Traceback" not in error


BUG = "def decide(simulation, request):\n    raise LookupError('a bug of production')\n"
LOUD = """from pilotfish.simulate.planning.mapping_policies import POLICIES
def decide(simulation, request):
    print("plans", flush=True)
    return POLICIES["slf"](simulation, request)
"""


def install(folder: Path, code: str) -> dict[str, str]:
    """Write a package with the mapping policy `mine`, and its configuration; return the environment that has it."""
    info = folder / "site" / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "site" / "mine.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pilotfish.mapping_policies]\nmine = mine:decide\n")
    (folder / "mine.yaml").write_text(CONFIG % "mine")
    return {"PYTHONPATH": str(folder / "site")}


@pytest.mark.real
def test_a_bug_of_production_is_replayed(folder: Path) -> None:
    run = typed("trace.swf", "--config", "mine.yaml", **install(folder, BUG))
    stdout = " ".join(run.stdout.split())
    assert run.returncode == 0 and "by slf policy mine failed: LookupError: a bug of production:" in stdout, run
    assert 'mine.py", line 2, in decide' in run.stderr and run.stderr.count("Traceback") <= 3


@pytest.mark.real
def test_an_interrupt_ends_it_cleanly(folder: Path) -> None:
    jobs = (f"{i} {i} -1 900 1 -1 -1 -1 1000 -1 1 1 -1 -1 -1 -1 -1 -1\n" for i in range(5000))
    (folder / "trace.swf").write_text("".join(jobs))
    process = subprocess.Popen(
        [SCRIPT, "replay", "trace.swf", "--config", "mine.yaml"], env=os.environ | install(folder, LOUD),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "plans\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and stderr == ""


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["--config", "slf.yaml", "--decision-time", "soon"], 64, "allowed: ignore, measured, or seconds from 0"),
        (["--config", "slf.yaml", "--procs", "8"], 64, "No such option: --procs"),
        (["--config", "slf.yaml", "--runtimes", "guess"], 64, "allowed: walltime, predicted, actual"),
        (["--config", "nowhere.yaml"], 1, "nowhere.yaml: cannot be read"),
        (["--config", "wrong.yaml"], 1, "wrong.yaml: policy: found 'fastest' (allowed: 'lookahead', 'mom'"),
        (["--config", "slf.yaml", "-c", "nowhere.yaml"], 1, "nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path, argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.yaml").write_text(CONFIG % "fastest")
    assert main(["replay", "trace.swf", *argv]) == code
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("./nowhere.py:Mine", "mine.yaml: policy: "),
        ("./own.py:Other", "own.py: Other: there is no such class"),
        ("./broken.py:Breaks", "ZeroDivisionError"),
        ("easy:order=sfj", "order"),
        ("slff", "mine.yaml: policy: found 'slff' (allowed: "),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_one_line(
    folder: Path, policy: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.py").write_text("class Mine:\n    pass\n")
    (folder / "broken.py").write_text("class Breaks:\n    seen = 1 / 0\n")
    (folder / "mine.yaml").write_text(CONFIG % policy)
    assert main(["replay", "trace.swf", "--config", "mine.yaml"]) == 1
    output = capsys.readouterr()
    assert why in " ".join(output.err.split()) and "Traceback" not in output.err and output.out == ""


@pytest.mark.parametrize("policy", effort.some(["easy", "easy:order=sjf", "strict"]))
def test_on_one_node_a_queue_policy_decides_as_in_a_replay(folder: Path, policy: str) -> None:
    (folder / "one.yaml").write_text((CLUSTER % 2).replace("cores: 4", "cores: 9").replace("n[1-2]", "n1"))
    (folder / "mine.yaml").write_text(CONFIG % policy)
    assert main(["replay", "trace.swf", "--config", "mine.yaml", "-c", "one.yaml", "--out", "live"]) == 0
    assert main(["simulate", "trace.swf", "-c", "one.yaml", "-p", policy, "--out", "replayed"]) == 0
    live, replayed = (read_run(folder / name).jobs for name in ("live", "replayed"))
    live, replayed = (dict(zip(jobs.id, jobs.start, strict=True)) for jobs in (live, replayed))
    assert live == pytest.approx(replayed, abs=1e-6, nan_ok=True)

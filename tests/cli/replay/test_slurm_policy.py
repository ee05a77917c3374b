"""`-p slurm:SITE` in `simulate` and `sweep`: next to other policies, with what is not known, and refused in one line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from tests.support.slurm_recordings import CHECKOUT

TRACE = "metacentrum_1w_1361306800.swf.gz"
LINES = [f"{job} {60 * job} -1 {500 + 37 * job % 900} {job % 60 + 1} -1 -1 {job % 60 + 1} 1800 -1 1 {job % 5} {job % 2} -1 {job % 3} -1 -1 -1"
         for job in range(1, 61)]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site, a trace, and a sweep of three policies."""
    root = tmp_path_factory.mktemp("slurm-policy")
    assert main(["generate", "site", "university", "--jobs", "20", "-o", str(root / "uni")]) == 0
    (root / "trace.swf").write_text("; MaxProcs: 12800\n" + "\n".join(LINES) + "\n")
    (root / "study.yaml").write_text(
        "schema: pilotfish/sweep/v1\nworkloads: [trace.swf]\npolicies: [easy, 'slurm:uni', conservative]\nseeds: 2\n"
    )
    return root


def test_a_replay_says_the_machine_and_what_is_not_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "run"
    argv = ["simulate", folder / "trace.swf", "-p", f"slurm:{folder / 'uni'}", "--explain-engine", "--out", out]
    assert main([str(word) for word in argv]) == 0
    text = capsys.readouterr()
    assert "The engine is slurm" in text.err and "the site has no account for 2 groups of the trace" in text.err
    assert "12,800" in text.out
    with (out / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(LINES) and all(float(row["finish_time"]) > float(row["starting_time"]) for row in rows)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["policy"] == f"slurm:{folder / 'uni'}" and str(folder / "uni" / "slurm.conf") in summary["inputs"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--decision-time", "1"], "no engine replays slurm:uni where decisions take time"),
        (["--runtimes", "predicted"], "no engine replays slurm:uni where run times are predicted"),
        (["-c", "lab.yaml", "--contention"], "no engine replays slurm:uni where jobs share nodes"),
        (
            ["-p", "slurm:nowhere"],
            "'slurm:nowhere': no such folder (allowed: slurm:SITE, the folder of a site of Slurm)",
        ),
        (["-p", "slurm:uni+powercap"], "no such folder"),
    ],
)
def test_what_slurm_does_not_have_is_a_wrong_command_line(
    folder: Path, words: list[str], problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    policy = [] if "-p" in words else ["-p", "slurm:uni"]
    assert main(["simulate", "trace.swf", *policy, *words]) == USAGE
    error = " ".join(capsys.readouterr().err.split())
    assert "--policy" in error and problem in error


def test_a_number_of_processors_has_no_nodes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main(["simulate", "trace.swf", "-p", "slurm:uni", "--procs", "64"]) == FAILED
    assert "slurm:uni places jobs on nodes, and 64 processors have none" in " ".join(capsys.readouterr().err.split())


@pytest.mark.real
def test_a_sweep_compares_it_with_other_policies_in_one_table(folder: Path, tmp_path: Path) -> None:
    assert main(["sweep", str(folder / "study.yaml"), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["machine"], row["seed"], row["status"]) for row in rows] == [
        (policy, machine, seed, "done")
        for policy, machine in (("easy", "trace"), ("slurm:uni", "site"), ("conservative", "trace")) for seed in "01"
    ]  # fmt: skip
    assert {row["nb_jobs_finished"] for row in rows} == {str(len(LINES))}
    assert all(float(row["mean_waiting_time"]) > 0 for row in rows if row["policy"] == "slurm:uni")
    journal = tmp_path / "out" / "journal.jsonl"
    lines = len(journal.read_text().splitlines())
    changed = (folder / "uni" / "slurm.conf").read_text()
    (folder / "uni" / "slurm.conf").write_text(changed + "SchedulerParameters=bf_interval=300\n")
    try:
        assert main(["sweep", str(folder / "study.yaml"), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    finally:
        (folder / "uni" / "slurm.conf").write_text(changed)
    assert len(journal.read_text().splitlines()) == lines + 2  # only the runs at the changed site are repeated


@pytest.mark.parametrize("key", ["contention: true", "runtimes: [predicted]"])
def test_a_sweep_refuses_what_no_engine_replays(folder: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = folder / "wrong.yaml"
    sweep.write_text(
        f"schema: pilotfish/sweep/v1\nworkloads: [trace.swf]\nmachines: [lab.yaml]\npolicies: ['slurm:uni']\n{key}\n"
    )
    (folder / "lab.yaml").write_text(LAB)
    assert main(["sweep", str(sweep), "--dry-run"]) == FAILED
    assert "policies: no engine replays slurm:uni where" in " ".join(capsys.readouterr().err.split())


LAB = """schema: pilotfish/cluster/v1
name: lab
node_types:
  box: {cores: 64, memory: 64GiB, memory_bandwidth: 20GB/s}
nodes:
  - {names: "b[1-20]", type: box}
"""


def test_a_real_trace_runs_on_the_nodes_of_a_cluster(tmp_path: Path, folder: Path) -> None:
    path = next(iter(sorted(CHECKOUT.parent.glob(f"*/data/{TRACE}"))), None)
    if path is None:
        pytest.skip(f"NOT TESTED: {TRACE} is not in */data")
    (tmp_path / "lab.yaml").write_text(LAB)
    trace = tmp_path / "part.swf"
    trace.write_bytes(b"\n".join(gzip.decompress(path.read_bytes()).splitlines()[:800]))
    out = tmp_path / "run"
    argv = ["simulate", trace, "-p", f"slurm:{folder / 'uni'}", "-c", tmp_path / "lab.yaml", "--out", out]
    assert main([str(word) for word in argv]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["machine"] == 1280 and summary["nb_jobs_finished"] > 300
    with (out / "jobs.csv").open(newline="") as file:
        waits = np.array([float(row["waiting_time"]) for row in csv.DictReader(file) if row["waiting_time"]])
    assert (waits >= 0).all() and waits.mean() == pytest.approx(summary["mean_waiting_time"])

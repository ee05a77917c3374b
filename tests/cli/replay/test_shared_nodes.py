"""`simulate` and `sweep` on nodes that jobs share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

CLUSTER = """schema: pilotfish/cluster/v1
name: lab
node_types:
  quad: {cores: 4, memory: 8GiB, memory_bandwidth: 10GB/s}
nodes: [{names: "n[1-2]", type: quad}]
"""
OWN = """from pilotfish.api import Start
class Last:
    def decide(self, now):
        free = now.free_nodes()
        for job in reversed(list(now.waiting)):
            nodes = free.where(job)
            if nodes is not None:
                free.take(job, nodes)
                yield Start(job, nodes=nodes)
"""
SWEEP = """schema: pilotfish/sweep/v1
workloads: [trace.swf]
machines: [lab.yaml]
policies: [mom, slf, {policy: easy, share: [none, "1.1"]}]
"""
CONTENDING = """schema: pilotfish/sweep/v1
workloads: [{file: trace.swf, until: 24}]
machines: [lab.yaml]
policies: [easy, conservative, "easy:order=wfp3", ./own.py:Last, let, pairs, lookahead]
runtimes: [walltime, predicted]
contention: [true]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    jobs = (
        f"{i} {i * 3} -1 {20 + i % 7 * 9} {1 + i % 6} -1 -1 {1 + i % 6} 99 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        for i in range(60)
    )
    for name, text in {"trace.swf": "".join(jobs), "lab.yaml": CLUSTER, "own.py": OWN, "sweep.yaml": SWEEP}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def replayed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert main(["simulate", "trace.swf", "-c", "lab.yaml", *argv, "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_each_policy_replays_and_says_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["mom"], ["let"], ["slf"], ["loadavg"], ["easy:share=1.1"], ["easy:share=none"]):
        document = replayed(capsys, "-p", *argv)
        assert (document["policy"], document["nb_jobs_success"], document["machine"]) == (argv[0], 60, 8)
        assert document["mean_stretch"] == 1.0, "jobs of an SWF trace move no data"
    for policy in ("easy", "strict", "conservative", "easy:order=wfp3", "./own.py:Last"):
        assert replayed(capsys, "-p", policy, "--contention")["nb_jobs_success"] == 60
    for policy in ("easy", "mom", "loadavg", "pairs", "nodes"):
        document = replayed(capsys, "-p", policy, "--contention", "--decision-time", "2.5")
        predicted = replayed(capsys, "-p", policy, "--contention", "--runtimes", "predicted")
        fit = 40 if policy == "nodes" else 60  # on one node
        assert (document["nb_jobs_success"], predicted["nb_jobs_success"], document["decision_time"]) == (fit, fit, 2.5)
    assert replayed(capsys, "-p", "let", "--decision-time", "measured")["decision_time"] == "measured"


def test_lookahead_replays_as_the_service_with_its_defaults(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "service.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: lookahead\n")
    window = ["--select", "until=30"]
    document = replayed(capsys, "-p", "lookahead", *window)
    assert main(["replay", "trace.swf", "--config", "service.yaml", *window, "--json"]) == 0
    service = json.loads(capsys.readouterr().out)
    assert (document["policy"], service["policy"]) == ("lookahead", "daemon:lookahead")
    assert document["makespan"] == service["makespan"] and document["nb_jobs_success"] == service["nb_jobs_success"] > 5


@pytest.mark.real
def test_a_sweep_has_the_numbers_of_simulate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "sweep.yaml", "--json"]) == 0
    rows = {row["policy"]: row for row in json.loads(capsys.readouterr().out)["runs"]}
    assert set(rows) == {"mom", "slf", "easy:share=none", "easy:share=1.1"}
    for policy, row in rows.items():
        document = replayed(capsys, "-p", policy)
        assert [row[key] for key in ("makespan", "mean_waiting_time")] == [
            document[key] for key in ("makespan", "mean_waiting_time")
        ]


@pytest.mark.real
def test_a_sweep_with_contention_has_the_numbers_of_simulate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "contending.yaml").write_text(CONTENDING)
    assert main(["sweep", "contending.yaml", "--json", "--workers", "1"]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert len(rows) == 14 and {row["contention"] for row in rows} == {True}
    for row in rows:
        how = [] if row["policy"] == "lookahead" else ["--contention"]
        document = replayed(capsys, "-p", row["policy"], *how, "--runtimes", row["runtimes"], "--select", "until=24")
        numbers = ("makespan", "mean_waiting_time", "mean_bounded_slowdown", "utilisation", "nb_jobs_success")
        assert [row[key] for key in numbers] == [document[key] for key in numbers], row["policy"]


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["-p", "easy:share=0.5"], 64, "easy:share: '0.5' (allowed: any, none, or a factor of 1 or more)"),
        (
            ["-p", "conservative:allocation=local,share=1.1", "--contention"],
            64,
            "allocation and share do not go together",
        ),
    ],
)
def test_what_makes_no_sense_is_said(
    folder: Path, argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "trace.swf", "-c", "lab.yaml", *argv]) == code
    assert why in " ".join(capsys.readouterr().err.split())

"""`learned:MODEL` wherever a queue policy is allowed: one net, one error, and verdicts that are kept in the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.formats.model_file import read_order, write_model
from tests.support.learned_models import LIAR, SJF, model_file

LAB = {
    "schema": "pilotfish/cluster/v1", "name": "lab",
    "node_types": {"small": {"cores": 4, "memory": "16GiB", "memory_bandwidth": "20GB/s"}},
    "nodes": [{"names": "s[1-4]", "type": "small"}],
}  # fmt: skip
DAG: dict[str, Any] = {
    "schema": "pilotfish/workflow/v1", "name": "bag",
    "jobs": {
        f"j{place}": {"profile": {"threads": 4, "service_demand": 40.0 + 40 * (place % 5)}, "walltime": 60.0 + 60 * (place % 5)}
        for place in range(12)
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(LAB))
    (tmp_path / "bag.yaml").write_text(yaml.safe_dump(DAG, sort_keys=False))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "t.swf"
    assert main(["generate", "lublin", "--jobs", "120", "--procs", "16", "--load", "0.9", "-o", str(path)]) == 0
    return path


def test_a_plan_follows_the_order_and_says_what_the_baseline_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for weights, first in ((SJF, 60.0), (LIAR, 300.0)):
        model_file(tmp_path, weights, limits=(1.0, 1e4))
        assert main(["plan", "bag.yaml", "--cluster", "lab.yaml", "--policy", "learned:m.pfmodel.json", "--json"]) == 0
        jobs = {job["id"]: job for job in json.loads(capsys.readouterr().out)["jobs"]}
        leader = min(jobs.values(), key=lambda job: job["scored"]["rank"])
        limits = {name: job["walltime"] for name, job in DAG["jobs"].items()}
        assert limits[leader["id"]] == first and leader["start_time"] == 0.0
        assert leader["scored"]["features"][0][0] == "limit" and leader["scored"]["doubt"] == ""
        shortest = min(jobs.values(), key=lambda job: job["scored"]["baseline_rank"])
        assert limits[shortest["id"]] == 60.0 and shortest["scored"]["baseline_start_s"] == 0.0
        assert main(["plan", "bag.yaml", "--cluster", "lab.yaml", "--policy", "learned:m.pfmodel.json"]) == 0
        capsys.readouterr()


@pytest.mark.real
def test_a_run_carries_out_what_the_order_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model_file(tmp_path, SJF, limits=(1.0, 1e4), processors=8)
    jobs = {name: {"command": "true", "walltime": 60.0} for name in ("a", "b", "c")}
    (tmp_path / "flow.yaml").write_text(yaml.safe_dump({"schema": "pilotfish/workflow/v1", "name": "f", "jobs": jobs}))
    assert main(["run", "flow.yaml", "--policy", "learned:m.pfmodel.json", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {job["state"] for job in document["jobs"]} == {"completed"}


@pytest.mark.real
def test_a_sweep_and_a_replay_take_it(tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model_file(tmp_path, SJF, limits=(0.0, 1e9))
    model_file(tmp_path, LIAR, "unlike", limits=(1e8, 1e9))
    specs = ["easy:order=sjf", "learned:m.pfmodel.json", "learned:unlike.pfmodel.json"]
    sweep = {"schema": "pilotfish/sweep/v1", "workloads": [str(trace)], "policies": specs}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    assert main(["sweep", "sweep.yaml", "--out", "out", "--workers", "1"]) == 0
    rows = (tmp_path / "out" / "results.csv").read_text().splitlines()
    head, *rest = (row.split(",") for row in rows)
    assert [row[head.index("policy")] for row in rest] == specs
    assert len({row[head.index("mean_waiting_time")] for row in rest}) == 1
    assert [row[head.index("model_share")] for row in rest] == ["", "1.0", "0.0"]
    warning = "learned:unlike.pfmodel.json: its baseline took most decisions in 1 of 1 run (column model_share)"
    assert capsys.readouterr().err.replace("\n", " ").count(warning) == 1
    documents = []
    for policy in specs:
        assert main(["simulate", str(trace), "--policy", policy, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    first, second, third = documents
    different = {"policy", "inputs", "simulation_time", "model_share"}
    for other in (second, third):
        assert [key for key in first if first[key] != other.get(key) and key not in different] == []
    assert second["model_use"]["by_baseline"] == {} and third["model_use"]["jobs"] == {"requested time": 120}


def test_a_replay_says_how_far_the_model_decided(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_file(tmp_path, LIAR, limits=(1e8, 1e9))
    assert main(["simulate", str(trace), "--policy", "learned:m.pfmodel.json"]) == 0
    out, error = capsys.readouterr()
    lines = " ".join(out.split())
    assert "decided 0 % of " in lines and " decisions by the model, the others by its baseline, easy:order=sjf" in lines
    assert "100 % for requested time (120 jobs): a waiting job has a limit of " in lines
    assert "took 0 % of its decisions itself; the numbers are mostly those of easy:order=sjf" in " ".join(error.split())
    model_file(tmp_path, SJF, limits=(0.0, 1e9))
    assert main(["simulate", str(trace), "--policy", "learned:m.pfmodel.json"]) == 0
    out, error = capsys.readouterr()
    assert "decided     all " in out and not error


@pytest.mark.parametrize("policy", ["learned:m.pfmodel.json", "easy:order=m.pfmodel.json"])
@pytest.mark.parametrize("trained", ["walltime", "predicted"])
def test_a_replay_that_knows_other_run_times_than_the_training_is_warned_of(
    policy: str, trained: str, tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model_file(tmp_path, SJF, limits=(0.0, 1e9))
    write_model(path, replace(read_order(path), run_times=trained))
    for runtimes in ("walltime", "predicted"):
        assert main(["simulate", str(trace), "--policy", policy, "--runtimes", runtimes]) == 0
        warning = f"warning: {policy} expects run times as in its training, {trained}; here they are {runtimes}: "
        error = " ".join(capsys.readouterr().err.split())
        assert error.count(f"{warning}use --runtimes {trained}") == (trained != runtimes)


@pytest.mark.real
@pytest.mark.parametrize(("runtimes", "warnings"), [(["walltime"], 1), (["walltime", "predicted"], 0)])
def test_a_sweep_without_the_run_times_of_the_training_is_warned_of(
    runtimes: list[str], warnings: int, tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model_file(tmp_path, SJF, limits=(0.0, 1e9))
    write_model(path, replace(read_order(path), run_times="predicted"))
    sweep = {"schema": "pilotfish/sweep/v1", "workloads": [str(trace)], "policies": ["learned:m.pfmodel.json"]}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep | {"runtimes": runtimes}))
    assert main(["sweep", "sweep.yaml", "--out", "out", "--workers", "1"]) == 0
    warning = "expects run times as in its training, predicted; here they are walltime: use runtimes: predicted"
    assert " ".join(capsys.readouterr().err.split()).count(warning) == warnings


@pytest.mark.parametrize(
    ("policy", "code", "says"),
    [
        ("learned:absent.pfmodel.json", FAILED, "absent.pfmodel.json"),
        ("learned:", USAGE, "the file of a model"),
        ("learned:m.json", USAGE, "the file of a model"),
        ("learned:broken.pfmodel.json", FAILED, "sha256"),
        ("learned:nan.pfmodel.json", FAILED, "NaN is no number"),
        ("learned:deep.pfmodel.json", FAILED, "no JSON"),
        ("learned:huge.pfmodel.json", FAILED, "at most 1,048,576"),
        ("learned:zip.pfmodel.json", FAILED, "no JSON"),
        ("learned:unseen.pfmodel.json", FAILED, "seen."),
    ],
)
def test_a_wrong_model_is_one_sentence_in_each_command(
    policy: str, code: int, says: str, tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import zlib

    text = model_file(tmp_path, SJF).read_text()
    (tmp_path / "broken.pfmodel.json").write_text(text.replace("10000000.0", "20000000.0"))
    (tmp_path / "nan.pfmodel.json").write_text(text.replace("10000000.0", "NaN"))
    (tmp_path / "deep.pfmodel.json").write_text("[" * 100_000)
    (tmp_path / "huge.pfmodel.json").write_text("x" * (1 << 21))
    (tmp_path / "zip.pfmodel.json").write_bytes(zlib.compress(b"0" * (1 << 24)))
    write_model(tmp_path / "unseen.pfmodel.json", replace(read_order(tmp_path / "m.pfmodel.json"), seen={}))
    for words in (["simulate", str(trace)], ["plan", "bag.yaml", "--cluster", "lab.yaml"]):
        assert main([*words, "--policy", policy]) == code
        error = capsys.readouterr().err
        assert says in error.replace("\n", " ") and "Traceback" not in error


def test_verdicts_on_unseen_jobs_are_saved_once(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model_file(tmp_path, SJF, processors=16)
    words = ["evaluate", str(path), str(trace), "--copies", "2", "--no-predictions", "--workers", "1", "--save"]
    for _ in range(2):
        assert main(words) == 0
    rows = read_order(path).evaluated
    assert [row["number"] for row in rows] == ["bsld", "bsld", "wait", "wait"]
    assert {row["copies"] for row in rows} == {2} and not read_order(path).is_proven
    shown = " ".join(capsys.readouterr().out.split())
    assert "With its net, as a service uses it; the table is about the model without it:" in shown
    assert f"{path}ont:all" in shown.replace(" ", "") and " decisions by the model" in shown
    assert main([*words, "--part", "second-half", "--json"]) == 0
    (net,) = json.loads(capsys.readouterr().out)["model_use"]
    assert net["share"] == 1.0 and net["trace"] == "t, second half"
    assert main(["model", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "2 copies" in shown and "unproven: no service trusts it" in shown

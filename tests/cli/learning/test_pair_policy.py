"""A network that scores pairs as `learned:FILE`: on nodes it decides; elsewhere it is one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotfish.cli.__main__ import FAILED, main
from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.formats.model_file import write_model
from pilotfish.simulate.errors import ConfigError
from tests.support.pair_models import SEEN, pair_model

KINDS = {"a": (4, "1GHz"), "b": (4, "2GHz"), "c": (8, "1GHz"), "d": (8, "2GHz")}
LAB: dict[str, Any] = {
    "schema": "pilotfish/cluster/v1", "name": "lab",
    "node_types": {
        name: {"cores": cores, "memory": "16GiB", "memory_bandwidth": "20GB/s", "frequency": frequency}
        for name, (cores, frequency) in KINDS.items()
    },
    "nodes": [{"names": f"{name}1", "type": name} for name in KINDS],
}  # fmt: skip
BAG = {
    "schema": "pilotfish/workflow/v1", "name": "bag",
    "jobs": {
        f"j{place}": {"profile": {"threads": 4, "service_demand": 40.0}, "walltime": 100.0} for place in range(6)
    },
}  # fmt: skip
POLICY = ("--policy", "learned:m.pfmodel.json")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(LAB))
    (tmp_path / "bag.yaml").write_text(yaml.safe_dump(BAG))
    write_model(tmp_path / "m.pfmodel.json", pair_model())
    assert main(["generate", "lublin", "--jobs", "60", "--procs", "8", "--load", "1", "-o", "t.swf"]) == 0
    assert main(["generate", "lublin", "--jobs", "60", "--procs", "64", "--load", "1", "-o", "wide.swf"]) == 0


def test_it_places_the_jobs_of_a_trace_and_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "t.swf", "--cluster", "lab.yaml", "--contention", *POLICY]) == 0
    assert "60 completed" in capsys.readouterr().out
    assert main(["plan", "bag.yaml", "--cluster", "lab.yaml", *POLICY, "--json"]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert len(jobs) == 6 and sum(job["start_time"] == 0.0 for job in jobs) == 6  # 24 cores are free


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["simulate", "t.swf", "--cluster", "lab.yaml"],
            "no nodes to choose among (allowed: a cluster, and --contention",
        ),
        (["simulate", "t.swf"], "no nodes to choose among"),
        (["simulate", "wide.swf", "--cluster", "lab.yaml", "--contention"], "jobs on one node, of at most 8 cores"),
        (["simulate", "t.swf", "--cluster", "small.yaml", "--contention"], "nodes as in the training"),
        (["plan", "bag.yaml", "--cluster", "small.yaml"], "nodes as in the training"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    types = LAB["node_types"] | {"b": LAB["node_types"]["b"] | {"frequency": "3GHz"}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(LAB | {"node_types": types}))
    capsys.readouterr()
    assert main([*words, *POLICY]) == FAILED
    error = " ".join(capsys.readouterr().err.split())
    assert says in error and "policy learned:m.pfmodel.json" in error and "Traceback" not in error


def test_a_service_needs_a_net(tmp_path: Path) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text("schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: learned:m.pfmodel.json\n")
    (tmp_path / "m.pfmodel.json").chmod(0o600)
    with pytest.raises(ConfigError, match="seen: missing"):
        load_policy_of(load_config(path), path)


def test_a_plan_under_a_net_says_what_the_baseline_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "m.pfmodel.json", pair_model(seen=SEEN))
    assert main(["plan", "bag.yaml", "--cluster", "lab.yaml", *POLICY, "--json"]) == 0
    for job in json.loads(capsys.readouterr().out)["jobs"]:
        scored = job["scored"]
        assert job["start_time"] == 0.0 and scored["baseline"] == "easy:order=sjf" and not scored["doubt"]
        assert scored["baseline_start_s"] == 0.0 and len(scored["features"]) == 3
    wide = BAG["jobs"] | {"wide": {"profile": {"threads": 8, "service_demand": 40.0}, "nodes": 2, "walltime": 100.0}}
    (tmp_path / "bag.yaml").write_text(yaml.safe_dump(BAG | {"jobs": wide}))
    assert main(["plan", "bag.yaml", "--cluster", "lab.yaml", *POLICY, "--json"]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert len(jobs) == 7 and all("requests 16 cores" in job["scored"]["doubt"] for job in jobs if job["scored"])


@pytest.mark.parametrize(("more", "refused"), [("", True), ("allow_unproven: true\n", False)])
def test_an_unproven_network_acts_only_if_that_is_allowed(tmp_path: Path, more: str, refused: bool) -> None:
    path, model = tmp_path / "pilotfish.yaml", tmp_path / "m.pfmodel.json"
    path.write_text(f"schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: learned:m.pfmodel.json\n{more}")
    write_model(model, pair_model(seen=SEEN))
    model.chmod(0o600)
    config = load_config(path)
    load_policy_of(config, path)
    if refused:
        with pytest.raises(ConfigError, match="allow_unproven: true"):
            load_policy_of(config, path, acts=True)
    else:
        load_policy_of(config, path, acts=True)

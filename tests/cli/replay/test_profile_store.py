"""`simulate` and `convert` know of the jobs of a workflow what `plan` knows: the profiles of past runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.inputs import profile_name
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import Profile, Provenance, ThreadGroup

FLOW = """
schema: pilotfish/workflow/v1
name: w
jobs:
  a: {command: [./align, --fast]}
  b: {command: [./sort], profile: sorted, after: [a]}
"""
CLUSTER = """
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 1, memory: 16GiB, memory_bandwidth: 20GB/s}}
nodes: [{names: n1, type: t}]
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(FLOW)
    Path("lab.yaml").write_text(CLUSTER)
    measured = Provenance("measured", runs=3)
    names = {profile_name(["./align", "--fast"], None): 7.0, "sorted": 5.0}
    profiles = {name: Profile((ThreadGroup(1, s),), name, provenance=measured) for name, s in names.items()}
    ProfileStore(tmp_path / "mine.sqlite").put_all(profiles)
    return tmp_path / "mine.sqlite"


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_plan_simulate_and_convert_know_the_same_run_times(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_store = ("--store", str(store))
    plan = json.loads(printed(capsys, "plan", "w.yaml", "--cluster", "lab.yaml", "--json", *of_store))
    replay = json.loads(printed(capsys, "simulate", "w.yaml", "--cluster", "lab.yaml", "--json", *of_store))
    assert plan["makespan"] == replay["makespan"] == 12.0
    printed(capsys, "convert", "w.yaml", "w.swf", "--procs", "1", *of_store)
    rows = [line.split() for line in Path("w.swf").read_text().splitlines() if not line.startswith(";")]
    assert [float(row[3]) for row in rows] == [7.0, 5.0]


def test_without_the_store_the_run_time_is_not_known(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store.parent / "bare.yaml").write_text(FLOW.replace(", profile: sorted", ""))
    assert main(["simulate", "bare.yaml", "--cluster", "lab.yaml"]) == 1
    assert "no run time" in capsys.readouterr().err

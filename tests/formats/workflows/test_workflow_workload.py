"""Workflows as workloads of jobs that wait for each other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.replays.workloads import format_of, read_workload
from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.job import Profile, ThreadGroup
from pilotfish.simulate.model.workload import LOST, Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.replay import replay

WFFORMAT: dict[str, Any] = {
    "name": "w", "schemaVersion": "1.5",
    "workflow": {
        "specification": {"tasks": [
            {"name": "join", "id": "c", "parents": ["a", "b"], "children": []},
            {"name": "split", "id": "a", "parents": [], "children": ["b", "c"]},
            {"name": "work", "id": "b", "parents": ["a"], "children": ["c"]},
        ]},
        "execution": {"tasks": [
            {"id": "a", "runtimeInSeconds": 0.1, "avgCPU": 33.3, "memoryInBytes": 600},
            {"id": "b", "runtimeInSeconds": 5, "coreCount": 3},
            {"id": "c", "runtimeInSeconds": 0},
        ]},
    },
}  # fmt: skip
DAX = """<adag xmlns="http://pegasus.isi.edu/schema/DAX" name="w">
 <job id="c" runtime="0"/><job id="a" runtime="0.1"><profile namespace="pegasus" key="memory">0.0006</profile></job>
 <job id="b" runtime="5"><profile namespace="pegasus" key="cores">3</profile></job>
 <child ref="c"><parent ref="a"/><parent ref="b"/></child><child ref="b"><parent ref="a"/></child></adag>"""
OURS = """schema: pilotfish/workflow/v1
jobs:
  c: {after: [a, b], profile: {threads: 1, service_demand: 2.0, utilisation: 0.5}, walltime: 3}
  a: {profile: known, memory: 600}
  b: {after: a, nodes: 3, profile: {threads: 2, service_demand: 5.0}}
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def pairs(jobs: Workload) -> set[tuple[str, str]]:
    assert jobs.dependencies is not None
    names, dependencies = jobs.more["name"], jobs.dependencies
    return {(names[a], names[b]) for a, b in zip(dependencies.before, dependencies.after, strict=True)}


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("w.json", json.dumps(WFFORMAT), "JSON"),
        ("w.json.gz", json.dumps(WFFORMAT), "JSON"),
        ("w.txt", json.dumps(WFFORMAT), "JSON"),
        ("w.dax", DAX, "DAX"),
        ("w.xml.gz", DAX, "DAX"),
        ("w", DAX, "DAX"),
    ],
)
def test_recorded_values_are_replayed(tmp_path: Path, name: str, text: str, format: str) -> None:
    path = written(tmp_path, name, text)
    assert format_of(path).name == format
    jobs = read_workload(path)
    assert jobs.name == "w" and jobs.more["name"].tolist() == ["c", "a", "b"] and jobs.id.tolist() == [1, 2, 3]
    assert jobs.run_time.tolist() == jobs.walltime.tolist() == [0.0, 0.1, 5.0] and not jobs.submit_time.any()
    assert jobs.size.tolist() == [1, 1, 3] and jobs.more["memory"].tolist() == pytest.approx([0, 600, 0])
    assert pairs(jobs) == {("a", "c"), ("b", "c"), ("a", "b")} and jobs.machine is None
    assert replay(jobs, 3, Easy()).start_time.tolist() == [5.1, 0.0, 0.1]


def test_a_workflow_of_ours(tmp_path: Path) -> None:
    profile = Profile((ThreadGroup(4, 8.0),))
    for name in ("w.yaml", "w.yml", "w"):
        jobs = read_workload(written(tmp_path, name, OURS), profiles={"known": profile}.get)
        assert jobs.size.tolist() == [1, 4, 6] and jobs.run_time.tolist() == [4.0, 8.0, 5.0]
        assert jobs.walltime.tolist() == [3.0, 8.0, 5.0] and jobs.more["memory"].tolist() == [0.0, 150.0, 0.0]
    with pytest.raises(ConfigError, match="no profile is named 'known'"):
        read_workload(tmp_path / "w.yaml")


def test_a_task_without_a_run_time(tmp_path: Path) -> None:
    data = json.loads(json.dumps(WFFORMAT))
    del data["workflow"]["execution"]["tasks"][0]["runtimeInSeconds"]
    path = written(tmp_path, "w.json", json.dumps(data))
    with pytest.raises(ConfigError, match=r"w.json: task a: no run time \(1 of 3 tasks have none\)"):
        read_workload(path)
    readable = read_workload(path, skip_invalid=True)
    assert readable.left_out == {"tasks without a run time": 1, LOST: 2} and pairs(readable) == {("b", "c")}
    commands = "schema: pilotfish/workflow/v1\njobs: {a: {command: make}}"
    with pytest.raises(ConfigError, match="task a: no run time"):
        read_workload(written(tmp_path, "w.yaml", commands))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("w.dax", DAX.replace('<parent ref="b"/>', '<parent ref="b"/><parent ref="c"/>'), "in a cycle: c -> c"),
        (
            "w.dax",
            DAX.replace('<parent ref="b"/>', '<parent ref="x"/>'),
            "waits for 'x', which is not a job of this workflow",
        ),
        ("w.json", json.dumps(WFFORMAT).replace('"parents": []', '"parents": ["c"]'), "in a cycle"),
        ("w.json", json.dumps(WFFORMAT).replace('"parents": []', '"parents": ["y"]'), "waits for 'y'"),
        ("w.yaml", OURS.replace("profile: known", "after: c, profile: {threads: 1, service_demand: 1}"), "in a cycle"),
    ],
)
def test_impossible_graphs_are_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(InvalidJobError, match=why):
        read_workload(written(tmp_path, name, text))


def test_a_walltime_beyond_the_limit_is_an_error_with_file_and_task(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text("schema: pilotfish/workflow/v1\njobs: {a: {walltime: 1e16, profile: {service_demand: 1}}}\n")
    with pytest.raises(ConfigError, match=r"long.yaml: job a, walltime: 1e\+16 seconds .allowed: at most 1e.15"):
        read_workload(path)

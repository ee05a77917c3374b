"""`pilotfish convert`, as it is typed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

SWF = "; MaxProcs: 8\n" + "".join(
    f"{i} {i} -1 {3 + i % 5} {1 + i % 9} -1 -1 -1 20 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n" for i in range(1, 41)
)
JSON = {
    "jobs": [{"id": "a", "subtime": 0, "res": 2, "profile": "compute"}],
    "profiles": {"compute": {"type": "parallel_homogeneous", "cpu": 8e9, "com": 0}},
}
CLUSTER = """
schema: pilotfish/cluster/v1
node_types: {t: {cores: 1, memory: 4GiB, memory_bandwidth: 10GB/s, speed: 2.0e9}}
nodes: [{names: "n[1-4]", type: t}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.swf").write_text(SWF)
    (tmp_path / "w.json").write_text(json.dumps(JSON))
    (tmp_path / "c.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def summary(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    """The numbers of a replay."""
    assert main(["simulate", "--json", *argv]) == 0
    document = json.loads(capsys.readouterr().out)
    return {key: value for key, value in document.items() if key not in ("command", "inputs", "simulation_time")}


def test_a_trace_there_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "t.swf", "t.json.gz"]) == 0
    assert "t.json.gz: 40 jobs for 8 resources" in capsys.readouterr().err
    assert len(json.loads(gzip.decompress((folder / "t.json.gz").read_bytes()))["jobs"]) == 40
    assert main(["convert", "t.json.gz", "u.swf"]) == 0
    assert "not in it any more: names of profiles, delays: jobs of SWF compute (40)" in capsys.readouterr().err
    saving = ("-p", "easy+opportunistic:t_idle=inf")  # a policy that knows what power is, and switches nothing
    first = summary(capsys, "t.swf", *saving)
    assert first["nb_jobs_rejected"] == 4 and first == summary(capsys, "u.swf", *saving)
    waits = summary(capsys, "t.json.gz", *saving)
    joules, idle = first.pop("consumed_joules"), waits.pop("consumed_joules")
    assert first == waits and isinstance(joules, float) and isinstance(idle, float) and joules > idle


def test_flops_become_time_by_the_speed_of_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "w.json", "w.swf", "--cluster", "c.yaml", "--procs", "16"]) == 0
    stderr = capsys.readouterr().err
    assert "flops: now run times" in stderr and "jobs without a walltime" in stderr
    text = (folder / "w.swf").read_text()
    assert "; MaxProcs: 16\n" in text and text.splitlines()[-1].split()[:4] == ["1", "0", "-1", "4"]


PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
 <host id="master_host" speed="1Gf"/>
 <cluster id="c" prefix="n" suffix="" radical="1-4" speed="2Gf" bw="125MBps" lat="50us"/>
</zone></platform>
"""


def test_a_platform_there_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.xml").write_text(PLATFORM)
    assert main(["convert", "p.xml", "q.yaml"]) == 0
    stderr = capsys.readouterr().err
    assert "q.yaml: 4 nodes of a core" in stderr and "networks of clusters (1)" in stderr
    assert main(["convert", "q.yaml", "r.xml"]) == 0
    assert "clusters of nodes (1)" in capsys.readouterr().err
    first = summary(capsys, "w.json", "-c", "p.xml")
    assert first["machine"] == 4 and first["makespan"] == 4.0
    assert first == summary(capsys, "w.json", "-c", "q.yaml") == summary(capsys, "w.json", "-c", "r.xml")


WORKFLOW = """
schema: pilotfish/workflow/v1
jobs:
  a: {command: make, walltime: 60, profile: {threads: 2, service_demand: 10.0}}
  b: {after: a, profile: {threads: 4, service_demand: 20.0, utilisation: 0.5}}
"""


def test_a_workflow_from_format_to_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "f.yaml").write_text(WORKFLOW)
    first = summary(capsys, "f.yaml", "--procs", "8")
    assert first["makespan"] == 50.0
    for source, target, losses in (
        ("f.yaml", "f.json", "f.json: 2 tasks, 1 dependencies"),
        ("f.json", "f.dax", "not in it any more: CPU use (1)"),
        ("f.dax", "g.json.gz", "g.json.gz: 2 tasks"),
        ("g.json.gz", "g.yml", "g.yml: 2 tasks"),
        ("g.yml", "h.dax", "h.dax: 2 tasks"),
    ):
        assert main(["convert", source, target]) == 0
        assert losses in " ".join(capsys.readouterr().err.split())
        assert summary(capsys, target, "--procs", "8") == first
    assert main(["convert", "h.dax", "h.swf", "--procs", "8"]) == 0
    assert "ids that are not numbers: now numbered from 1 (2)" in capsys.readouterr().err
    assert summary(capsys, "h.swf") == first
    (folder / "h.xml").write_text((folder / "h.dax").read_text())
    assert main(["convert", "h.xml", "i.json"]) == 0 and main(["convert", "f.yaml", "f.xml"]) == 64
    assert main(["convert", "f.json", "f.dax", "--skip-invalid"]) == 64
    assert main(["convert", "f.json", "f.swf", "--cluster", "c.yaml"]) == 64
    (folder / "f.yaml").write_text(WORKFLOW.replace("after: a", "after: b"))
    capsys.readouterr()
    assert main(["convert", "f.yaml", "f.dax"]) == 1
    assert "in a cycle: b -> b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["t.swf", "t.csv"], 64, "t.swf cannot be converted to 't.csv' (allowed: .json)"),
        (["t.swf", "u.swf"], 64, "(allowed: .json)"),
        (["w.json", "u.json.gz"], 64, "(allowed: .swf)"),
        (["c.yaml", "c.json"], 64, "(allowed: .xml)"),
        (["c.yaml", "c.xml", "--procs", "4"], 64, "only for workloads"),
        (["broken.xml", "c.yaml"], 1, "broken.xml: line 1: not XML"),
        (["t.swf", "t.json", "--procs", "0"], 64, "--procs"),
        (["t.swf", "t.json", "--cluster", "c.yaml"], 64, "SWF has run times"),
        (["nowhere.swf", "t.json"], 1, "nowhere.swf"),
        (["w.json", "w.swf"], 1, "the speed of the machine is unknown"),
        (["w.json", "w.swf", "--cluster", "nowhere.yaml"], 1, "nowhere.yaml"),
        (["t.swf", "no/t.json"], 1, "no/t.json"),
        (["unsaid.swf", "t.json"], 1, "unsaid.swf: MaxProcs: missing"),
        (["broken.json", "t.swf"], 1, "broken.json: line 1: not JSON"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    folder: Path, argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "unsaid.swf").write_text(SWF.split("\n", 1)[1])
    (folder / "broken.json").write_text('{"jobs": [')
    (folder / "broken.xml").write_text("<platform")
    before = sorted(folder.iterdir())
    assert main(["convert", *argv]) == code
    assert why in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert sorted(folder.iterdir()) == before

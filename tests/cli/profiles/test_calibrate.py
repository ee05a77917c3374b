"""`pilotfish calibrate` as a person types it; the machine is this one, as if it had small caches."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.charts.calibration_figure import calibration
from pilotfish.cli.charts.picture_files import save
from pilotfish.formats.cluster import read_cluster
from pilotfish.profiles.calibration import cpu_sharing, load_generators, session
from pilotfish.profiles.calibration.calibration_records import save_record
from pilotfish.profiles.calibration.statistics import MeasuredNumber
from tests.profiles.calibration.calibrations import BARE, FULL

Capture = pytest.CaptureFixture[str]
OTHER = """
schema: pilotfish/cluster/v1
node_types: {a: {cores: 1, memory: 1GB, memory_bandwidth: 1kB/s}}
nodes: [{names: n, type: a}]
"""


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = replace(session.read_hardware(), cache=2**20)
    monkeypatch.setattr(session, "read_hardware", lambda: node)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.real
def test_what_it_finds_is_shown_written_drawn_and_compared(capsys: Capture) -> None:
    Path("old.yaml").write_text(OTHER)
    argv = ["calibrate", "--seconds", "0.5", "--name", "fast", "--out", "fast.yaml", "--plot", "fast.svg", "--force"]
    assert main(argv) == 0
    output = capsys.readouterr()
    assert "memory_bandwidth" in output.out and "speed" in output.out and max(map(len, output.out.splitlines())) <= 80
    assert output.err == ("pilotfish: the node type is in fast.yaml\npilotfish: the picture is in fast.svg\n")
    (node,) = read_cluster("fast.yaml").nodes
    assert node.name == node.type.name == "fast" and node.type.memory_bandwidth > 1e8
    assert "threads that stream" in Path("fast.svg").read_text()
    assert main(["calibrate", "--seconds", "0.5", "--compare", "old.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/calibration/v1" and document["date"] and document["curve"]
    assert {"memory_bandwidth", "loop_speed"} <= {change["key"] for change in document["changes"]}


@pytest.mark.real
def test_a_change_is_told_and_is_no_failure(capsys: Capture) -> None:
    Path("old.yaml").write_text(OTHER)
    assert main(["calibrate", "--seconds", "0.1", "--compare", "old.yaml"]) == 0
    out = capsys.readouterr().out
    assert "it differs from old.yaml by more than 10 %:" in out and "loop_speed: not given ->" in out
    assert re.search(r"memory_bandwidth: \S+[KMG]?B/s -> \S+[KMG]B/s", out)


@pytest.mark.real
def test_what_is_recorded_is_compared_with_the_last_one(capsys: Capture) -> None:
    Path("kept").mkdir()
    save_record(Path("kept"), replace(BARE, speed=MeasuredNumber(1.0, 0.0, 5)), "n1")
    assert (
        main(["calibrate", "--seconds", "0.1", "--name", "n1", "--record", "kept", "--bound", "0.001", "--force"]) == 0
    )
    output = capsys.readouterr()
    assert "recorded in kept/n1@" in output.err and f"it differs from the calibration of {BARE.date}" in output.out
    old, new = sorted(map(str, Path("kept").iterdir()))
    assert main(["calibrate", "--compare", old, new]) == 0
    out = capsys.readouterr().out
    assert f"{new} differs from {old} by more than 10 %:" in " ".join(out.split()) and "loop_speed: 1 ->" in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["calibrate", "--compare", new, new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": "pilotfish/calibration-changes/v1", "changes": []}
    assert main(["calibrate", "--seconds", "0.1", "--name", "n2", "--record", "kept", "--force"]) == 0
    assert "it is the first record of n2 there" in capsys.readouterr().err


@pytest.mark.real
def test_a_node_that_is_not_idle_writes_no_file(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_generators, "ALONE", 2.0)  # no run has its core for so long
    argv = ["calibrate", "--seconds", "0.1", "--name", "n1", "--out", "n.yaml", "--record", "kept", "--plot", "n.svg"]
    assert main(argv) == 1
    output = capsys.readouterr()
    assert "memory_bandwidth" in output.out and not Path("n.yaml").exists() and not Path("n.svg").exists()
    assert "the node was not idle: n.yaml, n.svg, kept not written (--force writes)" in output.err
    assert not list(Path("kept").iterdir())
    assert main(["calibrate", "--seconds", "0.1"]) == 0, "nothing was to be written"
    assert main([*argv, "--force"]) == 0 and Path("n.yaml").exists()


@pytest.mark.real
def test_the_grid_is_measured_where_a_socket_has_three_cores(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are fewer, threads take turns: what they measure is of no use, and must be said to be."""
    monkeypatch.setattr(cpu_sharing, "JOB_MIXES", cpu_sharing.JOB_MIXES[3:6])
    node = session.read_hardware()
    cpus = (node.cpus * 3)[:3]
    monkeypatch.setattr(session, "read_hardware", lambda: replace(node, cpus=cpus, sockets=(cpus,)))
    assert main(["calibrate", "--seconds", "0.1", "--grid", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    fit = document["piecewise"]
    assert fit["quality"]["samples"] == 8 * 3 * (2 + 3) and {"b", "c", "da", "db", "dc", "dd"} < set(fit["intervals"])
    assert document["choice"]["mixes"] == 8 * 3 * 2 + 1 and len(document["choice"]["candidates"]) >= 5
    (kind,) = document["node_types"].values()
    assert ("piecewise" in kind) == (document["choice"]["contention"] == "piecewise-linear")


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["--seconds", "0"], 64, "--seconds"),
        (["--seconds", "nan"], 64, "--seconds"),
        (["--bound", "nan"], 64, "--bound"),
        (["--bound", "-1"], 64, "--bound"),
        (["--name", ""], 64, "letters, digits"),
        (["--name", "a b"], 64, "letters, digits"),
        (["--out", "x.txt"], 64, "no known ending (allowed: .yaml, .yml)"),
        (["--plot", "x.gif"], 64, "no known ending (allowed: .svg, .png, .pdf, .html)"),
        (["--out", "nowhere/x.yaml"], 1, "no such folder"),
        (["--compare", "nowhere.yaml"], 1, "nowhere.yaml: cannot be read"),
        (["--compare", "old.yaml", "--name", "b"], 1, "none is named 'b'"),
        (["more"], 64, "(allowed: --compare A B)"),
        (["--compare", "old.yaml", "old.yaml", "--grid"], 64, "--grid"),
        (["--compare", "old.yaml", "old.yaml", "--record", "."], 64, "--record"),
        (["--compare", "old.yaml", "nowhere.yaml"], 1, "nowhere.yaml: cannot be read"),
        (["--record", "old.yaml"], 1, "it cannot be made"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(
    argv: list[str], code: int, why: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "read_hardware", lambda: pytest.fail("it was measured"))
    Path("old.yaml").write_text(OTHER)
    assert main(["calibrate", *argv]) == code
    assert why in " ".join(capsys.readouterr().err.split())


def test_all_that_was_fitted_is_drawn(tmp_path: Path) -> None:
    save(calibration(FULL), tmp_path / "full.svg")
    save(calibration(BARE), tmp_path / "bare.svg")
    full, bare = ((tmp_path / f"{name}.svg").read_text() for name in ("full", "bare"))
    assert "power of the processors" in full and "piecewise-linear" in full
    assert "power of the processors" not in bare and "memory bandwidth" in bare

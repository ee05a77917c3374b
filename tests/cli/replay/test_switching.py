"""`pilotfish calibrate --switching` as a person types it, with a node that is a script and a few files."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
import yaml

from pilotfish.cli.__main__ import main

Capture = pytest.CaptureFixture[str]
NODE = """#!/bin/sh
# A node that takes 300 ms to go off and 500 ms to come back, in the folder $1.
now=$(date +%s%N)
state=up; after=0
[ -e "$1/state" ] && read -r state since < "$1/state"
[ $state = going ] && [ $(( (now - since) / 1000000 )) -ge 300 ] && state=off
[ $state = coming ] && [ $(( (now - since) / 1000000 )) -ge 500 ] && state=up
case $2 in
off) echo "$PILOTFISH_NODE off" >> "$1/log"; echo "going $now" > "$1/state" ;;
on) echo "$PILOTFISH_NODE on" >> "$1/log"; [ -e "$1/dead" ] || echo "coming $now" > "$1/state" ;;
up|down) [ $state = $( [ $2 = up ] && echo up || echo off ) ] ;;
watts) case $state in up) echo 95 W;; off) echo 9.75;; *) echo 120;; esac ;;
esac
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "node.sh").write_text(NODE)
    words = ["calibrate", "--switching", "n1", "--settle", "0.3", "--switch-limit", "60"]
    for option in ("off", "on", "up", "down"):
        words += [f"--{option}-command", f"sh node.sh . {option}"]
    return words


POWER = ["--power-command", "sh node.sh . watts"]


@pytest.mark.real
def test_a_node_is_switched_timed_written_and_drawn(commands: list[str], capsys: Capture) -> None:
    assert main([*commands, *POWER, "--yes", "--out", "power.yaml", "--plot", "n1.svg"]) == 0
    output = capsys.readouterr()
    assert max(map(len, output.out.splitlines())) <= 80 and "switch_on seconds" in output.out
    assert "1 run\n" in output.out and "1 runs" not in output.out
    power = yaml.safe_load(Path("power.yaml").read_text())["power"]
    assert (power["idle"], power["off"]) == (95.0, 9.75) and "switch_on:" in output.out
    assert power["switch_off"]["seconds"] >= 0.29 and power["switch_on"]["seconds"] >= 0.49
    assert 9.75 <= power["switch_off"]["watts"] <= 120 and 9.75 <= power["switch_on"]["watts"] <= 120
    assert Path("log").read_text() == "n1 off\nn1 on\n"
    assert "power (W)" in Path("n1.svg").read_text()


@pytest.mark.real
def test_it_is_told_for_programs_and_compared(commands: list[str], capsys: Capture) -> None:
    Path("old.yaml").write_text(
        "schema: pilotfish/cluster/v1\nnodes: [{names: n, type: t}]\nnode_types: {t: {cores: 1, memory: 1GB, "
        "memory_bandwidth: 1GB/s, power: {idle: 95, off: 9.75, switch_on: {watts: 120, seconds: 9000}}}}\n"
    )
    assert main([*commands, *POWER, "--yes", "--json", "--compare", "old.yaml"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/switching/v1" and document["off"]["value"] == 9.75
    changed = {change["key"] for change in document["changes"]}
    assert "power.switch_on.seconds" in changed and "power.off" not in changed


@pytest.mark.real
def test_a_node_that_does_not_come_back_is_told(commands: list[str], capsys: Capture) -> None:
    Path("dead").write_text("")
    commands[commands.index("60")] = "5"
    assert main([*commands, "--yes"]) == 1
    assert "n1 DID NOT COME BACK, switch it on by hand" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "--yes"),
        (["--yes", "--switching", platform.node()], "is this machine"),
        (["--yes", "--switching", "a b"], "the name of a node"),
        (["--yes", "--up-command", " "], "--up-command"),
        (["--yes", "--settle", "nan"], "--settle"),
        (["--yes", "--grid"], "--grid"),
        (["--yes", "--record", "."], "--record"),
        (["--yes", "x.yaml"], "'B'"),
        (["--yes", "--plot", "x.svg"], "without --power-command"),
        (["--yes", "--repeat", "0"], "--repeat"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_switched(
    commands: list[str], more: list[str], why: str, capsys: Capture
) -> None:
    assert main([*commands, *more]) == 64
    assert why in " ".join(capsys.readouterr().err.split())
    assert not Path("log").exists()


@pytest.mark.parametrize("option", [["--yes"], ["--off-command", "true"], ["--settle", "5"]])
def test_options_of_switching_mean_nothing_without_a_node(option: list[str], capsys: Capture) -> None:
    assert main(["calibrate", *option]) == 64
    assert "--switching NODE" in " ".join(capsys.readouterr().err.split())

"""The examples of the README and of "Getting started" run as they stand, and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pilotfish
from pilotfish.cli.__main__ import main
from pilotfish.formats.cluster import read_cluster
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.simulate.model.job import DEFAULT_PROFILE

ROOT = Path(pilotfish.__file__).resolve().parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
STARTED = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")


def example(text: str, language: str, word: str) -> str:
    """Return the one block of that language that has the word in it."""
    found = [body for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S) if kind == language]
    (block,) = [body for body in found if word in body]
    return block


def test_the_readmes_python_prints_what_its_console_shows(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example(README, "python", "replay("), "README.md", "exec"), {})
    rows = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert rows.keys() == {"easy", "easy:order=sjf", "conservative"}
    (shown,) = re.findall(r"^slowdown +([\d.,]+) in the mean", README, re.M)
    assert float(rows["easy:order=sjf"]) == pytest.approx(float(shown), abs=0.005)


def test_the_readmes_replay_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = example(README, "console", "generate lublin").splitlines()
    for line in lines:
        if line.startswith("$ pilotfish "):
            assert main(line.split()[2:]) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = [line for line in lines if not line.startswith("$ ") and line != "..."]
    assert len(shown) >= 2 and all(line in printed for line in shown)


def test_getting_started_can_be_read_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.yaml").write_text(example(STARTED, "yaml", "pilotfish/cluster/v1"))
    text = example(STARTED, "yaml", "pilotfish/workflow/v1")
    (tmp_path / "dag.yaml").write_text(text)
    assert len(read_cluster("lab.yaml").nodes) >= 1
    asked: list[str] = []
    flow = read_workflow("dag.yaml", lambda name: asked.append(name) or DEFAULT_PROFILE)
    assert len(flow.jobs) >= 2
    for name in asked:  # the reader's own store has this profile; here its numbers are given
        text = text.replace(f"profile: {name} ", "profile: {service_demand: 60} ")
    (tmp_path / "dag.yaml").write_text(text)
    exec(compile(example(STARTED, "python", "Simulation("), "getting-started.md", "exec"), {})
    numbers = [float(word) for word in capsys.readouterr().out.split()]
    assert len(numbers) == 2 and min(numbers) > 0

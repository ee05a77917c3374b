"""The README tells the truth: its commands, files and examples are the product's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer

import pilotfish
from pilotfish.daemon.__main__ import _UsageError, app
from pilotfish.daemon.own_policy import make
from pilotfish.simulate.batch.own import Own
from pilotfish.simulate.batch.replay import replay
from pilotfish.simulate.formats.cluster import read_cluster
from pilotfish.simulate.formats.workflow import read_workflow
from pilotfish.simulate.generate.lublin import lublin
from pilotfish.simulate.job import DEFAULT_PROFILE

ROOT = Path(pilotfish.__file__).resolve().parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.M | re.S)
TYPED = [
    line.removeprefix("$ ")
    for language, block in BLOCKS
    if language == "console"
    for line in block.splitlines()
    if line.startswith("$ ")
]
COMMANDS = [line for line in TYPED if line.startswith("pilotfish ")]
FILES = [
    target
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT) + re.findall(r"`([\w./-]+/)`", TEXT)
    if not re.match(r"[a-z]+:|#", target)
]


def example(language: str, word: str) -> str:
    """The one block of that language that has the word in it."""
    (found,) = [block for kind, block in BLOCKS if kind == language and word in block]
    return found


def test_it_shows_the_main_commands() -> None:
    shown = {line.split()[1] for line in COMMANDS}
    assert shown >= {"plan", "run", "demo", "profile", "daemon", "submit", "status"}
    assert "@" not in re.sub(r"\S+@\S+\.\S+", "", TEXT), "something is left to be filled in"


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_are_real(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((i for i, word in enumerate(words) if word in (">", "|", "<")), None)]
    command = typer.main.get_command(app)
    try:
        context = command.make_context("pilotfish", list(words))
        while hasattr(command, "resolve_command"):
            name, command, words = command.resolve_command(context, words)
            context = command.make_context(name, list(words))
    except _UsageError as error:
        pytest.fail(f"{line}: {error.format_message()}")
    said = command.get_help(context)
    for word in words[: words.index("--") if "--" in words else None]:
        if word.startswith("--"):
            assert word in said


@pytest.mark.parametrize("name", FILES)
def test_the_files_it_names_are_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_its_make_targets_are_there() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    named = {line.split()[1] for line in TYPED if line.startswith("make ")}
    named |= set(re.findall(r"`make (\w+)`", TEXT))
    assert {"run", "test"} <= named <= set(targets)


def test_its_policy_is_short_and_the_compiled_one(tmp_path: Path) -> None:
    code = example("python", "def decide(")
    assert len(code.splitlines()) <= 20
    (tmp_path / "mine.py").write_text(code)
    jobs = lublin(400, 64, load=1.1)
    own, ours = replay(jobs, 64, make(Own(f"{tmp_path}/mine.py", "Easy"), 0).policy), replay(jobs, 64)
    assert np.array_equal(own.start_time, ours.start_time) and np.array_equal(own.pieces, ours.pieces)
    assert (own.start_time > jobs.submit_time).any()


def test_its_examples_can_be_read_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.yaml").write_text(example("yaml", "pilotfish/cluster/v1"))
    text = example("yaml", "pilotfish/workflow/v1")
    (tmp_path / "dag.yaml").write_text(text)
    assert len(read_cluster("lab.yaml").nodes) >= 1
    asked: list[str] = []
    flow = read_workflow("dag.yaml", lambda name: asked.append(name) or DEFAULT_PROFILE)  # type: ignore[func-returns-value]
    assert len(flow.jobs) >= 2
    for name in asked:  # the store is the reader's own; here the profile is written in its place
        text = text.replace(f"profile: {name} ", "profile: {service_demand: 60} ")
    (tmp_path / "dag.yaml").write_text(text)
    code = example("python", "Simulation(")
    exec(compile(code, "README.md", "exec"), {})
    numbers = [float(word) for word in capsys.readouterr().out.split()]
    assert len(numbers) == 2 and min(numbers) > 0

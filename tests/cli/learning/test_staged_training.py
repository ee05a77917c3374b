"""Trainings in stages: what ended is kept when the journal cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pilotfish.cli.learning.staged_training import Stages
from pilotfish.cli.sweeps.run_journal import JournalKind, RunJournal, RunJournalError
from pilotfish.simulate.errors import ConfigError
from tests.cli.sweeps.test_run_journal import no_file_above


@dataclass(frozen=True)
class Counting:
    """A training that counts its epochs."""

    key: str = "1"
    until: int = 0
    state: Mapping[str, Any] | None = None

    epochs: int = 4

    @property
    def shared_inputs(self) -> dict[str, Any]:
        """Name what all share."""
        return {"TRACE": {"sha256": "0" * 64}, "--epochs": self.epochs}

    @property
    def identity(self) -> str:
        """Name the stage."""
        return f"{self.key} {self.until}"


def counted(task: Counting) -> dict[str, Any]:
    return {"epochs": task.until, "value": 1.0 / task.until, "text": "x" * 500}


STAGES = Stages([Counting()], counted, lambda state: float(state["value"]), 4, 1, own_process=False)


def test_what_ended_before_the_disk_was_full_is_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state"
    with no_file_above(1500):
        trained = STAGES.run("wait", 1, path, None)
    assert (trained.code, trained.states["1"]["epochs"]) == (1, 3)
    error = capsys.readouterr().err
    assert f"{path}: cannot be written: File too large" in error and "the same command goes on" in error
    assert "1 of 1 training came to epoch 3 of 4; the best so far is kept" in error
    assert STAGES.run("wait", 1, path, None).states["1"]["epochs"] == 4
    assert len(path.read_bytes().splitlines()) == 5


def test_without_any_stage_it_is_an_error(tmp_path: Path) -> None:
    with no_file_above(10), pytest.raises(RunJournalError):
        STAGES.run("wait", 1, tmp_path / "state", None)


def test_a_journal_of_other_inputs_says_which(tmp_path: Path) -> None:
    path = tmp_path / "state"
    STAGES.run("wait", 1, path, None)
    with pytest.raises(ConfigError, match=r"other inputs: --epochs 4 there, 5 here \(allowed: the same inputs"):
        replace(STAGES, trainings=[Counting(epochs=5)]).run("wait", 1, path, None)


@pytest.mark.parametrize(
    ("earlier", "now", "words"),
    [
        ({"--windows": 1, "--part": "all"}, {"--windows": 2, "--part": "all"}, "--windows 1 there, 2 here"),
        ({"--procs": None}, {"--procs": 64}, "--procs not given there, 64 here"),
        ({"--no-predictions": False}, {"--no-predictions": True}, "--no-predictions false there, true here"),
        ({"TRACE": {"sha256": "1"}}, {"TRACE": {"sha256": "2"}}, "TRACE has changed"),
        ({"a": {"sha256": "1"}, "b": 1}, {"b": 1}, "a is in one of them only"),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, "a 1 there, 2 here; b 1 there, 2 here"),
        ({"a": "x" * 100}, {"a": 1}, f"a {'x' * 57}... there, 1 here"),
    ],
)
def test_each_difference_is_in_words(earlier: dict[str, Any], now: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with RunJournal(path, JournalKind("training", earlier)):
        pass
    with pytest.raises(ConfigError) as refusal:
        RunJournal(path, JournalKind("training", now))
    assert refusal.value.problem == f"its runs have other inputs: {words}"

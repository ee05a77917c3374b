"""Trainings in stages: what ended is kept when the journal cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pilotfish.cli.learning.staged_training import Stages
from pilotfish.cli.sweeps.run_journal import RunJournalError
from tests.cli.sweeps.test_run_journal import no_file_above


@dataclass(frozen=True)
class Counting:
    """A training that counts its epochs."""

    key: str = "1"
    until: int = 0
    state: Mapping[str, Any] | None = None
    shared_identity: str = "counting"

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

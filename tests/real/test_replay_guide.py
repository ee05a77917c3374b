"""docs/guides/replay.md, walked from end to end: its files are written, its commands typed, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import pilotfish
from pilotfish.cli.__main__ import main

ROOT = Path(pilotfish.__file__).resolve().parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "guides" / "replay.md").read_text(), re.M | re.S)
FILES = {"pilotfish/cluster/v1": "lab.yaml", "pilotfish/sweep/v1": "study.yaml"}
MADE = ("run/jobs.csv", "run.html", "day.png", "energy.png", "compare.svg", "workload.json", "platform.xml")


def test_its_commands_can_be_typed_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = 0
    for language, text in BLOCKS:
        if language == "yaml":
            (name,) = [file for schema, file in FILES.items() if schema in text]
            (tmp_path / name).write_text(text)
            continue
        assert language == "console"
        for line in text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            assert words[0] == "pilotfish"
            code = main(words[1:])
            assert code == 0, f"{line}: {capsys.readouterr().err}"
            typed += 1
    assert typed >= 20 and all((tmp_path / name).exists() for name in MADE)
    rows = (tmp_path / "study" / "results.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 2 * 6 * 2 and all(",done," in row for row in rows[1:])

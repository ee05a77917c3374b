"""`pilotfish record` without a service: a record of this machine, and wrong options."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.__main__ import USAGE, main


def test_this_machine_is_recorded_and_played(real: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "record"
    assert main(["record", str(record), "--adapter", "local", "--for", "1s", "--every", "0.2"]) == 0
    assert f"records local into {record}, for 1s" in capsys.readouterr().err
    assert main(["replay", str(record)]) == 0
    assert "Nothing was decided when it was recorded." in capsys.readouterr().out


@pytest.mark.parametrize("length", ["0s", "3", "1w", "-1d"])
def test_a_wrong_length_is_a_usage_error(tmp_path: Path, length: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(tmp_path / "record"), f"--for={length}"]) == USAGE
    assert "such as 7d, 12h, 30m or 90s" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "record").exists()


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["record", str(tmp_path / "file" / "record"), "--adapter", "local", "--for", "1s"]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_a_record_is_written_without_its_names(real: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, away = tmp_path / "record", tmp_path / "away"
    assert main(["record", str(record), "--adapter", "local", "--for", "1s", "--every", "0.2"]) == 0
    capsys.readouterr()
    assert main(["record", str(record), "--anonymise", str(away)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{away}: ") and "away-names.json: the names" in printed.err
    assert main(["replay", str(away)]) == 0
    assert main(["record", str(record), "--anonymise", str(away)]) == 1
    assert "it has files already (allowed: a new or empty folder)" in " ".join(capsys.readouterr().err.split())
    assert main(["record", str(tmp_path / "none"), "--anonymise", str(tmp_path / "other")]) == 1
    assert not (tmp_path / "other").exists()

"""`pilotfish site record`: what is refused before Slurm is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.cli.moment_option import moment_s

NOW = 1_772_431_200.0


@pytest.mark.parametrize(
    ("text", "time"),
    [("30d", NOW - 30 * 86_400), ("12h", NOW - 43_200), ("5m", NOW - 300), ("2026-03-01", 1_772_323_200.0),
     ("2026-03-01T18:00", 1_772_388_000.0), ("2026-03-01T18:00:30", 1_772_388_030.0)],
)  # fmt: skip
def test_times(text: str, time: float) -> None:
    assert moment_s("--since", text, NOW) == time


@pytest.mark.parametrize(
    "options",
    [
        ("--since", "yesterday"),
        ("--since", "2026-13-01"),
        ("--since", "30"),
        ("--since", "2026-03-02", "--until", "2026-03-01"),
        ("--until", "2999-01-01"),
        ("--anonymise-nodes",),
    ],
)
def test_wrong_options_write_nothing(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["site", "record", str(tmp_path / "site"), *options]) == USAGE
    assert "allowed: " in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_an_old_mapping_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site-names.json").write_text("old")
    assert main(["site", "record", str(tmp_path / "site"), "--anonymise"]) == FAILED
    assert "it exists already" in capsys.readouterr().err
    assert (tmp_path / "site-names.json").read_text() == "old" and not (tmp_path / "site").exists()

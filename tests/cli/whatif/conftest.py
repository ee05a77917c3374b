"""A small synthetic site, and the output of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "university"
    assert main(["generate", "site", "university", "--jobs", "60", "-o", str(folder)]) == 0
    return folder


def out(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    """Return what a command prints; one process does it, as tests without a mark demand."""
    words = [str(word) for word in argv]
    assert main([*words, *([] if "--workers" in words else ["--workers", "1"])]) == 0
    return capsys.readouterr().out

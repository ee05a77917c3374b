"""The doctor's findings about slurmrestd and its token file."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path

import pytest

from pilotfish.adapters.findings import OK, PROBLEM, WARNING, Level
from pilotfish.adapters.slurm.doctor import check_rest
from tests.support.slurm_answers import (
    NOW,
)


def token(**claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"SLURM_JWT=aaa.{part}.bbb\n"


@pytest.mark.real
def test_slurmrestd_and_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, listener = tmp_path / "token", socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def levels(text: str, mode: int = 0o600) -> list[Level]:
        path.write_text(text)
        path.chmod(mode)
        return [
            finding.level
            for finding in check_rest.connection_findings({"rest_url": url, "rest_token_file": str(path)}, NOW)
        ]

    with listener:
        assert levels(token(exp=NOW + 600, sun="backup")) == [OK, OK]
        assert levels(token(exp=NOW + 600, sun="backup"), 0o644) == [OK, PROBLEM, OK]
        assert levels(token(exp=NOW - 1)) == [OK, WARNING]
        assert levels("SLURM_JWT=nonsense") == levels("a.!!!.c") == levels(token(sun="x")) == [OK, WARNING]
        path.write_text(token(exp=NOW + 600))
        path.chmod(0o622)
        findings = list(check_rest.connection_findings({"rest_url": url, "rest_token_file": str(path)}, NOW))
        assert (
            findings[1].level is PROBLEM
            and "not trusted" in findings[1].says
            and "others can write" in findings[1].says
        )
        path.unlink()
        assert [
            finding.level for finding in check_rest.connection_findings({"rest_url": url, "rest_token_file": path}, NOW)
        ] == [OK, WARNING]
    for options in ({}, {"rest_url": ""}):
        assert list(check_rest.connection_findings(options, NOW)) == []
    for away in (url, f"unix:{tmp_path}/none", "http://:x", "what"):
        assert [finding.level for finding in check_rest.connection_findings({"rest_url": away}, NOW)] == [WARNING]
    bound = socket.socket(socket.AF_UNIX)
    with bound:
        monkeypatch.chdir(tmp_path)
        bound.bind("s")
        bound.listen()
        assert check_rest.unreachable("unix:s") == ""

"""A client tells the service's account from a stranger who listens at its socket."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pilotfish.cli.daemon_client import expected_server


def other_user() -> pwd.struct_passwd:
    return next(user for user in pwd.getpwall() if user.pw_uid not in (0, os.geteuid()))


def test_oneself_root_and_the_services_account_are_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, settings = other_user(), tmp_path / "client.yaml"
    monkeypatch.setenv("PILOTFISH_CLIENT", str(settings))
    settings.write_text("schema: pilotfish/client/v1\n")
    assert expected_server(os.geteuid()) and expected_server(0)
    assert not expected_server(other.pw_uid) and not expected_server(2**31)
    settings.write_text(f"schema: pilotfish/client/v1\nservice_user: {other.pw_name}\n")
    assert expected_server(other.pw_uid)

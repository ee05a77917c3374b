"""A client tells the service's account from a stranger who listens at its socket, and asks a dying daemon again."""

from __future__ import annotations

import os
import pwd
import socket
import threading
from pathlib import Path

import pytest

from pilotfish.cli.service.daemon_client import DaemonClient, UnreachableError, expected_server


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


@pytest.mark.parametrize("reads", [0, 2**16])
def test_a_daemon_that_dies_before_it_answers_is_asked_again(tmp_path: Path, reads: int) -> None:
    def take_one_and_close() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(reads)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    dying = threading.Thread(target=take_one_and_close)
    dying.start()
    for reason in ("closed the connection without an answer", "no pilotfish daemon listens"):
        with pytest.raises(UnreachableError, match=reason):
            DaemonClient(str(tmp_path / "s")).poll("dag-1", 5.0)
        dying.join()

"""A client tells the service's account from a stranger who listens at its socket, and asks a dying daemon again."""

from __future__ import annotations

import os
import pwd
import socket
import threading
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.service import daemon_client, service_commands
from pilotfish.cli.service.daemon_client import DaemonClient, UnreachableError, expected_server
from pilotfish.cli.user_client.client import UserClient
from pilotfish.daemon import paths
from pilotfish.simulate.errors import PilotfishError


def other_user() -> pwd.struct_passwd:
    return next(user for user in pwd.getpwall() if user.pw_uid not in (0, os.geteuid()))


def test_oneself_root_and_the_services_account_are_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger, settings = other_user(), tmp_path / "client.yaml"
    monkeypatch.setenv("PILOTFISH_CLIENT", str(settings))
    settings.write_text("schema: pilotfish/client/v1\n")
    assert expected_server(os.geteuid()) and expected_server(0)
    assert not expected_server(stranger.pw_uid) and not expected_server(2**31)
    settings.write_text(f"schema: pilotfish/client/v1\nservice_user: {stranger.pw_name}\n")
    assert expected_server(stranger.pw_uid)


@pytest.mark.real
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


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose users are sent to Slurm, with a socket of the system's daemon that is open to this user."""
    for name in ("PILOTFISH_ADAPTER", "PILOTFISH_SOCKET", "PILOTFISH_CLIENT", "RUNTIME_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr(paths, "SITE_CLIENT", tmp_path / "client.yaml")
    for module in (paths, daemon_client):
        monkeypatch.setattr(module, "SYSTEM_SOCKET", tmp_path / "s")
    (tmp_path / "client.yaml").write_text("schema: pilotfish/client/v1\nadapter: slurm\n")
    (tmp_path / "s").touch()
    return tmp_path


@pytest.mark.real
@pytest.mark.parametrize(
    ("uid", "rights", "asks"),
    [
        (0, None, DaemonClient),
        (7, {"administers": True}, DaemonClient),
        (7, {"administers": False}, UserClient),
        (7, None, UserClient),
    ],
)
def test_administrators_ask_the_systems_daemon_and_others_what_the_settings_say(site, monkeypatch, uid, rights, asks):
    def answer(socket, do, **arguments):
        assert (socket, do) == (str(site / "s"), "rights")
        if rights is None:
            raise PilotfishError("it is hung")
        return rights

    monkeypatch.setattr(daemon_client, "ask_daemon", answer)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    client = service_commands._asking(None, None)
    assert isinstance(client, asks)
    assert not isinstance(client, DaemonClient) or client.endpoint == str(site / "s")
    assert isinstance(service_commands._client(None, None), UserClient), "submissions go where the settings say"
    assert isinstance(service_commands._asking("slurm", None), UserClient)
    monkeypatch.setenv("PILOTFISH_ADAPTER", "slurm")
    assert isinstance(service_commands._asking(None, None), UserClient)
    monkeypatch.delenv("PILOTFISH_ADAPTER")
    (site / "s").unlink()
    assert isinstance(service_commands._asking(None, None), UserClient)


@pytest.mark.real
@pytest.mark.parametrize("command", ["nodes", "accuracy"])
def test_what_only_the_service_knows_says_where_to_ask_for_it(site, capsys, command):
    (site / "s").unlink()
    code = main([command])
    stderr = " ".join(capsys.readouterr().err.split())
    assert code == 1 and f"nor at {site / 's'}; {command} asks the service" in stderr
    assert "run it on the machine of the service, or name its socket (--socket PATH)" in stderr

"""sd_notify: datagrams reach the named socket, and a missing listener is no error."""

import socket

import pytest

from pilotfish.daemon.systemd import notify, notify_reloading


@pytest.mark.parametrize("abstract", [False, True])
def test_datagrams_reach_the_named_socket(tmp_path, monkeypatch, abstract):
    name = f"\0pilotfish-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(name)
        channel.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        assert notify("READY=1", "STATUS=fine")
        assert channel.recv(999) == b"READY=1\nSTATUS=fine"
        assert notify_reloading()
        assert channel.recv(999).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_without_a_listener_nothing_happens(monkeypatch, address):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False

"""The reaper for OAR: a placement file without a heartbeat is removed, and OAR asked for a pass."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.adapters import registry
from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.placement_file import PlacementFile


@pytest.fixture
def server(real: None) -> Iterator[socket.socket]:
    """OAR's server as far as it listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5.0)
        yield listener


def reap(file: Path, server: socket.socket, older_s: float = 0.0, *, dry: bool = False) -> tuple[int, list[str]]:
    lines: list[str] = []
    port = server.getsockname()[1]
    options = {"queues": ["q"], "placement_file": str(file), "server": f"127.0.0.1:{port}"}
    return registry.reap(
        "oar", older_s, lambda reaped: lines.append(reaped.line), dry=dry, holds=True, state_dir=file.parent, **options
    ), lines


def heard(server: socket.socket) -> bytes:
    connection, _ = server.accept()
    with connection:
        return connection.recv(64)


def test_only_a_file_without_a_heartbeat_is_removed(tmp_path: Path, server: socket.socket) -> None:
    path = tmp_path / "f"
    assert reap(path, server) == (0, [])
    PlacementFile(path, ["queue q"], 600.0).beat(30.0)
    assert reap(path, server) == (0, []) and path.exists()
    PlacementFile(path, ["queue q"], 600.0, lambda: time.time() - 100.0).beat(30.0)
    assert reap(path, server, older_s=7000.0) == (0, []) and path.exists()
    code, (line,) = reap(path, server, dry=True)
    silent = re.fullmatch(rf"remove {re.escape(str(path))}: no heartbeat for (\d+) s", line)
    assert code == 0 and silent and int(silent[1]) >= 70 and path.exists()
    assert reap(path, server)[0] == 0 and heard(server) == b"Term\n" and not path.exists()


@pytest.mark.parametrize("content", ["", "\0" * 100, "pilotfish-placements 1\nalive 9999999999\n", "alive 9\nend\n"])
def test_a_damaged_file_has_no_heartbeat(tmp_path: Path, server: socket.socket, content: str) -> None:
    path = tmp_path / "f"
    path.write_text(content)
    assert reap(path, server)[0] == 0 and not path.exists()


def test_a_server_that_is_away_and_a_link_are_said(tmp_path: Path, server: socket.socket) -> None:
    path, target = tmp_path / "f", tmp_path / "other"
    target.write_text("")
    path.symlink_to(target)
    with pytest.raises(AdapterError, match="f: "):
        reap(path, server)
    assert target.exists()
    path.unlink()
    path.write_text("")
    with socket.socket() as away:
        away.bind(("127.0.0.1", 0))
        code, lines = reap(path, away)
    assert code == 1 and "OAR's server does not answer at 127.0.0.1:" in lines[-1] and not path.exists()

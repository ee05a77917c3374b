"""The socket for events: who is heard, and what a flood, a second daemon or a foreign file does."""

from __future__ import annotations

import os
import select
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.daemon.socket.event_socket import DEAF_S, MOST_STRANGERS, EventSocket
from pilotfish.simulate.errors import ConfigError

SCRIPT = Path(__file__).parents[3] / "systemd" / "pilotfish-job-end.sh"
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "events.sock"


@pytest.fixture
def open_path(real: None) -> Iterator[Path]:
    """A path in a folder that everyone may enter; each run of pytest closes those of pytest to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "events.sock"


@pytest.fixture
def clock() -> list[float]:
    return [1000.0]


@pytest.fixture
def events(real: None, path: Path, clock: list[float]) -> Iterator[EventSocket]:
    with closing(EventSocket(path, [], lambda: clock[0])) as found:
        yield found


def send(path: Path, many: int = 1) -> None:
    """Send so many datagrams as the user of this process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel:
        for number in range(many):
            channel.sendto(b"\0" * (number % 100), str(path))


def test_one_who_is_heard_wakes_the_daemon_once(events: EventSocket, path: Path) -> None:
    assert not events.heard()
    send(path, 5)
    assert events.heard()
    assert not events.heard()


def test_a_job_end_is_heard_and_without_a_daemon_nothing_happens(events: EventSocket, path: Path) -> None:
    environment = {**os.environ, "PILOTFISH_EVENTS": str(path)}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout == done.stderr == b""
    descriptor = events.fileno()
    assert descriptor is not None
    assert select.select([descriptor], [], [], 10.0)[0] and events.heard()
    events.close()
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout == done.stderr == b""


def test_the_sender_of_job_ends_never_waits_for_a_daemon_that_is_stopped(events: EventSocket, path: Path) -> None:
    with pytest.raises(BlockingIOError):
        send(path, 100_000)  # they are not taken: the queue is full
    subprocess.run([SCRIPT], env={**os.environ, "PILOTFISH_EVENTS": str(path)}, check=True, timeout=60)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize(("users", "heard"), [([], False), ([NOBODY], True)])
def test_of_other_users_only_those_named_are_heard(open_path: Path, users: list[int], heard: bool) -> None:
    with closing(EventSocket(open_path, users)) as events:
        _as_other(events.path)
        assert events.heard() is heard


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_flood_of_strangers_is_not_listened_to_for_a_while(
    open_path: Path, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with closing(EventSocket(open_path, [], lambda: clock[0])) as events:
        for _ in range(1 + MOST_STRANGERS):
            _as_other(events.path)
            events.heard()
        assert events.fileno() is None
        assert [record.levelname for record in caplog.records] == ["WARNING"] and "uid 65534" in caplog.text
        clock[0] += DEAF_S
        assert events.fileno() is not None
        send(events.path)
        assert events.heard()


def _as_other(path: Path) -> None:
    subprocess.run(["logger", "--socket-errors=on", "--socket", path, "end"], user=NOBODY, check=True, cwd="/")


def test_a_second_daemon_does_not_take_it_and_a_leftover_is_replaced(events: EventSocket, path: Path) -> None:
    with pytest.raises(ConfigError, match="another daemon listens on"):
        EventSocket(path, [])
    send(path)
    assert events.heard()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as old:
        old.bind(str(path.with_name("old.sock")))
    with closing(EventSocket(path.with_name("old.sock"), [])) as found:
        send(found.path)
        assert found.heard()
    assert not path.with_name("old.sock").exists()


@pytest.mark.real
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_file_of_another_kind_is_left_alone(path: Path, kind: str) -> None:
    path.parent.mkdir()
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("elsewhere")
    with pytest.raises(ConfigError, match="exists and is not a socket"):
        EventSocket(path, [])
    assert os.path.lexists(path)


def test_its_file_can_be_written_by_all_and_its_folder_by_us_alone(events: EventSocket, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

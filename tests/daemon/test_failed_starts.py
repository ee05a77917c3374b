"""The wait after failed starts: how it grows, what ends it, and what systemd keeps meanwhile. Without a systemd."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pilotfish.daemon.failed_starts import MOST_S, RESTART_S, wait_s

PATIENCE_S = 60.0
#: The command with the kept descriptor as its first one and in a unit, as systemd starts it again.
AGAIN = """
import os, pathlib, sys
from pilotfish.cli.__main__ import main
from pilotfish.daemon import failed_starts
descriptor, config, failed_starts.CGROUPS = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
if descriptor != 3:
    os.dup2(descriptor, 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "failed-starts"}
sys.exit(main(["daemon", "--config", config]))
"""
CGROUPS = {"cgroup": "0::/system.slice/x.service\n", "hybrid": "9:name=systemd:/system.slice/x.service/a\n0::/\n"}


def test_the_time_between_starts_doubles_up_to_ten_minutes() -> None:
    pauses = [RESTART_S + wait_s(failed) for failed in range(1, 9)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0]
    assert wait_s(0) == 0.0 and RESTART_S + wait_s(10**9) == MOST_S


class Manager:
    """What systemd does for a service: it hears it, keeps its descriptor, and starts it again with that."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "pilotfish.yaml"
        self.config.write_text("schema: pilotfish/daemon/v1\ncluster: missing.yaml\n")
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.bind(str(folder / "notify"))
        self.channel.settimeout(PATIENCE_S)
        self.kept: int | None = None
        self.environment = os.environ | {
            "NOTIFY_SOCKET": str(folder / "notify"), "PATH": f"{folder}:{os.environ['PATH']}",
            "PILOTFISH_STATE": str(folder / "state"),
        }  # fmt: skip

    def restarts(self, shown: str) -> None:
        """Let `systemctl show` answer so."""
        (self.folder / "systemctl").write_text(f"#!/bin/sh\necho {shown}\n")
        (self.folder / "systemctl").chmod(0o755)

    def start(self, content: bytes | None = None, cgroups: str = CGROUPS["cgroup"]) -> subprocess.Popen[str]:
        """Start the service: for the first time, or again with this in the descriptor."""
        own = [sys.executable, "-P", "-m", "pilotfish.cli", "daemon", "--config", str(self.config)]
        if content is not None:
            self.kept = os.memfd_create("kept")
            os.write(self.kept, content)
            (self.folder / "cgroup").write_text(cgroups)
            own = [sys.executable, "-P", "-c", AGAIN, str(self.kept), str(self.config), str(self.folder / "cgroup")]
        passed = () if self.kept is None else (self.kept,)
        return subprocess.Popen(own, env=self.environment, pass_fds=passed, stderr=subprocess.PIPE, text=True)

    def hears(self) -> str:
        """Return what the service says next, and keep its descriptor."""
        text, descriptors, _, _ = socket.recv_fds(self.channel, 9999, 1)
        if descriptors:
            (self.kept,) = descriptors
        return text.decode()

    def state(self) -> dict[str, Any]:
        """Return what is in the descriptor."""
        assert self.kept is not None
        return dict(json.loads(os.pread(self.kept, 9999, 0)))

    def close(self) -> None:
        self.channel.close()
        with suppress(TypeError):
            os.close(self.kept)


@pytest.fixture
def manager(real: None, tmp_path: Path) -> Iterator[Manager]:
    one = Manager(tmp_path)
    yield one
    one.close()


def ended(service: subprocess.Popen[str]) -> tuple[int, str]:
    _, stderr = service.communicate(timeout=PATIENCE_S)
    return service.returncode, stderr


def test_a_start_that_fails_leaves_its_reason(manager: Manager) -> None:
    code, stderr = ended(manager.start())
    assert (code, manager.hears()) == (1, "FDSTORE=1\nFDNAME=failed-starts")
    assert manager.hears().startswith("STATUS=it cannot start: ")
    state = manager.state()
    assert (state["failed"], state["restarts"]) == (1, 0) and "missing.yaml" in state["reason"]
    assert "missing.yaml" in stderr


def waiting(config: Path) -> bytes:
    """What five failed starts with such a configuration leave."""
    status = config.stat()
    version = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    return json.dumps({"failed": 5, "restarts": 4, "reason": "the disk is full", "config": version}).encode()


@pytest.mark.parametrize("end", ["stop", "hang-up", "mended"])
def test_what_ends_a_wait(manager: Manager, end: str) -> None:
    manager.restarts("5")
    service = manager.start(waiting(manager.config))
    status, extension = manager.hears().splitlines()
    assert status.startswith("STATUS=5 starts failed; the next is at ") and status.endswith(": the disk is full")
    assert extension == "EXTEND_TIMEOUT_USEC=450000000"
    assert manager.state()["failed"] == 6  # also if it is killed from now on
    if end == "mended":
        manager.config.write_text("schema: pilotfish/daemon/v1\ncluster: other.yaml\n")
    else:
        service.send_signal(signal.SIGTERM if end == "stop" else signal.SIGHUP)
    code, stderr = ended(service)
    if end == "stop":
        assert (code, stderr, manager.state()) == (0, "", {})
        assert manager.hears() == "STOPPING=1"
    else:
        assert code == 1 and ("other.yaml" if end == "mended" else "missing.yaml") in stderr
        assert manager.state()["failed"] == 6


def test_a_configuration_that_changed_since_the_failed_start_does_not_wait(manager: Manager) -> None:
    manager.restarts("5")
    state = waiting(manager.config)
    manager.config.write_text("schema: pilotfish/daemon/v1\ncluster: other.yaml\n")
    code, stderr = ended(manager.start(state))
    assert code == 1 and "other.yaml" in stderr and manager.hears().startswith("STATUS=it cannot start: ")
    assert manager.state()["failed"] == 6


@pytest.mark.parametrize("hierarchy", CGROUPS)
@pytest.mark.parametrize("restarts", ["4", "0"])
def test_a_start_that_systemd_does_not_count_is_a_persons_and_does_not_wait(
    manager: Manager, restarts: str, hierarchy: str
) -> None:
    manager.restarts(restarts)
    code, _ = ended(manager.start(waiting(manager.config), CGROUPS[hierarchy]))
    assert code == 1 and manager.hears().startswith("STATUS=it cannot start: ")
    assert (manager.state()["failed"], manager.state()["restarts"]) == (1, int(restarts))


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"failed": 1'])
def test_a_descriptor_that_cannot_be_read_counts_as_none(manager: Manager, content: bytes) -> None:
    assert ended(manager.start(content))[0] == 1 and manager.state()["failed"] == 1

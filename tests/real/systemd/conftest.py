"""One systemd for all tests of a process, with the units of the service installed as the guides do."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("machine")

import guardian
import machine
from machine import CLUSTER, Machine

SOURCE = "/opt/pilotfish/packages/pilotfish"
GUIDE = """set -e
cd {source}
install -D -m 644 systemd/pilotfish.sysusers.conf /etc/sysusers.d/pilotfish.conf
systemd-sysusers
install -D -m 644 -t /etc/systemd/system systemd/pilotfishd.service
install -D -m 644 -t /etc/systemd/system systemd/pilotfish-reap.service systemd/pilotfish-reap.timer
groupadd operators
usermod --append --groups operators pilotfish"""
#: The daemon feeds the watchdog every 12 s while nothing happens.
QUICK = "[Service]\nRestartSec=100ms\nWatchdogSec=15\n"


@pytest.fixture(scope="session")
def booted() -> Iterator[Machine]:
    """A systemd with the units of the service, which are not started."""
    if why := machine.missing():
        pytest.skip(f"SKIPPED, no systemd can be started: {why}")
    one = Machine(Path(tempfile.mkdtemp(dir=guardian.folder())))
    try:
        one.run("sh", "-c", GUIDE.format(source=SOURCE))
        one.write("/etc/pilotfish/cluster.yaml", CLUSTER)
        one.write("/etc/systemd/system/pilotfishd.service.d/test.conf", QUICK)
        one.run("systemctl", "daemon-reload")
        yield one
    finally:
        one.down()


@pytest.fixture
def served(booted: Machine) -> Machine:
    """The same, with the service running as its unit says, with its usual configuration."""
    booted.configure()
    booted.run("systemctl", "reset-failed")
    booted.run("systemctl", "reload-or-restart", "pilotfishd")
    return booted

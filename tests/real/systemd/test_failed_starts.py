"""A service that cannot start, under a real systemd: it is started again ever more rarely, and at once by a person."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import CLUSTER, Machine
from waiting import look_until

pytestmark = pytest.mark.xdist_group("systemd")
PATIENCE_S = 60.0
DROP_IN = "/etc/systemd/system/pilotfishd.service.d/zz-test.conf"
STATUS = ("pilotfish", "status", "--socket", "/run/pilotfish/pilotfish.sock")
#: More failed starts than that one could wait within PATIENCE_S for the next start.
FAILED = 6


def waits_after(machine: Machine, failed: int) -> bool:
    """Wait until the service waits after so many failed starts."""
    begin = f"{failed} starts failed; the next is at "
    return bool(look_until(lambda: machine.show("pilotfishd", "StatusText").startswith(begin), PATIENCE_S))


def fail(machine: Machine) -> None:
    """Let starts fail until the service waits for minutes: SIGHUP ends each wait before."""
    machine.write("/etc/pilotfish/cluster.yaml", "nonsense")
    assert machine.process("systemctl", "restart", "pilotfishd").returncode != 0  # a person learns it at once
    for failed in range(2, FAILED + 1):
        assert waits_after(machine, failed), machine.run("systemctl", "status", "pilotfishd", check=False)
        if failed < FAILED:
            machine.run("kill", "-HUP", machine.show("pilotfishd", "MainPID"))


@pytest.fixture
def stopped(booted: Machine) -> Iterator[Machine]:
    booted.configure()
    booted.run("systemctl", "stop", "pilotfishd")
    yield booted
    booted.write("/etc/pilotfish/cluster.yaml", CLUSTER)
    booted.run("rm", "-f", DROP_IN)
    booted.run("systemctl", "daemon-reload")
    booted.run("systemctl", "stop", "pilotfishd")
    booted.run("systemctl", "reset-failed")


def test_each_failed_start_makes_the_next_one_rarer_and_a_person_does_not_wait(stopped: Machine) -> None:
    fail(stopped)
    assert stopped.show("pilotfishd", "ActiveState") == "activating"
    assert "/etc/pilotfish/cluster.yaml" in stopped.show("pilotfishd", "StatusText")  # the reason
    assert stopped.show("pilotfishd", "NFileDescriptorStore") == "1"
    assert "no pilotfish daemon listens" in stopped.process(*STATUS).stderr
    assert stopped.process("test", "-e", "/run/pilotfish/heartbeat").returncode == 1  # so the reaper looks
    stopped.write("/etc/pilotfish/cluster.yaml", CLUSTER)
    report = stopped.process("pilotfish", "doctor", "--config", "/etc/pilotfish/pilotfish.yaml").stdout
    assert f"{FAILED} starts failed" in report and "systemctl restart pilotfishd" in report
    stopped.run("systemctl", "restart", "pilotfishd")  # a wait would last longer than this command may
    assert stopped.show("pilotfishd", "ActiveState") == "active"
    stopped.run("kill", "-KILL", stopped.show("pilotfishd", "MainPID"))
    assert look_until(lambda: stopped.show("pilotfishd", "ActiveState") != "active", PATIENCE_S)
    assert look_until(lambda: stopped.show("pilotfishd", "ActiveState") == "active", PATIENCE_S)


def test_a_stop_ends_the_wait_and_forgets_the_failures(stopped: Machine) -> None:
    fail(stopped)
    stopped.run("systemctl", "stop", "pilotfishd")
    assert stopped.show("pilotfishd", "Result") == "success"
    assert look_until(lambda: stopped.show("pilotfishd", "NFileDescriptorStore") == "0", PATIENCE_S)
    stopped.write("/etc/pilotfish/cluster.yaml", CLUSTER)
    stopped.run("systemctl", "start", "pilotfishd")


def test_a_changed_configuration_ends_the_wait(stopped: Machine) -> None:
    fail(stopped)
    stopped.write("/etc/pilotfish/cluster.yaml", CLUSTER)
    stopped.configure("policy: slf\n")
    stopped.run("systemctl", "start", "pilotfishd")  # systemd lets it wait for the start that is under way


def test_a_person_does_not_wait_before_systemd_itself_tries_again(stopped: Machine) -> None:
    fail(stopped)
    stopped.write(DROP_IN, "[Service]\nRestartSec=600\n")
    stopped.run("systemctl", "daemon-reload")
    stopped.run("kill", "-HUP", stopped.show("pilotfishd", "MainPID"))
    assert look_until(lambda: stopped.show("pilotfishd", "SubState") == "auto-restart", PATIENCE_S)
    stopped.write("/etc/pilotfish/cluster.yaml", CLUSTER)
    stopped.run("systemctl", "restart", "pilotfishd")
    assert stopped.show("pilotfishd", "ActiveState") == "active"

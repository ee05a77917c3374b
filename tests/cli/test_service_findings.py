"""What doctor finds about the service itself: its daemon, its account, and the group of its socket."""

from __future__ import annotations

import grp
import os
import pwd
import socket
from pathlib import Path

import pytest

from pilotfish.adapters.findings import OK, PROBLEM, WARNING
from pilotfish.cli.service_findings import group_findings, root_findings, service_state
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.socket import ipc


def systemctl(folder: Path, monkeypatch: pytest.MonkeyPatch, **properties: str) -> None:
    """A systemd that shows these properties of the unit."""
    cases = "".join(f"*--property={name}*) echo '{value}';; " for name, value in properties.items())
    (folder / "systemctl").write_text(f'#!/bin/sh\ncase "$*" in {cases}esac\n')
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def config(folder: Path, **section: str) -> DaemonConfig:
    return DaemonConfig(cluster="x", state_dir=str(folder), socket={"path": str(folder / "s"), **section})


@pytest.mark.real
def test_a_daemon_that_hangs_is_restarted_and_one_that_is_away_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl(tmp_path, monkeypatch, LoadState="loaded")
    ask = ipc.ask
    monkeypatch.setattr(ipc, "ask", lambda *given, **named: ask(*given, **named | {"timeout_s": 0.01}))
    state, (away,) = service_state(config(tmp_path))
    assert (state.mode, state.hangs, state.socket) == ("", False, "")
    assert away.level is WARNING and away.mend == ("systemctl start pilotfishd",)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        state, (silent,) = service_state(config(tmp_path))
    assert (state.mode, state.hangs, state.socket) == ("", True, str(tmp_path / "s"))
    assert silent.mend == ("systemctl restart pilotfishd",) and "busy or hangs" in silent.says
    systemctl(tmp_path, monkeypatch, LoadState="loaded", StatusText="3 starts failed; the next is at 12:00:00")
    (tmp_path / "s").unlink()
    (waits,) = service_state(config(tmp_path))[1]
    assert waits.mend == ("systemctl restart pilotfishd",) and "systemd: 3 starts failed" in waits.says
    systemctl(tmp_path, monkeypatch, LoadState="not-found")
    assert service_state(config(tmp_path))[1][0].mend == ()


@pytest.mark.real
@pytest.mark.parametrize(
    ("shown", "works"),
    [
        ("", True), ("chown fchownat read", True), ("read write", False), ("fchown chown:EPERM fchownat", True),
        ("~mount reboot", True), ("~chown fchown fchownat", False),
    ],
)  # fmt: skip
def test_a_unit_that_forbids_chown_is_named(
    shown: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl(tmp_path, monkeypatch, SystemCallFilter=shown)
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [grp.getgrnam("games").gr_gid])
    (only,) = group_findings(config(tmp_path, group="games"), "nobody")
    assert only.level is (OK if works else PROBLEM)
    assert works or only.mend == ("systemctl edit pilotfishd.service   # [Service] SystemCallFilter=chown fchownat",)


def test_an_account_that_is_not_in_the_group_is_named(tmp_path: Path) -> None:
    (only,) = group_findings(config(tmp_path, group="games"), "nobody")
    assert only.level is PROBLEM and "nobody is not a member of games" in only.says
    (only,) = group_findings(config(tmp_path, group="no-such-group"), "nobody")
    assert only.level is PROBLEM and "there is no group 'no-such-group'" in only.says
    assert group_findings(config(tmp_path), pwd.getpwuid(os.geteuid()).pw_name) == []


def test_root_is_warned_that_the_daemon_does_not_start(tmp_path: Path) -> None:
    (finding,) = root_findings(config(tmp_path), "root")
    assert finding.level is WARNING and "access.root" in finding.says and "--user ACCOUNT" in finding.mend[0]
    allowed = DaemonConfig(cluster="x", access={"root": True})
    assert root_findings(allowed, "root") == [] and root_findings(config(tmp_path), "pilotfish") == []

"""The units under a real systemd: start, reload, log, heartbeat, reaper, restart and stop."""

from __future__ import annotations

import json

import pytest
from machine import Machine
from waiting import look_until, without_cluster

pytestmark = pytest.mark.xdist_group("systemd")
PATIENCE_S = 60.0
METRICS = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9836/metrics').read().decode())"
#: What a reaper does and prints is tested next to Slurm and OAR; here it leaves a trace instead.
REAPER = "[Service]\nExecStart=\nExecStart=/bin/sh -c 'echo release slurm/7; echo run >>/var/lib/pilotfish/runs'\n"


def metric(machine: Machine, name: str) -> float:
    lines = without_cluster(machine.python(METRICS)).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"pilotfish_{name} "))


def mode(machine: Machine) -> str:
    status = machine.process("pilotfish", "status", "--json", "--socket", "/run/pilotfish/pilotfish.sock")
    return str(json.loads(status.stdout)["mode"]) if status.returncode == 0 else status.stderr


def test_the_socket_has_its_group_and_only_members_connect(served: Machine) -> None:
    assert served.run("stat", "--format=%U %G %a", "/run/pilotfish/pilotfish.sock") == "pilotfish operators 660"
    status = ("pilotfish", "status", "--socket", "/run/pilotfish/pilotfish.sock")
    as_games = ("setpriv", "--reuid=games", "--regid=games")
    client = ("env", "HOME=/nonexistent", *status)
    served.write("/etc/pilotfish/client.yaml", "schema: pilotfish/client/v1\nadapter: daemon\n")
    assert served.process(*as_games, "--groups=operators", *client).returncode == 0
    refused = served.process(*as_games, "--clear-groups", *client)
    assert refused.returncode == 1 and "permission denied" in refused.stderr


def test_a_reload_is_applied_or_fails_with_the_reason(served: Machine) -> None:
    served.configure("policy: slf\n")
    assert served.process("systemctl", "reload", "pilotfishd").returncode == 0
    assert look_until(lambda: metric(served, "config_last_reload_successful") == 1.0, PATIENCE_S)
    served.configure("policy: nonsense\n")
    assert served.process("systemctl", "reload", "pilotfishd").returncode == 1
    assert look_until(lambda: metric(served, "config_last_reload_successful") == 0.0, PATIENCE_S)
    assert served.show("pilotfishd", "ActiveState") == "active"
    loud = served.journal("--unit=pilotfishd", "--priority=err", served.since("pilotfishd"))
    assert len(loud) == 2 and all("policy: found 'nonsense'" in line for line in loud)  # the daemon and the command


def test_a_reload_pauses_it_and_makes_it_a_dry_run_and_live_again(served: Machine) -> None:
    process = served.show("pilotfishd", "MainPID")
    for keys, expected in (("paused: true\n", "paused"), ("mode: shadow\n", "shadow"), ("", "live")):
        served.configure(keys)
        served.run("systemctl", "reload", "pilotfishd")
        assert mode(served) == expected
        beats = served.process("test", "-e", "/run/pilotfish/heartbeat").returncode == 0
        assert beats is (expected != "shadow")  # shadow clears no pin, so the reaper must look
    assert served.show("pilotfishd", "MainPID") == process
    assert served.run("stat", "--format=%U %G %a", "/run/pilotfish/pilotfish.sock") == "pilotfish operators 660"


def test_records_have_their_priority_and_fields(served: Machine) -> None:
    flow = {"schema": "pilotfish/workflow/v1", "name": "w", "jobs": {"fails": {"command": "exit 3"}}}
    served.write("/root/w.yaml", json.dumps(flow))
    submitted = served.run("pilotfish", "submit", "/root/w.yaml", "--socket", "/run/pilotfish/pilotfish.sock")
    job = f"JOB={submitted}/fails"

    def failed() -> list[str]:
        return served.journal("--unit=pilotfishd", "--priority=warning", "--output=json", job)

    (record,) = (json.loads(line) for line in look_until(failed, PATIENCE_S) or [])
    assert (record["PRIORITY"], record["USER"], record["LOGGER"]) == ("4", "root", "pilotfish.job")
    assert record["MESSAGE"] == f"WARNING {submitted}/fails failed: exit code 3" and int(record["CYCLE"]) > 0
    started = served.journal("--unit=pilotfishd", "--priority=info", job, "USER=root")
    assert [line for line in started if line.startswith(f"INFO start {submitted}/fails on a")]


def test_the_reaper_is_silent_while_the_daemon_lives_and_runs_without_it(served: Machine) -> None:
    served.write("/etc/systemd/system/pilotfish-reap.service.d/test.conf", REAPER)
    served.run("systemctl", "daemon-reload")

    def runs() -> int:
        served.run("sh", "-c", "rm -f /var/lib/pilotfish/runs; systemctl start pilotfish-reap")
        return int(served.run("sh", "-c", "cat /var/lib/pilotfish/runs 2>/dev/null | wc -l"))

    before = len(served.journal())
    assert look_until(lambda: runs() == 0, PATIENCE_S)  # the first cycle has been completed
    assert runs() == 0
    assert len(served.journal()) == before
    daemon = served.show("pilotfishd", "MainPID")
    served.run("kill", "-STOP", daemon)
    for age, expected in (("2 minutes ago", 1), ("now", 0), ("1 hour", 1)):
        served.run("touch", f"--date={age}", "/run/pilotfish/heartbeat")
        assert runs() == expected, age
    served.run("kill", "-CONT", daemon)
    served.run("systemctl", "stop", "pilotfishd")
    assert runs() == 1
    lines = served.journal("--unit=pilotfish-reap")
    assert lines and {*lines} == {"release slurm/7"}  # and none about the runs themselves


def test_it_is_started_again_when_it_is_killed_or_hangs(served: Machine) -> None:
    before = int(served.show("pilotfishd", "NRestarts"))
    for signal in ("KILL", "STOP"):  # a process that is stopped feeds no watchdog
        process = served.show("pilotfishd", "MainPID")
        served.run("kill", f"-{signal}", process)
        assert look_until(lambda: served.show("pilotfishd", "MainPID") not in ("0", process), PATIENCE_S)  # noqa: B023
        assert look_until(lambda: served.show("pilotfishd", "ActiveState") == "active", PATIENCE_S)
    assert int(served.show("pilotfishd", "NRestarts")) == before + 2


def test_nothing_is_left_over(served: Machine) -> None:
    compiled = "[Service]\nType=oneshot\nEnvironment=PILOTFISH_CACHE=/var/tmp/cache\nExecStart=/bin/true\n"
    served.write("/etc/systemd/system/warm.service", f"{compiled}ExecStartPre=/usr/bin/pilotfish warm -k swf.parser\n")
    served.run("systemctl", "daemon-reload")
    served.run("systemctl", "start", "warm")
    served.run("systemctl", "stop", "pilotfishd")
    assert served.show("pilotfishd", "Result") == "success"
    assert served.run("sh", "-c", "ps -u pilotfish -o pid= | wc -l") == "0"
    assert served.process("test", "-e", "/run/pilotfish").returncode == 1
    assert not [line for line in served.journal() if "left-over" in line]

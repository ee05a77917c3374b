"""Counters of an adapter's jobs: one at a time within the budget, without waiting."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pilotfish.profiles.measure.counters import available_counters
from pilotfish.profiles.measure.neighbour_counters import NeighbourCounters
from pilotfish.profiles.probes.external_counter import counter_user
from tests.support.clock import Clock

#: A process named perf looks like a user of the counters to other tests: run one such test at a time.
pytestmark = pytest.mark.xdist_group("counters")

COUNTS = r"9000.00,msec,task-clock,1,100.00,,\n900,,instructions,1,100.00,,\n600,,cycles,1,100.00,,\n"
LONG = 1e9


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a PMU, and a substitute for perf that counts until its pipe is closed."""
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    (tmp_path / "proc").symlink_to("/proc")
    tool = tmp_path / "perf"
    tool.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\ncat\nprintf '{COUNTS}' >&2\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    # Other tests may run counters at the same time.
    monkeypatch.setattr("pilotfish.profiles.probes.external_counter.TOOLS", frozenset())
    return tmp_path


@pytest.fixture
def job(real: None):
    process = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def alongside(real, machine, clock):
    made = NeighbourCounters(root=machine, clock=clock)
    yield made
    made.close()


def settled(alongside, key):
    for _ in range(6000):
        if alongside.ready(key):
            return
        time.sleep(0.01)
    raise AssertionError("perf did not end")


def test_a_job_is_counted_until_it_has_ended(alongside, clock, job):
    alongside.update({"a": job}, alone=True)
    assert alongside.counts("a") and alongside.ended == []
    clock.now = 20.0
    alongside.update({}, alone=True)
    assert alongside.ended == ["a"]
    settled(alongside, "a")
    found = alongside.collect("a", 10.0)
    assert (found.ipc, found.instructions) == (1.5, None) and not alongside.counts("a")
    assert found.notes == ("perf: counted 90 % of the CPU time, too little for instructions",)


def test_jobs_take_turns_within_the_budget(alongside, clock, job):
    running = {"a": job, "b": job}
    alongside.update(running, alone=False)
    for clock.now in (1.0, 2.0):
        alongside.update(running, alone=False)
        assert not alongside.counts("b")
    clock.now = LONG
    alongside.update(running, alone=False)
    assert alongside.counts("a") and alongside.counts("b")


def test_one_that_ended_before_its_turn_is_not_counted(alongside, clock, job):
    alongside.update({"a": job, "b": job}, alone=False)
    clock.now = LONG
    alongside.update({"a": job}, alone=True)
    assert not alongside.counts("b") and alongside.ended == []


def test_a_job_that_is_too_short_has_no_rates(alongside, job):
    alongside.update({"a": job}, alone=True)
    alongside.update({}, alone=True)
    found = alongside.collect("a", 0.05)
    assert found.ipc is None and found.notes == ("the job was too short to be counted",)


def test_without_counters_no_job_is_counted(tmp_path, job):
    alongside = NeighbourCounters((), tmp_path)
    alongside.update({"a": job}, alone=True)
    assert not alongside.counts("a") and alongside.names == []


def test_an_unavailable_counter_says_why(machine):
    alongside = NeighbourCounters(["resctrl", "perf"], machine)
    assert alongside.names == ["perf"] and "no resctrl" in alongside.missing["resctrl"]
    assert "powercap" not in alongside.missing


@pytest.mark.real
def test_perf_and_likwid_are_not_used_at_once(machine):
    tool = machine / "likwid-perfctr"
    tool.write_text("#!/bin/sh\necho MEM\n")
    tool.chmod(0o755)
    found, missing = available_counters(machine)
    assert "perf" in found and "likwid" not in found and "not used with perf" in missing["likwid"]
    assert available_counters(machine, ["likwid"])[0] == ["likwid"]


@pytest.mark.real
def test_our_own_counting_commands_are_ignored(tmp_path):
    """A command that we started is ignored; one of another process is not."""
    tool = shutil.copy("/bin/sleep", tmp_path / "perf")
    ours = subprocess.Popen([tool, "1000"])
    shell = subprocess.Popen(["/bin/sh", "-c", f"{tool} 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    theirs = int(shell.stdout.readline())
    try:
        while any(Path(f"/proc/{pid}/comm").read_text() != "perf\n" for pid in (ours.pid, theirs)):
            time.sleep(0.01)
        assert counter_user([ours.pid]) is None
        assert counter_user([theirs]) == f"perf (process {theirs}) uses the counters"
    finally:
        ours.kill()
        os.kill(theirs, signal.SIGKILL)
        ours.wait()
        shell.communicate()


def test_monitoring_groups_of_a_killed_daemon_are_removed(tmp_path):
    groups = tmp_path / "sys/fs/resctrl/mon_groups"
    (groups / "pilotfish.999999999.4711.5").mkdir(parents=True)
    (groups / "theirs").mkdir()
    (tmp_path / "sys/fs/resctrl/info/L3_MON").mkdir(parents=True)
    (tmp_path / "sys/fs/resctrl/info/L3_MON/mon_features").write_text("mbm_total_bytes\n")
    (tmp_path / "proc").symlink_to("/proc")
    assert NeighbourCounters(["resctrl"], tmp_path).names == ["resctrl"]
    assert os.listdir(groups) == ["theirs"]

"""The perf probe: when it counts, when it steps back, and how it ends."""

import os
import subprocess
import sys
import time

import pytest

from pilotfish.profiles.probes.catalogue import ProbeEntry, examine
from pilotfish.profiles.probes.external_counter import ExternalCounter, counter_user, first_message
from pilotfish.profiles.probes.imc import MemoryControllers
from pilotfish.profiles.probes.perf import Perf, refused
from pilotfish.profiles.probes.process_tree import ProcessTree

#: A process named perf looks like a user of the counters to other tests: run one such test at a time.
pytestmark = pytest.mark.xdist_group("counters")

COUNTS = """\
2000.00,msec,task-clock,1,100.00,,
900,,instructions,1,100.00,,
600,,cycles,1,100.00,,
10,,LLC-load-misses,1,100.00,,
5,,LLC-store-misses,1,100.00,,
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a PMU, and a substitute for perf that prints when its command has ended."""
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/perf_event_paranoid").write_text("2\n")
    (tmp_path / "counts").write_text(COUNTS)
    tool = tmp_path / "bin/perf"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat\nexec /bin/cat {tmp_path}/counts >&2\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    return tmp_path


def process(root, pid, name, target=""):
    (root / f"proc/{pid}/fd").mkdir(parents=True)
    (root / f"proc/{pid}/comm").write_text(f"{name}\n")
    if target:
        (root / f"proc/{pid}/fd/3").symlink_to(target)


@pytest.mark.real
def test_it_counts_the_tree(machine):
    probe, tree = Perf(machine), ProcessTree(77)
    assert probe.available() is None
    probe.start(tree, 0.0)
    probe.sample(1.0)
    found = probe.stop()
    assert (found.ipc, found.cpu_s, found.miss_bytes, found.problem) == (1.5, 2.0, 960.0, "")
    assert "-p 77 -- cat" in (machine / "asked").read_text()


@pytest.mark.real
@pytest.mark.parametrize(
    ("ours", "theirs", "asked"),
    [
        ("0::/us\n", "0::/us/job-1\n", "-G us/job-1 --"),
        ("0::/\n3:perf_event:/\n", "0::/job-1\n3:perf_event:/site/job-1\n", "-G site/job-1 --"),
        ("0::/\n3:perf_event:/\n", "0::/job-1\n3:perf_event:/\n", "-G job-1 --"),
        ("0::/us\n", "0::/us\n", "-p 77 --"),
        ("4:memory:/\n", "4:memory:/job-1\n", "-p 77 --"),
        ("", "nonsense", "-p 77 --"),
    ],
)
def test_a_job_with_its_own_control_group_is_counted_by_it(machine, ours, theirs, asked):
    (machine / "proc/sys/kernel/perf_event_paranoid").write_text("0\n")
    for pid, text in (("self", ours), ("77", theirs)):
        (machine / f"proc/{pid}").mkdir(exist_ok=True)
        (machine / f"proc/{pid}/cgroup").write_text(text)
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    assert probe.stop().ipc == 1.5
    assert asked in (machine / "asked").read_text()


@pytest.mark.real
def test_without_node_permission_processes_are_counted(machine):
    for pid, text in (("self", "0::/us\n"), ("77", "0::/us/job-1\n")):
        (machine / f"proc/{pid}").mkdir()
        (machine / f"proc/{pid}/cgroup").write_text(text)
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    probe.stop()
    assert "-p 77 --" in (machine / "asked").read_text()


@pytest.mark.real
def test_perf_steps_back_when_the_job_uses_counters(machine):
    probe, tree = Perf(machine), ProcessTree(77)
    probe.start(tree, 0.0)
    process(machine, 78, "python3", "anon_inode:[perf_event]")
    tree.threads[78] = []
    probe.sample(1.0)
    probe.sample(2.0)
    assert probe.stop().problem == "stepped back: python3 (process 78) uses the counters"


@pytest.mark.real
def test_other_users_of_the_counters_are_found(machine):
    process(machine, 50, "sleep", "/dev/null")
    assert counter_user(root=machine) is None
    process(machine, 51, "likwid-perfctr")
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    probe.sample(1.0)
    assert probe.stop().problem == "stepped back: likwid-perfctr (process 51) uses the counters"
    assert not (machine / "asked").exists()
    assert examine(ProbeEntry("perf", "job", "counts", lambda: Perf(machine))).missing == probe.stop().problem
    assert counter_user([50], machine) is None
    assert counter_user([4711], machine) is None


def test_permission_to_count(machine):
    setting, status = machine / "proc/sys/kernel/perf_event_paranoid", machine / "proc/self/status"
    assert refused(2, machine) is None
    assert "perf_event_paranoid is 2" in refused(0, machine)
    setting.write_text("3\n")
    assert "perf_event_paranoid is 3" in Perf(machine).available()
    status.parent.mkdir()
    for capabilities, allowed in (("0000000000000001", False), ("0000004000000000", True), ("000001ffffffffff", True)):
        status.write_text(f"Name:\tx\nCapEff:\t{capabilities}\nCapBnd:\t0\n")
        assert (Perf(machine).available() is None) == allowed


@pytest.mark.real
def test_the_cost_includes_the_command(machine):
    found = examine(ProbeEntry("perf", "job", "counts", lambda: Perf(machine)))
    assert found.missing is None and found.begin_s > 0
    (machine / "counts").write_text("Error:\nno such event\n")
    assert (
        examine(ProbeEntry("perf", "job", "counts", lambda: Perf(machine))).missing == "it did not count: no such event"
    )


def test_an_unavailable_probe_says_why(machine, monkeypatch):
    (machine / "sys/bus/event_source/devices/cpu").rmdir()
    assert "no counters of its cores" in Perf(machine).available()
    assert "no memory controller counters" in MemoryControllers(machine).available()
    monkeypatch.setenv("PATH", str(machine))
    assert "no perf command" in Perf(machine).available()
    assert "no perf command" in MemoryControllers(machine).available()


@pytest.mark.real
def test_a_hanging_command_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr("pilotfish.profiles.probes.external_counter.PATIENCE_S", 0.1)
    assert ExternalCounter(["/bin/sh", "-c", "echo counts; exec sleep 30"], ProcessTree(1)).finish() == "counts\n"


@pytest.mark.real
def test_the_command_ends_when_we_are_killed(tmp_path):
    """The kernel closes the pipe of a killed process."""
    program = (
        "import os, signal\nfrom pilotfish.profiles.probes.external_counter import ExternalCounter\n"
        "from pilotfish.profiles.probes.process_tree import ProcessTree\n"
        f"ExternalCounter(['/bin/sh', '-c', '\"$@\"; touch {tmp_path}/ended', 'sh'], ProcessTree(1))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    deadline = time.monotonic() + 60
    while not (tmp_path / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "ended").exists()


@pytest.mark.real
def test_the_command_is_not_part_of_the_job(tmp_path):
    tree = ProcessTree(os.getpid() + 10**6, reaper=os.getpid())
    attached = ExternalCounter(["/usr/bin/env"], tree)
    tree.refresh()
    assert attached._process.pid not in tree.threads
    attached.finish()


@pytest.mark.parametrize(
    ("printed", "says"),
    [("", "it printed nothing"), ("\n----\nError:\n  no access \n", "no access"), ("x" * 500, "x" * 120)],
)
def test_the_first_message_is_found(printed, says):
    assert first_message(printed) == says

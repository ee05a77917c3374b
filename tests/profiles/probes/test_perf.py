"""The perf probe: when it may count, when it steps back, and that it goes with us."""

import os
import subprocess
import sys
import time

import pytest

from pilotfish.profiles.probes.attached import Attached, complaint
from pilotfish.profiles.probes.busy import counting
from pilotfish.profiles.probes.catalogue import Entry, examine
from pilotfish.profiles.probes.imc import MemoryControllers
from pilotfish.profiles.probes.perf import Perf, refused
from pilotfish.profiles.probes.tree import ProcessTree

#: A tool called perf is seen by all who look whether somebody counts: one such test at a time.
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
    """A machine with a PMU, and a program in perf's place that prints when what it runs has ended."""
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


def test_it_counts_the_tree(machine):
    probe, tree = Perf(machine), ProcessTree(77)
    assert probe.available() is None
    probe.start(tree, 0.0)
    probe.sample(1.0)
    found = probe.stop()
    assert (found.ipc, found.cpu_s, found.miss_bytes, found.problem) == (1.5, 2.0, 960.0, "")
    assert "-p 77 -- cat" in (machine / "asked").read_text()


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
def test_a_job_with_a_control_group_of_its_own_is_counted_by_that(machine, ours, theirs, asked):
    (machine / "proc/sys/kernel/perf_event_paranoid").write_text("0\n")
    for pid, text in (("self", ours), ("77", theirs)):
        (machine / f"proc/{pid}").mkdir(exist_ok=True)
        (machine / f"proc/{pid}/cgroup").write_text(text)
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    assert probe.stop().ipc == 1.5
    assert asked in (machine / "asked").read_text()


def test_the_node_may_not_be_counted_so_that_the_group_cannot_be(machine):
    for pid, text in (("self", "0::/us\n"), ("77", "0::/us/job-1\n")):
        (machine / f"proc/{pid}").mkdir()
        (machine / f"proc/{pid}/cgroup").write_text(text)
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    probe.stop()
    assert "-p 77 --" in (machine / "asked").read_text()


def test_it_steps_back_when_the_job_begins_to_count(machine):
    probe, tree = Perf(machine), ProcessTree(77)
    probe.start(tree, 0.0)
    process(machine, 78, "python3", "anon_inode:[perf_event]")
    tree.threads[78] = []
    probe.sample(1.0)
    probe.sample(2.0)
    assert probe.stop().problem == "stepped back: python3 (process 78) uses the counters"


def test_who_counts(machine):
    process(machine, 50, "sleep", "/dev/null")
    assert counting(root=machine) is None
    process(machine, 51, "likwid-perfctr")
    probe = Perf(machine)
    probe.start(ProcessTree(77), 0.0)
    probe.sample(1.0)
    assert probe.stop().problem == "stepped back: likwid-perfctr (process 51) uses the counters"
    assert not (machine / "asked").exists()
    assert examine(Entry("perf", "job", "counts", lambda: Perf(machine))).missing == probe.stop().problem
    assert counting([50], machine) is None
    assert counting([4711], machine) is None


def test_who_may_count(machine):
    setting, status = machine / "proc/sys/kernel/perf_event_paranoid", machine / "proc/self/status"
    assert refused(2, machine) is None
    assert "perf_event_paranoid is 2" in refused(0, machine)
    setting.write_text("3\n")
    assert "perf_event_paranoid is 3" in Perf(machine).available()
    status.parent.mkdir()
    for capabilities, allowed in (("0000000000000001", False), ("0000004000000000", True), ("000001ffffffffff", True)):
        status.write_text(f"Name:\tx\nCapEff:\t{capabilities}\nCapBnd:\t0\n")
        assert (Perf(machine).available() is None) == allowed


def test_its_cost_is_measured_with_that_of_the_command(machine):
    found = examine(Entry("perf", "job", "counts", lambda: Perf(machine)))
    assert found.missing is None and found.begin_s > 0
    (machine / "counts").write_text("Error:\nno such event\n")
    assert examine(Entry("perf", "job", "counts", lambda: Perf(machine))).missing == "it did not count: no such event"


def test_why_it_is_not_there(machine, monkeypatch):
    (machine / "sys/bus/event_source/devices/cpu").rmdir()
    assert "no counters of its cores" in Perf(machine).available()
    assert "no counters of its memory controllers" in MemoryControllers(machine).available()
    monkeypatch.setenv("PATH", str(machine))
    assert "no perf command" in Perf(machine).available()
    assert "no perf command" in MemoryControllers(machine).available()


def test_a_command_that_does_not_end_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr("pilotfish.profiles.probes.attached.PATIENCE_S", 0.1)
    assert Attached(["/bin/sh", "-c", "echo counts; exec sleep 30"], ProcessTree(1)).finish() == "counts\n"


def test_it_ends_with_us_whatever_becomes_of_us(tmp_path):
    """Killed, we close no pipe ourselves: the kernel does."""
    program = (
        "import os, signal\nfrom pilotfish.profiles.probes.attached import Attached\n"
        "from pilotfish.profiles.probes.tree import ProcessTree\n"
        f"Attached(['/bin/sh', '-c', '\"$@\"; touch {tmp_path}/ended', 'sh'], ProcessTree(1))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    for _ in range(500):
        if (tmp_path / "ended").exists():
            break
        time.sleep(0.01)
    assert (tmp_path / "ended").exists()


def test_it_is_not_taken_for_the_jobs(tmp_path):
    tree = ProcessTree(os.getpid() + 10**6, reaper=os.getpid())
    attached = Attached(["/usr/bin/env"], tree)
    tree.refresh()
    assert attached._process.pid not in tree.threads
    attached.finish()


@pytest.mark.parametrize(
    ("printed", "says"),
    [("", "it printed nothing"), ("\n----\nError:\n  no access \n", "no access"), ("x" * 500, "x" * 120)],
)
def test_why_a_command_did_not_count(printed, says):
    assert complaint(printed) == says

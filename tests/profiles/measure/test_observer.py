"""Observing a job: its cost, and a measurement that survives JSON."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pilotfish.profiles.measure import observer
from pilotfish.profiles.measure.command import measure
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.probes import process_tree as tree
from pilotfish.profiles.probes.cpu_time import Schedstat
from pilotfish.profiles.probes.memory_io import Memory
from pilotfish.profiles.probes.process_tree import ProcessTree

pytestmark = pytest.mark.skipif(Schedstat().available() is not None, reason="no /proc/PID/schedstat here")


def test_expensive_samples_are_taken_less_often(monkeypatch):
    spent = iter(range(100, 10_000))
    monkeypatch.setattr(observer.time, "thread_time", lambda: next(spent) * 2.0)
    watched = observer.JobObserver(os.getpid(), interval_s=0.1)
    assert watched.pause_s <= 0.1
    watched.sample()
    first = watched.pause_s
    watched.sample()
    assert first > 300.0 and watched.pause_s > first + 300.0


@pytest.mark.real
def test_a_job_started_by_another_process():
    job = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        watched = observer.JobObserver(job.pid, node_type="half")
        used = Path(f"/proc/{job.pid}/schedstat")
        while int(used.read_text().split()[0]) < 0.4e9:
            time.sleep(0.1)
            watched.sample()
    finally:
        job.kill()
        job.wait()
    found = watched.finish()
    assert found.threads == 1
    assert found.node_type == "half"
    assert found.groups[0].demand > 0.1
    assert found.memory_bytes
    again = Measurement.from_dict(found.to_dict())
    assert again == found


@pytest.mark.real
def test_memory_of_a_job_without_samples_is_unknown():
    job = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    try:
        watched = observer.JobObserver(job.pid)
        watched.sample(last=True)
        assert watched.finish().memory_bytes is None
        assert watched.finish(most_resident=5e6).memory_bytes == 5e6
        watched.sample()
        assert watched.finish().memory_bytes
    finally:
        job.kill()
        job.wait()


@pytest.mark.real
def test_the_tree_is_the_job_and_nothing_else():
    job = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60 & wait"], start_new_session=True)
    other = subprocess.Popen(["/bin/sleep", "60"])
    try:
        tree = ProcessTree(job.pid)
        deadline = time.monotonic() + 50
        while len(tree.threads) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
            tree.refresh()
        assert len(tree.threads) == 3
        assert other.pid not in tree.threads
        memory = Memory()
        memory.start(tree, 0.0)
        assert memory.stop() > 100_000
    finally:
        os.killpg(job.pid, 9)
        job.wait()
        other.kill()
        other.wait()


@pytest.mark.real
def test_an_ended_process_is_no_error():
    job = subprocess.Popen(["/bin/true"], start_new_session=True)
    job.wait()
    watched = observer.JobObserver(job.pid)
    watched.sample()
    assert watched.finish(wall_s=0.5).threads == 1


@pytest.mark.real
def test_a_process_listed_late_is_found_at_the_next_refresh(monkeypatch):
    """The pid is assigned before the process appears in /proc, on a busy machine more than one refresh before."""
    listing, hidden = tree._listing, set()
    monkeypatch.setattr(tree, "_newest_pid", lambda: b"12345")
    monkeypatch.setattr(tree, "_listing", lambda path: [name for name in listing(path) if name not in hidden])
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], start_new_session=True) as job:
        try:
            while not (found := [str(pid) for pid in tree.children(job.pid)]):
                time.sleep(0.01)
            hidden.update(found)
            seen = ProcessTree(job.pid)
            seen.refresh()
            assert list(seen.threads) == [job.pid]
            hidden.clear()
            seen.refresh()
            assert list(seen.threads) == [job.pid, *map(int, found)]
        finally:
            os.killpg(job.pid, 9)


@pytest.mark.real
def test_time_of_unreaped_children_is_counted():
    """Their parent ignores SIGCHLD: wait4(2) knows nothing of them, their threads have been seen."""
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if not os.fork():\n    while time.process_time() < 0.6: pass\n    os._exit(0)\n"
        "try: os.wait()\nexcept ChildProcessError: time.sleep(0.3)"
    )
    _, found = measure([sys.executable, "-ISc", code])
    assert 0.1 < found.cpu_s < 0.9  # its parent used a tenth of that; a busy machine looks at the child less often

"""Watching: what it may cost, and that a measurement survives being written down."""

import os
import subprocess
import time

import pytest

from pilotfish.profiles import watch
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.probes.memory import Memory
from pilotfish.profiles.probes.threads import Schedstat
from pilotfish.profiles.probes.tree import ProcessTree

pytestmark = pytest.mark.skipif(Schedstat().available() is not None, reason="no /proc/PID/schedstat here")


def test_costly_looks_become_rarer(monkeypatch):
    clock = iter(range(10_000))
    watched = watch.Watch(os.getpid(), interval_s=0.1)
    assert watched.pause_s == 0.1
    monkeypatch.setattr(watch.time, "thread_time", lambda: next(clock) * 0.002)
    watched.sample()
    watched.sample()
    assert watched.pause_s == pytest.approx(0.002 / watch.MOST_OVERHEAD)
    assert 0.002 / watched.pause_s < 0.005


def test_a_job_that_somebody_else_started():
    job = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        watched = watch.Watch(job.pid, node_type="half")
        for _ in range(4):
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


def test_the_tree_is_the_job_and_nothing_else():
    job = subprocess.Popen(["/bin/sh", "-c", "sleep 5 & sleep 5 & wait"], start_new_session=True)
    other = subprocess.Popen(["/bin/sleep", "5"])
    try:
        tree = ProcessTree(job.pid)
        for _ in range(100):
            tree.refresh()
            if len(tree.threads) == 3:
                break
            time.sleep(0.02)
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


def test_a_process_that_has_gone_is_no_error():
    job = subprocess.Popen(["/bin/true"], start_new_session=True)
    job.wait()
    watched = watch.Watch(job.pid)
    watched.sample()
    assert watched.finish(wall_s=0.5).threads == 1

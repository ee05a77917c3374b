"""What is remembered of programs, and given to jobs that name it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from pilotfish.daemon.learned import widened
from pilotfish.daemon.memory import AGAIN_S, MOST_HELD, Memory
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState, JobView

SITE = Cluster("lab", (Node("n1", NodeType("t", 2, 1e10, 1e12)),))


@pytest.mark.parametrize(("cores", "used"), [(1, False), (2, True), (3, True), (8, True)])
def test_a_named_profile_is_used_where_the_job_has_cores_for_its_threads(tmp_path, cores, used):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(2, 30.0, 0.5),), name="align"))
    asked = Job("7", Profile((ThreadGroup(cores, 600.0),), name="align", provenance=Provenance("default")))
    found = Memory(tmp_path / "profiles.sqlite").named(asked)
    assert found.profile.threads == cores  # all of its cores are taken, whatever it does with them
    assert (found.profile.groups[0] == ThreadGroup(2, 30.0, 0.5)) is used
    assert (found == asked) is not used


def test_cores_that_are_not_used_change_no_forecast():
    profile = Profile((ThreadGroup(2, 30.0, 0.5),), name="align")
    wide = widened(profile, 4)
    assert wide.threads == 4 and widened(profile, 2) == profile
    assert wide.isolated_time == 60.0


def ended(name):
    job = Job(name, DEFAULT_PROFILE, command=(name, "x"))
    return JobView(name, job, JobState.COMPLETED, ("n1",), 0.0, 0.0, 9.0, 0, usage=(("cpu_seconds", 9.0),))


def test_a_locked_store_is_not_waited_for_and_nothing_is_lost(tmp_path, caplog):
    now = [0.0]
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    memory = Memory(store.path, clock=lambda: now[0])
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        memory.keep([ended("a")])
        memory.keep([ended("b")])
        assert memory.company(SITE) is SITE
        asked = Job("7", Profile((ThreadGroup(1, 600.0),), name="named", provenance=Provenance("default")))
        assert memory.named(asked).profile.isolated_time == 5.0
        other.execute("ROLLBACK")
    assert "written later" in caplog.text
    assert store.own_names() == ["named"]
    memory.company(SITE)  # not yet: a lock that stays is not run into at every cycle
    assert store.own_names() == ["named"]
    now[0] += AGAIN_S
    memory.company(SITE)
    assert store.own_names() == ["cmd: a x", "cmd: b x", "named"]


def test_what_is_held_back_is_bounded_and_written_at_the_end(tmp_path):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    memory = Memory(store.path, clock=lambda: 0.0)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        memory.keep([ended("first"), *(ended("later") for _ in range(MOST_HELD))])
    memory.write()
    assert store.own_names() == ["cmd: later x", "named"]

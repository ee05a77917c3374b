"""What is remembered of programs, and given to jobs that name it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.daemon.learned import widened
from pilotfish.daemon.memory import AGAIN_S, MOST_HELD, Memory
from pilotfish.profiles.books import measurement
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.booked import Booked
from pilotfish.simulate.fits import never_fits
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
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


def test_of_many_jobs_one_waits_for_a_store_that_cannot_be_read(tmp_path):
    now, store = [0.0], ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    store.close()
    memory = Memory(store.path, clock=lambda: now[0])
    job = Job("7", Profile((ThreadGroup(1, 600.0),), name="named", provenance=Provenance("default")))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE theirs (a)")
        assert memory.named(job) is job
        other.execute("ROLLBACK")
    assert memory.named(job) is job and memory.company(SITE) is SITE, "it is left alone, whoever asks"
    now[0] += AGAIN_S
    assert memory.named(job).profile.isolated_time == 5.0


def test_what_is_held_back_is_bounded_and_written_at_the_end(tmp_path):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    memory = Memory(store.path, clock=lambda: 0.0)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        memory.keep([ended("first"), *(ended("later") for _ in range(MOST_HELD))])
    memory.write()
    assert store.own_names() == ["cmd: later x", "named"]


def asked(cores: int = 4, **more) -> Job:
    """A job of Slurm's, as it is known before anything was learned of its kind."""
    profile = Profile((ThreadGroup(cores, 3600.0),), provenance=Provenance("default"))
    return Job("7", profile, known_as="align of lab/5", **more)


def booked(memory: Memory, job: Job, *cpu_s: float, run_s: float = 100.0) -> None:
    """Let runs of such jobs be in the books."""
    for seconds in cpu_s:
        entry = Booked("align", True, "", run_s, cores=4, cpu_s=seconds, memory_bytes=3e9)
        run = measurement(entry, "slurm accounting")
        assert run is not None and memory.book([(memory.kept_as(job), run)])


@pytest.mark.parametrize(
    ("runs", "job", "used"),
    [
        ((200.0,), asked(), False),  # one may be anything
        ((200.0, 210.0), asked(), True),
        ((200.0, 500.0, 40.0), asked(), False),  # under this name run different things
        ((200.0, 210.0), asked(walltime=50.0), False),  # its user allows less
        ((200.0, 210.0), asked(cores=8), False),  # another size is another kind
    ],
)
def test_a_job_is_expected_to_be_like_others_of_its_name_that_were_alike(tmp_path, runs, job, used):
    memory = Memory(tmp_path / "profiles.sqlite")
    booked(memory, asked(), *runs)
    found = memory.named(job)
    assert (found != job) is used and found.profile.threads == job.profile.threads
    if used:
        assert found.profile.name == "job: align of lab/5, 4 cores" and found.profile.provenance.runs == len(runs)
        assert memory.kept_as(found) == memory.kept_as(job) != "", "later runs sharpen it"


@pytest.mark.parametrize("threads, most", [(64, 0.0), (1, 1e12)])
def test_what_was_learned_elsewhere_makes_no_job_fit_nowhere(tmp_path, threads, most):
    memory, store = Memory(tmp_path / "profiles.sqlite"), ProfileStore(tmp_path / "profiles.sqlite")
    flow = Workflow("w", (Job("a", DEFAULT_PROFILE, command=("make", "x")),))
    run = Measurement((ThreadGroup(threads, 10.0),), 10.0, 10.0, 10.0 * threads, 0.0, memory_bytes=most)
    store.record_job(flow.jobs[0], run)
    job = asked(cores=2)
    small = measurement(Booked("align", True, "", 100.0, cores=2, cpu_s=200.0, memory_bytes=most), "slurm accounting")
    store.record_all([(memory.kept_as(job), small)] * 2)
    memory.company(SITE)
    assert memory.recall(flow).jobs == flow.jobs
    found = memory.named(job)
    assert never_fits(found, SITE) is None and (found == job) is (most > 0)
    bigger = Cluster("lab", (Node("n1", NodeType("t", 64, 1e13, 1e12)),))
    memory.company(bigger)
    assert memory.recall(flow).jobs[0].profile.threads == threads and memory.named(job) != job


def test_memory_that_was_seen_asks_for_no_more_than_the_user_did(tmp_path):
    memory = Memory(tmp_path / "profiles.sqlite")
    booked(memory, asked(), 200.0, 200.0)
    assert memory.named(asked(memory=1e9)).profile.memory == 1e9
    assert memory.named(asked()).profile.memory == 3e9


def test_a_run_of_a_measured_profile_counts_only_once_that_has_aged(tmp_path):
    memory, store = Memory(tmp_path / "profiles.sqlite"), ProfileStore(tmp_path / "profiles.sqlite")
    job = replace(asked(), profile=Profile((ThreadGroup(4, 50.0),), name="align", provenance=Provenance("measured")))
    assert memory.kept_as(job) == "align"
    booked(memory, job, 200.0)
    assert store.history("align") == []
    given = replace(job, profile=replace(job.profile, provenance=Provenance("given")))
    assert memory.kept_as(given) == "", "what a user gave is never replaced"

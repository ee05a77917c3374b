"""Learned profiles, and the jobs that receive them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.daemon.learning.job_profiles import widened
from pilotfish.daemon.learning.profile_learning import AGAIN_S, MOST_HELD, MOST_PREDICTED, LearnedProfiles
from pilotfish.profiles.imports.imported import accounted_run
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.similar_jobs import traits_of
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.accounting_record import AccountingRecord
from pilotfish.simulate.model.capacity import never_fits
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import JobState, JobView
from tests.support.calls import Calls

SITE = Cluster("lab", (Node("n1", NodeType("t", 2, 1e10, 1e12)),))


@pytest.mark.parametrize(("cores", "used"), [(1, False), (2, True), (3, True), (8, True)])
def test_a_named_profile_is_used_if_the_job_has_cores_for_its_threads(tmp_path, cores, used):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(2, 30.0, 0.5),), name="align"))
    asked = Job("7", Profile((ThreadGroup(cores, 600.0),), name="align", provenance=Provenance("default")))
    found = LearnedProfiles(tmp_path / "profiles.sqlite").with_profile(asked)
    assert found.profile.threads == cores  # the job uses all of its cores
    assert (found.profile.groups[0] == ThreadGroup(2, 30.0, 0.5)) is used
    assert (found == asked) is not used


def test_unused_cores_do_not_change_a_forecast():
    profile = Profile((ThreadGroup(2, 30.0, 0.5),), name="align")
    wide = widened(profile, 4)
    assert wide.threads == 4 and widened(profile, 2) == profile
    assert wide.isolated_time == 60.0


def ended(name):
    job = Job(name, DEFAULT_PROFILE, command=(name, "x"))
    return JobView(name, job, JobState.COMPLETED, ("n1",), 0.0, 0.0, 9.0, 0, usage=(("cpu_seconds", 9.0),))


def test_a_locked_store_delays_no_cycle_and_loses_no_run(tmp_path, caplog):
    now = [0.0]
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    profiles = LearnedProfiles(store.path, clock=lambda: now[0])
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        profiles.learn([ended("a")])
        profiles.learn([ended("b")])
        assert profiles.with_interference(SITE) is SITE
        asked = Job("7", Profile((ThreadGroup(1, 600.0),), name="named", provenance=Provenance("default")))
        assert profiles.with_profile(asked).profile.isolated_time == 5.0
        other.execute("ROLLBACK")
    assert "written later" in caplog.text
    assert store.own_names() == ["named"]
    profiles.with_interference(SITE)  # not yet: a lock that stays does not delay every cycle
    assert store.own_names() == ["named"]
    now[0] += AGAIN_S
    profiles.with_interference(SITE)
    assert store.own_names() == ["cmd: a x", "cmd: b x", "named"]


def test_only_one_of_many_jobs_waits_for_a_locked_store(tmp_path):
    now, store = [0.0], ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    store.close()
    profiles = LearnedProfiles(store.path, clock=lambda: now[0])
    job = Job("7", Profile((ThreadGroup(1, 600.0),), name="named", provenance=Provenance("default")))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE theirs (a)")
        assert profiles.with_profile(job) is job
        other.execute("ROLLBACK")
    assert profiles.with_profile(job) is job and profiles.with_interference(SITE) is SITE, (
        "it is left alone, whoever asks"
    )
    now[0] += AGAIN_S
    assert profiles.with_profile(job).profile.isolated_time == 5.0


def test_held_back_runs_are_bounded_and_written_at_the_end(tmp_path):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(1, 5.0),), name="named"))
    profiles = LearnedProfiles(store.path, clock=lambda: 0.0)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        profiles.learn([ended("first"), *(ended("later") for _ in range(MOST_HELD))])
    profiles.write()
    assert store.own_names() == ["cmd: later x", "named"]


def asked(cores: int = 4, **more) -> Job:
    """Return a Slurm job as it is before anything was learned from jobs of its name."""
    profile = Profile((ThreadGroup(cores, 3600.0),), provenance=Provenance("default"))
    return Job("7", profile, known_as="align of lab/5", **more)


def booked(profiles: LearnedProfiles, job: Job, *cpu_s: float, run_s: float = 100.0) -> None:
    """Store runs of such jobs, as read from the accounting."""
    for seconds in cpu_s:
        entry = AccountingRecord("align", True, "", run_s, cores=4, cpu_s=seconds, memory_bytes=3e9)
        run = accounted_run(entry, "slurm accounting")
        assert run is not None and profiles.store_runs([(profiles.stored_as(job), run)])


@pytest.mark.parametrize(
    ("runs", "job", "used"),
    [
        ((200.0,), asked(), False),  # one run is not enough
        ((200.0, 210.0), asked(), True),
        ((200.0, 500.0, 40.0), asked(), False),  # different programs run under this name
        ((200.0, 210.0), asked(walltime=50.0), False),  # the walltime is shorter
        ((200.0, 210.0), asked(cores=8), False),  # another size has another name
    ],
)
def test_similar_runs_of_a_name_predict_the_next(tmp_path, runs, job, used):
    profiles = LearnedProfiles(tmp_path / "profiles.sqlite")
    booked(profiles, asked(), *runs)
    found = profiles.with_profile(job)
    assert (found != job) is used and found.profile.threads == job.profile.threads
    if used:
        assert found.profile.name == "job: align of lab/5, 4 cores" and found.profile.provenance.runs == len(runs)
        assert profiles.stored_as(found) == profiles.stored_as(job) != "", "later runs are stored under the same name"


@pytest.mark.parametrize("threads, most", [(64, 0.0), (1, 1e12)])
def test_a_learned_profile_makes_no_job_unplaceable(tmp_path, threads, most):
    profiles, store = LearnedProfiles(tmp_path / "profiles.sqlite"), ProfileStore(tmp_path / "profiles.sqlite")
    flow = Workflow("w", (Job("a", DEFAULT_PROFILE, command=("make", "x")),))
    run = Measurement((ThreadGroup(threads, 10.0),), 10.0, 10.0, 10.0 * threads, 0.0, memory_bytes=most)
    store.record_jobs([(flow.jobs[0], run)])
    job = asked(cores=2)
    small = accounted_run(
        AccountingRecord("align", True, "", 100.0, cores=2, cpu_s=200.0, memory_bytes=most), "slurm accounting"
    )
    store.record_all([(profiles.stored_as(job), small)] * 2)
    profiles.with_interference(SITE)
    (planned,) = profiles.with_profiles(flow).jobs
    assert never_fits(planned, SITE) is None and (planned == flow.jobs[0]) is (most > 0)
    found = profiles.with_profile(job)
    assert never_fits(found, SITE) is None and (found == job) is (most > 0)
    bigger = Cluster("lab", (Node("n1", NodeType("t", 64, 1e13, 1e12)),))
    profiles.with_interference(bigger)
    assert profiles.with_profiles(flow).jobs[0].profile.threads == threads and profiles.with_profile(job) != job


def test_learned_memory_never_exceeds_the_request(tmp_path):
    profiles = LearnedProfiles(tmp_path / "profiles.sqlite")
    booked(profiles, asked(), 200.0, 200.0)
    assert profiles.with_profile(asked(memory=1e9)).profile.memory == 1e9
    assert profiles.with_profile(asked()).profile.memory == 3e9


def test_runs_of_a_measured_profile_count_only_after_it_drifted(tmp_path):
    profiles, store = LearnedProfiles(tmp_path / "profiles.sqlite"), ProfileStore(tmp_path / "profiles.sqlite")
    job = replace(asked(), profile=Profile((ThreadGroup(4, 50.0),), name="align", provenance=Provenance("measured")))
    assert profiles.stored_as(job) == "align"
    booked(profiles, job, 200.0)
    assert store.history("align") == []
    given = replace(job, profile=replace(job.profile, provenance=Provenance("given")))
    assert profiles.stored_as(given) == "", "a given profile is never replaced"


def test_a_submission_of_many_unknown_commands_is_predicted_in_part(tmp_path):
    """A cycle waits for the predictions of a submission, whoever sends it."""
    store = ProfileStore(tmp_path / "profiles.sqlite")
    asked = [Job(f"j{i}", DEFAULT_PROFILE, command=("./sim", str(i))) for i in range(MOST_PREDICTED + 12)]
    run = Measurement((ThreadGroup(1, 2.0),), 2.0, 2.0, 2.0, 0.0)
    store.record_jobs([(asked[-1], run)])
    found = LearnedProfiles(tmp_path / "profiles.sqlite").with_profiles(Workflow("w", tuple(asked)))
    sources = Counter(job.profile.provenance.source for job in found.jobs)
    assert sources == {"predicted": MOST_PREDICTED, "measured": 1, "default": 11}
    assert found.jobs[-1].profile.provenance.source == "measured", "what was measured is known however many there are"


def test_a_job_of_a_new_name_is_predicted_from_others_of_its_user(tmp_path):
    profiles = LearnedProfiles(tmp_path / "profiles.sqlite")
    traits = (("user", "5"), ("executable", "align"), ("queue", "batch"))
    for run_s in 100.0, 300.0, 500.0:
        job = asked(walltime=3600.0, traits=traits)
        run = accounted_run(AccountingRecord("align", True, "", run_s, cores=4, cpu_s=3 * run_s), "accounting")
        assert profiles.store_runs([(profiles.stored_as(job), replace(run, traits=traits_of(job)))])
    new = asked(walltime=3600.0, traits=(("user", "5"), ("executable", "sort")))
    new = replace(new, known_as="sort of lab/5")
    found = profiles.with_profile(new).profile
    assert found.provenance.source == "predicted" and 300.0 <= found.isolated_time <= 500.0 and found.threads == 4
    assert profiles.stored_as(replace(new, profile=found)) == profiles.stored_as(new), "its run teaches its own name"
    other = replace(new, traits=(("user", "6"),), known_as="sort of lab/6")
    assert profiles.with_profile(other) == other


def test_a_prediction_costs_the_same_whatever_the_number_of_nodes_and_of_runs(tmp_path):
    """Each job has another command, so that nothing is known of it but the jobs of its user."""

    def cost(nodes, runs):
        profiles = LearnedProfiles(tmp_path / f"{nodes}-{runs}.sqlite")
        mine = replace(asked(), traits=(("user", "5"), ("executable", "align")))
        entry = AccountingRecord("align", True, "", 100.0, cores=4, cpu_s=90.0, memory_bytes=3e9)
        run = replace(accounted_run(entry, "slurm accounting"), traits=traits_of(mine))
        assert profiles.store_runs([(profiles.stored_as(mine), run)] * runs)
        kind = NodeType("t", 4, 1e12, 1e12)
        names = frozenset(f"n{number}" for number in range(nodes))
        profiles.load().with_interference(Cluster("lab", tuple(Node(name, kind) for name in sorted(names))))
        others = [replace(mine, known_as=f"{name} of lab/5", allowed=names) for name in ("a", "b", "c")]
        jobs = [replace(job, traits=(("user", "5"), ("executable", job.known_as))) for job in others]
        profiles.with_profile(jobs[0])
        with Calls() as calls:
            found = [profiles.with_profile(job) for job in jobs[1:]]
        assert all(job.profile.provenance.source == "predicted" for job in found)
        return calls.number

    assert cost(2000, 40) <= cost(2, 40) + 20
    assert cost(2, 400) <= cost(2, 40) + 50

"""Jobs of a resource manager that never ran are predicted from those of the same user, and from no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.profiles.classes import JobClass, classify
from pilotfish.profiles.identity import signature
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.similar_jobs import ENOUGH, MOST, SimilarJobs, traits_of
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.cluster import NodeType
from pilotfish.simulate.model.job import Job, Profile, Provenance, ThreadGroup


def asked(name: str = "align", user: str = "5", cores: int = 4, walltime: float = 3600.0, **more: str) -> Job:
    """Return a job as the resource manager shows it."""
    profile = Profile((ThreadGroup(cores, walltime),), provenance=Provenance("default"))
    traits = {"user": user, "group": "lab", "executable": name, "queue": "batch"} | more
    known_as = f"{name} of lab/{user}"
    return Job("7", profile, walltime=walltime, known_as=known_as, traits=tuple(traits.items()), owner=int(user))


def run(job: Job, run_s: float, submitted: float = 0.0, **more: float) -> Measurement:
    group = ThreadGroup(job.profile.threads, run_s * 0.9, 0.9)
    return Measurement((group,), run_s, run_s, run_s * 0.9 * group.count, traits=traits_of(job, submitted), **more)


def keep(store: ProfileStore, job: Job, *times: float, **more: float) -> None:
    """Store runs, submitted an hour apart."""
    store.record_all([(signature(job) or "", run(job, time, 3600.0 * i, **more)) for i, time in enumerate(times)])


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "profiles.sqlite")


def test_another_job_of_the_user_is_predicted(store):
    keep(store, asked("align"), 100.0, 200.0, 300.0, 400.0)
    found = store.similar(asked("sort", walltime=1800.0))
    assert found is not None and found.provenance.source == "predicted" and found.provenance.runs == 4
    assert found.name == "job: sort of lab/5, 4 cores" and "4 jobs with the same user" in found.provenance.note
    assert 300.0 <= found.isolated_time <= 400.0 and found.threads == 4
    low, high = found.provenance.interval
    assert low < 1.0 <= high, "its interval is as wide as the jobs differ"


def test_the_prediction_is_within_the_walltime(store):
    keep(store, asked(), *[1000.0] * 5)
    assert store.similar(asked("sort", walltime=600.0)).isolated_time == 600.0


def test_jobs_of_the_same_walltime_answer_before_others(store):
    keep(store, asked("short", walltime=600.0), *[100.0] * 4)
    keep(store, asked("long", walltime=9000.0), *[5000.0] * 4)
    assert store.similar(asked("new", walltime=600.0)).isolated_time == pytest.approx(100.0)
    assert store.similar(asked("new", walltime=9000.0)).isolated_time == pytest.approx(5000.0)


def test_jobs_of_the_same_script_answer_before_others_of_its_name(store):
    keep(store, asked("run.sh", script="abcdefgh"), *[100.0] * 4)
    keep(store, asked("run.sh", script="ponmlkji"), *[5000.0] * 4)
    assert store.similar(asked("run.sh", script="abcdefgh", walltime=7200.0)).isolated_time == pytest.approx(100.0)
    found = store.similar(asked("run.sh", script="ponmlkji"))
    assert found.isolated_time == pytest.approx(3600.0) and "the same user, script, size" in found.provenance.note
    assert "user, name, size" in store.similar(asked("run.sh", script="aaaaaaaa")).provenance.note


@pytest.mark.parametrize("job", [asked(user="6"), replace(asked(), traits=()), replace(asked(), known_as="")])
def test_of_other_users_nothing_is_known(store, job):
    keep(store, asked(), 100.0, 100.0, 100.0, 100.0)
    assert store.similar(job) is None


def test_few_jobs_and_failed_ones_say_nothing(store):
    keep(store, asked(), *[100.0] * (ENOUGH - 1))
    keep(store, asked(), *[100.0] * 9, exit_code=1)
    assert store.similar(asked("sort")) is None
    keep(store, asked(), 100.0)
    assert store.similar(asked("sort")) is not None, "later runs are learned"


def test_a_job_of_the_same_name_and_size_has_the_same_class_and_power(store):
    node = NodeType("t", 8, 1e12, 80e9)
    keep(store, asked(), 100.0, 300.0, 900.0, bandwidth=20e9, ipc=1.5, power_watts=180.0)
    found = store.similar(asked(queue="other", walltime=7200.0))
    assert classify(found, node).kind is JobClass.BANDWIDTH and found.power_watts == 180.0
    smaller, other = store.similar(asked(cores=2)), store.similar(asked("sort"))
    assert classify(smaller, node).kind is JobClass.BANDWIDTH and smaller.power_watts is None and smaller.threads == 2
    assert classify(other, node).kind is None and other.power_watts is None
    guess = classify(found, node)
    assert guess.guessed and str(guess).startswith("bandwidth-bound?: a guess") and not classify(other, node).guessed


@pytest.mark.long
def test_memory_is_bounded():
    jobs = SimilarJobs()
    for number in range(1, 2 * MOST):
        jobs.learn(number, run(asked(f"j{number}"), 10.0))
    assert jobs.latest == 2 * MOST - 1 and len(jobs._models) == 2 * (2 * MOST - 1)
    jobs.learn(2 * MOST, run(asked(), 10.0))
    assert jobs.latest == 2 * MOST and len(jobs._models) == 2 * MOST, "nothing is read again"


def test_many_jobs_of_one_user_displace_none_of_another():
    jobs, mine = SimilarJobs(), asked("mine", user="6")
    for number in range(1, ENOUGH + 1):
        jobs.learn(number, run(mine, 10.0))
    for number in range(ENOUGH + 1, 5 * MOST):
        jobs.learn(number, run(asked(), 500.0))
    assert jobs.predicted(mine, "x").isolated_time == pytest.approx(10.0)

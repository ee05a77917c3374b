"""Profiles of commands that never ran, predicted from runs of the same program."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.predictors import WEIGHTS
from pilotfish.profiles.prediction.similar_commands import chosen, predicted, program, shape
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup

COMMAND = Job("job", DEFAULT_PROFILE, command=("./align.sh", "-n", "8", "/data/one.fastq"))


def with_number(number, job=COMMAND):
    return replace(job, command=("./align.sh", "-n", str(number), "x.fastq"))


def run(demand, **more):
    more = {"date": "2026-01-01", **more}
    return Measurement((ThreadGroup(1, demand, 0.9),), demand / 0.9, demand / 0.9, demand, 0.0, **more)


def profile(demand, memory=0.0, measured_on=None):
    groups = (ThreadGroup(2, demand, 0.5), ThreadGroup(1, demand / 2))
    return Profile(groups, memory=memory, measured_on=measured_on, provenance=Provenance("measured", "2026-01-01", 2))


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "profiles.sqlite")


def test_shapes_ignore_numbers_except_threads_and_nodes():
    assert shape("cmd: align.sh -n 8 *.fastq") == shape("cmd: align.sh -n 12.5 *.fastq")
    assert shape("cmd: align.sh OMP_NUM_THREADS=4") != shape("cmd: align.sh OMP_NUM_THREADS=8")
    assert shape("cmd: align.sh on 2 nodes") != shape("cmd: align.sh on 3 nodes")
    assert program("cmd: align.sh -n 8") == program("cmd: align.sh") == "cmd: align.sh"
    assert program("cmd:") is None


def test_commands_with_the_same_options_are_preferred():
    alike = [f"cmd: a -n {n}" for n in range(3)]
    others = ["cmd: a --index", "cmd: a -n 3 on 2 nodes"]
    assert chosen("cmd: a -n 9", [*others, *alike]) == ("program and options", alike)
    assert chosen("cmd: a -n 9", [*others, *alike[:1]]) == ("program", [others[0], alike[0]])
    assert chosen("cmd: a -n 9", alike[:1]) == ("program and options", alike[:1])
    assert chosen("cmd: a -n 9", [others[1]])[1] == []
    assert len(chosen("cmd: a 0", [f"cmd: a {n}" for n in range(100)])[1]) == WEIGHTS.latest


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30), st.floats(0.1, 1e6))
def test_the_prediction_is_one_profile_within_the_walltime(demands, walltime):
    profiles = [profile(demand) for demand in demands]
    free, limited = predicted("x", "program", profiles), predicted("x", "program", profiles, walltime)
    assert free.groups in [one.groups for one in profiles]
    assert limited.isolated_time == pytest.approx(min(free.isolated_time, walltime))
    assert limited.threads == free.threads


def test_the_prediction_names_its_source():
    found = predicted("x", "program", [profile(1.0, 5e9), profile(3.0, 1e9), profile(2.0, 2e9)], memory=4e9)
    about = found.provenance
    assert (about.source, about.date, about.runs) == ("predicted", "2026-01-01", 6)
    assert about.note == "from 3 commands of the same program; isolated run times 2 to 6 s"
    assert (found.name, found.memory) == ("x", 4e9)
    assert predicted("x", "program", [profile(1.0), profile(1.0, 3e9), profile(1.0)]).memory == 3e9
    assert predicted("x", "program", []) is None


def test_only_profiles_of_the_latest_node_type_count():
    found = predicted("x", "program", [profile(1.0, measured_on="new"), profile(9.0, measured_on="old")])
    assert (found.groups[0].demand, found.measured_on) == (1.0, "new")


def test_the_store_predicts_only_unknown_commands(store):
    assert store.expected(COMMAND) is None
    for number, demand in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)):
        store.record_jobs([(with_number(number), run(demand))])
    assert store.expected(with_number(2)).provenance.source == "measured"
    unseen = store.expected(COMMAND)
    assert unseen.provenance.source == "predicted"
    assert 2.0 <= unseen.groups[0].demand <= 4.0
    assert store.for_job(COMMAND) is None
    assert store.expected(replace(COMMAND, walltime=1.0)).isolated_time == pytest.approx(1.0)
    for other in (("./align.shx",), ("./alig",), ("./other", "align.sh"), ("",)):
        assert store.expected(replace(COMMAND, command=other)) is None
    assert store.expected(replace(COMMAND, command=None)) is None


def test_failed_runs_predict_nothing_and_new_runs_count(store):
    store.record_jobs([(with_number(1), run(1.0, exit_code=1))])
    assert store.expected(COMMAND) is None
    ProfileStore(store.path).record_jobs([(with_number(2), run(7.0))])
    assert store.expected(COMMAND).groups[0].demand == 7.0

"""The workflow file: the meaning of every key, profiles by name, and equal profiles as one object."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.profile import dump_profile, parse_profile
from pilotfish.formats.workflows.workflow import parse_workflow, read_workflow
from pilotfish.simulate.errors import ConfigError, ConfigErrors, InvalidJobError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Distribution, PeerWait, Phase, Profile, ThreadGroup

TEXT = """
schema: pilotfish/workflow/v1
name: dag-1
jobs:
  prepare:
    command: [./prepare.sh, input.dat, 5, 0.50]
    walltime: 00:10:00
    nodes: 2
    memory: 2GiB
    wait: spin
    directory: work
    environment: {OMP_NUM_THREADS: 8, MODE: fast}
    profile: {threads: 8, service_demand: 12.5, utilisation: 0.9, bandwidth: 5.2GB/s}
  align:
    after: [prepare]
    profile: stream-8x64
    command: ./align.sh && echo done
  1:
    after: align
    profile: [{count: 4, service_demand: 3, bandwidth: 1GB/s}, {service_demand: 9}]
    walltime: 90
  last:
    after: [1, prepare, prepare]
    profile:
      service_demand: {dist: lognormal, mean: 10, cv: 0.3}
      phases: [{share: 0.25, utilisation: 0.5}, {share: 0.75, bandwidth: 2GB/s}]
      measured_on: xeon56
  bare: {command: "true"}
"""


class Store(dict):
    """A profile store as the reader sees it."""

    def __call__(self, name):
        return self.get(name)

    def names(self):
        return list(self)


STORE = Store({"stream-8x64": Profile((ThreadGroup(8, 64.0),), "stream-8x64")})


def read(tmp_path, text, profiles=None):
    path = tmp_path / "workflow.yaml"
    path.write_text(text)
    return read_workflow(path, profiles)


def test_every_key_has_its_meaning(tmp_path):
    workflow = read(tmp_path, TEXT, STORE)
    prepare, align, one, last, bare = workflow.jobs
    assert (workflow.name, workflow.source) == ("dag-1", str(tmp_path / "workflow.yaml"))
    assert prepare.command == ("./prepare.sh", "input.dat", "5", "0.50")
    assert (prepare.walltime, prepare.nodes, prepare.memory) == (600.0, 2, 2 * 2**30)
    assert (prepare.wait, prepare.directory) == (PeerWait.SPIN, "work")
    assert prepare.environment == (("OMP_NUM_THREADS", "8"), ("MODE", "fast"))
    assert prepare.profile == Profile((ThreadGroup(8, 12.5, 0.9, bandwidth=5.2e9),))
    assert align.after == ("prepare",)
    assert align.command == ("/bin/sh", "-c", "./align.sh && echo done")
    assert align.profile is STORE["stream-8x64"]
    assert (one.id, one.after, one.walltime) == ("1", ("align",), 90.0)
    assert one.profile.groups == (ThreadGroup(4, 3.0, bandwidth=1e9), ThreadGroup(1, 9.0))
    assert last.after == ("1", "prepare")
    assert last.profile.measured_on == "xeon56"
    assert last.profile.groups[0].service_demand == Distribution("lognormal", 10.0, 0.3)
    assert last.profile.groups[0].phases == (Phase(0.25, 0.5, 0.0), Phase(0.75, 1.0, 2e9))
    assert bare.profile is DEFAULT_PROFILE
    assert len(workflow.warnings) == 1
    assert "1 job has no profile" in workflow.warnings[0]
    assert "bare" in workflow.warnings[0]


def test_equal_profiles_are_one_object_however_they_are_written():
    jobs = {
        "a": {"profile": {"threads": 2, "service_demand": 1, "bandwidth": "1GB/s"}},
        "b": {"profile": {"threads": 2, "service_demand": 1, "bandwidth": "1GB/s"}},
        "c": {"profile": {"bandwidth": 1e9, "service_demand": 1.0, "threads": 2}},
        "d": {"profile": [{"count": 2, "service_demand": 1, "bandwidth": "1000MB/s"}]},
        "e": {"profile": {"threads": 2, "service_demand": 1.5}},
    }
    workflow = parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f")
    assert [job.profile is workflow.jobs[0].profile for job in workflow.jobs] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_an_equal_profile_does_not_hide_a_wrong_one():
    jobs = {
        "a": {"profile": {"threads": 1, "service_demand": 1}},
        "b": {"profile": {"threads": True, "service_demand": 1}},
    }
    with pytest.raises(ConfigError, match=r"f: jobs\.b\.profile\.threads: found true"):
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f")


@pytest.mark.parametrize(
    ("profiles", "words"),
    [
        (None, "no profile is named 'stream-8x46'"),
        (STORE, "did you mean 'stream-8x64'?"),
        (lambda name: None, "an inline profile"),
    ],
)
def test_an_unknown_profile_is_an_error_with_near_matches(profiles, words):
    data = {"schema": "pilotfish/workflow/v1", "jobs": {"a": {"profile": "stream-8x46"}}}
    with pytest.raises(ConfigError) as caught:
        parse_workflow(data, "f", profiles)
    assert caught.value.key == "jobs.a.profile"
    assert words in str(caught.value)


@pytest.mark.parametrize("names", [1, 2, 3, 4, 9])
def test_missing_profiles_are_reported_by_name_and_then_counted(names):
    jobs = {f"j{i}": {"profile": f"p{i % names}"} for i in range(100)}
    with pytest.raises(ConfigError) as caught:
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f")
    errors = getattr(caught.value, "errors", (caught.value,))
    named = errors[: min(names, 3)]
    assert [error.key for error in named] == [f"jobs.j{i}.profile" for i in range(len(named))]
    assert len(errors) == len(named) + (names > 3)
    counted = sum(1 + error.more for error in named)
    if names > 3:
        assert errors[-1].problem == f"and {100 - counted} more jobs with names of profiles that do not exist"
    else:
        assert counted == 100


def test_other_errors_come_with_those_of_missing_profiles():
    jobs = {"a": {"profile": "x"}, "b": {"profile": "x", "walltime": -1}}
    with pytest.raises(ConfigErrors) as caught:
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f")
    assert [(error.key, error.more) for error in caught.value.errors] == [("jobs.b.walltime", 0), ("jobs.a.profile", 1)]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"a": ["b"], "b": ["a"]}, "cycle: "),
        ({"a": ["a"], "b": []}, "a -> a"),
        ({"a": ["c"], "b": []}, "'c', which is not a job"),
    ],
)
def test_an_impossible_graph_is_refused_on_reading(after, words):
    jobs = {key: {"after": before, "profile": {"service_demand": 1}} for key, before in after.items()}
    with pytest.raises(InvalidJobError, match=words):
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f")


@pytest.mark.real
def test_a_sound_graph_is_read_without_a_graph_library(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text("schema: pilotfish/workflow/v1\njobs: {a: {command: x}, b: {command: y, after: a}}")
    code = (
        "import sys; from pilotfish.formats.workflows.workflow import read_workflow;"
        f"assert len(read_workflow({str(path)!r}).jobs) == 2;"
        "sys.exit(bool({'networkx', 'pydantic', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_long_chain_is_read():
    jobs = {f"j{i}": {"command": "x", "after": [f"j{i - 1}"] if i else []} for i in range(5000)}
    assert len(parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "f").jobs) == 5000


seconds = st.floats(1e-3, 1e9)
share = st.floats(0.01, 1)
demands = (
    seconds
    | st.builds(lambda mean, cv: Distribution("lognormal", mean, cv), seconds, share)
    | st.builds(lambda mean, cv: Distribution("normal", mean, cv), seconds, share)
    | st.builds(lambda low, more: Distribution("uniform", low=low, high=2 * low + more), seconds, seconds)
    | st.builds(lambda v: Distribution("empirical", values=tuple(v)), st.lists(seconds, min_size=1, max_size=3))
)
plain = st.builds(ThreadGroup, st.integers(1, 99), demands, share, share, st.floats(0, 1e12))
phased = st.builds(
    lambda count, demand, u, b: ThreadGroup(count, demand, phases=(Phase(0.25, u, b), Phase(0.75, 1.0, 0.0))),
    st.integers(1, 99),
    demands,
    share,
    st.floats(0, 1e12),
)
profiles = st.builds(
    Profile,
    st.lists(plain | phased, min_size=1, max_size=3).map(tuple),
    measured_on=st.none() | st.just("xeon"),
    memory=st.floats(0, 1e12),
    instructions=st.none() | seconds,
    ipc=st.none() | share,
    io_bytes=st.none() | seconds,
    power_watts=st.none() | seconds,
)


@settings(max_examples=50, deadline=None)
@given(profiles)
def test_a_written_profile_is_read_back(profile):
    assert parse_profile(dump_profile(profile)) == profile

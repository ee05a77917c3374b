"""Implausible quantities are doubted, plausible ones are not; all errors of a file are reported together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.cluster import parse_cluster
from pilotfish.formats.documents.document_errors import MOST_ERRORS
from pilotfish.formats.documents.files import parse_document
from pilotfish.formats.documents.plausible import cluster_doubts
from pilotfish.formats.workflows.workflow import dump_workflow, parse_workflow
from pilotfish.profiles.profiles_file import profile_doubts
from pilotfish.simulate.errors import ConfigErrors
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow

TYPE = {"cores": 4, "memory": "32GiB", "memory_bandwidth": "80GB/s"}


def cluster(**changes):
    data = {"schema": "pilotfish/cluster/v1", "node_types": {"fast": TYPE | changes}}
    return parse_cluster(data | {"nodes": [{"names": "n1", "type": "fast"}]}, "lab.yaml")


def jobs(**keys):
    profile = {"count": 1, "service_demand": 1.0}
    data = {"schema": "pilotfish/workflow/v1", "jobs": {"a": {"profile": [profile]} | keys}}
    return parse_workflow(data, "dag.yaml").warnings


def test_a_plausible_node_is_not_doubted():
    assert cluster_doubts(cluster()) == [] == cluster_doubts(cluster(memory=2**24, memory_bandwidth=1e7, frequency=1e6))


def test_a_bare_80_as_bandwidth_and_32_as_memory_are_doubted():
    low, small = cluster_doubts(cluster(memory=32, memory_bandwidth=80))
    assert low == "lab.yaml: node_types.fast.memory: 32B is implausible for a node; was 32GiB meant?"
    assert "80B/s is implausible for a node; was 80GB/s meant?" in small


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"memory": 256_000}, "250GiB"),  # RealMemory of slurm.conf, in MiB
        ({"memory": 1_546_000}, "1.47TiB"),
        ({"memory_bandwidth": 204_800}, "205GB/s"),
        ({"memory_bandwidth": 1_200_000}, "1.2TB/s"),
        ({"frequency": 2.4}, "2.4GHz"),
        ({"frequency": 2400}, "2400MHz"),
    ],
)
def test_numbers_in_the_units_of_other_programs_are_doubted(changes, meant):
    (doubt,) = cluster_doubts(cluster(**changes))
    assert doubt.startswith(f"lab.yaml: node_types.fast.{next(iter(changes))}: ") and "implausible for a node" in doubt
    assert f"was {meant} meant?" in doubt


def test_rates_of_a_network_are_doubted():
    data = {"schema": "pilotfish/cluster/v1", "node_types": {"fast": TYPE}, "network": {"port": 12500, "latency": 0}}
    (doubt,) = cluster_doubts(parse_cluster(data | {"nodes": [{"names": "n1", "type": "fast"}]}, "lab.yaml"))
    assert doubt == "lab.yaml: network.port: 12.5kB/s is implausible for a network; was 12.5GB/s meant?"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"memory": 4096}, "dag.yaml: jobs.a.memory: 4096 means 4096 bytes; was 4096MiB meant?"),  # as sbatch --mem
        ({"memory": 64000}, "dag.yaml: jobs.a.memory: 64000 means 64000 bytes; was 64000MiB meant?"),
        (
            {"profile": {"service_demand": 1, "bandwidth": 5200}},
            "dag.yaml: jobs.a.profile.bandwidth: 5200 means 5200 bytes/s; was 5200MB/s meant?",
        ),
        (
            {"profile": [{"service_demand": 1}, {"service_demand": 1, "bandwidth": 5200.5}]},
            "dag.yaml: jobs.a.profile[1].bandwidth: 5200.5 means 5200.5 bytes/s; was 5200.5MB/s meant?",
        ),
        (
            {"profile": {"groups": [{"service_demand": 1, "phases": [{"share": 1, "bandwidth": 7}]}]}},
            "dag.yaml: jobs.a.profile.groups[0].phases[0].bandwidth: 7 means 7 bytes/s; was 7GB/s meant?",
        ),
        ({"memory": 256}, "dag.yaml: jobs.a.memory: 256 means 256 bytes; was 256MiB meant?"),
        (
            {"profile": {"service_demand": 1, "bandwidth": 5.2}},
            "dag.yaml: jobs.a.profile.bandwidth: 5.2 means 5.2 bytes/s; was 5.2GB/s meant?",
        ),
        (
            {"profile": {"service_demand": 1, "memory": 2}},
            "dag.yaml: jobs.a.profile.memory: 2 means 2 bytes; was 2MiB meant?",
        ),
        (
            {"walltime": 10},
            "dag.yaml: jobs.a.walltime: 10 means 10 seconds, not minutes as in Slurm; write 10:00 for minutes",
        ),
    ],
)
def test_a_bare_number_of_a_job_is_doubted(keys, words):
    assert jobs(**keys) == (words,)


@pytest.mark.parametrize(
    "keys",
    [{"memory": "256B"}, {"walltime": "00:10"}, {"walltime": 60}, {"memory": 2**20}, {"memory": 4096.0}, {}]
    + [{"profile": {"service_demand": 1, "bandwidth": measured}} for measured in (853.216, 0, 1_000_000, "5200B/s")],
)
def test_a_unit_or_a_large_number_is_not_doubted(keys):
    assert jobs(**keys) == ()


def test_only_what_a_person_wrote_into_profiles_is_doubted(tmp_path):
    path = tmp_path / "profiles.yaml"
    path.write_text(
        "schema: pilotfish/profiles/v1\nprofiles:\n"
        "  mine: {service_demand: 1, memory: 4096, bandwidth: 5200}\n"
        "  also: [{service_demand: 1, bandwidth: 5200}]\n"
        "  measured: {service_demand: 1, memory: 900000, bandwidth: 5200, source: measured, runs: 3}\n"
    )
    assert profile_doubts(path) == (
        f"{path}: profiles.mine.memory: 4096 means 4096 bytes; was 4096MiB meant?",
        f"{path}: profiles.mine.bandwidth: 5200 means 5200 bytes/s; was 5200MB/s meant?",
        f"{path}: profiles.also[0].bandwidth: 5200 means 5200 bytes/s; was 5200MB/s meant?",
    )


@given(rate=st.floats(0.1, 1e9), memory=st.floats(0, 1e9))
def test_what_pilotfish_writes_is_never_doubted(rate, memory):
    groups = (ThreadGroup(1, 1.0, bandwidth=round(rate, 1)), ThreadGroup(1, 1.0, phases=(Phase(1.0, 1.0, 5.5),)))
    job = Job("a", Profile(groups, memory=memory), memory=memory)
    text = dump_workflow(Workflow("w", (job,)))
    assert parse_workflow(parse_document(text, "dag.yaml"), "dag.yaml").warnings == ()


def test_all_errors_of_a_cluster_file_come_together():
    data = {
        "schema": "pilotfish/cluster/v1",
        "nmae": "lab",
        "node_types": {"fast": TYPE | {"cores": 0, "memroy": 1}, "slow": {"cores": 2}},
        "nodes": [{"names": "n1", "type": "fast"}],
    }
    with pytest.raises(ConfigErrors) as caught:
        parse_cluster(data, "lab.yaml")
    keys = [error.key for error in caught.value.errors]
    assert keys == ["nmae", "node_types.fast.memroy", "node_types.fast.cores", "node_types.slow.memory"]
    assert all(error.source == "lab.yaml" and error.problem for error in caught.value.errors)
    assert caught.value.errors[-1].problem == "missing; required here: cores, memory, memory_bandwidth"
    assert str(caught.value).endswith("(and 3 more errors)")


def test_what_is_wrong_with_the_nodes_is_found_although_their_types_are_wrong():
    data = {
        "schema": "pilotfish/cluster/v1",
        "node_types": {"fast": TYPE | {"cores": 0}},
        "nodes": [
            {"names": "n1", "type": "fats"},
            {"names": "n[2-3]", "type": "fast"},
            {"names": "n3", "type": "fast"},
        ],
        "clusters": {"east": "n4"},
    }
    for more in ({}, {"oversubscripton": 2}):
        with pytest.raises(ConfigErrors) as caught:
            parse_cluster(data | more, "lab.yaml")
        keys = [error.key for error in caught.value.errors]
        assert keys == [*more, "node_types.fast.cores", "nodes[0].type", "nodes[2].names"]


def test_all_errors_of_a_job_and_of_its_profile_come_together():
    profile = {"threads": -2, "service_demand": "abc", "memory": "2 GiG", "thread": 1}
    jobs = {"a": {"profile": profile, "depends_on": "b", "walltime": 0}, "b": {"nodes": 0, "profile": [profile]}}
    with pytest.raises(ConfigErrors) as caught:
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "dag.yaml")
    keys = [error.key for error in caught.value.errors]
    inner = ["thread", "threads", "service_demand", "memory"]
    assert keys[:6] == ["jobs.a.depends_on", *(f"jobs.a.profile.{key}" for key in inner), "jobs.a.walltime"]
    assert "jobs.b.nodes" in keys and "jobs.b.profile[0].threads" in keys


def test_all_errors_of_a_workflow_come_together_with_hints_for_other_words():
    profile = [{"count": 1, "service_demand": 1.0}]
    data = {
        "schema": "pilotfish/workflow/v1",
        "jobs": {"a": {"profile": profile, "depends_on": "b"}, "b": {"profile": profile, "walltime": -1}},
    }
    with pytest.raises(ConfigErrors) as caught:
        parse_workflow(data, "dag.yaml")
    first, second = caught.value.errors
    assert (first.key, second.key) == ("jobs.a.depends_on", "jobs.b.walltime")
    assert first.problem == "unknown key; did you mean 'after'?"


def test_unknown_jobs_come_together_and_with_other_errors():
    def faults(**jobs):
        jobs = {name: {"profile": {"service_demand": 1.0}} | keys for name, keys in jobs.items()}
        with pytest.raises(ConfigErrors) as caught:
            parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "dag.yaml")
        return [f"{error.key}: {error.problem}" for error in caught.value.errors]

    prep = "jobs.b.after: 'prepp' is not a job of this workflow; did you mean 'prep'?"
    zebra = "jobs.c.after: 'zebra' is not a job of this workflow"
    assert faults(prep={}, b={"after": ["prepp"]}, c={"after": "zebra"}) == [prep, zebra]
    assert faults(prep={"nodes": 0}, b={"after": ["prep", "prepp"]}) == ["jobs.prep.nodes: found 0", prep]


def test_the_same_problem_of_many_jobs_is_one_error():
    profile = {"threads": 1, "service_demand": 1.0}
    faults = [{"cmd": "x"}, {"nodes": 0}, {"memory": -1}]
    jobs = {f"j{i}": {"profile": profile} | faults[i % 3] for i in range(3000)}
    with pytest.raises(ConfigErrors) as caught:
        parse_workflow({"schema": "pilotfish/workflow/v1", "jobs": jobs}, "dag.yaml")
    repeats = {error.key: error.more for error in caught.value.errors}
    assert repeats == {"jobs.j0.cmd": 999, "jobs.j1.nodes": 999, "jobs.j2.memory": 999}
    assert str(caught.value.errors[0]).startswith("dag.yaml: jobs.j0.cmd (and 999 more): unknown key")


def test_errors_beyond_a_bound_are_not_collected():
    data = {"schema": "pilotfish/workflow/v1", "jobs": {f"j{i}": {"profile": {}, "wait": i} for i in range(1000)}}
    with pytest.raises(ConfigErrors) as caught:
        parse_workflow(data, "dag.yaml")
    assert len(caught.value.errors) == MOST_ERRORS

"""Workflows as JSON text: the round trip is exact, and invalid text is one clear error."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.state.codec import decode, decode_stored, encode
from pilotfish.simulate.errors import PilotfishError
from pilotfish.simulate.model.job import Distribution, Job, PeerWait, Phase, Profile, Provenance, ThreadGroup, Workflow

names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
positive = st.floats(1e-3, 1e9)
demands = st.one_of(
    positive,
    st.builds(Distribution, st.just("lognormal"), mean=positive, cv=st.floats(0, 2)),
    st.builds(Distribution, st.just("empirical"), values=st.lists(positive, min_size=1).map(tuple)),
)
groups = st.builds(
    ThreadGroup,
    st.integers(1, 99),
    demands,
    utilisation=st.floats(0.01, 1),
    bandwidth=st.floats(0, 1e11),
    phases=st.sampled_from([(), (Phase(0.25, 0.5, 1e9), Phase(0.75, 1.0, 0.0))]),
)
profiles = st.builds(
    Profile,
    st.lists(groups, min_size=1, max_size=3).map(tuple),
    name=names,
    memory=st.floats(0, 1e12),
    provenance=st.builds(Provenance, st.just("measured"), runs=st.integers(0, 9)),
)
commands = st.none() | st.lists(st.text(st.characters(codec="utf-8", min_codepoint=1)), min_size=1).map(tuple)


@given(
    st.lists(
        st.builds(
            Job,
            names,
            profiles,
            nodes=st.integers(1, 9),
            command=commands,
            walltime=st.none() | positive,
            wait=st.sampled_from(PeerWait),
            environment=st.just((("A", "1"),)),
            allowed=st.none() | st.frozensets(names),
        ),
        min_size=1,
        max_size=5,
        unique_by=lambda job: job.id,
    ),
    names,
)
@settings(max_examples=50, deadline=None)
def test_decoding_an_encoded_workflow_gives_it_back(jobs, name):
    workflow = Workflow(name, tuple(jobs), source="x.yaml", warnings=("w",))
    assert decode_stored(encode(workflow)) == workflow
    assert encode(decode_stored(encode(workflow))) == encode(workflow)
    asked = dataclasses.replace(workflow, jobs=tuple(dataclasses.replace(job, allowed=None) for job in jobs))
    assert decode(encode(asked)) == asked


def document(**job):
    base = {"id": "a", "profile": {"groups": [{"count": 1, "service_demand": 1.0}]}}
    return json.dumps({"name": "w", "jobs": [base | job]})


def with_group(**group):
    return document(profile={"groups": [{"count": 1, "service_demand": 1.0} | group]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "json"),
        ("[]", "workflow"),
        ('{"name": "w"}', "jobs: field required"),
        ('{"name": "w", "jobs": []}', "no jobs"),
        (document(nodes=0), "nodes is 0"),
        (document(nodes="2"), "nodes"),
        (document(memory=-1), "memory"),
        (document(walltime=0), "walltime"),
        (document(id=""), "printable"),
        (document(id="a\nb"), "printable"),
        (document(command=[]), "command"),
        (document(command=["a\0b"]), "command"),
        (document(environment=[["A=B", "1"]]), "environment"),
        (document(profile={"groups": []}), "no threads"),
        (document(after=["missing"]), "'missing'"),
        (document(after=["a"]), "cycle"),
        (with_group(count=0), "count is 0"),
        (with_group(service_demand=0), "service_demand"),
        (with_group(service_demand=float("nan")), "service_demand"),
        (with_group(service_demand={"dist": "empirical"}), "values"),
        (with_group(utilisation=1.5), "utilisation"),
        (with_group(bandwidth=float("inf")), "bandwidth"),
        (document(environment=[["A;id", "1"]]), "environment"),
        (document(allowed=["n1"]), "cannot be submitted"),
        (document(known_as="other:root"), "cannot be submitted"),
        (document(directory="a\0b"), "directory"),
        (document(id="x" * 256), "255 characters"),
        (document(profile={"groups": [{"count": 1, "service_demand": 1}], "provenance": {"source": "x"}}), "source is"),
        (with_group(service_demand={"dist": "foo", "mean": 1}), "dist is 'foo'"),
        (with_group(service_demand={"dist": "normal", "mean": 1, "cv": -1}), "cv is -1"),
        (with_group(service_demand={"dist": "normal", "mean": 1, "values": [1]}), "parameters"),
        (with_group(service_demand={"dist": "uniform", "low": 2, "high": 1}), "more than low"),
        (with_group(service_demand=1e-300), "service_demand"),
        (with_group(utilisation=1e-300), "utilisation"),
        (with_group(utilisation_std=-1), "utilisation_std"),
        (with_group(service_demand=1e12, utilisation=1e-9), "would run for"),
        (with_group(count=10**400), "threads"),
        (with_group(phases=[{"share": 0.5, "utilisation": 1, "bandwidth": 0}]), "shares"),
    ],
)
def test_errors_name_what_is_wrong(text, says):
    with pytest.raises(PilotfishError, match=f"(?i){says}"):
        decode(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
@settings(max_examples=50, deadline=None)
def test_any_other_json_is_one_error(value):
    with pytest.raises(PilotfishError):
        decode(json.dumps({"name": "w", "jobs": value}))

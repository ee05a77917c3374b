"""The profiles file: it is read back as written, and unknown keys are rejected."""

import pytest

from pilotfish.formats.documents.files import parse_document
from pilotfish.profiles.profiles_file import dump_profiles, parse_profiles, write_text
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Distribution, Phase, Profile, Provenance, ThreadGroup

FULL = Profile(
    (
        ThreadGroup(4, 12.5, 0.8, 0.05, 5e9),
        ThreadGroup(1, Distribution("lognormal", mean=3.0, cv=0.2)),
        ThreadGroup(2, 6.0, phases=(Phase(0.25, 0.5, 1e9), Phase(0.75, 1.0, 2e9))),
    ),
    name="full: of everything",
    measured_on="xeon",
    memory=3e9,
    instructions=1e12,
    ipc=1.7,
    io_bytes=1e6,
    power_watts=40.0,
    provenance=Provenance("measured", "2026-01-31T12:00:00+00:00", 3, "Some CPU @ 2 GHz", "a note: with a colon"),
)
SMALL = Profile((ThreadGroup(1, 0.5),), name="no")


@pytest.mark.parametrize("as_json", [False, True])
def test_written_profiles_are_read_back(as_json):
    profiles = {profile.name: profile for profile in (FULL, SMALL)}
    assert parse_profiles(dump_profiles(profiles), "x") == profiles
    assert parse_profiles(parse_document(write_text(profiles, as_json=as_json), "x"), "x") == profiles


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profiles: {a: {service_demand: 1}}", "schema"),
        ("schema: pilotfish/cluster/v1\nprofiles: {}", "schema.*pilotfish/profiles/v1"),
        ("schema: pilotfish/profiles/v1", "profiles"),
        ("schema: pilotfish/profiles/v1\nprofile: {}", "unknown key.*did you mean 'profiles'"),
        ("schema: pilotfish/profiles/v1\nprofiles: [1]", "profiles"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: 5}", r"profiles\.a"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: {threads: 2}}", r"profiles\.a.*service_demand"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: {service_demand: -1}}", r"profiles\.a\.service_demand"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: {service_demand: 1, source: felt}}", "felt.*measured"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: {service_demand: 1, runs: -1}}", r"profiles\.a\.runs"),
        ("schema: pilotfish/profiles/v1\nprofiles: {a: {service_demand: 1, bandwith: 1}}", "bandwidth"),
    ],
)
def test_invalid_keys_are_named(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_profiles(parse_document(text, "file.yaml"), "file.yaml")
    assert caught.value.source == "file.yaml"

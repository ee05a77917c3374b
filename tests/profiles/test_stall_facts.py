"""Stall facts: from a job's usage into the profile, and back from its file."""

from dataclasses import replace

import pytest

from pilotfish.cli.output.profiles import show_profile
from pilotfish.daemon.learning.job_profiles import measurement_of
from pilotfish.profiles.classes import Classification
from pilotfish.profiles.estimate import estimate
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.profiles_file import dump_entry, parse_entry
from pilotfish.profiles.stall_facts import stall_facts, typical
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState, JobView

USAGE = {"throttled_seconds": 1.5, "stalled_cpu_some_seconds": 2.0, "stalled_io_full_seconds": 99.0, "cpu_seconds": 4.0}
FACTS = {"throttled_s": 1.5, "cpu_some": 0.2, "io_full": 1.0}
RUN = Measurement((ThreadGroup(1, 5.0),), wall_s=5.0, isolated_s=5.0, cpu_s=5.0, date="2026-11-01")


def test_shares_are_of_the_run_and_unreported_facts_are_absent():
    assert stall_facts(USAGE, 10.0) == FACTS
    assert stall_facts({}, 10.0) == {}


def test_a_job_over_several_nodes_of_a_machine_has_one_group():
    view = JobView("k", Job("j", DEFAULT_PROFILE), JobState.COMPLETED, ("a", "b"), start_time=0.0, finish_time=10.0)
    assert measurement_of(replace(view, usage=tuple(USAGE.items()))).strain == FACTS


def test_a_profile_has_medians_and_the_highest_peak():
    runs = [{"cpu_some": 0.1, "memory_peak": 5.0}, {"cpu_some": 0.3, "memory_peak": 3.0}, {"cpu_some": 0.2}, {}]
    assert typical(runs) == {"memory_peak": 5.0, "cpu_some": 0.2}
    profile = estimate("p", [replace(RUN, strain=run) for run in runs])
    assert dict(profile.provenance.strain) == {"memory_peak": 5.0, "cpu_some": 0.2}
    assert dict(RUN.to_profile().provenance.strain) == {}


def test_stall_facts_survive_json_and_file():
    run = replace(RUN, strain=FACTS)
    assert Measurement.from_dict(run.to_dict()) == run
    profile = estimate("p", [run])
    assert parse_entry("p", dump_entry(profile)) == profile
    assert "strain" not in dump_entry(estimate("p", [RUN]))


@pytest.mark.parametrize(
    ("value", "key", "says"),
    [
        ({"cpu_som": 0.1}, "cpu_som", "did you mean 'cpu_some'"),
        ({"io_full": "much"}, "io_full", "'much'"),
        (3, "", "3"),
    ],
)
def test_a_file_with_other_facts_is_refused(value, key, says):
    entry = dump_entry(estimate("p", [RUN])) | {"strain": value}
    with pytest.raises(ConfigError) as caught:
        parse_entry("p", entry)
    assert key in caught.value.key and says in str(caught.value)


def test_stall_facts_are_shown_in_words(capsys):
    facts = {"cpu_some": 0.314, "cpu_full": 0.02, "memory_some": 0.0, "throttled_s": 1.25, "memory_max": 3.0}
    facts |= {"memory_peak": 2.0**30, "oom_kills": 0.0}
    show_profile(estimate("p", [replace(RUN, strain=facts)]), None, Classification(None, "nothing is known"))
    assert (
        "held up: stalled for CPU 31 % (all of it 2.0 %), memory 0 %; throttled 1.25 s;"
        " memory peak 1GiB, caches included; at its memory limit 3 times "
    ) in " ".join(capsys.readouterr().out.split())
    show_profile(estimate("p", [RUN]), None, Classification(None, "nothing is known"))
    assert "held up" not in capsys.readouterr().out

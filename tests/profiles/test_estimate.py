"""Profiles from runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.estimate import LATEST, estimate, statistics, usable
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.profiles_file import dump_entry, parse_entry
from pilotfish.simulate.model.job import Phase, Profile, ThreadGroup


def run(demand=2.0, count=1, **more):
    return Measurement((ThreadGroup(count, demand, 0.5, 0.1),), 2 * demand, 2 * demand, demand * count, **more)


def test_no_successful_run_gives_no_profile():
    assert estimate("x", []) is None
    assert estimate("x", [run(exit_code=2)]) is None
    assert statistics([]) is None


def test_runs_of_an_unusual_shape_do_not_count():
    runs = [run(2.0), run(1.0, count=2), run(2.2)]
    assert usable(runs) == [runs[0], runs[2]]
    assert estimate("x", runs).groups[0].demand == pytest.approx(2.1)


def test_only_the_newest_node_type_counts():
    runs = [run(9.0, node_type="old"), run(2.0, node_type="new")]
    profile = estimate("x", runs)
    assert profile.measured_on == "new"
    assert profile.groups[0].demand == 2.0


def test_a_changed_program_is_followed():
    runs = [run(1.0)] * 200 + [run(5.0)] * LATEST
    assert estimate("x", runs).groups[0].demand == 5.0


def test_a_new_measurement_of_another_command_replaces_the_old_one():
    old, new = run(9.0, command="cmd: stream 64 12.3"), run(2.0, command="cmd: stream 64 2.8", company=1.0)
    imported = run(4.0, bandwidth=3e9)
    assert usable([old, new]) == [new]  # although others disturbed the new run only
    assert usable([old, imported]) == [old, imported]
    assert estimate("x", [old, imported, new]).groups[0].bandwidth == 3e9


def test_memory_is_the_highest_seen():
    assert estimate("x", [run(memory_bytes=5e8), run(memory_bytes=2e8), run()]).memory == 5e8


def test_a_known_bandwidth_is_kept():
    known = Profile((ThreadGroup(2, 1.0, bandwidth=4e9), ThreadGroup(2, 1.0, bandwidth=2e9)), name="x")
    assert estimate("x", [run()], known).groups[0].bandwidth == 3e9
    assert estimate("x", [run(bandwidth=7e9)], known).groups[0].bandwidth == 7e9


def phased(*phases):
    """A run whose thread has these (share, utilisation)."""
    group = ThreadGroup(1, 1.0, 0.5, phases=tuple(Phase(share, level, 0.0) for share, level in phases))
    return Measurement((group,), 2.0, 2.0, 1.0)


def test_phases_are_medians_over_runs_with_the_usual_number():
    runs = [phased((0.5, 0.9), (0.5, 0.1)), phased((0.4, 0.8), (0.6, 0.3)), phased(), phased((0.6, 0.7), (0.4, 0.2))]
    profile = estimate("x", runs, Profile((ThreadGroup(1, 1.0, bandwidth=3e9),), name="x"))
    assert profile.groups[0].phases == (Phase(0.5, 0.8, 3e9), Phase(0.5, 0.2, 3e9))
    assert profile.groups[0].mean_bandwidth == 3e9
    assert parse_entry("x", dump_entry(profile)).groups == profile.groups
    assert Measurement.from_dict(runs[0].to_dict()) == runs[0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1.0, 1.2), min_size=3, max_size=20), st.floats(5, 1e6))
def test_one_outlier_keeps_the_profile_within_the_other_runs(demands, odd):
    profile = estimate("x", [run(demand) for demand in [*demands, odd]])
    assert min(demands) <= profile.groups[0].demand <= max(demands)
    assert profile.provenance.runs == min(LATEST, len(demands) + 1)

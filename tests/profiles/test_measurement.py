"""The effect of other processes on a run: known values, and the laws of the interval."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.state.codec import decode, encode
from pilotfish.profiles.estimate import estimate, usable
from pilotfish.profiles.measurement import (
    ALONE,
    ERROR,
    MOST_INFLATION,
    Measurement,
    inflation,
    interval,
    load_of_others,
)
from pilotfish.profiles.profiles_file import dump_entry, parse_entry
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Job, ThreadGroup, Workflow


def run(demand, seen, waiting=0.0):
    wall = demand / (1 - waiting)
    return Measurement((ThreadGroup(1, demand),), wall, demand, demand, waiting, company=seen)


@pytest.mark.parametrize(
    ("others", "cpus", "own", "seen"),
    [(0.0, 4, 1.0, 0.0), (0.25, 4, 1.0, 1 / 3), (0.5, 2, 1.0, 1.0), (0.9, 8, 8.0, 1.0), (0.01, 4, 4.0, 0.04)],
)
def test_company_is_a_share_of_the_remaining_cores(others, cpus, own, seen):
    assert load_of_others(others, cpus, own) == pytest.approx(seen)


def test_inflation_is_one_alone_and_highest_if_unknown():
    assert inflation(0.0) == inflation(ALONE / 2) == 1.0
    assert inflation(1.0) == inflation(None) == MOST_INFLATION


def test_one_undisturbed_run_has_the_measurement_error():
    assert interval([3.0], [0.0]) == (1 - ERROR, 1 + ERROR)


def test_company_lowers_the_lower_bound_only():
    alone, crowded = estimate("x", [run(2.0, 0.0)]), estimate("x", [run(2.0, 0.8, waiting=0.5)])
    assert crowded.groups == alone.groups
    assert crowded.provenance.interval[0] < alone.provenance.interval[0]
    assert crowded.provenance.interval[1] == alone.provenance.interval[1]
    assert "up to 36 %" in crowded.provenance.note and "50 % of the time was waiting" in crowded.provenance.note


def test_disturbed_runs_do_not_count_next_to_undisturbed_ones():
    runs = [run(2.6, 0.9), run(2.0, 0.0), run(2.8, 1.0), run(2.2, None)]
    assert usable(runs) == [runs[1], runs[3]]
    assert usable(runs[::2]) == runs[::2]


def test_an_interval_survives_file_and_codec():
    profile = estimate("x", [run(2.0, 0.8)])
    assert parse_entry("x", dump_entry(profile)).provenance.interval == profile.provenance.interval
    flow = Workflow("w", (Job("j", profile),))
    assert decode(encode(flow)) == flow


@pytest.mark.parametrize("written", [1, [1], [1.1, 1.2], [0.5, 0.9], [-1, 2], ["a", "b"], [0.9, 1.0, 1.1]])
def test_an_invalid_interval_is_an_error(written):
    with pytest.raises(ConfigError, match="interval"):
        parse_entry("x", {"service_demand": 1, "interval": written})


def test_a_run_without_cpu_time_has_an_interval():
    assert interval([0.0], [None])[1] == 1 + ERROR


DEMANDS = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(DEMANDS, st.floats(0, 1), st.floats(0, 1))
def test_more_company_never_narrows_it(demands, one, other):
    less, more = sorted((one, other))
    narrow, wide = (interval(demands, [seen] * len(demands)) for seen in (less, more))
    assert 0 <= wide[0] <= narrow[0] <= 1 <= narrow[1] == wide[1]

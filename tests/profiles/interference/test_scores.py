"""Scores from runs next to a streamer: known values and laws."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.cluster import parse_cluster
from pilotfish.profiles.interference.scores import STREAMER, RunNextToStreamer, Scores, levels, pressure_of

RUNS = [
    RunNextToStreamer(1.0, 2.0, 2.6, 10e9, 8e9),
    RunNextToStreamer(0.5, 2.0, 2.2, 10e9, 10e9),
    RunNextToStreamer(1.0, 2.0, 2.4, 12e9, 10e9),
    RunNextToStreamer(0.5, 2.5, 2.5, 12e9, 12e9),
    RunNextToStreamer(1.0, 2.0, 9.0, 10e9, 5e9),  # one odd round
]


def test_levels_are_medians_by_rising_pressure():
    half, whole = levels(RUNS)
    assert (half.pressure, whole.pressure) == (0.5, 1.0)
    assert half.factor == pytest.approx(1.05)
    assert (whole.factor, whole.least, whole.most) == pytest.approx((1.3, 1.2, 4.5))
    assert whole.slowed == pytest.approx(1.25)
    assert (half.rate, whole.rate) == (5.5e9, 10e9)


def test_the_pairs_can_be_pasted_into_a_node_type():
    scores = Scores("align", levels(RUNS), 0.4, 3)
    kind = {"cores": 4, "memory": "8GiB", "memory_bandwidth": "20GB/s", "co_run_inflation": scores.co_run_inflation}
    data = {"name": "c", "node_types": {"t": kind}, "nodes": [{"names": "a", "type": "t"}]}
    cluster = parse_cluster({"schema": "pilotfish/cluster/v1"} | data, "c.yaml")
    pairs = {(pair.job, pair.neighbour): pair.factor for pair in cluster.types[0].co_run_inflation}
    assert pairs == {("align", STREAMER): 1.3, (STREAMER, "align"): 1.25}


def test_a_factor_below_one_is_raised_to_one():
    scores = Scores("x", levels([RunNextToStreamer(1.0, 2.0, 1.9, 1e9, 1.1e9)]), 0.0, 1)
    assert scores.co_run_inflation == {"x": {STREAMER: 1.0}, STREAMER: {"x": 1.0}}
    assert scores.sensitivity == pytest.approx(0.95)
    assert scores.to_dict()["source"] == "relative score"


CALIBRATION = [(0.25, 1.1), (0.5, 1.2), (1.0, 1.6)]


@pytest.mark.parametrize(
    ("slowed", "pressure"), [(0.9, 0.0), (1.0, 0.0), (1.05, 0.125), (1.2, 0.5), (1.4, 0.75), (1.6, 1.0), (1.7, None)]
)
def test_pressure_is_interpolated_from_the_calibration(slowed, pressure):
    assert pressure_of(slowed, CALIBRATION) == (None if pressure is None else pytest.approx(pressure))


def test_without_slowdown_between_streamers_pressure_is_unknown():
    flat = [(0.25, 0.99), (0.5, 1.0), (1.0, 0.98)]
    assert pressure_of(1.1, flat) is None
    assert pressure_of(1.0, flat) == 0.0


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0.9, 3.0), min_size=1, max_size=5), st.floats(0.5, 4), st.floats(0.5, 4))
def test_more_slowdown_is_more_pressure(times, one, other):
    calibration = [((i + 1) / len(times), value) for i, value in enumerate(times)]
    less, more = (pressure_of(slowed, calibration) for slowed in sorted((one, other)))
    assert more is None or (less is not None and 0 <= less <= more <= 1)

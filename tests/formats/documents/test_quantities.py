"""Sizes, rates, frequencies and durations: parsing and formatting."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.quantities import (
    clock,
    format_duration,
    format_size,
    parse_duration,
    parse_frequency,
    parse_rate,
    parse_size,
)
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_size, 512, 512.0),
        (parse_size, "2GiB", 2 * 2**30),
        (parse_size, "500MB", 5e8),
        (parse_size, "1.5 KiB", 1536),
        (parse_size, "1kB", 1000),
        (parse_size, "3B", 3),
        (parse_size, "1e3MB", 1e9),
        (parse_rate, "80GB/s", 80e9),
        (parse_rate, "5.2GB/s", 5.2e9),
        (parse_rate, "1GiB/s", 2**30),
        (parse_frequency, "2.4GHz", 2.4e9),
        (parse_frequency, 2.4e9, 2.4e9),
        (parse_duration, 90, 90.0),
        (parse_duration, "01:30", 90.0),
        (parse_duration, "90:00", 5400.0),
        (parse_duration, "00:10:00", 600.0),
        (parse_duration, "100:00:00", 360000.0),
        (parse_duration, "1-02:03:04", 93784.0),
        (parse_duration, "2-12", 216000.0),
        (parse_duration, "2-12:30", 217800.0),
    ],
)
def test_quantities_with_units_are_parsed(parse, text, expected):
    assert parse(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "value"),
    [
        (parse_size, "2Gib"),
        (parse_size, "2G"),
        (parse_size, "2 GB/s"),
        (parse_size, "-1GB"),
        (parse_size, "GB"),
        (parse_size, ""),
        (parse_size, "1e400GB"),
        (parse_size, "9" * 60 + "B"),
        (parse_size, True),
        (parse_size, None),
        (parse_size, -1),
        (parse_size, 10**30),
        (parse_size, math.nan),
        (parse_size, math.inf),
        (parse_rate, "80GB"),
        (parse_rate, "10Gb/s"),
        (parse_rate, []),
        (parse_frequency, "2.4"),
        (parse_frequency, "2.4GB"),
        (parse_duration, "90"),
        (parse_duration, "00:10:60"),
        (parse_duration, "00:60:00"),
        (parse_duration, "1-24:00:00"),
        (parse_duration, "1-00:60"),
        (parse_duration, "1:2:3:4"),
        (parse_duration, "-00:10"),
        (parse_duration, "ten minutes"),
        (parse_duration, "00:00:01.5"),
        (parse_duration, "9" * 100 + ":00"),
        (parse_duration, -5),
        (parse_duration, False),
    ],
)
def test_an_invalid_quantity_is_refused_with_what_is_allowed(parse, value):
    with pytest.raises(ConfigError) as caught:
        parse(value)
    assert caught.value.problem.startswith("found ")
    assert " as a number, or " in caught.value.allowed
    assert len(str(caught.value)) < 250


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**8))
def test_a_clock_reads_back(seconds):
    assert parse_duration(clock(seconds)) == seconds


def test_clocks_are_rounded_up_and_oar_has_no_days():
    assert clock(0.1) == "00:00:01"
    assert clock(86400 + 61) == "1-00:01:01"
    assert clock(86400 + 61, days=False) == "24:01:01"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0021, "2.1ms"),
        (0.99999, "1s"),
        (12.5, "12.5s"),
        (59.99, "1m00s"),
        (185, "3m05s"),
        (7380, "2h03m"),
        (100800, "1d04h"),
        (-2, "-2s"),
        (math.inf, "never"),
        (math.nan, "unknown"),
    ],
)
def test_durations_for_people(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (512, "512B"),
        (2 * 2**30, "2GiB"),
        (5e8, "500MB"),
        (1536, "1.5KiB"),
        (999.6e9, "931GiB"),
        (10366976, "9.89MiB"),
        (12637437952, "11.8GiB"),
        (1010 * 2**20 - 1, "0.986GiB"),
        (1000, "1kB"),
    ],
)
def test_sizes_for_people(size, text):
    assert format_size(size) == text


@settings(max_examples=50, deadline=None)
@given(st.floats(1, 1e15))
def test_a_written_size_is_read_back_within_its_three_digits(size):
    assert parse_size(format_size(size)) == pytest.approx(size, rel=6e-3)
    assert parse_rate(format_size(size, rate=True)) == pytest.approx(size, rel=6e-3)

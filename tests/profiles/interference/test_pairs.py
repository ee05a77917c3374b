"""Factors of pairs from scores: known values, laws, and invalid files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.profiles import show_recorded_scores
from pilotfish.profiles.interference.scores import PressureEffect, Scores, co_run_inflation, factor, read_scores
from pilotfish.simulate.errors import ConfigError


def level(pressure, times):
    return PressureEffect(pressure, pressure * 1e10, times, times, times, 1.0)


def scores(name, *times, pressure=0.0, cpu="cpu"):
    levels = tuple(level((i + 1) / len(times), value) for i, value in enumerate(times))
    return Scores(name, levels, pressure, 3, "2026-01-02T03:04:05Z", cpu)


ALIGN = scores("align", 1.1, 1.4, pressure=0.25)
STREAM = scores("stream", 1.2, 1.6, pressure=None)
COUNT = scores("count", 1.0, 1.0, pressure=0.0)


@pytest.fixture
def files(tmp_path):
    made = []
    for one in (ALIGN, STREAM, COUNT):
        made.append(tmp_path / f"{one.name}.json")
        made[-1].write_text(json.dumps({"schema": "pilotfish/corun/v1", **one.to_dict()}))
    return made


@pytest.mark.parametrize(("pressure", "times"), [(0, 1), (0.25, 1.05), (0.5, 1.1), (0.75, 1.25), (1, 1.4), (None, 1.4)])
def test_a_factor_is_interpolated_between_levels(pressure, times):
    assert factor(ALIGN.levels, pressure) == pytest.approx(times)


def test_pairs_without_slowdown_are_omitted():
    assert co_run_inflation([ALIGN, STREAM, COUNT]) == {
        "align": {"align": 1.05, "stream": 1.4},
        "stream": {"align": 1.1, "stream": 1.6},
    }


def test_scores_of_two_machines_or_duplicates_are_rejected():
    with pytest.raises(ConfigError, match="scored on 'other'"):
        co_run_inflation([ALIGN, scores("x", 1.5, cpu="other")])
    with pytest.raises(ConfigError, match="'align' twice"):
        co_run_inflation([ALIGN, COUNT, ALIGN])


def test_files_are_read_back(files):
    assert [read_scores(file) for file in files] == [ALIGN, STREAM, COUNT]


def test_the_command_prints_keys_of_a_node_type(files, capfd):
    assert main(["profile", "pairs", *map(str, files)]) == 0
    said = capfd.readouterr()
    assert "co_run_inflation:\n  align: {align: 1.05, stream: 1.4}\n  stream: {align: 1.1, stream: 1.6}\n" in said.out
    assert "stream presses more than the streamer" in said.err
    assert main(["profile", "pairs", str(files[2])]) == 0
    assert "co_run_inflation: {}\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("levels", [], "levels"),
        ("levels", [{"pressure": 1.0}], "rate"),
        ("levels", None, "levels"),
        ("pressure", 2, "pressure"),
        ("pressure", "much", "pressure"),
        ("rounds", 0, "rounds"),
        ("name", "", "name"),
        ("schema", "pilotfish/measurement/v1", "schema"),
        ("more", 1, "unknown key"),
    ],
)
def test_errors_in_a_file_are_one_line(files, capfd, key, value, word):
    data = json.loads(files[0].read_text())
    data[key] = value
    files[0].write_text(json.dumps(data))
    assert main(["profile", "pairs", str(files[0])]) == 1
    said = capfd.readouterr().err
    assert word in said and "align.json" in said and said.count("\n") == 1


def test_unordered_levels_missing_files_and_garbage_are_rejected(files, capfd, tmp_path):
    data = json.loads(files[0].read_text())
    data["levels"].reverse()
    files[0].write_text(json.dumps(data))
    files[1].write_bytes(b"\x00\xff{")
    for file in (files[0], files[1], tmp_path / "nowhere.json", tmp_path):
        assert main(["profile", "pairs", str(file)]) == 1
        said = capfd.readouterr().err
        assert "Traceback" not in said and said.count("\n") == 1
    assert main(["profile", "pairs", "--store", str(tmp_path / "none.sqlite")]) == 1
    assert "it has no scores" in capfd.readouterr().err


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.5, 5), min_size=1, max_size=5), st.floats(0, 1), st.floats(0, 1))
def test_a_factor_is_never_below_one_and_never_over_the_highest_level(times, one, other):
    levels = scores("x", *times).levels
    for pressure in (one, other, None):
        assert 1.0 <= factor(levels, pressure) <= max(1.0, *times) + 1e-12
    if times == sorted(times):
        low, high = sorted((one, other))
        assert factor(levels, low) <= factor(levels, high) + 1e-12


@pytest.mark.parametrize("one", [ALIGN, STREAM, COUNT])
def test_recorded_scores_fit_into_80_columns(one, capsys):
    show_recorded_scores(one)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

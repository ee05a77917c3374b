"""Dumps of Slurm's accounting become profiles; values that it lacks stay unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.profiles.imports import read, sacct_import
from pilotfish.profiles.imports.imported import profiles_of
from pilotfish.simulate.errors import ConfigError

HEAD = "JobID|JobName|State|Start|ElapsedRaw|TotalCPU|NCPUS|NNodes|MaxRSS|ConsumedEnergyRaw\n"
DUMP = HEAD + (
    "101|align|COMPLETED|2026-02-03T04:05:06|100|06:20.500|4|1||30000\n"
    "101.batch|batch|COMPLETED|2026-02-03T04:05:06|100|00:00.500|4|1|12K|0\n"
    "101.0|align|COMPLETED|2026-02-03T04:05:06|100|06:20|4|1|2M|30000\n"
    "102|align|FAILED|2026-02-03T05:05:06|900|01:00:00|4|1||\n"
    "103|wide|COMPLETED|2026-02-04T04:05:06|3600|1-08:00:00|32|4||18446744073709551614\n"
    "104|asleep|CANCELLED by 1000|Unknown|0|00:00:00|1|1||\n"
    "105|idle|COMPLETED|2026-02-04T04:05:06|10|00:00:00|1|1|1G|\n"
)


@pytest.fixture
def imported(tmp_path):
    def call(text: str, **more):
        (tmp_path / "dump").write_text(text)
        return read("sacct", tmp_path / "dump", "dump", **more)

    return call


def test_jobs_that_completed_become_profiles_by_name(imported):
    found = imported(DUMP, node_type="xeon")
    assert list(found) == ["align", "wide"]
    align, wide = found["align"], found["wide"]
    (group,) = align.groups
    assert (group.count, group.demand, align.memory) == (4, pytest.approx(380.5 / 4), 2 * 1024**2)
    assert group.utilisation == pytest.approx(380.5 / 400) and group.bandwidth == 0.0
    assert (align.power_watts, wide.power_watts) == (300.0, None), "2^64 - 2 is no energy"
    assert (wide.groups[0].count, wide.groups[0].utilisation) == (8, 1.0)
    about = align.provenance
    assert (about.source, about.date, about.runs) == ("measured", "2026-02-03T04:05:06", 1)
    assert align.measured_on == "xeon" and "bandwidth unknown" in about.note


def test_runs_of_a_name_are_one_profile_by_their_medians(imported):
    rows = "".join(f"{i}|a|COMPLETED|2026-01-0{i}T00:00:00|{t}|00:{t}|1|1||\n" for i, t in ((1, 10), (2, 50), (3, 20)))
    profile = imported(HEAD + rows)["a"]
    assert (profile.groups[0].demand, profile.provenance.runs) == (20.0, 3)
    assert profile.provenance.date == "2026-01-03T00:00:00" and profile.memory == 0.0


def test_elapsed_as_clock_time_and_trailing_separators(imported):
    text = "JobID|State|Elapsed|TotalCPU|AllocCPUS|\n7|COMPLETED|1-00:00:10|1-00:00:00|1|\n"
    assert imported(text, date="2026-01-01")["dump"].groups[0].demand == 86400.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1|2|3\n", "line 1: no column JobID"),
        (HEAD.replace("TotalCPU|", ""), "line 1: no column TotalCPU"),
        (HEAD, "no job in it completed"),
        (DUMP[: DUMP.index("|4|1||30000")], "line 2: 6 fields"),
        (DUMP.replace("06:20.500", "six"), "line 2: found 'six'"),
        (DUMP.replace("|100|06:20.500", "|-5|06:20.500"), "line 2: found '-5'"),
        (DUMP.replace("2M", "2Q"), "line 2: found '2Q'"),
        (DUMP.replace("101|align", "101|al|ign"), "line 2: 11 fields"),
        ("\x00\x01", "binary"),
        (" \n\n", "empty"),
    ],
)
def test_malformed_lines_name_file_and_line(imported, text, said):
    with pytest.raises(ConfigError, match="dump") as error:
        imported(text)
    assert said in str(error.value)


@pytest.mark.parametrize("sign", [";", ",", "\t", "^"])
def test_another_delimiter_is_found_by_the_header(imported, sign):
    found = imported(DUMP.replace("|", sign))
    assert list(found) == ["align", "wide"] and found["align"] == imported(DUMP)["align"]


@pytest.mark.parametrize(
    ("cell", "value"), [("|2M|", "9" * 400), ("|2M|", "9" * 18 + "P"), ("|06:20.500|", "9" * 400 + ":00")]
)
def test_impossible_numbers_are_rejected(imported, cell, value):
    with pytest.raises(ConfigError, match=r"dump.*line \d.*allowed"):
        imported(DUMP.replace(cell, f"|{value}|", 1))


@pytest.mark.uncounted  # many jobs reach the lines of few
def test_a_dump_of_many_jobs_is_read_in_one_pass():
    runs = sacct_import.parse(HEAD + "".join(f"{i}|j{i % 5000}|COMPLETED||9|00:09|1|1||\n" for i in range(15000)), "x")
    looked = []

    class Name(str):
        def __eq__(self, other):
            looked.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    named = [replace(run, name=Name(run.name)) for run in runs]
    assert len(profiles_of(named, None, "")) == 5000
    assert len(looked) < 10 * len(runs)

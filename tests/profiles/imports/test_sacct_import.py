"""Dumps of Slurm's accounting become profiles; values that it lacks stay unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.profiles.imports import read, sacct_import
from pilotfish.profiles.imports.imported import Imports, profiles_of
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
def reading(tmp_path):
    def call(text: str, **more):
        (tmp_path / "dump").write_text(text)
        return read("sacct", tmp_path / "dump", "dump", **more)

    return call


@pytest.fixture
def imported(reading):
    return lambda text, **more: reading(text, **more)[0]


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
        (HEAD + "1|a|FAILED||9|00:09|1|1||\n" * 2, "left out: 2 jobs that did not complete"),
        (HEAD.replace("|", "  "), "line 1: this is sacct's table for people (allowed: the output of sacct -P "),
        ("JobID \n-----\n7\n", "line 1: no column State"),
        ("\x00\x01", "binary"),
        (" \n\n", "empty"),
        ("\u2028", "empty"),
    ],
)
def test_a_file_without_a_usable_job_is_rejected(imported, text, said):
    with pytest.raises(ConfigError, match="dump") as error:
        imported(text)
    assert said in str(error.value)


GOOD = "7|good|COMPLETED|2026-02-03T04:05:06|100|05:00.000|4|1||\n"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("8|odd|COMPLETED||100|INVALID|4|1||", "jobs whose CPU time is not known"),
        ("8|odd|COMPLETED||100|00:00:00|4|1||", "jobs whose CPU time is not known"),
        ("8|odd|COMPLETED||INVALID|05:00|4|1||", "jobs whose run time is not known"),
        ("8|odd|COMPLETED||0|05:00|4|1||", "jobs whose run time is not known"),
        ("8|odd|NODE_FAIL||100|05:00|4|1||", "jobs that did not complete"),
        ("8|odd|COMPLETED||100|1-00:00:00|4|1||", "jobs with more CPU time than cores x run time"),
        ("8+0|odd|COMPLETED||100|05:00|4|1||", "components of heterogeneous jobs"),
        ("8|o|dd|COMPLETED||100|05:00|4|1||", "rows that cannot be read, the first is line 3: 11 fields "),
        ("8|odd|COMPLETED||100", "rows that cannot be read, the first is line 3: 5 fields "),
        ("8|odd|COMPLETED||100|six|4|1||", "rows that cannot be read, the first is line 3: found 'six' "),
        ("8|odd|COMPLETED||-5|05:00|4|1||", "rows that cannot be read, the first is line 3: found '-5' "),
        ("8|odd|COMPLETED||100|05:00|4|1|2Q|", "rows that cannot be read, the first is line 3: found '2Q' "),
        ("8|odd|COMPLETED||100|05:00|4|1|" + "9" * 400 + "|", "rows that cannot be read, the first is line 3: "),
        ("8|odd|COMPLETED||100|" + "9" * 400 + ":00|4|1||", "rows that cannot be read, the first is line 3: "),
    ],
)
def test_an_odd_row_is_left_out_and_counted_and_refuses_no_other(reading, row, why):
    profiles, left_out = reading(HEAD + GOOD + row + "\n" + GOOD.replace("good", "other").replace("7", "9"))
    assert list(profiles) == ["good", "other"]
    ((words, number),) = left_out.items()
    assert words.startswith(why) and number == 1


def test_a_job_that_ran_twice_is_learned_from_the_run_that_completed(reading):
    rows = "9|a|NODE_FAIL||600|00:10|4|1||\n9.batch|b|FAILED||600|00:10|4|1|9G|\n9|a|COMPLETED||300|10:00|4|1||\n"
    profiles, left_out = reading(HEAD + rows + "9.batch|b|COMPLETED||300|10:00|4|1|2M|\n")
    (group,) = profiles["a"].groups
    assert (group.count, group.demand, profiles["a"].memory) == (2, 300.0, 2 * 2**20)
    assert left_out == {"jobs that did not complete": 1}


def test_runs_that_filled_another_number_of_threads_are_runs_of_one_profile(reading):
    rows = "".join(f"{i}|a|COMPLETED||100|05:{20 * i:02}|4|1||\n" for i in range(3))
    profiles, left_out = reading(HEAD + rows)
    about, (group,) = profiles["a"].provenance, profiles["a"].groups
    assert (about.runs, group.count, group.demand) == (3, 4, 80.0) and not left_out
    low, high = about.interval
    assert low < 0.95 and high > 1.05


def test_runs_on_other_nodes_or_cores_are_counted(reading):
    rows = [f"{i}|a|COMPLETED|2026-01-0{i}T00:00:00|100|05:00|4|1||\n" for i in (1, 2)]
    profiles, left_out = reading(HEAD + "3|a|COMPLETED|2026-01-03T00:00:00|100|05:00|8|2||\n".join(rows))
    assert profiles["a"].provenance.runs == 2
    assert left_out == {"runs with other nodes or cores than most of their name": 1}


def test_runs_of_long_ago_are_counted(reading):
    rows = "".join(f"{i}|a|COMPLETED|2026-01-01T00:00:00|100|01:{i}|1|1||\n" for i in range(10, 40))
    profiles, left_out = reading(HEAD + rows)
    assert profiles["a"].provenance.runs == 25 and left_out == {"runs before the latest 25 of their name": 5}


def test_power_that_no_node_draws_is_unknown(imported):
    assert imported(HEAD + GOOD.replace("||", "|2M|4000000000"))["good"].power_watts is None


@pytest.mark.parametrize("sign", [";", ",", "\t", "^"])
def test_another_delimiter_is_found_by_the_header(imported, sign):
    found = imported(DUMP.replace("|", sign))
    assert list(found) == ["align", "wide"] and found["align"] == imported(DUMP)["align"]


@pytest.mark.long
def test_a_dump_of_many_jobs_is_read_in_one_pass():
    runs = sacct_import.parse(
        HEAD + "".join(f"{i}|j{i % 5000}|COMPLETED||9|00:09|1|1||\n" for i in range(15000)), "x"
    ).runs
    looked = []

    class Name(str):
        def __eq__(self, other):
            looked.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    named = [replace(run, name=Name(run.name)) for run in runs]
    assert len(profiles_of(Imports(named), None, "")[0]) == 5000
    assert len(looked) < 10 * len(runs)

"""Reading results of pilotfish and of Batsim; a malformed row is an error with its file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.csv_columns import BLOCK, interval_counts, intervals
from pilotfish.formats.replays.results_read import read_run
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.results.recorded_run import DONE, KILLED, REJECTED, WALLTIME

#: As Batsim 4 writes it, with the metadata of a job in the last column.
BATSIM = """job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata
1,w0,delay,0.000000,4,20.000000,1,COMPLETED_SUCCESSFULLY,0.000000,10.000000,10.000000,0.000000,10.000000,1.000000,0-1 3-4,12.500000,""
a!2,w0,"de,lay",1.000000,2,5.000000,0,COMPLETED_WALLTIME_REACHED,10.000000,5.000000,15.000000,9.000000,14.000000,2.800000,0 2,-1.000000,"user, 7"
3,w0,delay,2.000000,99,5.000000,0,REJECTED,,,,,,,,,""
4,w0,delay,2.000000,1,5.000000,0,COMPLETED_KILLED,11.000000,1.000000,12.000000,9.000000,10.000000,10.000000,1,0.000000,""
"""
#: As Batsim 1 writes it.
OLD = """job_id,hacky_job_id,workload_name,submission_time,requested_number_of_processors,requested_time,success,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,consumed_energy,allocated_processors
0,0,87cf57,0.000000,1,149.000000,1,157.620000,88.510000,246.130000,157.620000,246.130000,2.780816,8408.450000,0
1,10,87cf57,4.709164,2,399.000000,0,157.620000,265.800000,423.420000,152.910836,418.710836,1.575285,50502.000000,1-2
"""
STATES = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n0,0,0,32,0,0\n6.1,31,1,0,0,0\n"
ENERGY = "time,energy,event_type,wattmin,epower\n0,0,p,3.5,NA\n6.1,19714.6,p,3.5,3231.9\n6.1,19714.6,s,3.5,NA\n"


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_results_of_batsim_4(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, jobs=BATSIM, machine_states=STATES, consumed_energy=ENERGY))
    assert (run.workload, run.policy, run.machine, run.sure, run.joules) == ("w0", "", 32, True, None)
    assert run.jobs.id.tolist() == ["1", "a!2", "3", "4"] and run.jobs.held.tolist() == [4, 2, 0, 1]
    assert run.jobs.ending.tolist() == [DONE, WALLTIME, REJECTED, KILLED]
    assert run.jobs.pieces.tolist() == [[0, 1], [3, 4], [0, 0], [2, 2], [1, 1]]
    assert run.jobs.owner.tolist() == [0, 0, 1, 1, 3] and run.states is not None and run.energy is not None
    assert run.states.counts.tolist() == [[0, 0, 32, 0, 0], [31, 1, 0, 0, 0]]
    assert run.energy.joules.tolist() == [0.0, 19714.6, 19714.6]


def test_results_of_batsim_1_with_a_prefix(tmp_path: Path) -> None:
    written(tmp_path, out_jobs=OLD, out_schedule="consumed_joules,makespan\n58910.45,423.42\n")
    for path in (tmp_path, tmp_path / "out_jobs.csv"):
        run = read_run(path)
        assert (run.machine, run.sure, run.joules) == (3, False, 58910.45)
        assert run.jobs.ending.tolist() == [DONE, KILLED] and run.jobs.size.tolist() == [1, 2]


def test_unmeasured_energy_is_unknown(tmp_path: Path) -> None:
    row = "consumed_joules,nb_computing_machines\n0.000000,128\n"
    run = read_run(written(tmp_path, jobs=BATSIM, schedule=row))
    assert (run.joules, run.machine, run.sure) == (None, 128, True)


def test_no_jobs_at_all(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, jobs=BATSIM.split("\n")[0] + "\n"))
    assert len(run.jobs) == 0 and run.jobs.held.tolist() == [] and run.workload == ""


def spoil(old: str, new: str) -> str:
    assert old in BATSIM
    return BATSIM.replace(old, new, 1)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no jobs.csv in it"),
        ({"jobs": ""}, "jobs.csv: line 1: the file is empty"),
        ({"jobs": spoil("starting_time", "start")}, "jobs.csv:1: starting_time: column missing"),
        ({"jobs": spoil("a!2,", "a!2,1,")}, "jobs.csv:3: found 18 fields (allowed: 17"),
        ({"jobs": spoil(',12.500000,""', "")}, "jobs.csv:2: found 15 fields (allowed: 17"),
        ({"jobs": spoil("10.000000,5.000000,15", "nan,5.000000,15")}, "jobs.csv:3: starting_time: found 'nan'"),
        ({"jobs": spoil("0.000000,4", "1e19,4")}, "jobs.csv:2: submission_time: found '1e19'"),
        ({"jobs": spoil("15.000000", "9.0")}, "jobs.csv:3: finish_time: before starting_time"),
        ({"jobs": spoil("0-1 3-4", "0-1 3-")}, "jobs.csv:2: allocated_resources: found '0-1 3-'"),
        ({"jobs": spoil("0-1 3-4", "4-3")}, "jobs.csv:2: allocated_resources: found '4-3'"),
        ({"jobs": spoil("0-1 3-4", "")}, "jobs.csv:2: allocated_resources: empty, but the job ran"),
        ({"jobs": spoil("0-1 3-4", "0-99"), "machine_states": STATES}, "job 1: found resource 99 on a machine of 32"),
        ({"jobs": spoil("1.000000,2,", "1.000000,-2,")}, "jobs.csv:3: requested_number_of_resources: found '-2'"),
        (
            {"jobs": BATSIM, "machine_states": STATES.replace("6.1,31", "-1,31")},
            "machine_states.csv:3: time: before the time of the row above",
        ),
        ({"jobs": BATSIM, "consumed_energy": ENERGY.replace("19714.6", "x")}, "energy.csv:3: energy: found 'x'"),
        ({"jobs": BATSIM, "consumed_energy": "time\n1\n"}, "consumed_energy.csv:1: energy: column missing"),
        ({"jobs": BATSIM, "x_jobs": BATSIM, "jobs2": ""}, ""),
    ],
)
def test_a_malformed_file_is_an_error_with_its_place(tmp_path: Path, files: dict[str, str], said: str) -> None:
    folder = written(tmp_path, **files)
    if not said:  # a file of exactly that name wins
        assert len(read_run(folder).jobs) == 4
        return
    with pytest.raises(ConfigError) as caught:
        read_run(folder)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not a mapping"),
        ('{"policy": 3}', "policy: found 3"),
        ('{"machine": 0}', "machine: found 0"),
        ('{"machine": true}', "machine: found True"),
        ('{"consumed_joules": "x"}', "consumed_joules: found 'x'"),
        ('{"epoch": "2012"}', "epoch: found '2012'"),
        ('{"epoch": -1}', "epoch: found -1"),
        ("{", "line 1: not JSON"),
        ("", "the file is empty"),
        ("\udcff", "line 1: not UTF-8"),
    ],
)
def test_a_malformed_summary_is_refused(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path, jobs=BATSIM)
    (tmp_path / "summary.json").write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigError, match=r"summary\.json") as caught:
        read_run(tmp_path)
    assert said in str(caught.value)


def test_the_line_number_counts_empty_lines_and_line_breaks(tmp_path: Path) -> None:
    head, row = BATSIM.split("\n")[:2]
    lines = [head, "", row.replace('""', '"two\nlines"'), *[row] * (3 * BLOCK), row.replace("0.000000", "O", 1)]
    written(tmp_path, jobs="\n".join(lines) + "\n")
    with pytest.raises(ConfigError, match=rf"jobs.csv:{3 * BLOCK + 5}: submission_time: found 'O'"):
        read_run(tmp_path)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_bytes(BATSIM.encode().replace(b"a!2", b"\xff\x00"))
    assert read_run(tmp_path).jobs.id[1] == "\udcff\x00"


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 99999), st.integers(0, 9)), max_size=6), max_size=20))
def test_interval_sets_read_back(sets: list[list[tuple[int, int]]]) -> None:
    texts = [" ".join(f"{a}-{a + more}" if more else str(a) for a, more in interval_set) for interval_set in sets]
    assert intervals(texts).tolist() == [[a, a + more] for interval_set in sets for a, more in interval_set]
    assert interval_counts(texts).tolist() == [len(interval_set) for interval_set in sets]


@pytest.mark.parametrize(
    "text", ["-", "1-", "-1", "1--2", "1-2-3", "1  2", " 1", "1 ", "1,2", "x", "2-1", "٣", "1" * 11, "9999999999"]
)
def test_an_invalid_interval_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        intervals(["0-3", text, "7"])
    assert np.array_equal(intervals(["", ""]), np.empty((0, 2)))

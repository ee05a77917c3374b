"""Written results can be read by readers of Batsim's files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np

from pilotfish.formats.results_write import JOB_COLUMNS, jobs_csv, write_results
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay


def test_the_files(tmp_path: Path) -> None:
    times = {"submit_time": [0.1, 0.1, 1.0, 2.0], "run_time": [5.0, 9.0, 1.0, 1.0], "walltime": [5.0, 7.5, 1.0, 1.0]}
    columns = {name: np.array(values) for name, values in times.items()}
    jobs = Workload('a "b", c', np.array([3, 1, 2, 9]), **columns, size=np.array([2, 1, 3, 99]))
    done = replay(jobs, 4)
    files = write_results(tmp_path / "deep" / "er", done, summarise(done), {"policy": "easy"})
    assert [path.name for path in files] == ["jobs.csv", "schedule.csv", "summary.json"]
    rows = list(csv.DictReader(files[0].open()))
    assert tuple(rows[0]) == JOB_COLUMNS and [row["job_id"] for row in rows] == ["3", "1", "2", "9"]
    assert rows[0]["workload_name"] == 'a "b", c' and rows[0]["allocated_resources"] == "0-1"
    assert rows[1]["allocated_resources"] == "2" and rows[2]["allocated_resources"] == "0-1 3"
    assert [row["final_state"] for row in rows] == [
        "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY", "REJECTED"
    ]  # fmt: skip
    assert [row["success"] for row in rows] == ["1", "0", "1", "0"]
    assert float(rows[1]["finish_time"]) == 0.1 + 7.5 and rows[3]["starting_time"] == ""
    (row,) = csv.DictReader(files[1].open())
    document = json.loads(files[2].read_text())
    assert row["nb_jobs_killed"] == "1" and row["consumed_joules"] == "" and document["consumed_joules"] is None
    assert float(row["makespan"]) == document["makespan"] == 0.1 + 7.5 and document["policy"] == "easy"
    assert document["nb_jobs_rejected"] == 1 and 0 < document["utilisation"] <= 1


def test_ids_and_profiles_of_the_workload_and_jobs_that_fail() -> None:
    times = {"submit_time": [0.0, 0.0, 1.0], "run_time": [5.0, 9.0, 1.0], "walltime": [np.inf, 7.5, 1.0]}
    columns = {name: np.array(values) for name, values in times.items()}
    more = {
        "name": np.array(["w0!1", "a,b", "x"], object),
        "profile": np.array(["delay", "delay", 'say "5"'], object),
        "returns": np.array([0, 1, 2]),
    }
    done = replay(Workload("w", np.array([1, 2, 3]), **columns, size=np.array([1, 1, 1]), more=more), 4)
    rows = list(csv.DictReader(io.StringIO(jobs_csv(done))))
    assert [row["job_id"] for row in rows] == ["w0!1", "a,b", "x"]
    assert [row["profile"] for row in rows] == ["delay", "delay", 'say "5"']
    assert [row["requested_time"] for row in rows] == ["-1", "7.5", "1.0"]
    assert [row["final_state"] for row in rows] == [
        "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED", "COMPLETED_FAILED"
    ]  # fmt: skip
    assert [row["success"] for row in rows] == ["1", "0", "0"]
    summary = summarise(done)
    assert (summary.nb_jobs_finished, summary.nb_jobs_success, summary.nb_jobs_killed) == (3, 1, 1)

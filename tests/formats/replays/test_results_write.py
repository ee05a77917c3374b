"""Written results can be read by readers of Batsim's files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from pilotfish.formats.replays.results_write import BY_END, JOB_COLUMNS, jobs_csv, write_results
from pilotfish.simulate.model.machine import TAURUS_POWERS
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.interface import Decision, Kill, QueueView, Start
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay import energy
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay


def test_the_files(tmp_path: Path) -> None:
    times = {"submit_time": [0.1, 0.1, 1.0, 2.0], "run_time": [5.0, 9.0, 1.0, 1.0], "walltime": [5.0, 7.5, 1.0, 1.0]}
    columns = {name: np.array(values) for name, values in times.items()}
    jobs = Workload('a "b", c', np.array([3, 1, 2, 9]), **columns, size=np.array([2, 1, 3, 99]))
    replayed = replay(jobs, 4)
    files = write_results(tmp_path / "deep" / "er", replayed, summarise(replayed), {"policy": "easy"})
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
    replayed = replay(Workload("w", np.array([1, 2, 3]), **columns, size=np.array([1, 1, 1]), more=more), 4)
    rows = list(csv.DictReader(io.StringIO(jobs_csv(replayed).decode())))
    assert [row["job_id"] for row in rows] == ["w0!1", "a,b", "x"]
    assert [row["profile"] for row in rows] == ["delay", "delay", 'say "5"']
    assert [row["requested_time"] for row in rows] == ["-1", "7.5", "1.0"]
    assert [row["final_state"] for row in rows] == [
        "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED", "COMPLETED_FAILED"
    ]  # fmt: skip
    assert [row["success"] for row in rows] == ["1", "0", "0"]
    summary = summarise(replayed)
    assert (summary.nb_jobs_finished, summary.nb_jobs_success, summary.nb_jobs_killed) == (3, 1, 1)


def test_the_order_of_ends_and_metadata() -> None:
    times = {"submit_time": [0.0, 0.0, 1.0, 2.0], "run_time": [5.0, 3.0, 1.0, 1.0], "walltime": [9.0] * 4}
    columns = {name: np.array(values) for name, values in times.items()}
    more = {"metadata": np.array(["", 'say "5", twice', "", ""], object)}
    replayed = replay(Workload("w", np.array([1, 2, 3, 4]), **columns, size=np.array([1, 1, 9, 1]), more=more), 2)
    lines = jobs_csv(replayed, order=BY_END).decode().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ["3", "2", "4", "1"]
    assert lines[1].endswith(',"say ""5"", twice"') and lines[0].endswith(',REJECTED,,,,,,,,,""')


def test_jobs_that_a_policy_killed() -> None:
    class Killer:
        def decide(self, now: QueueView) -> list[Decision]:
            return [*(Start(job) for job in now.waiting), *(Kill(it) for it in now.running if it.job.id == 1)]

    columns = {name: np.array(values) for name, values in
               {"submit_time": [0.0, 2.0], "run_time": [5.0, 3.0], "walltime": [9.0, 9.0]}.items()}  # fmt: skip
    replayed = replay(Workload("w", np.array([1, 2]), **columns, size=np.array([1, 1])), 2, Killer())
    rows = list(csv.DictReader(io.StringIO(jobs_csv(replayed).decode())))
    assert [row["final_state"] for row in rows] == ["COMPLETED_KILLED", "COMPLETED_SUCCESSFULLY"]
    summary = summarise(replayed)
    assert (summary.nb_jobs_success, summary.nb_jobs_killed, rows[0]["finish_time"]) == (1, 1, "2.0")


@pytest.mark.parametrize("spec", ["easy+opportunistic:t_idle=10", "easy+proportional:rho=0.5"])
@pytest.mark.parametrize("python", [False, True])
def test_changes_of_machines_add_up(spec: str, python: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    submit, run = np.cumsum(rng.integers(0, 400, 60)).astype(float), rng.integers(1, 300, 60).astype(float)
    jobs = Workload("w", np.arange(60), submit, run, run + 50, rng.integers(1, 9, 60))
    policy = parse(spec)
    replayed = replay(jobs, 8, uncompiled(policy, 0) if python else policy)
    track = energy.track(replayed, TAURUS_POWERS)
    write_results(
        tmp_path,
        replayed,
        summarise(replayed),
        {},
        track,
        energy.jobs_joules(replayed, TAURUS_POWERS),
        states=("0", "3"),
    )
    state, count_of = dict.fromkeys(range(8), "0"), {}
    for row in csv.DictReader((tmp_path / "pstate_changes.csv").open()):
        for part in row["machine_id"].split():
            first, _, last = part.partition("-")
            for machine in range(int(first), int(last or first) + 1):
                state[machine] = row["new_pstate"]
        count_of[float(row["time"])] = [list(state.values()).count(code) for code in ("3", "-1", "-2")]
    shown = dict(zip(track.time[:-1].tolist(), track.counts[:-1, :3].tolist(), strict=True))
    assert len(replayed.changes) > 3 and all(
        shown[time] == numbers for time, numbers in count_of.items() if time in shown
    )
    (row,) = csv.DictReader((tmp_path / "schedule.csv").open())
    assert int(row["nb_machine_switches"]) == (replayed.switched["last"] - replayed.switched["first"] + 1).sum()
    assert float(row["time_computing"]) == ((replayed.finish_time - replayed.start_time) * jobs.size).sum()

"""Result files next to those of the real Batsim: schedule.csv to six decimals, the rows of jobs.csv in its order."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from tests.support.batsim_recordings import recorded

#: Columns that say how long a program took, and its name.
OWN = {"batsim_version", "scheduling_time", "simulation_time"}
#: Batsim measured no energy in these.
CASES = {
    "delay_easy_1": "easy",
    "delay_conservative_1": "conservative",
    "energy_cpu": "easy",
    "kinds": "strict",
    "ties": "strict",
}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", params=CASES)
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    case, out = recorded(request.param), tmp_path_factory.mktemp("run")
    argv = ["simulate", str(case / "workload.json"), "-c", str(case / "platform.xml"), "-p", CASES[request.param]]
    assert main([*argv, "--out", str(out), "--as-batsim"]) == 0
    return case, out


def test_the_schedule(folders: tuple[Path, Path]) -> None:
    (batsim_row,), (our_row,) = (rows(folder / "schedule.csv") for folder in folders)
    assert list(batsim_row) == list(our_row)
    energy = {"consumed_joules"} if float(batsim_row["consumed_joules"]) == 0 else set()
    wrong = {
        name: (text, our_row[name])
        for name, text in batsim_row.items()
        if name not in OWN | energy and float(our_row[name]) != pytest.approx(float(text), rel=1e-9, abs=2e-6)
    }
    assert wrong == {}


def test_the_order_of_jobs_and_their_columns(folders: tuple[Path, Path]) -> None:
    batsim_rows, our_rows = (
        [row for row in rows(folder / "jobs.csv") if row["final_state"] != "REJECTED"] for folder in folders
    )
    assert list(batsim_rows[0]) == list(our_rows[0]) and {row["metadata"] for row in our_rows} == {""}
    ends = [float(row["finish_time"]) for row in batsim_rows]
    assert [float(row["finish_time"]) for row in our_rows] == pytest.approx(ends, abs=1e-5)
    alone = [ends.count(end) == 1 for end in ends]
    assert [row["job_id"] for row, one in zip(our_rows, alone, strict=True) if one] == [
        row["job_id"] for row, one in zip(batsim_rows, alone, strict=True) if one
    ]


def nearest(times: Iterable[float], time: float) -> float:
    """Return the time that Batsim wrote with six digits."""
    closest = min(times, key=lambda it: abs(it - time))
    assert closest == pytest.approx(time, rel=1e-5)
    return closest


def test_the_machine(folders: tuple[Path, Path]) -> None:
    case, out = folders
    if not (case / "machine_states.csv").exists():
        return
    batsim_rows, our_rows = (rows(folder / "machine_states.csv") for folder in folders)
    states = {float(row.pop("time")): tuple(row.values()) for row in our_rows}
    last = {
        float(row.pop("time")): tuple(row.values()) for row in batsim_rows
    }  # of the rows of one time the last counts
    assert {time: states[nearest(states, time)] for time in last} == last
    energy = {float(row["time"]): float(row["energy"]) for row in rows(out / "consumed_energy.csv")}
    for row in rows(case / "consumed_energy.csv"):
        assert energy[nearest(energy, float(row["time"]))] == pytest.approx(float(row["energy"]), rel=1e-9)
    first, *_ = (out / "pstate_changes.csv").read_text().splitlines()[1:]
    assert first == "0.0,0-15,0"

"""Recorded cases of a real Batsim 4.2.1: the same times, allocations, states and energies, job by job.

A case is a folder with `workload.json`, `platform.xml`, `jobs.csv` as Batsim wrote it, and `about.txt`, whose first line
names the policy. The recordings are in the folder that BATSIM_RECORDINGS names, or in a folder data/batsim-real next to
the checkout. Batsim prints six decimals. Its own deviations from its policies are in the cases of `DIFFERENT`.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from tests.support.batsim_recordings import recorded, recordings

#: Cases that no policy here reproduces, as prefixes.
DIFFERENT = ("batsched", "example_easy", "example_conservative")
#: Cases in which jobs share links, as prefixes.
CONTENDED = ("overlap", "example_solver")
TIMES = ("starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time")
SAME = ("submission_time", "requested_number_of_resources", "success", "final_state", "allocated_resources")


FOLDER = recordings()
CASES = sorted(path.parent for path in FOLDER.glob("*/about.txt")) if FOLDER else []
if not CASES:
    reason = f"NOT TESTED: no recordings of a real Batsim in {FOLDER or '*/data/batsim-real'}; BATSIM_RECORDINGS=FOLDER"
    pytest.skip(reason, allow_module_level=True)


def rows(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a jobs.csv by job."""
    with path.open(newline="") as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.name.startswith(DIFFERENT)], ids=lambda it: it.name
)
def test_the_same_as_batsim(case: Path, tmp_path: Path) -> None:
    about = dict(line.split(": ", 1) for line in (case / "about.txt").read_text().splitlines() if ": " in line)
    contended = case.name.startswith(CONTENDED)
    arguments = [
        "simulate", str(case / "workload.json"), "-c", str(case / "platform.xml"), "-p", about["pilotfish policy"],
        "--resource", "node", "--out", str(tmp_path / "run"), "--network-solver", "simgrid" if contended else "max-min",
    ]  # fmt: skip
    assert main(arguments) == 0
    batsim_rows, our_rows = rows(case / "jobs.csv"), rows(tmp_path / "run" / "jobs.csv")
    assert our_rows.keys() == batsim_rows.keys()
    near = 1e-4 if contended else 1e-6
    for job, one in batsim_rows.items():
        our_row, where = our_rows[job], f"{case.name}: job {job}, profile {one['profile']}"
        for column in (*TIMES, *SAME, "consumed_energy"):
            if column not in SAME and one[column] not in ("", "-1.000000"):
                assert float(our_row[column]) == pytest.approx(float(one[column]), rel=near, abs=2e-6), (where, column)
            elif column in SAME and "." in one[column]:
                assert float(our_row[column]) == float(one[column]), (where, column)
            elif column in SAME:
                assert our_row[column] == one[column], (where, column)


def test_max_min_gives_other_times_where_jobs_share_links(tmp_path: Path) -> None:
    """A and B have 50 MB/s each, where Batsim gives A 60."""
    case = recorded("example_solver")
    arguments = ["simulate", str(case / "workload.json"), "-c", str(case / "platform.xml"), "-p", "strict"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    batsim_rows, our_rows = rows(case / "jobs.csv"), rows(tmp_path / "jobs.csv")
    assert float(our_rows["A"]["finish_time"]) / float(batsim_rows["A"]["finish_time"]) == pytest.approx(60 / 50)


def test_the_natural_order_of_ids_is_another_one(tmp_path: Path) -> None:
    case = recorded("ties")
    arguments = ["simulate", str(case / "workload.json"), "-c", str(case / "platform.xml"), "-p", "strict"]
    for ties in ("text", "natural"):
        assert main([*arguments, "--ties", ties, "--out", str(tmp_path / ties)]) == 0
    batsim_times, text, natural = (
        {job: row["starting_time"] for job, row in rows(folder / "jobs.csv").items()}
        for folder in (case, tmp_path / "text", tmp_path / "natural")
    )
    assert {job: float(time) for job, time in text.items()} == {job: float(time) for job, time in batsim_times.items()}
    assert natural != text


@pytest.mark.real
def test_a_component_is_shown_ties_as_in_batsim(tmp_path: Path) -> None:
    case, fcfs = recorded("ties"), Path(__file__).parents[2] / "adapters" / "batsim" / "fcfs_component.py"
    endpoint = f"ipc://{tmp_path}/edc"
    command = f"{sys.executable} {fcfs} {endpoint}"
    arguments = ["batsim", str(case / "workload.json"), "-c", str(case / "platform.xml"), "--resource", "node"]
    assert main([*arguments, "--endpoint", endpoint, "--command", command, "--out", str(tmp_path / "run")]) == 0
    batsim_rows, our_rows = (rows(folder / "jobs.csv") for folder in (case, tmp_path / "run"))
    for job, one in batsim_rows.items():
        assert float(our_rows[job]["starting_time"]) == float(one["starting_time"])
        assert our_rows[job]["allocated_resources"] == one["allocated_resources"]

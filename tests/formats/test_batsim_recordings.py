"""Recorded cases of a real Batsim 4.2.1: the same times, allocations, states and energies, job by job.

A case is a folder with `workload.json`, `platform.xml`, `jobs.csv` as Batsim wrote it, and `about.txt`, whose first line
names the policy. The recordings are in the folder that BATSIM_RECORDINGS names, or in a folder data/batsim-real next to
the checkout. Batsim prints six decimals. It submits jobs of one instant in the order of their ids as text: `ties` is
about that. Batsim's own deviations from its policies are in the cases of `DIFFERENT`.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

ROOT = Path(__file__).parents[2]
#: Cases that no policy here reproduces, as prefixes.
DIFFERENT = ("ties", "batsched", "example_easy", "example_conservative")
#: Cases in which jobs share links, as prefixes.
CONTENDED = ("overlap", "example_solver")
TIMES = ("starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time")
SAME = ("submission_time", "requested_number_of_resources", "success", "final_state", "allocated_resources")


def recordings() -> Path | None:
    """Return the folder of the recordings, if there is one."""
    if named := os.environ.get("BATSIM_RECORDINGS"):
        return Path(named)
    return next((path for path in sorted(ROOT.parent.glob("*/data/batsim-real")) if path.is_dir()), None)


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
    wanted, found = rows(case / "jobs.csv"), rows(tmp_path / "run" / "jobs.csv")
    assert found.keys() == wanted.keys()
    near = 1e-4 if contended else 1e-6
    for job, one in wanted.items():
        other, where = found[job], f"{case.name}: job {job}, profile {one['profile']}"
        for column in (*TIMES, *SAME, "consumed_energy"):
            if column not in SAME and one[column] not in ("", "-1.000000"):
                assert float(other[column]) == pytest.approx(float(one[column]), rel=near, abs=2e-6), (where, column)
            elif column in SAME and "." in one[column]:
                assert float(other[column]) == float(one[column]), (where, column)
            elif column in SAME:
                assert other[column] == one[column], (where, column)


@pytest.mark.skipif("example_solver" not in {case.name for case in CASES}, reason="NOT TESTED: no example_solver")
def test_max_min_gives_other_times_where_jobs_share_links(tmp_path: Path) -> None:
    """A and B have 50 MB/s each, where Batsim gives A 60."""
    assert FOLDER is not None
    case = FOLDER / "example_solver"
    arguments = ["simulate", str(case / "workload.json"), "-c", str(case / "platform.xml"), "-p", "strict"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    wanted, found = rows(case / "jobs.csv"), rows(tmp_path / "jobs.csv")
    assert float(found["A"]["finish_time"]) / float(wanted["A"]["finish_time"]) == pytest.approx(60 / 50)

"""Write the results of a replay as Batsim does, for its tools and evalys.

They are in jobs.csv, schedule.csv and summary.json; with known power also in machine_states.csv and
consumed_energy.csv.

Rule: times keep their full precision. An unknown value is an empty field in CSV and null in JSON, never 0. Each file is
written completely or not at all.
Source: Batsim's documentation, "Output files"; procset's interval sets ("0-3 7").
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..simulate.replay.energy import STATES, Track
from ..simulate.replay.metrics import Summary, failed
from ..simulate.replay.replay import Replayed
from ..trust import make_folders
from .atomic_write import write_together

Array = npt.NDArray[Any]
SUCCESS, FAILED = "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"
KILLED, REJECTED = "COMPLETED_WALLTIME_REACHED", "REJECTED"
JOB_COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time",
    "success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
    "stretch", "allocated_resources", "consumed_energy",
)  # fmt: skip


def write_results(
    folder: Path, replayed: Replayed, summary: Summary, about: Mapping[str, Any],
    found: Track | None = None, joules: Array | None = None,
) -> list[Path]:  # fmt: skip
    """Write the result files into a folder and return their paths. O(jobs + pieces).

    Args:
        folder: created if missing.
        replayed: the replay.
        summary: its metrics.
        about: further keys of summary.json.
        found: the machine's states over time, and its power where `joules` is known; None = unknown.
        joules: energy of each job, joules [jobs]; None = unknown.

    Raises:
        OSError: a file cannot be written; the old files are unchanged.
    """
    make_folders(folder)
    numbers = asdict(summary)
    texts = {
        "jobs.csv": jobs_csv(replayed, joules),
        "schedule.csv": _row_csv(numbers),
        "summary.json": json.dumps({**about, **numbers}, indent=1) + "\n",
    }
    if found is not None:
        texts["machine_states.csv"] = machine_states_csv(found)
    if found is not None and joules is not None:
        texts["consumed_energy.csv"] = energy_csv(found)
    paths = {folder / name: text for name, text in texts.items()}
    write_together(paths)
    for name in ("machine_states.csv", "consumed_energy.csv"):
        if name not in texts:
            (folder / name).unlink(missing_ok=True)
    return [*paths]


def machine_states_csv(found: Track) -> str:
    """Return the number of resources in each state from each change on."""
    names = ("time", *(f"nb_{state}" for state in STATES))
    return _table(names, found.time, *found.counts.T)


def energy_csv(found: Track) -> str:
    """Return the energy up to each change, the least power from there on, and the power since the row before."""
    names = ("time", "energy", "event_type", "wattmin", "epower")
    rows = len(found.time)
    before = np.array(["NA", *found.watts[:-1].tolist()], object)[:rows]
    return _table(names, found.time, found.joules, np.full(rows, "p"), found.least_watts, before)


def _table(names: Iterable[str], *columns: Array) -> str:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return ",".join(names) + "\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows)


def jobs_csv(replayed: Replayed, joules: Array | None = None) -> str:
    """Return one line a job, in the order of submission; no walltime is written as -1. O(jobs + pieces).

    Args:
        replayed: the replay.
        joules: energy of each job, joules [jobs]; None = unknown.
    """
    jobs, rejected = replayed.workload, replayed.rejected.tolist()
    ended, lost = replayed.overran.tolist(), failed(replayed).tolist()
    places, names = allocations(replayed), _fields(jobs.more.get("workload", np.full(len(jobs), jobs.name, object)))
    lines = [",".join(JOB_COLUMNS)]
    ids = _fields(jobs.more.get("name", jobs.id))
    profiles = _fields(jobs.more["profile"]) if "profile" in jobs.more else ids
    walls = ["-1" if wall == math.inf else repr(wall) for wall in jobs.walltime.tolist()]
    energies = [""] * len(jobs) if joules is None else list(map(repr, joules.tolist()))
    columns = (replayed.submit_time, jobs.size, replayed.start_time, replayed.finish_time)
    for i, (submit, size, start, finish) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        asked = f"{ids[i]},{names[i]},{profiles[i]},{submit!r},{size},{walls[i]}"
        if rejected[i]:
            lines.append(f"{asked},0,{REJECTED},,,,,,,,")
            continue
        run, wait, turnaround = finish - start, start - submit, finish - submit
        stretch = f"{turnaround / run!r}" if run > 0 else ""
        state = KILLED if ended[i] else FAILED if lost[i] else SUCCESS
        lines.append(
            f"{asked},{int(state == SUCCESS)},{state},{start!r},{run!r},{finish!r},"
            f"{wait!r},{turnaround!r},{stretch},{places[i]},{energies[i]}"
        )
    return "\n".join(lines) + "\n"


def allocations(replayed: Replayed) -> list[str]:
    """Return the resources of each job as an interval set ("0-3 7"), "" for none. O(pieces)."""
    first, last = replayed.pieces["first"].tolist(), replayed.pieces["last"].tolist()
    texts = [f"{a}-{b}" if a != b else str(a) for a, b in zip(first, last, strict=True)]
    starts, counts = replayed.piece0.tolist(), replayed.piece_count.tolist()
    return [
        texts[start] if count == 1 else " ".join(texts[start : start + count])
        for start, count in zip(starts, counts, strict=True)
    ]


def _row_csv(numbers: Mapping[str, Any]) -> str:
    return _csv_line(numbers) + "\n" + _csv_line("" if value is None else value for value in numbers.values()) + "\n"


def _fields(column: Array) -> list[str]:
    """Return a CSV field for each row."""
    if column.dtype != object:
        return [str(value) for value in column.tolist()]
    written = {text: _csv_line([text]) for text in set(column.tolist())}
    return [written[text] for text in column.tolist()]


def _csv_line(values: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()

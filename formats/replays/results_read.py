"""Read the results of a run that `results_write` or Batsim wrote.

They are in jobs.csv, machine_states.csv, consumed_energy.csv, summary.json and schedule.csv.

Rule: only jobs.csv is required; every other file present is read and must be valid. Columns are found by name,
including Batsim's older names.
Source: Batsim's documentation, "Output files"; output of Batsim 1.4 to 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.results.recorded_run import (
    DONE,
    KILLED,
    REJECTED,
    STATES,
    WALLTIME,
    Energy,
    Jobs,
    RecordedRun,
    StateCounts,
)
from ..documents.csv_columns import (
    CsvColumn,
    amounts,
    at_row,
    interval_counts,
    intervals,
    numbers,
    numbers_or_nothing,
    read_columns,
    texts,
)
from ..documents.files import decode, parse_json, read_bytes
from ..documents.quantities import is_number

Array = npt.NDArray[Any]
JOBS = "jobs.csv"
_SECONDS = "a number of seconds"
_SETS = ("allocated_resources", "allocated_processors")
_ALLOCATION = "resources such as 0-3 7"


def read_run(path: Path) -> RecordedRun:
    """Return the run whose results are in a folder, or next to a file NAME_jobs.csv. O(bytes).

    Raises:
        ConfigError: no results there, or a malformed file.
        OSError: a file cannot be read.
    """
    file = _jobs_file(path)
    workload, jobs = _jobs(file)
    about, row = _summary(_sibling(file, "summary.json")), _schedule(_sibling(file, "schedule.csv"))
    states, energy = _states(_sibling(file, "machine_states.csv")), _energy(_sibling(file, "consumed_energy.csv"))
    size = about["machine"] or (row["nb_computing_machines"] and int(row["nb_computing_machines"]))
    if size is None and states is not None and len(states.counts):
        size = int(states.counts[0].sum())
    used = int(jobs.pieces[:, 1].max()) + 1 if len(jobs.pieces) else 1
    if size is not None and used > size:
        job = jobs.id[jobs.owner[int(jobs.pieces[:, 1].argmax())]]
        problem = f"found resource {used - 1} on a machine of {size}"
        raise ConfigError(str(file), f"job {job}", problem, f"resources 0 to {size - 1}")
    joules = about["consumed_joules"] if about["consumed_joules"] is not None else row["consumed_joules"]
    return RecordedRun(
        workload, about["policy"], size or used, size is not None, jobs, states, energy, joules, about["epoch"]
    )


def _jobs_file(path: Path) -> Path:
    if not path.is_dir():
        if path.name.endswith(JOBS):
            return path
        problem = "not a folder" if path.exists() else "no such folder"
        raise ConfigError(str(path), "", problem, f"a folder with {JOBS}")
    files = [path / JOBS] if (path / JOBS).exists() else sorted(path.glob(f"*_{JOBS}"))
    if len(files) != 1:
        problem = ", ".join(file.name for file in files[:3]) or f"no {JOBS} in it"
        raise ConfigError(str(path), "", problem, "a folder written by `simulate --out` or by Batsim")
    return files[0]


def _sibling(file: Path, name: str) -> Path | None:
    """Return the path of another file of the run, which shares the prefix of jobs.csv; None if it does not exist."""
    path = file.with_name(file.name.removesuffix(JOBS) + name)
    return path if path.exists() else None


def _jobs(path: Path) -> tuple[str, Jobs]:
    """Return the workload's name and its jobs."""
    columns = read_columns(
        path,
        {
            "id": CsvColumn(("job_id",), texts, "text"),
            "workload": CsvColumn(("workload_name",), texts, "text", required=False),
            "submit": CsvColumn(("submission_time",), numbers, _SECONDS),
            "start": CsvColumn(("starting_time",), numbers_or_nothing, f"{_SECONDS}, or nothing"),
            "finish": CsvColumn(("finish_time",), numbers_or_nothing, f"{_SECONDS}, or nothing"),
            "size": CsvColumn(
                ("requested_number_of_resources", "requested_number_of_processors"), amounts, "a number of resources"
            ),
            "success": CsvColumn(("success",), amounts, "0 or 1"),
            "state": CsvColumn(("final_state",), texts, "a state of Batsim's", required=False),
            "counts": CsvColumn(_SETS, interval_counts, _ALLOCATION),
            "pieces": CsvColumn(_SETS, intervals, _ALLOCATION),
        },
    )
    start, finish, counts = columns["start"], columns["finish"], columns["counts"]
    began = ~np.isnan(start)
    _refuse(path, began & ~(finish >= start), "finish_time", "before starting_time", _SECONDS)
    _refuse(path, began & (counts == 0), _SETS[0], "empty, but the job ran", _ALLOCATION)
    ending = np.where(columns["success"] > 0, DONE, KILLED).astype(np.int8)
    if "state" in columns:
        ending[columns["state"] == "COMPLETED_WALLTIME_REACHED"] = WALLTIME
    ending[~began] = REJECTED
    owner = np.repeat(np.arange(len(counts)), counts)
    has_run = began[owner]
    names = columns.get("workload", np.empty(0, object))
    jobs = Jobs(
        *(columns["id"], columns["submit"], np.where(began, start, np.nan), np.where(began, finish, np.nan)),
        *(columns["size"], ending, columns["pieces"][has_run], owner[has_run]),
    )
    return str(names[0]) if len(names) else "", jobs


#: Key of summary.json -> its default, whether a value is valid, and what is allowed.
_SUMMARY: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "policy": ("", lambda value: isinstance(value, str), "text"),
    "machine": (None, lambda value: type(value) is int and value >= 1, "a number of resources, 1 or more"),
    "consumed_joules": (None, lambda value: is_number(value) and 0 <= value < math.inf, "a number, or null"),
    "epoch": (None, lambda value: is_number(value) and 0 <= value < 1e11, "a Unix time in seconds, or null"),
}


def _summary(path: Path | None) -> dict[str, Any]:
    """Return policy, machine size and energy from summary.json."""
    document = parse_json(decode(read_bytes(path), str(path)), str(path)) if path is not None else {}
    if not isinstance(document, dict):
        raise ConfigError(str(path), "", "not a mapping", "the summary of a run")
    about = {key: document.get(key, default) for key, (default, _, _) in _SUMMARY.items()}
    for key, value in about.items():
        default, valid, allowed = _SUMMARY[key]
        if value != default and not valid(value):
            raise ConfigError(str(path), key, f"found {value!r}", allowed)
    return about


def _schedule(path: Path | None) -> dict[str, Any]:
    """Return machine size and energy from schedule.csv."""
    row: dict[str, Any] = {"nb_computing_machines": None, "consumed_joules": None}
    if path is None:
        return row
    columns = {name: CsvColumn((name,), numbers_or_nothing, "a number, or nothing", required=False) for name in row}
    for name, values in read_columns(path, columns).items():
        if len(values) and values[0] > 0:  # Batsim writes 0 joules where it measured none
            row[name] = float(values[0])
    return row


def _states(path: Path | None) -> StateCounts | None:
    counts = {f"nb_{state}": CsvColumn((f"nb_{state}",), amounts, "a number of machines") for state in STATES}
    columns = _over_time(path, counts)
    return columns and StateCounts(columns["time"], np.stack([columns[name] for name in counts], axis=1))


def _energy(path: Path | None) -> Energy | None:
    columns = _over_time(path, {"energy": CsvColumn(("energy",), numbers, "joules")})
    return columns and Energy(columns["time"], columns["energy"])


def _over_time(path: Path | None, extra: dict[str, CsvColumn]) -> Any:
    """Return the columns of a file whose times ascend; None if there is no file."""
    if path is None:
        return None
    columns = read_columns(path, {"time": CsvColumn(("time",), numbers, _SECONDS), **extra})
    _refuse(path, np.diff(columns["time"], prepend=-np.inf) < 0, "time", "before the time of the row above", _SECONDS)
    return columns


def _refuse(path: Path, wrong: Array, key: str, problem: str, allowed: str) -> None:
    """Raise the error of the first wrong row."""
    if wrong.any():
        raise ConfigError(at_row(path, int(wrong.argmax())), key, problem, allowed)

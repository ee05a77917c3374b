"""Standard Workload Format, written: the counterpart of `swf`.

Rule: what is written is read back to the last bit. What a workload knows beyond its own columns is kept where it still
says the same; what nobody knows is -1.
Source: Parallel Workloads Archive, "The Standard Workload Format" (version 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..workload import Workload
from .swf import COLUMNS

Array = npt.NDArray[Any]
#: Up to here whole numbers are exact as floats.
_EXACT = 2**53


def dump_swf(workload: Workload, notes: Iterable[str] = ()) -> str:
    """The text of an SWF file. O(jobs); a second for a million.

    Args:
        notes: lines of the header, each `; Note: ...`.

    Raises:
        ConfigError: a job that the format cannot say.
    """
    columns = _columns(workload)
    _check(workload, columns)
    header = ["Version: 2.2", f"MaxJobs: {len(workload)}", f"MaxRecords: {len(workload)}"]
    if workload.machine is not None:
        header.append(f"MaxProcs: {workload.machine}")
    header += [f"Note: {' '.join(note.split())}" for note in notes]
    return "".join(f"; {line}\n" for line in header) + (_rows(columns) if len(workload) else "")


def _rows(columns: dict[str, Array]) -> str:
    """A line a job; what is the same in all lines is made text once."""
    varying = [name for name in COLUMNS if name == "job" or _varies(columns[name])]
    row = " ".join("%s" if name in varying else str(_words(columns[name][:1])[0]) for name in COLUMNS) + "\n"
    return "".join(map(row.__mod__, zip(*(_words(columns[name]) for name in varying), strict=True)))


def _columns(workload: Workload) -> dict[str, Array]:
    """All columns of the format; sizes and walltimes come first, whatever else the workload says."""
    count, more = len(workload), workload.more
    unknown = np.full(count, -1)
    columns = {name: more.get(name, unknown) for name in COLUMNS}
    run_time, size, walltime = workload.run_time, workload.size, workload.walltime
    allocated = more.get("allocated", size)
    requested, wanted = more.get("requested", size), more.get("requested_time", walltime)
    return columns | {
        "job": workload.id,
        "submit_time": workload.submit_time,
        "run_time": run_time,
        "allocated": allocated,
        "requested": np.where(np.where(requested > 0, requested, allocated) == size, requested, size),
        "requested_time": np.where(np.where(wanted > 0, wanted, run_time) == walltime, wanted, walltime),
        "status": more.get("status", np.ones(count, np.int64)),
    }


def _check(workload: Workload, columns: dict[str, Array]) -> None:
    """Raise ConfigError for the first job that could not be read back."""
    run_time, walltime = workload.run_time, workload.walltime
    rules = [(name, column, np.isfinite(column), "a finite number") for name, column in columns.items()]
    rules += [
        ("job", workload.id, np.abs(workload.id) <= _EXACT, "a whole number, at most 2^53"),
        ("requested", workload.size, (workload.size > 0) & (workload.size <= _EXACT), "1 to 2^53"),
        ("submit_time", workload.submit_time, workload.submit_time >= 0, "seconds, 0 or more"),
        ("run_time", run_time, run_time >= 0, "seconds, 0 or more"),
        ("requested_time", walltime, (walltime > 0) | (walltime == run_time), "seconds above 0"),
    ]
    for name, column, right, allowed in rules:
        for row in np.flatnonzero(~right)[:1]:
            where = f"job {workload.id[row]}: {name}"
            raise ConfigError(workload.name, where, f"{column[row]} cannot be written as SWF", allowed)


def _varies(column: Array) -> bool:
    return bool((column != column[:1]).any() or (np.signbit(column) != np.signbit(column[:1])).any())


def _words(column: Array) -> list[Any]:
    """What is printed of each number: whole ones without a point, others as briefly as is still exact."""
    whole = (np.floor(column) == column) & (np.abs(column) <= _EXACT) & ~((column == 0) & np.signbit(column))
    if whole.all():
        return list(column.astype(np.int64).tolist())
    return [int(value) if plain else repr(value) for value, plain in zip(column.tolist(), whole.tolist(), strict=True)]

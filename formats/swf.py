"""Standard Workload Format: one job a line, 18 numbers, `;` comments, a header of `; Key: value` lines.

Rule: read exactly and fast; a line that is no job is an error with its number, or counted where that is wanted. A job
whose run time or size the trace does not know cannot be replayed: it is left out, and counted.
Source: Parallel Workloads Archive, "The Standard Workload Format" (version 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels import load
from ..kernels.batch import text as layout
from ..workload import LONGEST, Workload, in_order
from .reading import unpacked

Array = npt.NDArray[Any]
#: Columns in the file's order.
COLUMNS = (
    "job", "submit_time", "wait_time", "run_time", "allocated", "cpu_time", "used_memory", "requested",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding", "think_time",
)  # fmt: skip
ALLOWED = f"{layout.FIELDS} numbers: {', '.join(COLUMNS)}"
_MACHINE = re.compile(rb"^\s*;\s*Max(Procs|Nodes)\s*:\s*(\d+)", re.MULTILINE)
#: Most bytes of a trace that is packed.
LARGEST = 16 * 2**30
#: Numbers of jobs and of processors that are exact.
_MOST = 2.0**53


def read_swf(path: str | Path, *, skip_invalid: bool = False) -> Workload:
    """The jobs of an SWF file (or .swf.gz), in the order of submission. O(bytes).

    Size is the requested processors (field 8), or the allocated ones where that is not above 0; the walltime the
    requested time (field 9), or the run time where that is not above 0.

    Args:
        skip_invalid: leave out, and count, what is not a job.

    Raises:
        ConfigError: a line that is not a job, with its number; not an SWF file; no jobs.
        OSError: the file cannot be read.
    """
    data = unpacked(Path(path).read_bytes(), str(path), LARGEST)
    columns, invalid = _parse(str(path), data, skip_invalid=skip_invalid)
    found = _workload(Path(path), columns)
    left_out = {"lines that are no jobs": invalid} if invalid else {}
    machine = {key: int(value) for key, value in reversed(_MACHINE.findall(_header(data)))}
    procs = machine.get(b"Procs") or machine.get(b"Nodes") or None
    workload = Workload(
        found.name, found.id, found.submit_time, found.run_time, found.walltime, found.size,
        more=found.more, machine=procs, left_out=left_out,
    )  # fmt: skip
    return in_order(_known(workload))


def _header(data: bytes) -> bytes:
    """The comments before the first job."""
    end = re.search(rb"^\s*[^;\s]", data, re.MULTILINE)
    return data[: end.start()] if end else data


def _parse(name: str, data: bytes, *, skip_invalid: bool) -> tuple[dict[str, Array], int]:
    """The columns, and how many lines were skipped."""
    text = np.frombuffer(data + b"\n", np.uint8)
    rows = int(np.count_nonzero(text == ord("\n")))
    block = layout.Text(
        {"text": text, "powers": 10.0 ** np.arange(layout.DECIMALS + 1)},
        {"values": (rows, layout.FIELDS), "lines": (rows,), "unread": (rows,), "count": (layout.CELLS,)},
    )
    found, count = load("batch.swf")(block.address), block.count
    values, invalid = block.values[:found], int(count[layout.INVALID])
    bad = [(int(count[layout.FIRST_INVALID]), int(count[layout.FOUND]))] if invalid else []
    unread, keep = block.unread[:found], np.ones(found, bool)
    for row in np.flatnonzero(unread >= 0).tolist():
        begin = int(unread[row])
        end = data.find(b"\n", begin)
        numbers = _numbers(data[begin : end if end >= 0 else None].split())
        if numbers is None:
            keep[row] = False
            bad.append((int(block.lines[row]), -1))
        else:
            values[row] = numbers
    if bad and not skip_invalid:
        line, fields = min(bad)
        what = f"{fields} numbers" if fields >= 0 else "something that is not a number"
        raise ConfigError(f"{name}:{line}", "", f"found {what}", f"{ALLOWED}; or --skip-invalid")
    columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(COLUMNS)}
    for key, column, odd, allowed in _odd(columns):
        if not odd.any():
            continue
        if not skip_invalid:
            row = int(odd.argmax())
            where = f"{name}:{int(block.lines[row])}"
            raise ConfigError(where, key, f"found {column[row]:g}", f"{allowed}; or --skip-invalid")
        keep &= ~odd
    if not keep.all():
        columns = {name: column[keep] for name, column in columns.items()}
    return columns, invalid + int((~keep).sum())


def _odd(columns: Mapping[str, Array]) -> Iterator[tuple[str, Array, Array, str]]:
    """Of what cannot be of a job: its name, its column, in which rows that is, and what may be. O(rows)."""
    for name in ("submit_time", "run_time", "requested_time"):
        column = columns[name]
        yield name, column, np.abs(column) > LONGEST, f"seconds, at most {LONGEST:g}"
    for name, column in (("job", columns["job"]), ("requested or allocated processors", _sizes(columns))):
        yield name, column, (np.floor(column) != column) | (np.abs(column) > _MOST), "a whole number"


def _sizes(columns: Mapping[str, Array]) -> Array:
    return np.where(columns["requested"] > 0, columns["requested"], columns["allocated"])


def _numbers(words: Iterable[bytes]) -> list[float] | None:
    try:
        found = [float(word) for word in words]
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _workload(path: Path, columns: Mapping[str, Array]) -> Workload:
    size, run, wanted = _sizes(columns), columns["run_time"], columns["requested_time"]
    more = {name: columns[name] for name in COLUMNS if name not in ("job", "submit_time", "run_time")}
    name = path.name.removesuffix(".gz").removesuffix(".swf")
    ids, sizes = columns["job"].astype(np.int64), size.astype(np.int64)
    return Workload(name, ids, columns["submit_time"], run, np.where(wanted > 0, wanted, run), sizes, more=more)


def _known(workload: Workload) -> Workload:
    """Without the jobs of which the trace does not know enough."""
    workload = workload.take(workload.submit_time >= 0, "jobs without a submit time")
    workload = workload.take(workload.run_time >= 0, "jobs without a run time")
    return workload.take(workload.size > 0, "jobs without processors")

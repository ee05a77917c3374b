"""Standard Workload Format: one job a line, 18 numbers, `;` comments, a header of `; Key: value` lines.

Rule: what is written reads back to the last bit. A line that is not a job is an error with its number, or is skipped
and counted on request. Jobs of unknown run time or size cannot be replayed: they are left out and counted. Unknown
values are -1.
Source: Feitelson, Parallel Workloads Archive, "The Standard Workload Format" (version 2.2).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.kernels import load
from ...simulate.kernels.swf import tables as layout
from ...simulate.model.workload import LONGEST, Workload, in_order
from ..documents.unpack import unpacked

Array = npt.NDArray[Any]
#: Columns in the file's order.
COLUMNS = (
    "job", "submit_time", "wait_time", "run_time", "allocated", "cpu_time", "used_memory", "requested",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding", "think_time",
)  # fmt: skip
ALLOWED = f"{layout.FIELDS} numbers: {', '.join(COLUMNS)}"
_EPOCH = re.compile(rb"^\s*;\s*UnixStartTime\s*:\s*([1-9]\d{0,10})\b", re.MULTILINE)
_MACHINE = re.compile(rb"^\s*;\s*Max(Procs|Nodes)\s*:\s*(\d+)", re.MULTILINE)
#: Largest trace after unpacking, bytes.
LARGEST = 16 * 2**30
#: Up to here whole numbers are exact as floats.
_EXACT = 2**53


def read_swf(path: str | Path, *, skip_invalid: bool = False, **_: Any) -> Workload:
    """Return the jobs of an SWF file (or .swf.gz) in the order of submission. O(bytes).

    The size is the requested processors (field 8), or the allocated ones if that is not above 0; the walltime is the
    requested time (field 9), or the run time if that is not above 0.

    Args:
        path: the file.
        skip_invalid: leave out, and count, lines that are not jobs.

    Raises:
        ConfigError: a line that is not a job, with its number; not an SWF file; no jobs.
        OSError: the file cannot be read.
    """
    data = unpacked(_content(path), str(path), LARGEST)
    columns, invalid = _parse(str(path), data, skip_invalid=skip_invalid)
    size, run, wanted = _sizes(columns), columns["run_time"], columns["requested_time"]
    machine = {key: int(value) for key, value in reversed(_MACHINE.findall(_header(data)))}
    epoch = _EPOCH.search(_header(data))
    workload = Workload(
        Path(path).name.removesuffix(".gz").removesuffix(".swf"), columns["job"].astype(np.int64),
        columns["submit_time"], run, np.where(wanted > 0, wanted, run), size.astype(np.int64),
        more={name: columns[name] for name in COLUMNS if name not in ("job", "submit_time", "run_time")},
        machine=machine.get(b"Procs") or machine.get(b"Nodes") or None,
        left_out={"lines that are not jobs": invalid} if invalid else {},
        epoch=float(epoch[1]) if epoch else None,
    )  # fmt: skip
    workload = workload.take(workload.submit_time >= 0, "jobs without a submit time")
    workload = workload.take(workload.run_time >= 0, "jobs without a run time")
    return in_order(workload.take(workload.size > 0, "jobs without processors"))


def _content(path: str | Path) -> bytes:
    """Return the bytes of a file or pipe. Raises OSError; ConfigError: it is a device, or larger than LARGEST."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            raise ConfigError(str(path), "", "a device, which may have no end", "a file or a pipe")
        if status.st_size > LARGEST:
            raise ConfigError(str(path), "", "too large", f"at most {LARGEST // 2**20} MiB")
        return file.read()


def _header(data: bytes) -> bytes:
    """Return the comments before the first job."""
    end = re.search(rb"^\s*[^;\s]", data, re.MULTILINE)
    return data[: end.start()] if end else data


def _parse(name: str, data: bytes, *, skip_invalid: bool) -> tuple[dict[str, Array], int]:
    """Return the columns and the number of skipped lines."""
    text = np.frombuffer(data + b"\n", np.uint8)
    rows = int(np.count_nonzero(text == ord("\n")))
    block = layout.Text(
        {"text": text, "powers": 10.0 ** np.arange(layout.DECIMALS + 1)},
        {"values": (rows, layout.FIELDS), "lines": (rows,), "unread": (rows,)},
    )
    found, count = load("swf.parser")(block.address), block.count
    values, invalid = block.values[:found], int(count["invalid"])
    bad = [(int(count["first_invalid"]), int(count["found"]))] if invalid else []
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
    for key, column, wrong, allowed in _out_of_range(columns):
        if not wrong.any():
            continue
        if not skip_invalid:
            row = int(wrong.argmax())
            where = f"{name}:{int(block.lines[row])}"
            raise ConfigError(where, key, f"found {column[row]:g}", f"{allowed}; or --skip-invalid")
        keep &= ~wrong
    if not keep.all():
        columns = {name: column[keep] for name, column in columns.items()}
    return columns, invalid + int((~keep).sum())


def _out_of_range(columns: Mapping[str, Array]) -> Iterator[tuple[str, Array, Array, str]]:
    """Yield (name, column, rows out of range, allowed range) of each column that is checked. O(rows)."""
    for name in ("submit_time", "run_time", "requested_time"):
        column = columns[name]
        yield name, column, np.abs(column) > LONGEST, f"seconds, at most {LONGEST:g}"
    for name, column in (("job", columns["job"]), ("requested or allocated processors", _sizes(columns))):
        yield name, column, (np.floor(column) != column) | (np.abs(column) > _EXACT), "a whole number"


def _sizes(columns: Mapping[str, Array]) -> Array:
    return np.where(columns["requested"] > 0, columns["requested"], columns["allocated"])


def _numbers(words: Iterable[bytes]) -> list[float] | None:
    try:
        found = [float(word) for word in words]
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def dump_swf(workload: Workload, notes: Iterable[str] = ()) -> str:
    """Return the text of an SWF file. O(jobs); a second for a million.

    Args:
        workload: the jobs to write.
        notes: header lines, each written as `; Note: ...`.

    Raises:
        ConfigError: a job that SWF cannot express.
    """
    columns = _columns(workload)
    _check(workload, columns)
    header = ["Version: 2.2", f"MaxJobs: {len(workload)}", f"MaxRecords: {len(workload)}"]
    if workload.machine is not None:
        header.append(f"MaxProcs: {workload.machine}")
    header += [f"Note: {' '.join(note.split())}" for note in notes]
    return "".join(f"; {line}\n" for line in header) + (_rows(columns) if len(workload) else "")


def _rows(columns: dict[str, Array]) -> str:
    """Return one line a job; columns with one value only are formatted once."""
    varying = [name for name in COLUMNS if name == "job" or _varies(columns[name])]
    row = " ".join("%s" if name in varying else str(_words(columns[name][:1])[0]) for name in COLUMNS) + "\n"
    return "".join(map(row.__mod__, zip(*(_words(columns[name]) for name in varying), strict=True)))


def _columns(workload: Workload) -> dict[str, Array]:
    """Return all columns of the format; a job's size and walltime take precedence over its other columns."""
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
    """Raise ConfigError for the first job that would not read back."""
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
    """Return how each number is printed: whole numbers without a point, others with the shortest exact digits."""
    whole = (np.floor(column) == column) & (np.abs(column) <= _EXACT) & ~((column == 0) & np.signbit(column))
    if whole.all():
        return list(column.astype(np.int64).tolist())
    return [int(value) if plain else repr(value) for value, plain in zip(column.tolist(), whole.tolist(), strict=True)]

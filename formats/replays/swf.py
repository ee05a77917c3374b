"""Standard Workload Format: one job a line, 18 numbers, `;` comments, a header of `; Key: value` lines.

Rule: what is written reads back to the last bit. A line that is not a job is an error with its number, or is skipped
and counted on request. Jobs of unknown run time or size cannot be replayed: they are left out and counted. So are the
partial executions (status 2, 3 and 4) of a job that also has a summary. A job is submitted when its preceding job
(field 17) has ended, in whatever way, and the think time (field 18) is over; at its own submit time at the earliest.
Unknown values are -1.
Source: Feitelson, Parallel Workloads Archive, "The Standard Workload Format" (version 2.2).
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.errors import ConfigError
from ...simulate.kernels.object_cache import load
from ...simulate.kernels.swf import tables as layout
from ...simulate.model.workload import LONGEST, Dependencies, Workload, in_order
from ..documents.document_errors import found
from ..documents.open_input import open_input
from ..documents.unpack import unpacked

Array = npt.NDArray[Any]
#: Columns in the file's order.
COLUMNS = (
    "job", "submit_time", "wait_time", "run_time", "allocated", "cpu_time", "used_memory", "requested",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding", "think_time",
)  # fmt: skip
_NEWLINE = b"\n"
ALLOWED = f"{layout.FIELDS} numbers: {', '.join(COLUMNS)}"
#: A number in the header; text after it is ignored. Its thousands may be separated, also by blanks that do not break.
_HEADER = re.compile(
    rb"^[ \t]*;\s*(MaxProcs|MaxNodes|UnixStartTime)\s*:[ \t]*(\d(?:\d|[,.'_]|\xc2\xa0|\xe2\x80\xaf)*)", re.MULTILINE
)
_THOUSANDS = re.compile(rb"\d{1,3}(?:(?:[,.'_]|\xc2\xa0|\xe2\x80\xaf)\d{3})+")
#: Number of a partial execution: to be continued, the last one of a job that completed, the last one of another.
_PARTIAL = (2, 3, 4)
#: What is counted of preceding jobs.
_NO_PRECEDING = "dependencies on jobs that are not earlier in the trace"
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
        skip_invalid: leave out, and count, lines without a job.

    Raises:
        ConfigError: a line that is not a job, with its number; not an SWF file; no jobs.
        OSError: the file cannot be read.
    """
    data = unpacked(_content(path), str(path), LARGEST).removeprefix(codecs.BOM_UTF8)
    columns, invalid = _parse(str(path), data, skip_invalid=skip_invalid)
    size, run, requested = _sizes(columns), columns["run_time"], columns["requested_time"]
    header, (dependencies, unmet) = _header(str(path), data), _dependencies(columns)
    left_out = {"lines without a job": invalid, _NO_PRECEDING: unmet}
    workload = Workload(
        Path(path).name.removesuffix(".gz").removesuffix(".swf"), columns["job"].astype(np.int64),
        columns["submit_time"], run, np.where(requested > 0, requested, run), size.astype(np.int64),
        more={name: columns[name] for name in COLUMNS if name not in ("job", "submit_time", "run_time")},
        machine=header.get("MaxProcs") or header.get("MaxNodes") or None,
        left_out={words: number for words, number in left_out.items() if number},
        epoch=float(header["UnixStartTime"]) if 0 < header.get("UnixStartTime", 0) < 1e11 else None,
        dependencies=dependencies,
    )  # fmt: skip
    workload = workload.take(~_partial(columns), "partial executions of jobs that have a summary")
    workload = workload.take(workload.submit_time >= 0, "jobs without a submit time")
    workload = workload.take(workload.run_time >= 0, "jobs without a run time")
    return in_order(workload.take(workload.size > 0, "jobs without processors"))


def _content(path: str | Path) -> bytes:
    """Return the bytes of a file or pipe. Raises OSError; ConfigError: no file or pipe, or larger than LARGEST."""
    with open_input(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise ConfigError(str(path), "", "too large", f"at most {LARGEST // 2**20} MiB")
        return file.read()


def _header(name: str, data: bytes) -> dict[str, int]:
    """Return the numbers in the comments before the first job, the first of each key. Raises ConfigError."""
    end = re.search(rb"^\s*[^;\s]", data, re.MULTILINE)
    numbers: dict[str, int] = {}
    for line in _HEADER.finditer(data, 0, end.start() if end else len(data)):
        text = line[2].rstrip(b",.'_")
        if not text.isdigit() and not _THOUSANDS.fullmatch(text):
            where = f"{name}:{data.count(_NEWLINE, 0, line.start(2)) + 1}"
            raise ConfigError(where, line[1].decode(), found(text.decode()), "a whole number such as 1024 or 1,024")
        digits = re.sub(rb"\D", b"", text)[:19]
        numbers.setdefault(line[1].decode(), int(digits))
    return numbers


def _partial(columns: Mapping[str, Array]) -> Array:
    """Return which lines are partial executions of a job that has a summary, bool [lines]."""
    partial = np.isin(columns["status"], _PARTIAL)
    if partial.any():
        partial &= np.isin(columns["job"], columns["job"][~partial])
    return partial


def _dependencies(columns: Mapping[str, Array]) -> tuple[Dependencies | None, int]:
    """Return on which lines others depend, and the number of dependencies on jobs that are not earlier in the trace.

    O(lines log lines) if a job has a preceding job, else O(lines).
    """
    after = np.flatnonzero(columns["preceding"] > 0)
    if not len(after):
        return None, 0
    rows = np.flatnonzero(~_partial(columns))
    rows = rows[np.argsort(columns["job"][rows], kind="stable")]
    ids, preceding = columns["job"][rows], columns["preceding"][after]
    place = np.minimum(np.searchsorted(ids, preceding), len(ids) - 1)
    before = rows[place]
    is_earlier = (ids[place] == preceding) & (before < after)
    pairs, think = after[is_earlier], columns["think_time"][after[is_earlier]]
    if not len(pairs):
        return None, len(after)
    return Dependencies(before[is_earlier], pairs, np.maximum(think, 0.0), np.ones(len(pairs), bool)), int(
        (~is_earlier).sum()
    )


def _parse(name: str, data: bytes, *, skip_invalid: bool) -> tuple[dict[str, Array], int]:
    """Return the columns and the number of skipped lines."""
    text = np.frombuffer(data + b"\n", np.uint8)
    rows = int(np.count_nonzero(text == ord("\n")))
    block = layout.Text(
        {"text": text, "powers": 10.0 ** np.arange(layout.DECIMALS + 1)},
        {"values": (rows, layout.FIELDS), "lines": (rows,), "unread": (rows,)},
    )
    jobs, count = load("swf.parser")(block.address), block.count
    values, invalid = block.values[:jobs], int(count["invalid"])
    bad = [(int(count["first_invalid"]), int(count["found"]))] if invalid else []
    unread, keep = block.unread[:jobs], np.ones(jobs, bool)
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
        content = f"{fields} numbers" if fields >= 0 else "something that is not a number"
        raise ConfigError(f"{name}:{line}", "", f"found {content}", f"{ALLOWED}; or --skip-invalid")
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
    for name in ("submit_time", "run_time", "requested_time", "think_time"):
        column = columns[name]
        yield name, column, np.abs(column) > LONGEST, f"seconds, at most {LONGEST:g}"
    for name, column in (("job", columns["job"]), ("requested or allocated processors", _sizes(columns))):
        yield name, column, (np.floor(column) != column) | (np.abs(column) > _EXACT), "a whole number"


def _sizes(columns: Mapping[str, Array]) -> Array:
    return np.where(columns["requested"] > 0, columns["requested"], columns["allocated"])


def _numbers(words: Iterable[bytes]) -> list[float] | None:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def dump_swf(workload: Workload, notes: Iterable[str] = (), more_header: Iterable[str] = ()) -> str:
    """Return the text of an SWF file. O(jobs); a second for a million.

    Args:
        workload: the jobs to write.
        notes: header lines, each written as `; Note: ...`.
        more_header: further header lines, such as `UnixStartTime: 1772431200`.

    Raises:
        ConfigError: a job that SWF cannot express.
    """
    columns = _columns(workload)
    _check(workload, columns)
    header = ["Version: 2.2", f"MaxJobs: {len(workload)}", f"MaxRecords: {len(workload)}"]
    if workload.machine is not None:
        header.append(f"MaxProcs: {workload.machine}")
    header += more_header
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
    requested, requested_time = more.get("requested", size), more.get("requested_time", walltime)
    return columns | {
        "job": workload.id,
        "submit_time": workload.submit_time,
        "run_time": run_time,
        "allocated": allocated,
        "requested": np.where(np.where(requested > 0, requested, allocated) == size, requested, size),
        "requested_time": np.where(
            np.where(requested_time > 0, requested_time, run_time) == walltime, requested_time, walltime
        ),
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
    is_whole = (np.floor(column) == column) & (np.abs(column) <= _EXACT) & ~((column == 0) & np.signbit(column))
    if is_whole.all():
        return list(column.astype(np.int64).tolist())
    return [
        int(value) if plain else repr(value) for value, plain in zip(column.tolist(), is_whole.tolist(), strict=True)
    ]

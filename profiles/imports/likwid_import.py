"""A run, or its marked regions, from the output of `likwid-perfctr -O -g MEM`.

Rule: tables are found by their titles, rows by their names; sums are over the hardware threads that were busy. Counters
of a socket are in the column of its first hardware thread, with 0 in the others: their sum is the machine's, including
other programs' traffic.
Source: LIKWID's wiki, likwid-perfctr: CSV output, group MEM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...formats.document_errors import bad, inside
from ...formats.quantities import LARGEST
from ...simulate.model.job import ThreadGroup
from ..measurement import Measurement
from ..probes.likwid import CYCLES, INSTRUCTIONS
from .imported import Imported

NOTE = "from LIKWID: one thread for each busy hardware thread"
_TRAFFIC = "; bandwidth is that of the memory controllers"
_RUNTIME, _CLOCK, _CPI = "Runtime (RDTSC) [s]", "Clock [MHz]", "CPI"
_BANDWIDTH, _MODEL = "Memory bandwidth [MBytes/s]", "CPU name:"
#: A thread was busy from this share of the busiest thread's time on.
_WORKED = 0.01
ALLOWED = "the CSV of likwid-perfctr -O, with a table of metrics that has Runtime (RDTSC) [s]"
Rows = dict[str, list[float | None]]


def parse(text: str, name: str) -> Sequence[Imported]:
    """Return one run for each region, named `name region`, or the whole as `name`. Raises ConfigError."""
    regions: dict[str, Rows] = {}
    model = ""
    for i, cells, table in _lines(text):
        if cells[0] == _MODEL and len(cells) > 1:
            model = cells[1]
        elif table is not None:
            inside(f"line {i}", _add_row, regions.setdefault(table[0], {}), cells[0], cells[table[1] :])
    timed = {region: rows for region, rows in regions.items() if _RUNTIME in rows}
    if not timed:
        raise bad("no table of metrics", ALLOWED)
    return [inside(region, _run, rows, model, f"{name} {region}".strip()) for region, rows in timed.items()]


def _lines(text: str) -> Iterator[tuple[int, list[str], tuple[str, int] | None]]:
    """Yield each line's number and cells, and its table of counts or metrics.

    A table is its region ("" = the whole) and the column of its first number: in a table of counts, counters come
    first.
    """
    table: tuple[str, int] | None = None
    for i, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("TABLE", "STRUCT"):
            titles = cells[1:4]
            region = next((title.removeprefix("Region ") for title in titles if title.startswith("Region ")), "")
            kind = next((title.rpartition(" ")[2] for title in titles if title.startswith("Group ")), "")
            begin = {"Raw": 2, "Metric": 1}.get(kind) if cells[0] == "TABLE" else None
            table = (region, begin) if begin else None
        elif cells[0] not in ("", "Event", "Metric"):
            yield i, cells, table


def _add_row(rows: Rows, name: str, cells: Sequence[str]) -> None:
    """Store a row: a number for each hardware thread, None where it is missing."""
    values = [_number(cell) for cell in cells if cell]
    if not values:
        raise bad(f"no values of {name[:40]!r}", ALLOWED)
    rows[name] = values


def _number(cell: str) -> float | None:
    if cell in ("-", "nil", "nan", "inf", "-nan"):
        return None
    try:
        value = float(cell)
    except ValueError:
        raise bad(f"found {cell[:40]!r}", "a number, or -") from None
    if not math.isfinite(value) or not 0 <= value <= LARGEST * 1e3:
        raise bad(f"found {cell[:40]!r}", "a number of 0 or more")
    return value


def _run(rows: Rows, model: str, name: str) -> Imported:
    wall_s = max((value or 0.0 for value in rows[_RUNTIME]), default=0.0)
    if not wall_s:
        raise bad("its run time is 0", ALLOWED)
    cycles, instructions = _first(rows, CYCLES), _first(rows, INSTRUCTIONS)
    busy = _busy(rows, cycles, wall_s)
    worked = [seconds for seconds in busy if seconds >= _WORKED * max(busy)]
    cpu_s = sum(worked)
    moved = sum(value or 0.0 for value in rows.get(_BANDWIDTH, [])) * 1e6 * wall_s
    mean = cpu_s / len(worked)
    run = Measurement(
        (ThreadGroup(len(worked), mean, min(1.0, mean / wall_s)),), wall_s, wall_s, cpu_s, exit_code=None,
        cpu_model=model, bandwidth=moved / cpu_s if moved else None, method="likwid",
    )  # fmt: skip
    total = sum(value or 0.0 for value in instructions) or None
    note = NOTE + (_TRAFFIC if moved else "; bandwidth unknown")
    return Imported(name, run, note, total, _ipc(rows, total, cycles))


def _busy(rows: Rows, cycles: Sequence[float | None], wall_s: float) -> list[float]:
    """Return the unhalted seconds of each hardware thread (cycles / clock); the whole time if they are unknown."""
    clocks = rows.get(_CLOCK, [])
    if len(clocks) != len(cycles) or not any(clocks) or not any(cycles):
        return [wall_s] * len(rows[_RUNTIME])
    pairs = zip(cycles, clocks, strict=True)
    return [min(wall_s, count / (clock * 1e6)) if count and clock else 0.0 for count, clock in pairs]


def _ipc(rows: Rows, instructions: float | None, cycles: Sequence[float | None]) -> float | None:
    total = sum(value or 0.0 for value in cycles)
    if instructions and total:
        return instructions / total
    known = [1 / value for value in rows.get(_CPI, []) if value]
    return sum(known) / len(known) if known else None


def _first(rows: Mapping[str, list[float | None]], names: Sequence[str]) -> list[float | None]:
    return next((rows[name] for name in names if name in rows), [])

"""A run, or its marked regions, from the output of `likwid-perfctr -O -g MEM`.

Rule: tables are found by their titles, rows by their names; sums are over the hardware threads that were busy. Counters
of a socket are in the column of its first hardware thread, with 0 in the others: their sum is the machine's, including
other programs' traffic.
Source: LIKWID's wiki, likwid-perfctr: CSV output, group MEM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...formats.documents.document_errors import bad, inside
from ...formats.documents.quantities import LARGEST
from ...simulate.model.job import ThreadGroup
from ..measurement import Measurement
from ..probes.likwid import CYCLES, INSTRUCTIONS
from .imported import Imported, Imports

NOTE = "from LIKWID: one thread for each busy hardware thread"
_TRAFFIC = "; bandwidth is that of the memory controllers"
_RUNTIME, _CLOCK, _CPI = "Runtime (RDTSC) [s]", "Clock [MHz]", "CPI"
_BANDWIDTH, _MODEL = "Memory bandwidth [MBytes/s]", "CPU name:"
#: A thread was busy from this share of the busiest thread's time on.
_WORKED = 0.01
ALLOWED = "the CSV of likwid-perfctr -O, with a table of metrics that has Runtime (RDTSC) [s]"
Rows = dict[str, list[float]]


def parse(text: str, name: str) -> Imports:
    """Return one run for each region, named `name region`, or the whole as `name`. Raises ConfigError."""
    regions: dict[str, Rows] = {}
    model = ""
    for i, cells, table in _lines(text):
        if cells[0] == _MODEL and len(cells) > 1:
            model = cells[1]
        elif table is not None:
            values = inside(f"line {i}", _values, cells[0], cells[table[1] :])
            regions.setdefault(table[0], {})[cells[0]] = values
    timed = {region: rows for region, rows in regions.items() if _RUNTIME in rows}
    if not timed:
        raise bad("no table of metrics", ALLOWED)
    return Imports([inside(region, _run, rows, model, f"{name} {region}".strip()) for region, rows in timed.items()])


def _lines(text: str) -> Iterator[tuple[int, list[str], tuple[str, int] | None]]:
    """Yield each line's number and cells, and its table of counts or metrics.

    A table is its region ("" = the whole) and the column of its first number: in a table of counts, counters come
    first.
    """
    table: tuple[str, int] | None = None
    threads = 0
    for i, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("TABLE", "STRUCT"):
            titles = dict(title.partition(" ")[::2] for title in reversed(cells[1:4]))  # the first of a kind counts
            begin = {"Raw": 2, "Metric": 1}.get(titles.get("Group", "").rpartition(" ")[2])
            table = (titles.get("Region", ""), begin) if begin and cells[0] == "TABLE" else None
        elif cells[0] in ("Event", "Metric"):
            threads = sum(map(bool, cells)) - (cells[0] == "Event") - 1
        elif cells[0]:
            if table is not None and sum(map(bool, cells[table[1] :])) > threads > 0:
                raise bad(
                    f"more values than the {threads} of its header", "decimal points, not commas", key=f"line {i}"
                )
            yield i, cells, table


def _values(name: str, cells: Sequence[str]) -> list[float]:
    """Return a number for each hardware thread, 0 where it is missing."""
    values = [_number(cell) for cell in cells if cell]
    if not values:
        raise bad(f"no values of {name[:40]!r}", ALLOWED)
    return values


def _number(cell: str) -> float:
    if cell in ("-", "nil", "nan", "inf", "-nan"):
        return 0.0
    try:
        value = float(cell)
    except ValueError:
        raise bad(f"found {cell[:40]!r}", "a number, or -") from None
    if not math.isfinite(value) or not 0 <= value <= LARGEST * 1e3:
        raise bad(f"found {cell[:40]!r}", "a number of 0 or more")
    return value


def _run(rows: Rows, model: str, name: str) -> Imported:
    wall_s = max(rows[_RUNTIME])
    if not wall_s:
        raise bad("its run time is 0", ALLOWED)
    cycles, instructions = (next((rows[key] for key in keys if key in rows), []) for keys in (CYCLES, INSTRUCTIONS))
    busy = _busy(rows, cycles, wall_s)
    worked = [seconds for seconds in busy if seconds >= _WORKED * max(busy)]
    cpu_s = sum(worked)
    moved = sum(rows.get(_BANDWIDTH, [])) * 1e6 * wall_s
    mean = cpu_s / len(worked)
    run = Measurement(
        (ThreadGroup(len(worked), mean, min(1.0, mean / wall_s)),), wall_s, wall_s, cpu_s, exit_code=None,
        cpu_model=model, bandwidth=moved / cpu_s if moved else None, method="likwid",
        instructions=sum(instructions) or None, ipc=_ipc(rows, sum(instructions), sum(cycles)),
    )  # fmt: skip
    return Imported(name, run, NOTE + (_TRAFFIC if moved else "; bandwidth unknown"))


def _busy(rows: Rows, cycles: Sequence[float], wall_s: float) -> list[float]:
    """Return the unhalted seconds of each hardware thread (cycles / clock); the whole time if they are unknown."""
    clocks = rows.get(_CLOCK, [])
    if len(clocks) != len(cycles) or not any(clocks) or not any(cycles):
        return [wall_s] * len(rows[_RUNTIME])
    pairs = zip(cycles, clocks, strict=True)
    return [min(wall_s, count / (clock * 1e6)) if count and clock else 0.0 for count, clock in pairs]


def _ipc(rows: Rows, instructions: float, cycles: float) -> float | None:
    if instructions and cycles:
        return instructions / cycles
    values = [1 / value for value in rows.get(_CPI, []) if value]
    return sum(values) / len(values) if values else None

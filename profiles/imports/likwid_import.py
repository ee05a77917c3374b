"""A run, or its marked regions, as `likwid-perfctr -O -g MEM` saw it.

Rule: tables are found by their titles, rows by their names; sums are over the hardware threads that did something.
Counters of a socket stand in the column of its first hardware thread, with 0 in the others: their sum is that of the
machine, others' traffic included.
Source: LIKWID's wiki, likwid-perfctr: CSV output, group MEM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...simulate.formats.shape import inside
from ...simulate.formats.units import LARGEST, bad
from ...simulate.job import ThreadGroup
from ..measurement import Measurement
from .imported import Imported

NOTE = "from LIKWID: a thread for each hardware thread that worked"
_TRAFFIC = "; bandwidth is what the memory controllers moved meanwhile"
_RUNTIME, _CLOCK, _CPI = "Runtime (RDTSC) [s]", "Clock [MHz]", "CPI"
_BANDWIDTH, _MODEL = "Memory bandwidth [MBytes/s]", "CPU name:"
_INSTRUCTIONS = ("INSTR_RETIRED_ANY", "RETIRED_INSTRUCTIONS", "INST_RETIRED")
_CYCLES = ("CPU_CLK_UNHALTED_CORE", "CPU_CLOCKS_UNHALTED", "CPU_CYCLES")
#: Share of the busiest thread's time from which on a thread worked.
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
            inside(f"line {i}", _take, regions.setdefault(table[0], {}), cells[0], cells[table[1] :])
    timed = {region: rows for region, rows in regions.items() if _RUNTIME in rows}
    if not timed:
        raise bad("no table of metrics", ALLOWED)
    return [inside(region, _run, rows, model, f"{name} {region}".strip()) for region, rows in timed.items()]


def _lines(text: str) -> Iterator[tuple[int, list[str], tuple[str, int] | None]]:
    """Each line's number and cells, and of the table of counts or metrics in which it stands the region ("" = the
    whole) and the column in which numbers begin: in a table of counts, counters come before."""
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


def _take(rows: Rows, name: str, cells: Sequence[str]) -> None:
    """Keep a row: a number for each hardware thread, None where there is none."""
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
        raise bad("it took no time", ALLOWED)
    cycles, instructions = _first(rows, _CYCLES), _first(rows, _INSTRUCTIONS)
    busy = _busy(rows, cycles, wall_s)
    worked = [seconds for seconds in busy if seconds >= _WORKED * max(busy)]
    cpu_s = sum(worked)
    moved = sum(value or 0.0 for value in rows.get(_BANDWIDTH, [])) * 1e6 * wall_s
    mean = cpu_s / len(worked)
    run = Measurement(
        (ThreadGroup(len(worked), mean, min(1.0, mean / wall_s)),), wall_s, wall_s, cpu_s, exit_code=None,
        cpu_model=model, bandwidth=moved / cpu_s if moved else None, method="likwid",
    )  # fmt: skip
    told = sum(value or 0.0 for value in instructions) or None
    note = NOTE + (_TRAFFIC if moved else "; bandwidth unknown")
    return Imported(name, run, note, told, _ipc(rows, told, cycles))


def _busy(rows: Rows, cycles: Sequence[float | None], wall_s: float) -> list[float]:
    """Seconds that each hardware thread was not halted: its cycles by its clock; all the time where that is unknown."""
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

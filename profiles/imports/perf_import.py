"""A run as `perf stat -x, -e task-clock,duration_time,instructions,cycles,... COMMAND` saw it.

Rule: fields are value, unit, event, what follows is left alone but for the CPUs utilised; an event that was not counted
is unknown. Memory traffic is that of the memory controllers, where they were counted: of the whole machine. What was
counted in intervals (-I) has phases where the CPU time or the traffic changes.
Source: perf-stat(1), CSV FORMAT.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ...simulate.formats.shape import inside
from ...simulate.formats.units import bad, found
from ...simulate.job import Phase
from ..course import Course
from ..measurement import Measurement
from ..phases import phases
from .imported import Imported, spread

NOTE = "from perf stat: as many threads as its CPU time filled"
_TRAFFIC = "; bandwidth is what the whole machine's memory controllers moved meanwhile"
_SEPARATORS = ";\t|,"
#: A number as other locales write it, and the time at which an interval ended.
_DECIMAL, _TIME = re.compile(r"\d+,\d+", re.ASCII), re.compile(r"\d{1,12}\.\d{1,12}", re.ASCII)
_CPU_TIME = ("task-clock", "cpu-clock")
_STARTED = "# started on "
#: What a unit is in the base unit.
_UNITS = {"msec": 1e-3, "ns": 1e-9, "s": 1.0, "": 1.0, "MiB": 2.0**20, "Bytes": 1.0, "Joules": 1.0}
#: Events without a unit are counts, but for this one, in nanoseconds.
_DURATION = "duration_time"
_CONTROLLERS = re.compile(r"(?:uncore_)?imc\S*/(?:cas_count_|data_)(?:reads?|writes?|all)/?\S*")
_NOT = ("<not counted>", "<not supported>", "")
ALLOWED = "perf stat -x, with task-clock, and duration_time or its CPUs utilized"


def parse(text: str, name: str) -> Sequence[Imported]:
    """Return the one run of a file; counts of an event in several lines (-A, -I) are added up. Raises ConfigError."""
    values: dict[str, float] = {}
    course = _Intervals()
    date, utilised = "", None
    for i, line in enumerate(text.splitlines(), 1):
        if line.startswith(_STARTED):
            date = _date(line.removeprefix(_STARTED))
        if not line.strip() or line.startswith("#"):
            continue
        at, event, value, rest = inside(f"line {i}", _fields, line)
        if event and value is not None:
            values[event] = values.get(event, 0.0) + value
            course.add(at, event, value)
        if event == "task-clock" and "CPUs utilized" in rest[1:]:
            utilised = inside(f"line {i}", _number, rest[rest.index("CPUs utilized") - 1])
    return [_run(values, date, utilised, name, course)]


class _Intervals:
    """CPU time and traffic in each interval, by the time at which it ended; of several lines for one the sums."""

    def __init__(self) -> None:
        self._sums: dict[float, list[float]] = {}
        self._clock = ""

    @property
    def end(self) -> float:
        """When the last one ended, s; 0 without any."""
        return max(self._sums, default=0.0)

    def add(self, at: float | None, event: str, value: float) -> None:
        """Take in what a line says, as far as it matters."""
        if event in _CPU_TIME:
            self._clock = self._clock or event
        place = 0 if event == self._clock else 1 if _CONTROLLERS.fullmatch(event) else None
        if at is not None and place is not None:
            self._sums.setdefault(at, [0.0, 0.0])[place] += value

    def phases(self, count: int, utilisation: float) -> tuple[Phase, ...]:
        """The phases of so many threads that are alike."""
        thread, whole, traffic = Course(), Course(), Course()
        on = moved = 0.0
        for at, (seconds, bytes_) in [(0.0, [0.0, 0.0]), *sorted(self._sums.items())]:
            on, moved = on + seconds / count, moved + bytes_
            thread.add(at, on, 0.0)
            whole.add(at, on * count, 0.0)
            traffic.add(at, moved, 0.0)
        step_s = self.end / max(1, len(self._sums))
        return phases([(0.0, self.end, [thread])], utilisation, step_s, traffic, [whole])


def _fields(line: str) -> tuple[float | None, str, float | None, list[str]]:
    """When (None: of the whole), event (without its modifier), value in the base unit, what follows; no event in a line
    of a metric alone.
    """
    separator = next((sign for sign in _SEPARATORS if sign in line), None)
    if separator is None:
        raise bad(found(line), ALLOWED)
    cells = [cell.strip() for cell in line.split(separator)]
    if separator != ",":  # so decimals may have one, as the locale has it
        cells = [cell.replace(",", ".") if _DECIMAL.fullmatch(cell) else cell for cell in cells]
    if cells[0] == "summary":  # of the intervals before (--summary)
        return None, "", None, []
    at = float(cells[0]) if _TIME.fullmatch(cells[0]) and len(cells) > 3 and not _is_count(cells, 0) else None
    while len(cells) > 3 and not _is_count(cells, 0):  # a time stamp's CPU, a socket, how many CPUs there are in it
        cells.pop(0)
    if len(cells) < 3:
        raise bad(f"{len(cells)} fields", "value, unit, event, ...")
    if not _is_count(cells, 0):
        return None, "", None, []
    event = cells[2] if "/" in cells[2] else cells[2].partition(":")[0]
    unit = _UNITS[cells[1] or ("ns" if event == _DURATION else "")]
    value = None if cells[0] in _NOT else _number(cells[0]) * unit
    return at, event, value, cells[3:]


def _is_count(cells: Sequence[str], i: int) -> bool:
    """Whether value, unit and event begin at a cell."""
    if cells[i + 1] not in _UNITS or not re.match(r"[A-Za-z_]", cells[i + 2]):
        return False
    return cells[i] in _NOT[:2] or bool(re.fullmatch(r"-?\d+(?:\.\d+)?", cells[i]))


def _number(text: str) -> float:
    if not re.fullmatch(r"\d{1,24}(?:\.\d{1,24})?", text, re.ASCII):
        raise bad(found(text), "a number of 0 or more")
    return float(text)


def _run(values: dict[str, float], date: str, utilised: float | None, name: str, course: _Intervals) -> Imported:
    cpu_s = next((values[event] for event in _CPU_TIME if values.get(event)), None)
    if not cpu_s:
        raise bad("task-clock was not counted", ALLOWED)
    wall_s = values.get(_DURATION) or course.end or (cpu_s / utilised if utilised else None)
    if not wall_s:
        raise bad("how long it took is not there", ALLOWED)
    instructions, cycles = values.get("instructions"), values.get("cycles") or values.get("cpu-cycles")
    moved = sum(value for event, value in values.items() if _CONTROLLERS.fullmatch(event))
    group = spread(cpu_s, wall_s)
    group = replace(group, phases=course.phases(group.count, group.utilisation))
    run = Measurement(
        (group,), wall_s, wall_s, cpu_s, exit_code=None, date=date, bandwidth=moved / cpu_s if moved else None,
        method="perf",
    )  # fmt: skip
    ipc = instructions / cycles if instructions and cycles else None
    return Imported(name, run, NOTE + (_TRAFFIC if moved else "; bandwidth unknown"), instructions, ipc)


def _date(text: str) -> str:
    """ISO 8601 of ctime's form, "" for another."""
    with suppress(ValueError):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.strptime(text.strip()))
    return ""

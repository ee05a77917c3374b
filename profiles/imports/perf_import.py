"""A run from the output of `perf stat -x, -e task-clock,duration_time,instructions,cycles,... COMMAND`.

Rule: fields are value, unit, event; later fields are ignored except the CPUs utilised. An event that was not counted is
unknown. perf writes numbers as the user's locale has them: a decimal comma between commas is an error. Memory traffic
is that of the memory controllers, if they were counted: the whole machine's. Counts in intervals (-I) give phases where
CPU time or traffic changes.
Source: perf-stat(1), CSV FORMAT.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...formats.documents.document_errors import bad, found, inside
from ...formats.text import count
from ...simulate.model.job import Phase, ThreadGroup
from ..measure.phases import phases
from ..measurement import Measurement
from ..probes.perf import FRONT, NOT_COUNTED, UNITS
from ..probes.thread_history import ThreadHistory
from .imported import Imported, Imports, group_by_cpu_time

NOTE = "from perf stat: as many threads as its CPU time filled"
_TRAFFIC = "; bandwidth is that of the whole machine's memory controllers"
_SEPARATORS = ";\t|,"
#: A number with a decimal comma, and the end of an interval.
_DECIMAL, _TIME = re.compile(r"\d+,\d+", re.ASCII), re.compile(r"\d{1,12}\.\d{1,12}", re.ASCII)
_CPU_TIME = ("task-clock", "cpu-clock")
_STARTED = "# started on "
_UNITS = UNITS | {"s": 1.0}
#: The one event without a unit that is in nanoseconds; all others are counts.
_DURATION = "duration_time"
_CONTROLLERS = re.compile(r"(?:uncore_)?imc\S*/(?:cas_count_|data_)(?:reads?|writes?|all)/?\S*")
_NO_VALUE = (*NOT_COUNTED, "")
ALLOWED = "perf stat -x, with task-clock, and duration_time or its CPUs utilized"


def parse(text: str, name: str) -> Imports:
    """Return the one run of a file; several lines of an event (-A, -I) are added up. Raises ConfigError."""
    values: dict[str, float] = {}
    sums: dict[float, list[float]] = {}
    date, clock, utilised = "", "", None
    for i, line in enumerate(text.splitlines(), 1):
        if line.startswith(_STARTED):
            with suppress(ValueError):  # in the form of ctime
                date = time.strftime("%Y-%m-%dT%H:%M:%S", time.strptime(line.removeprefix(_STARTED).strip()))
        if not line.strip() or line.startswith("#"):
            continue
        at, event, value, rest = inside(f"line {i}", _fields, line)
        if event and value is not None:
            values[event] = values.get(event, 0.0) + value
            clock = clock or (event if event in _CPU_TIME else "")
            column = 0 if event == clock else 1 if _CONTROLLERS.fullmatch(event) else None
            if at is not None and column is not None:
                sums.setdefault(at, [0.0, 0.0])[column] += value
        if event == "task-clock" and "CPUs utilized" in rest[1:]:
            utilised = inside(f"line {i}", _number, rest[rest.index("CPUs utilized") - 1])
    return Imports([_run(values, date, utilised, name, sums)])


def _phases(sums: Mapping[float, Sequence[float]], group: ThreadGroup) -> tuple[Phase, ...]:
    """Return the phases of a group from CPU time and traffic in each interval, by its end."""
    thread, total, traffic = ThreadHistory(), ThreadHistory(), ThreadHistory()
    on = moved = end = 0.0
    for end, (seconds, bytes_) in [(0.0, (0.0, 0.0)), *sorted(sums.items())]:
        on, moved = on + seconds / group.count, moved + bytes_
        thread.add(end, on, 0.0)
        total.add(end, on * group.count, 0.0)
        traffic.add(end, moved, 0.0)
    return phases([(0.0, end, [thread])], group.utilisation, end / max(1, len(sums)), traffic, [total])


def _fields(line: str) -> tuple[float | None, str, float | None, list[str]]:
    """Return time (None: of the whole), event (without modifier), value in the base unit, other fields.

    The event is empty in a line that holds only a metric.
    """
    separator = next((sign for sign in _SEPARATORS if sign in line), None)
    if separator is None:
        raise bad(found(line), ALLOWED)
    cells = [cell.strip() for cell in line.split(separator)]
    if separator != ",":  # decimals may have a comma
        cells = [cell.replace(",", ".") if _DECIMAL.fullmatch(cell) else cell for cell in cells]
    if cells[0] == "summary":  # repeats the intervals (--summary)
        return None, "", None, []
    at = float(cells[0]) if _TIME.fullmatch(cells[0]) and len(cells) > 3 and not _is_count(cells) else None
    front = ""
    while len(cells) > 3 and not _is_count(cells):  # the CPU or socket in front
        front += f"{cells.pop(0)},"
    if len(cells) < 3:
        raise bad(f"{count(len(cells), 'field')}", "value, unit, event, ...")
    if not _is_count(cells):
        return None, "", None, []
    if not FRONT.fullmatch(front):
        raise bad("a decimal comma", "decimal points: run perf with LC_ALL=C, or with -x ';'")
    event = cells[2] if "/" in cells[2] else cells[2].partition(":")[0]
    unit = _UNITS[cells[1] or ("ns" if event == _DURATION else "")]
    value = None if cells[0] in _NO_VALUE else _number(cells[0]) * unit
    return at, event, value, cells[3:]


def _is_count(cells: Sequence[str]) -> bool:
    """Return whether cells begin with value, unit and event."""
    if cells[1] not in _UNITS or not re.match(r"[A-Za-z_]", cells[2]):
        return False
    return cells[0] in NOT_COUNTED or bool(re.fullmatch(r"-?\d+(?:\.\d+)?", cells[0]))


def _number(text: str) -> float:
    if not re.fullmatch(r"\d{1,24}(?:\.\d{1,24})?", text, re.ASCII):
        raise bad(found(text), "a number of 0 or more")
    return float(text)


def _run(
    values: Mapping[str, float], date: str, utilised: float | None, name: str, sums: Mapping[float, Sequence[float]]
) -> Imported:
    cpu_s = next((values[event] for event in _CPU_TIME if values.get(event)), None)
    if not cpu_s:
        raise bad("task-clock was not counted", ALLOWED)
    wall_s = values.get(_DURATION) or max(sums, default=0.0) or (cpu_s / utilised if utilised else None)
    if not wall_s:
        raise bad("its duration is missing", ALLOWED)
    instructions, cycles = values.get("instructions"), values.get("cycles") or values.get("cpu-cycles")
    moved = sum(value for event, value in values.items() if _CONTROLLERS.fullmatch(event))
    group = group_by_cpu_time(cpu_s, wall_s)
    group = replace(group, phases=_phases(sums, group))
    run = Measurement(
        (group,), wall_s, wall_s, cpu_s, exit_code=None, date=date, bandwidth=moved / cpu_s if moved else None,
        instructions=instructions, ipc=instructions / cycles if instructions and cycles else None, method="perf",
    )  # fmt: skip
    return Imported(name, run, NOTE + (_TRAFFIC if moved else "; bandwidth unknown"))

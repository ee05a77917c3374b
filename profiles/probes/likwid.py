"""Memory traffic and instructions of the node, counted by likwid-perfctr (group MEM).

Rule: counts are the whole node's. LIKWID runs without -f, so it leaves alone counters that others use. Its CSV is read
by the heading lines (`Event,` and `Metric,`), which all generations have; a value that is not a finite number is
skipped, and a table with fewer rows than announced makes the whole incomplete.

Source: LIKWID's wiki, "likwid-perfctr", output as CSV; the group files MEM.txt; LIKWID 3 (core 0), 4 (Core 0),
5 (HWThread 0).
"""

from __future__ import annotations

import math
import shutil
import subprocess

from .external_counter import EventCounts, ExternalCounterProbe, counter_user, first_message
from .probe import read_text
from .process_tree import ProcessTree

GROUP = "MEM"
_VOLUME = ("Memory data volume [GBytes]", "Memory load/store data volume [GBytes]")
INSTRUCTIONS = ("INSTR_RETIRED_ANY", "RETIRED_INSTRUCTIONS", "INST_RETIRED")
CYCLES = ("CPU_CLK_UNHALTED_CORE", "CPU_CLOCKS_UNHALTED", "CPU_CYCLES")


class Likwid(ExternalCounterProbe):
    """Memory traffic and instructions of the node from start to stop."""

    def available(self) -> str | None:
        """Return why LIKWID cannot count here, or None."""
        if shutil.which("likwid-perfctr") is None:
            return "there is no likwid-perfctr command (LIKWID)"
        try:
            listing = subprocess.run(["likwid-perfctr", "-a"], capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"likwid-perfctr does not run: {problem}"
        groups = {line.split()[0] for line in listing.stdout.splitlines() if line.strip()}
        if GROUP not in groups:
            return f"LIKWID has no group {GROUP} for this processor: {first_message(listing.stderr or listing.stdout)}"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin to count the whole node, unless another process uses the counters."""
        if user := counter_user(root=self._root):
            self._problem = f"stepped back: {user}"
            return
        cpus = read_text(self._root / "sys/devices/system/cpu/online") or "0"
        self._start_command(["likwid-perfctr", "-O", "-g", GROUP, "-c", cpus], tree)

    def _conclude(self, printed: str) -> EventCounts:
        return conclude(printed)


def conclude(printed: str) -> EventCounts:
    """Return the counts in LIKWID's CSV of group MEM; unknown if it was cut short."""
    values, complete = parse(printed)
    volume, instructions, cycles = (
        next((sum(values[name]) for name in names if values.get(name)), None)
        for names in (_VOLUME, INSTRUCTIONS, CYCLES)
    )
    if not complete:
        return EventCounts(problem="LIKWID's output was cut short")
    if volume is None:
        return EventCounts(problem=f"it did not count: {first_message(printed)}")
    return EventCounts(instructions=instructions, cycles=cycles, moved_bytes=volume * 1e9)


def parse(text: str) -> tuple[dict[str, list[float]], bool]:
    """Return event or metric -> one value per hardware thread that has one, and whether no table was cut short.

    Regions are added, and statistics (sum, min, max) left out.
    """
    values, complete, due, skip = dict[str, list[float]](), True, 0, 1
    rows: dict[str, list[float]] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("TABLE", "STRUCT"):
            complete &= due <= 0
            rows = None
            due = next((int(cell) for cell in reversed(cells) if cell.isdecimal()), 0) if cells[0] == "TABLE" else 0
        elif cells[0] in ("Event", "Metric") and len(cells) > 1:
            skip = 2 if cells[1] == "Counter" else 1
            first = cells[skip].lower() if len(cells) > skip else ""
            rows = values if first.startswith(("core", "hwthread")) else {}
        elif rows is not None and len(cells) > skip and cells[0]:
            due -= 1
            rows.setdefault(cells[0], []).extend(v for cell in cells[skip:] if (v := _value(cell)) is not None)
    return values, complete and due <= 0


def _value(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

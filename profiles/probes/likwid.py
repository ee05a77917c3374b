"""What the memory of the node moved, counted by likwid-perfctr (group MEM).

Rule: it is the whole node's, whoever caused it; LIKWID leaves counters alone that others use, as it is never told to
take them (-f).

Source: LIKWID's wiki, "likwid-perfctr"; the group files MEM.txt.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .attached import Attaching, complaint
from .base import ROOT, read_text
from .busy import counting
from .likwid_csv import parse
from .tree import ProcessTree

GROUP = "MEM"
_VOLUME = ("Memory data volume [GBytes]", "Memory load/store data volume [GBytes]")
_INSTRUCTIONS = ("INSTR_RETIRED_ANY", "RETIRED_INSTRUCTIONS", "INST_RETIRED")
_CYCLES = ("CPU_CLK_UNHALTED_CORE", "CPU_CLOCKS_UNHALTED", "CPU_CYCLES")


@dataclass(frozen=True, slots=True)
class LikwidCounts:
    """What LIKWID counted on the whole node; None = not known, and `problem` says why."""

    moved_bytes: float | None = None
    instructions: float | None = None
    cycles: float | None = None
    problem: str = ""

    @property
    def ipc(self) -> float | None:
        """Instructions for each cycle on a core."""
        return self.instructions / self.cycles if self.instructions and self.cycles else None


class Likwid(Attaching):
    """Memory traffic and instructions of the node from start to stop."""

    def __init__(self, root: Path = ROOT) -> None:
        super().__init__()
        self._root = root

    def available(self) -> str | None:
        """Return why LIKWID cannot count here, or None."""
        if shutil.which("likwid-perfctr") is None:
            return "there is no likwid-perfctr command (LIKWID)"
        try:
            asked = subprocess.run(
                ["likwid-perfctr", "-a"], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"likwid-perfctr does not run: {problem}"
        groups = {line.split()[0] for line in asked.stdout.splitlines() if line.strip()}
        if GROUP not in groups:
            return f"LIKWID has no group {GROUP} for this processor: {complaint(asked.stderr or asked.stdout)}"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin, if nobody counts; it is the whole node's, whatever the tree."""
        if who := counting(root=self._root):
            self._problem = f"stepped back: {who}"
            return
        cpus = read_text(self._root / "sys/devices/system/cpu/online") or "0"
        self._attach(["likwid-perfctr", "-O", "-g", GROUP, "-c", cpus], tree)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Nothing to read between start and stop."""

    def stop(self) -> LikwidCounts:
        """Return what was counted."""
        printed = self._printed()
        return LikwidCounts(problem=self._problem) if printed is None else conclude(printed)


def conclude(printed: str) -> LikwidCounts:
    """Return what LIKWID's CSV says of group MEM; of one that was cut short nothing."""
    tables = parse(printed)
    volume = tables.total(_VOLUME)
    if not tables.complete:
        return LikwidCounts(problem="LIKWID's output was cut short")
    if volume is None:
        return LikwidCounts(problem=f"it did not count: {complaint(printed)}")
    instructions, cycles = (tables.total(names, events=True) for names in (_INSTRUCTIONS, _CYCLES))
    return LikwidCounts(volume * 1e9, instructions, cycles)

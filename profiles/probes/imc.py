"""What the memory controllers of the node moved, counted by the perf command.

Rule: only controllers count of whose events the kernel knows the unit (MiB); it is the whole node's traffic, whoever
caused it.

Source: /sys/bus/event_source/devices/*/events, Documentation/ABI/testing/sysfs-bus-event_source-devices-events.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .attached import Attached, complaint
from .base import ROOT, read_text
from .perf import WHOLE, refused
from .perf_stat import parse
from .tree import ProcessTree

#: Names over the generations: servers count column accesses, clients have free-running counters.
READS, WRITES = ("cas_count_read", "data_reads", "data_read"), ("cas_count_write", "data_writes", "data_write")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that the memory of the node moved; None = not known, and `problem` says why."""

    moved_bytes: float | None = None
    problem: str = ""


class MemoryControllers:
    """Traffic of all memory controllers (uncore IMC of Intel) from start to stop."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._attached: Attached | None = None
        self._problem = ""

    def available(self) -> str | None:
        """Return why the controllers cannot be counted here, or None."""
        if shutil.which("perf") is None:
            return "there is no perf command (Debian: linux-perf)"
        if not events(self._root):
            return "this machine shows no counters of its memory controllers (uncore_imc)"
        return refused(0, self._root)

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin; it is the whole node's, whatever the tree."""
        try:
            self._attached = Attached(
                ["perf", "stat", "-x,", "-a", "-e", ",".join(events(self._root)), "--"], tree
            )
        except OSError as problem:
            self._problem = f"perf cannot be started: {problem.strerror}"

    def sample(self, now: float, *, last: bool = False) -> None:
        """Nothing to read between start and stop."""

    def stop(self) -> Traffic:
        """Return what was moved."""
        return conclude(self._attached.finish()) if self._attached else Traffic(problem=self._problem)


def events(root: Path = ROOT) -> list[str]:
    """Return the events that together count all reads and writes, as perf names them."""
    found = []
    for device in sorted((root / "sys/bus/event_source/devices").glob("uncore_imc*")):
        both = [_first(device, names) for names in (READS, WRITES)]
        if all(both):
            found += [f"{device.name}/{name}/" for name in both]
    return found


def _first(device: Path, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if read_text(device / f"events/{name}.unit") == "MiB"), None)


def conclude(printed: str) -> Traffic:
    """Return what perf's output says; not known where an event is missing or was counted for a part of the time."""
    counts = {name: count for name, count in parse(printed).items() if name in READS + WRITES}
    if not counts:
        return Traffic(problem=f"it did not count: {complaint(printed)}")
    unknown = [f"{name} is {count.problem}" for name, count in counts.items() if count.value is None]
    shared = [name for name, count in counts.items() if count.share is not None and count.share < WHOLE]
    if unknown or shared or not (counts.keys() & set(READS) and counts.keys() & set(WRITES)):
        return Traffic(problem="; ".join(unknown) or "stepped back: others use the memory controllers' counters")
    return Traffic(sum(count.value or 0.0 for count in counts.values()))

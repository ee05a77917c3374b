"""Instructions, cycles and cache misses of a job, counted by the perf command.

Rule: a job that has a control group of its own is counted by that, else by its processes. It steps back where others
count: before it begins, when the job begins to count itself, and when the kernel had to share the counters out. What
came before it was attached is not counted, and how much was is known (task-clock).

Source: perf-stat(1); kernel.perf_event_paranoid in Documentation/admin-guide/sysctl/kernel.rst of Linux.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .attached import Attaching, complaint
from .base import ROOT, read_number, read_text
from .busy import counting
from .cgroup import own_groups
from .perf_stat import parse
from .tree import ProcessTree

EVENTS = ("task-clock", "instructions", "cycles", "LLC-load-misses", "LLC-store-misses")
#: Counted for less of the time than this, the counters were shared.
WHOLE = 0.95
CACHE_LINE = 64
#: CAP_PERFMON and CAP_SYS_ADMIN, capabilities(7).
_MAY_COUNT = 1 << 38 | 1 << 21
#: PMUs of processors' cores: x86, hybrid x86, Arm, POWER and others that call theirs cpu.
_CORES = ("cpu", "cpu_core", "cpu_atom", "armv8*", "armv9*", "cpum_cf")


@dataclass(frozen=True, slots=True)
class PerfCounts:
    """What perf counted; None = not known.

    Args:
        cpu_s: CPU seconds for which it counted.
        miss_bytes: misses of the last cache x 64 bytes: what the memory moved at least, without prefetches and
            write-backs.
        problem: why something is not known.
        user_only: instructions, cycles and misses inside the kernel were left out.
    """

    cpu_s: float | None = None
    instructions: float | None = None
    cycles: float | None = None
    miss_bytes: float | None = None
    problem: str = ""
    user_only: bool = False

    @property
    def ipc(self) -> float | None:
        """Instructions for each cycle on a core."""
        return self.instructions / self.cycles if self.instructions and self.cycles else None


class Perf(Attaching):
    """Counts of the whole tree, or of its control group, from start to stop."""

    def __init__(self, root: Path = ROOT) -> None:
        super().__init__()
        self._root = root
        self._tree: ProcessTree | None = None
        self._seen: set[int] = set()

    def available(self) -> str | None:
        """Return why perf cannot count here, or None."""
        if shutil.which("perf") is None:
            return "there is no perf command (Debian: linux-perf)"
        devices = self._root / "sys/bus/event_source/devices"
        if not any(next(devices.glob(name), None) for name in _CORES):
            return "this machine shows no counters of its cores (a virtual machine without a PMU?)"
        return refused(2, self._root)

    def start(self, tree: ProcessTree, now: float) -> None:
        """Attach to the job's group or to every process of the tree, if nobody counts; what comes later is counted."""
        self._tree = tree
        if who := counting(root=self._root):
            self._problem = f"stepped back: {who}"
            return
        self._attach(["perf", "stat", "-x,", *self._of(tree)], tree)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Step back if a new process of the job counts itself. O(new processes)."""
        if self._attached is None or self._tree is None:
            return
        new = self._tree.threads.keys() - self._seen
        self._seen |= new
        if who := counting(new, self._root):
            self.kill(f"stepped back: {who}")

    def stop(self) -> PerfCounts:
        """Return what was counted."""
        printed = self._printed()
        return PerfCounts(problem=self._problem) if printed is None else conclude(printed)

    def _of(self, tree: ProcessTree) -> list[str]:
        """What perf is told to count, and of whom."""
        group = perf_group(own_groups(tree.root, self._root))
        events = ["-e", ",".join(EVENTS)]
        if group and refused(0, self._root) is None:
            return ["-a", *events, "-G", group]
        return [*events, "-p", ",".join(map(str, tree.threads))]


def perf_group(groups: dict[str, str]) -> str:
    """Return a job's control group as perf wants it, relative to where the hierarchy is mounted; "" without one.

    Args:
        groups: controller -> path of the job's own; perf goes by perf_event of version 1 where that is mounted, else by
            version 2 (see `parse_membership`).
    """
    return groups.get("perf_event", groups.get("", "")).strip("/")


def refused(most: int, root: Path = ROOT) -> str | None:
    """Return why we may not count, None if we may.

    Args:
        most: kernel.perf_event_paranoid at which it is still allowed: 2 for one's own processes, 0 for the node.
    """
    setting = read_number(root / "proc/sys/kernel/perf_event_paranoid")
    if setting is None or setting <= most:
        return None
    status = (read_text(root / "proc/self/status") or "").partition("CapEff:")[2].split()
    if status and int(status[0], 16) & _MAY_COUNT:
        return None
    return f"kernel.perf_event_paranoid is {setting:.0f}: without CAP_PERFMON it would have to be {most} at most"


def conclude(printed: str) -> PerfCounts:
    """Return what perf's output says of `EVENTS`; counts that were shared with others are not known."""
    counts = parse(printed)
    if not counts:
        return PerfCounts(problem=f"it did not count: {complaint(printed)}")
    shares = [count.share for count in counts.values() if count.share is not None and count.value is not None]
    if min(shares, default=1.0) < WHOLE:
        return PerfCounts(problem=f"stepped back: the counters were others' for {1 - min(shares):.0%} of the time")
    task, instructions, cycles, loads, stores = (counts[e].value if e in counts else None for e in EVENTS)
    misses = None if loads is None or stores is None else (loads + stores) * CACHE_LINE
    unknown = [f"{event} is {counts[event].problem}" for event in EVENTS if event in counts and counts[event].problem]
    user_only = any(count.user_only for count in counts.values())
    return PerfCounts(task, instructions, cycles, misses, "; ".join(unknown), user_only)

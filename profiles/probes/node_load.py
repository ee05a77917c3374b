"""Load of the node: CPU time of other processes, time stolen by a virtual machine's host, pressure stalls.

Rule: each value covers the span from start to stop. Other processes' CPU time is what the CPUs did (/proc/stat) minus
what this process and its jobs did. Linux counts stolen time neither as a thread's core time nor as its waiting. It is
not known by thread, so each second on a core is charged the steal of the least affected CPU, which is rather too little
than too much. Pressure comes from the kernel's totals, not from its moving averages.

Source: Documentation/accounting/psi.rst of Linux (pressure stall information, 4.20).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from .probe import ROOT, Probe, read_text
from .process_tree import ProcessTree, read_proc

RESOURCES = ("cpu", "memory", "io")


class Steal(Probe):
    """Share of the busy time of the job's CPUs that the host gave to others, [0, 1)."""

    def __init__(self) -> None:
        self._cpus: set[int] = set()
        self._first: dict[int, tuple[float, float]] = {}

    def available(self) -> str | None:
        """Return why stolen time cannot be read here, or None."""
        return None if cpu_times() else "there is no /proc/stat here"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the CPUs that the tree's root may use."""
        try:
            self._cpus = os.sched_getaffinity(tree.root)
        except OSError:
            self._cpus = os.sched_getaffinity(0)
        self._first = cpu_times()

    def stop(self) -> float:
        """Return the share of its busy time that was stolen from the least affected CPU."""
        shares = []
        for cpu, (busy, stolen) in cpu_times().items():
            before = self._first.get(cpu, (busy, stolen))
            busy, stolen = busy - before[0], stolen - before[1]
            if cpu in self._cpus and busy > 0:
                shares.append(max(0.0, stolen) / (busy + max(0.0, stolen)))
        return min(shares, default=0.0)


def cpu_times() -> dict[int, tuple[float, float]]:
    """Return CPU -> (busy, stolen) in clock ticks, from /proc/stat, proc(5)."""
    times = {}
    for line in (read_proc("/proc/stat", 1 << 20) or b"").splitlines():
        name, *fields = line.split()
        if not name.startswith(b"cpu"):
            break
        if name != b"cpu" and len(fields) >= 8:
            user, nice, system, _, _, irq, softirq, steal = map(float, fields[:8])
            times[int(name[3:])] = (user + nice + system + irq + softirq, steal)
    return times


class OtherLoad:
    """CPU time that other processes use on `cpus`, from now on."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = frozenset(cpus)
        self._began, self._own_s, self._all = time.monotonic(), time.process_time(), self._busy()

    def share(self, jobs_s: float) -> float:
        """Return the share of these CPUs' time so far that others used, [0, 1]; 0 if it cannot be read.

        Args:
            jobs_s: CPU seconds of our jobs since then.
        """
        lasted = (time.monotonic() - self._began) * len(self._cpus)
        others_s = self._busy() - self._all - jobs_s - (time.process_time() - self._own_s)
        return min(1.0, max(0.0, others_s / lasted)) if lasted > 0 else 0.0

    def _busy(self) -> float:
        """Return the seconds for which these CPUs were not idle."""
        times = (sum(pair) for cpu, pair in cpu_times().items() if cpu in self._cpus)
        return sum(times) / os.sysconf("SC_CLK_TCK")


class Pressure(Probe):
    """The node's pressure: for each resource, the share of time in which some or all tasks waited for it."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root / "proc/pressure"
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._began = self._ended = 0.0

    def available(self) -> str | None:
        """Return why pressure cannot be read here, or None."""
        if not self._root.is_dir():
            return "this kernel has no /proc/pressure (Linux 4.20, CONFIG_PSI)"
        return None if self._totals() else "the kernel was started without pressure accounting (psi=1)"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin at `now`; pressure is that of the whole node, whatever the tree."""
        self._first = self._last = self._totals()
        self._began = self._ended = now

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the totals if this is the last sample. O(1)."""
        if last:
            self._last, self._ended = self._totals() or self._last, now

    def stop(self) -> dict[str, float]:
        """Return cpu_some, cpu_full, memory_some, ... -> share of time, [0, 1], for readable resources."""
        span = self._ended - self._began
        both = self._first.keys() & self._last.keys() if span > 0 else ()
        return {name: min(1.0, max(0.0, self._last[name] - self._first[name]) / span) for name in sorted(both)}

    def _totals(self) -> dict[str, float]:
        texts = {resource: read_text(self._root / resource) or "" for resource in RESOURCES}
        totals = {
            f"{name}_{kind}": parse_total(text, kind) for name, text in texts.items() for kind in ("some", "full")
        }
        return {name: total for name, total in totals.items() if total is not None}


def parse_total(text: str, kind: str = "some") -> float | None:
    """Return the seconds stalled so far, from `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`; None if absent.

    Args:
        text: content of a pressure file.
        kind: some (at least one task waited) or full (all waited).
    """
    for line in text.splitlines():
        name, *fields = line.split()
        total = next((field[6:] for field in fields if field.startswith("total=")), "")
        if name == kind and total.isdecimal():
            return int(total) * 1e-6
    return None

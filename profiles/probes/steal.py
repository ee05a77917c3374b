"""How much of its cores' time a virtual machine did not get.

Rule: Linux leaves stolen time out of what a thread was on a core, and out of what it waited; on a guest it
is waiting all the same. Nothing tells it by thread, so each second on a core is taken to have cost what it
cost on the CPU that fared best: rather too little is taken out than too much.
"""

from __future__ import annotations

import os

from .base import read_proc
from .tree import ProcessTree


class Steal:
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

    def sample(self, now: float, *, last: bool = False) -> None:
        """Nothing to read between start and stop: the counters only grow."""

    def stop(self) -> float:
        """Return the share of its busy time that was stolen from a CPU; of the CPU that fared best."""
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

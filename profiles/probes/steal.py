"""How much of its cores' time a virtual machine did not get.

Rule: Linux leaves stolen time out of what a thread was on a core, and out of what it waited; on a guest it is waiting
all the same. Nothing tells it by thread, so each second on a core is taken to have cost the same share.
"""

from __future__ import annotations

import os

from .base import read_proc
from .tree import ProcessTree


class Steal:
    """Share of the busy time of the job's CPUs that the host gave to others, [0, 1)."""

    def __init__(self) -> None:
        self._cpus: set[int] = set()
        self._first = (0.0, 0.0)

    def available(self) -> str | None:
        """Return why stolen time cannot be read here, or None."""
        return None if _times(set(range(4096)))[0] > 0 else "there is no /proc/stat here"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the CPUs that the tree's root may use."""
        try:
            self._cpus = os.sched_getaffinity(tree.root)
        except OSError:
            self._cpus = os.sched_getaffinity(0)
        self._first = _times(self._cpus)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Nothing to read between start and stop: the counters only grow."""

    def stop(self) -> float:
        """Return the share of the time in which these CPUs had work that was stolen from them."""
        busy, stolen = (after - before for before, after in zip(self._first, _times(self._cpus), strict=True))
        return stolen / (busy + stolen) if stolen > 0 and busy > 0 else 0.0


def _times(cpus: set[int]) -> tuple[float, float]:
    """Return (busy, stolen) of these CPUs in clock ticks: fields of /proc/stat, proc(5); guest time is in user."""
    busy = stolen = 0.0
    for line in (read_proc("/proc/stat", 1 << 20) or b"").splitlines():
        name, *fields = line.split()
        if not name.startswith(b"cpu"):
            break
        if name != b"cpu" and int(name[3:]) in cpus and len(fields) >= 8:
            user, nice, system, _, _, irq, softirq, steal = map(float, fields[:8])
            busy, stolen = busy + user + nice + system + irq + softirq, stolen + steal
    return busy, stolen

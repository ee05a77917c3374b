"""Every probe there is: what it gives, whether it is there, what it costs.

Rule: a probe that is missing is listed too, with the reason; its cost is measured here and now, never quoted.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from . import accounting
from .base import ROOT, Probe
from .cgroup import Cgroup
from .hwmon import Hwmon
from .imc import MemoryControllers
from .io import StorageIO
from .likwid import Likwid
from .memory import Memory
from .perf import Perf
from .powercap import Powercap
from .pressure import Pressure
from .resctrl import Resctrl
from .steal import Steal
from .threads import PsutilTimes, Schedstat
from .tree import ProcessTree

JOB, NODE = "job", "node"
#: Who uses a probe: `pilotfish profile run`, and the daemon, itself or by the keepers of its local jobs.
RUN, DAEMON = "profile run", "daemon"
BOTH = (RUN, DAEMON)
#: Looks over which the cost is averaged, and seconds between them.
LOOKS, APART_S = 20, 0.005
#: Of those that ask somebody else.
FEW_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A probe: its name, of what it speaks (job or node), what it gives, how it is made, how often it is looked
    through to find its cost, and who uses it."""

    name: str
    of: str
    gives: str
    make: Callable[[], Probe[Any]]
    looks: int = LOOKS
    used_by: tuple[str, ...] = BOTH


@dataclass(frozen=True, slots=True)
class Finding:
    """A probe as it was found here.

    Args:
        used_by: who uses it where it is there, some of `BOTH`.
        missing: why it is not there, or why it stepped back; None = it works.
        look_s: CPU seconds of ours for one look; begin_s: for beginning and ending, with the commands it starts.
    """

    name: str
    of: str
    gives: str
    used_by: tuple[str, ...]
    missing: str | None
    look_s: float | None = None
    begin_s: float | None = None


def entries(root: Path = ROOT) -> list[Entry]:
    """Return all probes, those that are always there first.

    Args:
        root: where /proc and /sys are, for the probes of files.
    """
    return [
        Entry("schedstat", JOB, "each thread's time on and for a core, ns", Schedstat),
        Entry("psutil", JOB, "each thread's time on a core, 10 ms steps", PsutilTimes, used_by=(RUN,)),
        Entry("memory", JOB, "peak of memory", Memory),
        Entry("io", JOB, "bytes read from and written to storage", StorageIO),
        Entry("steal", NODE, "what a virtual machine's host took", Steal, used_by=(RUN,)),
        Entry("cgroup", JOB, "throttling, stalls, memory of its own group", lambda: Cgroup(root), used_by=(DAEMON,)),
        Entry("pressure", NODE, "share of time stalled for CPU, memory, I/O", lambda: Pressure(root), used_by=(RUN,)),
        Entry("perf", JOB, "instructions, IPC, misses of the last cache", lambda: Perf(root)),
        Entry("perf-imc", NODE, "bandwidth of the memory controllers", lambda: MemoryControllers(root)),
        Entry("likwid", NODE, "memory bandwidth (group MEM), IPC", lambda: Likwid(root)),
        Entry("resctrl", JOB, "memory bandwidth, use of the last cache (MBM)", lambda: Resctrl(root)),
        Entry("powercap", NODE, "energy of packages and memory (RAPL)", lambda: Powercap(root)),
        Entry("hwmon", NODE, "power of the node, by its own meter", lambda: Hwmon(root)),
        Entry("slurm", JOB, "CPU time, memory, energy of ended jobs (sacct)", accounting.slurm, FEW_LOOKS, (DAEMON,)),
        Entry("oar", JOB, "run time and cores of ended jobs", accounting.oar, FEW_LOOKS, ()),
    ]


def examine(entry: Entry) -> Finding:
    """Find out whether a probe is there and works, and measure what it costs to look at this very process with it."""
    probe = entry.make()
    missing = probe.available()
    if missing is not None:
        return Finding(entry.name, entry.of, entry.gives, entry.used_by, missing)
    tree = ProcessTree(os.getpid())
    tree.refresh()
    before = _used()
    probe.start(tree, 0.0)
    begin_s, look_s, started = _used() - before, 0.0, time.monotonic()
    for _ in range(entry.looks):
        time.sleep(APART_S)  # or a command that was started would not see us at work
        before = _used()
        probe.sample(time.monotonic() - started)
        look_s += _used() - before
    before = _used()
    readings = probe.stop()
    begin_s += _used() - before
    if (problem := getattr(readings, "problem", "")) and _says_nothing(readings):
        return Finding(entry.name, entry.of, entry.gives, entry.used_by, problem)
    return Finding(entry.name, entry.of, entry.gives, entry.used_by, None, look_s / entry.looks, begin_s)


def _says_nothing(readings: Any) -> bool:
    return not any(isinstance(getattr(readings, one.name), float) for one in fields(readings))


def _used() -> float:
    """CPU seconds of this thread and of children that have been waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + children.ru_utime + children.ru_stime

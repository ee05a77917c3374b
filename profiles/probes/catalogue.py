"""All probes: what each measures, whether it is available, and what it costs.

Rule: a missing probe is listed with the reason; costs are measured on this machine, never quoted.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

from .cgroup import Cgroup
from .cpu_time import PsutilTimes, Schedstat
from .imc import MemoryControllers
from .likwid import Likwid
from .memory_io import Memory, StorageIO
from .node_load import Pressure, Steal
from .perf import Perf
from .power import Hwmon, Powercap
from .probe import ROOT, Probe
from .process_tree import ProcessTree
from .resctrl import Resctrl
from .rjms_accounting import oar, slurm

JOB, NODE = "job", "node"
#: Users of a probe: `pilotfish profile run`, and the daemon (itself or the keepers of its local jobs).
RUN, DAEMON = "profile run", "daemon"
BOTH = (RUN, DAEMON)
#: Samples over which the cost is averaged, and seconds between them.
SAMPLES, PERIOD_S = 20, 0.005
#: Samples of probes that run a command.
FEW_SAMPLES = 2


@dataclass(frozen=True, slots=True)
class ProbeEntry:
    """A probe of a job or the node: what it gives, its users (some of `BOTH`), and `looks`: samples to average."""

    name: str
    of: str
    gives: str
    make: Callable[[], Probe]
    looks: int = SAMPLES
    used_by: tuple[str, ...] = BOTH


@dataclass(frozen=True, slots=True)
class ProbeState:
    """The state of a probe on this machine.

    Args:
        missing: why it is not available or stepped back; None = it works.
        look_s: our CPU seconds per sample; begin_s: for start and stop, including the commands it starts.
    """

    name: str
    of: str
    gives: str
    used_by: tuple[str, ...]
    missing: str | None
    look_s: float | None = None
    begin_s: float | None = None


def entries(root: Path = ROOT) -> list[ProbeEntry]:
    """Return all probes, those that are always available first; `root` holds /proc and /sys."""
    return [
        ProbeEntry("schedstat", JOB, "each thread's time on and for a core, ns", Schedstat),
        ProbeEntry("psutil", JOB, "each thread's time on a core, 10 ms steps", PsutilTimes, used_by=(RUN,)),
        ProbeEntry("memory", JOB, "peak memory", Memory),
        ProbeEntry("io", JOB, "bytes read from and written to storage", StorageIO),
        ProbeEntry("steal", NODE, "CPU time taken by a virtual machine's host", Steal, used_by=(RUN,)),
        ProbeEntry(
            "cgroup", JOB, "throttling, stalls, memory of its own group", lambda: Cgroup(root), used_by=(DAEMON,)
        ),
        ProbeEntry(
            "pressure", NODE, "share of time stalled for CPU, memory, I/O", lambda: Pressure(root), used_by=(RUN,)
        ),
        ProbeEntry("perf", JOB, "instructions, IPC, last-level cache misses", lambda: Perf(root)),
        ProbeEntry("perf-imc", NODE, "bandwidth of the memory controllers", lambda: MemoryControllers(root)),
        ProbeEntry("likwid", NODE, "memory bandwidth (group MEM), IPC", lambda: Likwid(root)),
        ProbeEntry("resctrl", JOB, "memory bandwidth, last-level cache use (MBM)", lambda: Resctrl(root)),
        ProbeEntry("powercap", NODE, "energy of packages and memory (RAPL)", lambda: Powercap(root)),
        ProbeEntry("hwmon", NODE, "power of the node, by its own meter", lambda: Hwmon(root)),
        ProbeEntry("slurm", JOB, "CPU time, memory, energy of ended jobs (sacct)", slurm, FEW_SAMPLES, (DAEMON,)),
        ProbeEntry("oar", JOB, "run time and cores of ended jobs", oar, FEW_SAMPLES, ()),
    ]


def examine(entry: ProbeEntry) -> ProbeState:
    """Check whether a probe works here, and measure what it costs to observe this process with it."""
    probe = entry.make()
    finding = partial(ProbeState, entry.name, entry.of, entry.gives, entry.used_by)
    if (missing := probe.available()) is not None:
        return finding(missing)
    tree = ProcessTree(os.getpid())
    tree.refresh()
    before = _cpu_seconds()
    probe.start(tree, 0.0)
    begin_s, look_s, started = _cpu_seconds() - before, 0.0, time.monotonic()
    for _ in range(entry.looks):
        time.sleep(PERIOD_S)  # gives a command that was started time to see us at work
        before = _cpu_seconds()
        probe.sample(time.monotonic() - started)
        look_s += _cpu_seconds() - before
    before = _cpu_seconds()
    readings = probe.stop()
    begin_s += _cpu_seconds() - before
    problem = getattr(readings, "problem", "")
    if problem and not any(isinstance(value, float) for value in astuple(readings)):
        return finding(problem)
    return finding(None, look_s / entry.looks, begin_s)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this thread and of children that have been waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + children.ru_utime + children.ru_stime

"""Observing a running job, whichever process started it.

Rule: samples are paid for by pauses (see `sampling_budget`): the more a sample costs, the longer the next pause.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

from ..measurement import Measurement, inflation, load_of_others
from ..probes.cpu_time import Schedstat, thread_times
from ..probes.memory_io import Memory, StorageIO
from ..probes.node_load import OtherLoad, Pressure, Steal, cpu_times
from ..probes.probe import Probe, read_text
from ..probes.process_tree import ProcessTree
from .counters import Counters
from .sampling_budget import SHARE, SamplingBudget
from .threads import group_threads

#: Share of one core for samples; the rest of the node's share pays for start and finish.
SAMPLING_SHARE = 0.8 * SHARE
#: /proc/stat counts in steps of 10 ms: over fewer seconds than this it does not show how busy a CPU was.
SHORTEST_S = 0.5


class JobObserver:
    """Observes a job's process tree.

    Args:
        pid: the job's first process.
        reaper: pid of the subreaper that adopts its orphans (this process), or None.
        others: children that the reaper had before the job began.
        began: when it began, `time.monotonic()` seconds; None = now.
        interval_s: desired seconds between readings.
        node_type: the cluster file's name for this node, stored in the measurement.
        counters: hardware counters; None = none.
    """

    def __init__(
        self,
        pid: int,
        *,
        reaper: int | None = None,
        others: Collection[int] = (),
        began: float | None = None,
        interval_s: float = 0.1,
        node_type: str | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._began = time.monotonic() if began is None else began
        self._ago = time.monotonic() - self._began
        self._date = datetime.fromtimestamp(time.time() - self._ago, UTC).isoformat(timespec="seconds")
        self._node_type, self._interval = node_type, interval_s
        self._samples, self._budget = 0, SamplingBudget(SAMPLING_SHARE)
        self.tree = ProcessTree(pid, reaper, others)
        self._threads, self._memory, self._io = thread_times(), Memory(), StorageIO()
        self._steal, self._pressure = Steal(), Pressure()
        probes: tuple[Probe, ...] = (self._threads, self._memory, self._io, self._steal, self._pressure)
        self._probes = [probe for probe in probes if probe.available() is None]
        self._counters = counters
        self._cpus = frozenset(cpu_times())
        self._others = OtherLoad(self._cpus)
        self.tree.refresh()
        if counters is not None:
            counters.start(self.tree, self._now())
        for probe in self._probes:
            probe.start(self.tree, self._now())
        self._spent = time.thread_time()
        self._due = self._now() + interval_s

    @property
    def pause_s(self) -> float:
        """Seconds until the next sample: the interval, or more if a sample is expensive."""
        return max(0.0, self._due - self._now())

    def sample(self, *, last: bool = False) -> None:
        """Read all probes once; `last`: the job's first process has ended and has not been reaped."""
        self.tree.refresh()
        now = self._now()
        for probe in self._probes:
            probe.sample(now, last=last)
        if self._counters is not None:
            self._counters.sample(now, last=last)
        self._samples += 1
        spent = time.thread_time()
        self._due = max(self._now() + self._interval, self._budget.charge(spent - self._spent, self._now()))
        self._spent = spent

    def finish(
        self,
        *,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        most_resident: float = 0.0,
        exit_code: int | None = None,
    ) -> Measurement:
        """Return the measurement.

        Args:
            wall_s: duration of the job; None = until now.
            cpu_s: CPU seconds of the whole tree from wait4(2), without unreaped processes; None = unknown.
            most_resident: the largest process's peak, bytes, from wait4(2).
            exit_code: as a shell reports it; None = unknown.
        """
        wall_s = max(self._now() if wall_s is None else wall_s, 1e-6)
        step_s = max(self._interval, wall_s / self._samples if self._samples > 2 else 0.0)
        threads = group_threads(
            self._threads.stop(),
            wall_s,
            cpu_s,
            step_s=step_s,
            peak=self._threads.peak,
            stolen=self._steal.stop() if self._steal in self._probes else 0.0,
            traffic=self._counters.traffic if self._counters is not None else None,
        )
        read, written = self._io.stop()
        schedstat = isinstance(self._threads, Schedstat)
        used_s = sum(group.count * group.demand for group in threads.groups)
        company = None  # of a run too short to measure
        if self._cpus and wall_s >= SHORTEST_S:
            company = load_of_others(self._others.share(used_s), len(self._cpus), used_s / wall_s)
        resident = self._memory.stop() if self._samples > 1 else 0.0  # only before growth or after the end: unknown
        measured = Measurement(
            groups=threads.groups,
            wall_s=wall_s,
            isolated_s=threads.isolated_s,
            cpu_s=used_s,
            waiting=threads.waiting if schedstat else None,
            exit_code=exit_code,
            date=self._date,
            cpu_model=cpu_model(),
            interval_s=round(step_s, 3),
            memory_bytes=max(resident, most_resident) or None,
            node_type=self._node_type,
            company=company,
            method="schedstat" if schedstat else "psutil",
        )
        stalls = self._pressure.stop()
        if stalls and inflation(measured.company) == 1.0:  # alone: the node's stalls are the job's
            measured = replace(measured, strain=stalls, sources={"strain": "the node's pressure"})
        if self._counters is not None:
            measured = self._counters.stop(measured.cpu_s, wall_s).apply_to(measured)
        return replace(measured, read_bytes=read, written_bytes=written) if self._io in self._probes else measured

    def _now(self) -> float:
        return time.monotonic() - self._began


def cpu_model() -> str:
    """Return the processor's name from /proc/cpuinfo, "" if it has none."""
    line = (read_text("/proc/cpuinfo") or "").partition("model name")[2].partition("\n")[0]
    return line.partition(":")[2].strip()

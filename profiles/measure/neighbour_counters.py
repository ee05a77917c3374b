"""Hardware counters of jobs that an adapter runs on this node, within the node's budget.

Rule: no call waits. CPU time spent on counting, commands included, is paid for by a pause before the next reading or
the next job, one budget for the whole node; a job that does not get its turn is not counted. Leftovers of a crash end
by themselves (see `ExternalCounter`) or are removed by the next start (see `probes.resctrl`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..probes.probe import ROOT, stat_fields
from ..probes.process_tree import ProcessTree
from ..probes.resctrl import remove_stale_groups
from .counters import KINDS, NODE_WIDE, Counters, HardwareCounts, available_counters
from .sampling_budget import SamplingBudget

#: Share of one core; the rest of the node's budget belongs to the sampling of threads.
SHARE = 0.002
#: Expected CPU seconds of a command, until one has ended.
COMMAND_S = 0.05
#: Least seconds between samples of counted jobs.
SAMPLE_S = 1.0
#: HardwareCounts for less CPU time than this, a job's rates mean nothing: the kernel reports it in steps of 10 ms.
LEAST_S = 0.1


@dataclass(slots=True)
class _Job:
    """A counted job: when counting began, the CPU seconds that it had used by then, and its end (None = it runs)."""

    counters: Counters
    tree: ProcessTree
    began: float
    used_s: float
    ended: float | None = None


class NeighbourCounters:
    """Counts jobs by their keys. `names`: available counters; `missing`: why others are not.

    Args:
        wanted: names of the counters to use; None = all.
        root: directory that holds /proc and /sys.
        clock: seconds.
    """

    def __init__(
        self, wanted: Sequence[str] | None = None, root: Path = ROOT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.names, self.missing = available_counters(root, KINDS if wanted is None else wanted)
        self._root, self._clock = root, clock
        self._budget, self._command_s = SamplingBudget(SHARE), COMMAND_S
        self._jobs: dict[str, _Job] = {}
        self._sampled_at = float("-inf")
        self._seen_keys: set[str] = set()
        if "resctrl" in self.names:
            remove_stale_groups(root / "sys/fs/resctrl", root)

    def update(self, running: Mapping[str, int], alone: bool) -> None:
        """Begin to count one more job or sample the counted ones, within the budget; stop for jobs that have ended.

        Args:
            running: key -> pid of the first process of every job that may be counted.
            alone: whether at most one of these, and nothing else of ours, runs on this node.
        """
        for job in [job for key, job in self._jobs.items() if key not in running and job.ended is None]:
            with self._charged():
                job.ended = self._clock()
                job.counters.sample(job.ended - job.began, last=True)
                job.counters.request_stop()
        self._seen_keys &= running.keys()
        now = self._clock()
        if not self.names or now < self._budget.due:
            return
        if (new := next((key for key in running if key not in self._seen_keys), None)) is not None:
            self._seen_keys.add(new)
            with self._charged():
                self._begin(new, running[new], now, alone)
        elif now - self._sampled_at >= SAMPLE_S:
            self._sampled_at = now
            for job in [job for job in self._jobs.values() if job.ended is None]:
                with self._charged():
                    job.tree.refresh()
                    job.counters.sample(now - job.began)

    def counts(self, key: str) -> bool:
        """Return whether `collect` has, or will have, counts of a job."""
        return key in self._jobs

    def ready(self, key: str) -> bool:
        """Return whether `collect` returns at once for a job that has ended."""
        return self._jobs[key].counters.ready

    def collect(self, key: str, cpu_s: float) -> HardwareCounts:
        """Return the counts of a job that has ended, and forget it.

        Args:
            key: of the job.
            cpu_s: CPU seconds of the whole job.
        """
        job = self._jobs.pop(key)
        counted_s = cpu_s - job.used_s
        if job.ended is None or counted_s < LEAST_S:
            self._give_up(job)
            return HardwareCounts(notes=("the job was too short to be counted",))
        with self._charged():
            counts = job.counters.stop(counted_s, max(job.ended - job.began, LEAST_S), cpu_s)
        self._charge_commands(job)
        return counts

    def discard(self, key: str) -> None:
        """Stop counting a job and forget it."""
        self._give_up(self._jobs.pop(key))

    def close(self) -> None:
        """Stop counting all jobs."""
        for key in list(self._jobs):
            self.discard(key)

    @property
    def ended(self) -> list[str]:
        """Keys of the jobs that have ended and were neither collected nor discarded."""
        return [key for key, job in self._jobs.items() if job.ended is not None]

    @contextlib.contextmanager
    def _charged(self) -> Iterator[None]:
        """Charge the CPU seconds of this thread to the budget."""
        before = time.thread_time()
        try:
            yield
        finally:
            self._budget.charge(time.thread_time() - before, self._clock())

    def _begin(self, key: str, pid: int, now: float, alone: bool) -> None:
        """Begin to count a job, and charge the expected cost of its commands."""
        names = self.names if alone else [name for name in self.names if name not in NODE_WIDE]
        tree = ProcessTree(pid)
        tree.refresh()
        counters = Counters(self._root, names)
        used_s = sum(_cpu_seconds(member, self._root) for member in tree.threads)
        self._jobs[key] = _Job(counters, tree, now, used_s)
        counters.start(tree, 0.0)
        self._budget.charge(self._command_s * counters.commands, now)

    def _give_up(self, job: _Job) -> None:
        with self._charged():
            job.counters.give_up()
        self._charge_commands(job)

    def _charge_commands(self, job: _Job) -> None:
        """Replace the expected cost of a job's commands by the real one."""
        if job.counters.commands and job.counters.cost_s:
            self._budget.charge(job.counters.cost_s - self._command_s * job.counters.commands, self._clock())
            self._command_s = job.counters.cost_s / job.counters.commands


def _cpu_seconds(pid: int, root: Path) -> float:
    """Return the CPU seconds of a process and of its children that were waited for."""
    fields = stat_fields(pid, root)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if len(fields) > 14 else 0.0

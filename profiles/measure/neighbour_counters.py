"""Counters beside jobs that somebody else runs on this node, as many as the node's allowance pays for.

Rule: nothing here waits. What counting cost, commands included, is paid for by rest before the next look or the next
job, one pace for the whole node; a job that does not get its turn is not counted. What a crash left ends by itself (see
`probes.attached`), or is removed by the next that begins (see `probes.resctrl`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .counters import KINDS, NODE_WIDE, Counted, Counters, there
from .pace import Pace
from .probes.base import ROOT, read_text
from .probes.resctrl import sweep
from .probes.tree import ProcessTree

#: Of one core; the rest of the node's allowance is that of who samples each job's threads.
SHARE = 0.002
#: What a command is taken to cost, CPU seconds, until one has ended.
COMMAND_S = 0.05
#: Seconds between looks at jobs that are counted, where the allowance pays for them.
LOOK_S = 1.0
#: Counted for less CPU time than this, a job's rates mean nothing: the kernel tells it in steps of 10 ms.
LEAST_S = 0.1


@dataclass(slots=True)
class _Job:
    """One that is counted: since when, and the CPU seconds that it had used by then; until when, once it has ended."""

    counters: Counters
    tree: ProcessTree
    began: float
    used_s: float
    ended: float | None = None


class Alongside:
    """Counts jobs, by their keys. `names`: of the counters that are there; `missing`: why others are not.

    Args:
        wanted: names of the counters to use; None = all.
        root: where /proc and /sys are.
        clock: seconds.
    """

    def __init__(
        self,
        wanted: Sequence[str] | None = None,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names, self.missing = there(root, KINDS if wanted is None else wanted)
        self._root, self._clock = root, clock
        self._pace, self._command_s = Pace(SHARE), COMMAND_S
        self._jobs: dict[str, _Job] = {}
        self._looked = float("-inf")
        self._seen: set[str] = set()
        if "resctrl" in self.names:
            sweep(root / "sys/fs/resctrl", root)

    def follow(self, running: Mapping[str, int], alone: bool) -> None:
        """Begin to count one job more, or look at those that are counted, if that is paid for; end with who has ended.

        Args:
            running: key -> pid of the first process of every job that may be counted.
            alone: whether nothing else of ours runs on this node beside at most one of these.
        """
        for job in [job for key, job in self._jobs.items() if key not in running and job.ended is None]:
            with self._paying():
                job.ended = self._clock()
                job.counters.sample(job.ended - job.began, last=True)
                job.counters.ask()
        self._seen &= running.keys()
        now = self._clock()
        if not self.names or now < self._pace.due:
            return
        new = next((key for key in running if key not in self._seen), None)
        if new is not None:
            self._seen.add(new)
            with self._paying():
                self._begin(new, running[new], now, alone)
        elif now - self._looked >= LOOK_S:
            self._looked = now
            for job in [job for job in self._jobs.values() if job.ended is None]:
                with self._paying():
                    job.tree.refresh()
                    job.counters.sample(now - job.began)

    def counts(self, key: str) -> bool:
        """Whether there is, or will be, something to `take` of a job."""
        return key in self._jobs

    def ready(self, key: str) -> bool:
        """Whether what was counted of a job that has ended can be taken without waiting."""
        return self._jobs[key].counters.settled

    def take(self, key: str, cpu_s: float) -> Counted:
        """Return what was counted of a job that has ended, and let go of it.

        Args:
            cpu_s: CPU seconds of the whole job.
        """
        job = self._jobs.pop(key)
        counted_s = cpu_s - job.used_s
        if job.ended is None or counted_s < LEAST_S:
            self._give_up(job)
            return Counted(notes=("the job was too short to be counted",))
        with self._paying():
            found = job.counters.stop(counted_s, max(job.ended - job.began, LEAST_S), cpu_s)
        self._settle_cost(job)
        return found

    def drop(self, key: str) -> None:
        """Let go of a job, whatever was counted."""
        self._give_up(self._jobs.pop(key))

    def close(self) -> None:
        """Let go of all jobs."""
        for key in list(self._jobs):
            self.drop(key)

    @property
    def ended(self) -> list[str]:
        """Keys of the jobs that have ended, and were neither taken nor dropped yet."""
        return [key for key, job in self._jobs.items() if job.ended is not None]

    @contextlib.contextmanager
    def _paying(self) -> Iterator[None]:
        """Pay for the CPU seconds that something takes this thread."""
        before = time.thread_time()
        try:
            yield
        finally:
            self._pace.pay(time.thread_time() - before, self._clock())

    def _begin(self, key: str, pid: int, now: float, alone: bool) -> None:
        """Begin to count a job, and pay for what its commands are taken to cost."""
        names = self.names if alone else [name for name in self.names if name not in NODE_WIDE]
        tree = ProcessTree(pid)
        tree.refresh()
        counters = Counters(self._root, names)
        used_s = sum(_used(member, self._root) for member in tree.threads)
        self._jobs[key] = _Job(counters, tree, now, used_s)
        counters.start(tree, 0.0)
        self._pace.pay(self._command_s * counters.commands, now)

    def _give_up(self, job: _Job) -> None:
        with self._paying():
            job.counters.give_up()
        self._settle_cost(job)

    def _settle_cost(self, job: _Job) -> None:
        """Put what the commands of a job did cost in the place of what they were taken to."""
        if job.counters.commands and job.counters.cost_s:
            self._pace.pay(job.counters.cost_s - self._command_s * job.counters.commands, self._clock())
            self._command_s = job.counters.cost_s / job.counters.commands


def _used(pid: int, root: Path) -> float:
    """CPU seconds of a process and of its children that were waited for; from /proc/PID/stat, proc(5)."""
    fields = (read_text(root / f"proc/{pid}/stat") or "").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if len(fields) > 14 else 0.0

"""How cores are shared between jobs: a job of one process next to a job of three on one core.

Rule: shares are of the time that all four got, so that other load on the core cancels out; a share between those of the
two kinds of sharing is reported as unknown.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from ...simulate.model.cluster import CpuSharing
from .statistics import Figure

OTHERS = 3
#: Share of the job of one process: half of the core if jobs share it, a quarter if threads do.
BY_JOB, BY_THREAD = 0.5, 1 / (OTHERS + 1)
_UNSURE = 0.06
#: Arguments: seconds, and child processes; they also end with us.
_SPIN = """
import os, sys, time
seconds, children = float(sys.argv[1]), int(sys.argv[2])
for _ in range(children):
    if not os.fork():
        break
parent, end = os.getppid(), time.monotonic() + seconds
while time.monotonic() < end and os.getppid() == parent:
    pass
"""
_SETTLE_S = 0.2


def shares(cpu: int, seconds: float, runs: int) -> list[float]:
    """Return for each run the share of the core that the job of one process got.

    Args:
        cpu: of the core.
        seconds: of each run, > 0.
        runs: number of runs.

    Raises:
        OSError: a process could not be started, or the kernel has no schedstat.
    """
    whole = runs * seconds + 30.0
    with session(cpu, _SPIN, whole, 0) as one, session(cpu, _SPIN, whole, OTHERS - 1) as three:
        jobs, found = (_family(one.pid, 0), _family(three.pid, OTHERS - 1)), []
        for _ in range(runs):
            before = [_on_core(job) for job in jobs]
            time.sleep(seconds)
            single, rest = (_on_core(job) - was for job, was in zip(jobs, before, strict=True))
            found.append(single / max(1.0, single + rest))
        return found


def sharing_of(share: Figure) -> CpuSharing | None:
    """Return how cores are shared, None if the share fits neither kind."""
    if share.value > BY_JOB - (BY_JOB - BY_THREAD) / 2 + _UNSURE:
        return CpuSharing.PER_JOB
    if share.value < BY_THREAD + (BY_JOB - BY_THREAD) / 2 - _UNSURE:
        return CpuSharing.PER_THREAD
    return None


@contextlib.contextmanager
def session(cpu: int, code: str, *words: float) -> Iterator[subprocess.Popen[str]]:
    """Run Python code on one CPU in its own session; kill all its processes at the end.

    Args:
        cpu: of the session.
        code: Python source.
        words: its arguments.
    """
    argv = [sys.executable, "-I", "-S", "-c", code, *map(str, words)]
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
        process = subprocess.Popen(
            argv, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
    finally:
        os.sched_setaffinity(0, before)
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _family(pid: int, children: int) -> list[int]:
    """Wait until all processes of a job run, and return their pids."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        found = [child.pid for child in psutil.Process(pid).children()]
        if len(found) == children:
            time.sleep(_SETTLE_S)
            return [pid, *found]
        time.sleep(0.01)
    raise OSError(f"a job of {children + 1} processes did not start in time")


def _on_core(pids: list[int]) -> float:
    """Return the nanoseconds that processes were on a core (proc(5): /proc/PID/schedstat)."""
    return sum(float(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for pid in pids)

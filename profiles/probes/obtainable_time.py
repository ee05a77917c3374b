"""The CPU time that a job would get on CPUs that other processes keep busy, measured by trying.

Rule: nothing is tried on free CPUs. The scheduler of the kernel divides a busy CPU by priorities and control groups, so
counting processes is not enough; we run a process of our own with the priority that a job would have. The kernel moves
processes between busy CPUs, so in a short time one of them may look several times busier than another: all busy CPUs
have the mean.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from .node_load import cpu_times

#: Seconds of looking how busy the CPUs are, and of trying to compute on the busy ones.
LOOK_S, TRY_S = 0.1, 0.3
#: Share of its time from which on a CPU is busy.
BUSY = 0.15


def busy_shares(cpus: Collection[int]) -> dict[int, float]:
    """Return the share of its time that each CPU is busy now, [0, 1]; CPUs that cannot be read are left out."""
    before, began = cpu_times(), time.monotonic()
    time.sleep(LOOK_S)
    after, ticks = cpu_times(), (time.monotonic() - began) * os.sysconf("SC_CLK_TCK")
    both = before.keys() & after.keys() & set(cpus)
    return {cpu: min(1.0, (sum(after[cpu]) - sum(before[cpu])) / ticks) for cpu in sorted(both)}


def obtainable(busy: Mapping[int, float], seconds: float = TRY_S) -> dict[int, float]:
    """Return the share of each CPU's time that a process gets that always wants it, (0, 1]; 1 for CPUs that are free.

    Busy CPUs have the same share.

    One process computes on each busy CPU, all at once.

    Args:
        busy: see `busy_shares`.
        seconds: for which they compute.
    """
    tried = {cpu: _compute_on(cpu, seconds) for cpu, share in busy.items() if share >= BUSY}
    shares = [_answer(*process) for process in tried.values()]
    return {cpu: sum(shares) / len(shares) if cpu in tried else 1.0 for cpu in busy}


def _compute_on(cpu: int, seconds: float) -> tuple[int, int]:
    """Start a process that computes on a CPU; return its id and the pipe on which it answers."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.sched_setaffinity(0, {cpu})
        began, used = time.monotonic(), time.process_time()
        while (lasted := time.monotonic() - began) < seconds:
            pass
        os.write(writer, f"{(time.process_time() - used) / lasted:.4f}".encode())
    finally:
        os._exit(0)


def _answer(pid: int, reader: int) -> float:
    """Return the share that a process got; 1 if it could not compute there."""
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    with suppress(ValueError):
        return min(1.0, max(0.01, float(answer)))
    return 1.0

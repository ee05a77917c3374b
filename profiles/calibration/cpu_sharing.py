"""Measurement of how jobs share a core: their shares, and how long sleeping jobs wait (the constant `queueing`).

Rule: shares are relative to the time that all processes got, so that other load on the core cancels out. A share
between those of the two kinds of sharing is reported as unknown. The model of waiting is the engine's own simulation of
the same jobs. A slowdown compares two successive runs, so that changes of the machine spoil few of them; runs alone
that others slowed are discarded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from ...simulate.model.cluster import Cluster, CpuSharing, Node, NodeType
from ...simulate.model.job import Job, Profile, ThreadGroup, Workflow
from ...simulate.planning.simulation import Simulation
from .statistics import (
    Array,
    Constant,
    MeasuredNumber,
    Quality,
    half_width,
    intervals,
    jacobian,
    least_squares,
    quality,
)

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
#: The constant is used only with an interval at most this wide on either side, and a fit at least this good.
_SURE_MARGIN, _LEAST_R2 = 0.25, 0.5
_LOW, _HIGH = np.array([0.0]), np.array([10.0])
_STARTS = (0.1, 0.58, 2.0)
_LONG_S = 1e6
#: Measured mixes: the share of time that a job computes, and those of the others.
JOB_MIXES = [(u, others) for u in (0.3, 0.5, 0.7) for others in ((1.0,), (u,), (u, u))]
PERIOD_S, RUNS = 0.04, 3
#: Most periods that a turn of a job alone may take.
ALONE = 1.15
_LEAST_S, _FOREVER_S, _START_S = 0.1, 1e6, 30.0
_DUTY = """
import os, sys, time
u, seconds, period = map(float, sys.argv[1:])
parent, busy, begin = os.getppid(), time.thread_time(), time.monotonic()
turns, now = 0, begin
print("began", flush=True)
while now < begin + seconds and os.getppid() == parent:
    turns += 1
    while time.thread_time() < busy + turns * u * period:
        pass
    time.sleep((1 - u) * period)
    now = time.monotonic()
print((now - begin) / turns, flush=True)
"""


def shares(cpu: int, seconds: float, runs: int) -> list[float]:
    """Return for each run the share of the core that the job of one process got.

    Args:
        cpu: of the core.
        seconds: of each run, > 0.
        runs: number of runs.

    Raises:
        OSError: a process could not be started, or the kernel has no schedstat.
    """
    duration = runs * seconds + 30.0
    with session(cpu, _SPIN, duration, 0) as one, session(cpu, _SPIN, duration, OTHERS - 1) as three:
        jobs, core_shares = (_family(one.pid, 0), _family(three.pid, OTHERS - 1)), []
        for _ in range(runs):
            before = [_on_core(job) for job in jobs]
            time.sleep(seconds)
            single, rest = (_on_core(job) - was for job, was in zip(jobs, before, strict=True))
            core_shares.append(single / max(1.0, single + rest))
        return core_shares


def sharing_of(share: MeasuredNumber) -> CpuSharing | None:
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
        child_pids = [child.pid for child in psutil.Process(pid).children()]
        if len(child_pids) == children:
            time.sleep(_SETTLE_S)
            return [pid, *child_pids]
        time.sleep(0.01)
    raise OSError(f"a job of {children + 1} processes did not start in time")


def _on_core(pids: list[int]) -> float:
    """Return the nanoseconds that processes were on a core (proc(5): /proc/PID/schedstat)."""
    return sum(float(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for pid in pids)


@dataclass(frozen=True, slots=True)
class WaitSample:
    """A job next to others on one core, all of one thread: utilisations alone, and its time with them / alone."""

    utilisation: float
    others: tuple[float, ...]
    slowdown: float


@dataclass(frozen=True, slots=True)
class WaitFit:
    """`queueing`, and how well it describes the slowdowns."""

    strength: Constant
    quality: Quality
    waits: tuple[WaitSample, ...]
    fitted: tuple[float, ...]

    @property
    def trusted(self) -> bool:
        """The constant is determined, and the model describes the slowdowns."""
        margin, r2 = half_width(self.strength), self.quality.r2
        return margin is not None and margin <= _SURE_MARGIN and r2 is not None and r2 >= _LEAST_R2


def slowdown(strength: float, utilisation: float, others: Sequence[float]) -> float:
    """Return the engine's slowdown of a job next to others on a core that jobs share.

    Args:
        strength: the constant `queueing`.
        utilisation: of the job alone, (0, 1).
        others: utilisations of the others.
    """
    kind = NodeType("core", 1, 1.0, 1.0, cpu_sharing=CpuSharing.PER_JOB, queueing=strength)
    jobs = tuple(
        Job(f"j{i}", Profile((ThreadGroup(1, u if i == 0 else u * _LONG_S, u),)))
        for i, u in enumerate((utilisation, *others))
    )
    cluster = Cluster("one", (Node("n", kind),), float("inf"))
    return float(Simulation(Workflow("w", jobs), cluster).run("loadavg").finish[0])


def fit_waiting(waits: Sequence[WaitSample]) -> WaitFit | None:
    """Return the strength that best fits the logarithms of the slowdowns; None with fewer than two."""
    if len(waits) < 2:
        return None
    mixes = dict.fromkeys((wait.utilisation, wait.others) for wait in waits)

    def model(at: Array) -> Array:
        predicted = {mix: slowdown(max(0.0, float(at[0])), *mix) for mix in mixes}
        return np.log([predicted[wait.utilisation, wait.others] for wait in waits])

    times = np.array([wait.slowdown for wait in waits])
    log_times = np.log(times)
    ends = [least_squares(model, log_times, np.array([start]), _LOW, _HIGH) for start in _STARTS]
    best = min(ends, key=lambda end: end[1])[0]
    fitted = model(best)
    (strength,) = intervals(best, jacobian(model, best, _LOW, _HIGH), log_times - fitted)
    return WaitFit(strength, quality(times, np.exp(fitted)), tuple(waits), tuple(np.exp(fitted).tolist()))


def measure_waits(cpu: int, seconds: float) -> list[WaitSample]:
    """Return the slowdowns of all mixes on one CPU, run by run, without disturbed runs.

    Args:
        cpu: of all jobs.
        seconds: for all runs together.

    Raises:
        OSError: a process could not be started, or did not end in time.
    """
    budget_s = max(_LEAST_S, seconds / (2 * RUNS * len(JOB_MIXES)))
    samples = []
    for utilisation, others in JOB_MIXES * RUNS:
        alone = _turn_s(cpu, utilisation, (), budget_s)
        if alone <= ALONE * PERIOD_S:
            samples.append(WaitSample(utilisation, others, _turn_s(cpu, utilisation, others, budget_s) / alone))
    return samples


def _turn_s(cpu: int, utilisation: float, others: Sequence[float], seconds: float) -> float:
    """Return the seconds of one period of computing and sleeping."""
    with contextlib.ExitStack() as stack:
        for other in others:
            process = stack.enter_context(session(cpu, _DUTY, other, _FOREVER_S, PERIOD_S))
            if process.stdout is None or process.stdout.readline() != "began\n":
                raise OSError("a duty-cycle job could not be started")
        job = stack.enter_context(session(cpu, _DUTY, utilisation, seconds, PERIOD_S))
        try:
            output, _ = job.communicate(timeout=_START_S + 20 * seconds)
        except subprocess.TimeoutExpired:
            raise OSError("a duty-cycle job did not end in time") from None
        words = output.split()
        if len(words) != 2:
            raise OSError("a duty-cycle job could not be run")
        return float(words[1])

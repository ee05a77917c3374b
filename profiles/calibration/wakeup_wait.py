"""How long sleeping jobs wait for a core when they wake: the constant `queueing`, fitted to jobs that share one core.

Rule: the model is the engine's own simulation of the same jobs; there is no second formula. A slowdown compares two
successive runs, so that changes of the machine spoil few of them; runs alone that others slowed are discarded.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.model.cluster import Cluster, CpuSharing, Node, NodeType
from ...simulate.model.job import Job, Profile, ThreadGroup, Workflow
from ...simulate.planning.simulation import Simulation
from .cpu_sharing import session
from .statistics import Array, Constant, Quality, half_width, intervals, jacobian, least_squares, quality

#: The constant is used only with an interval at most this wide on either side, and a fit at least this good.
_SURE, _LEAST_R2 = 0.25, 0.5
_LOW, _HIGH = np.array([0.0]), np.array([10.0])
_STARTS = (0.1, 0.58, 2.0)
_LONG_S = 1e6
#: Measured mixes: the share of time that a job computes, and those of the others.
JOB_MIXES = [(u, beside) for u in (0.3, 0.5, 0.7) for beside in ((1.0,), (u,), (u, u))]
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


@dataclass(frozen=True, slots=True)
class WaitSample:
    """A job next to others on one core, all of one thread: utilisations alone, and its time with them / alone."""

    utilisation: float
    beside: tuple[float, ...]
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
        return margin is not None and margin <= _SURE and r2 is not None and r2 >= _LEAST_R2


def slowdown(strength: float, utilisation: float, beside: Sequence[float]) -> float:
    """Return the engine's slowdown of a job next to others on a core that jobs share.

    Args:
        strength: the constant `queueing`.
        utilisation: of the job alone, (0, 1).
        beside: utilisations of the others.
    """
    kind = NodeType("core", 1, 1.0, 1.0, cpu_sharing=CpuSharing.PER_JOB, queueing=strength)
    jobs = tuple(
        Job(f"j{i}", Profile((ThreadGroup(1, u if i == 0 else u * _LONG_S, u),)))
        for i, u in enumerate((utilisation, *beside))
    )
    cluster = Cluster("one", (Node("n", kind),), float("inf"))
    return float(Simulation(Workflow("w", jobs), cluster).run("loadavg").finish[0])


def fit_waiting(waits: Sequence[WaitSample]) -> WaitFit | None:
    """Return the strength that best fits the logarithms of the slowdowns; None with fewer than two."""
    if len(waits) < 2:
        return None
    mixes = dict.fromkeys((wait.utilisation, wait.beside) for wait in waits)

    def model(at: Array) -> Array:
        predicted = {mix: slowdown(max(0.0, float(at[0])), *mix) for mix in mixes}
        return np.log([predicted[wait.utilisation, wait.beside] for wait in waits])

    times = np.array([wait.slowdown for wait in waits])
    seen = np.log(times)
    ends = [least_squares(model, seen, np.array([start]), _LOW, _HIGH) for start in _STARTS]
    best = min(ends, key=lambda end: end[1])[0]
    fitted = model(best)
    (strength,) = intervals(best, jacobian(model, best, _LOW, _HIGH), seen - fitted)
    return WaitFit(strength, quality(times, np.exp(fitted)), tuple(waits), tuple(np.exp(fitted).tolist()))


def measure_waits(cpu: int, seconds: float) -> list[WaitSample]:
    """Return the slowdowns of all mixes on one CPU, run by run, without disturbed runs.

    Args:
        cpu: of all jobs.
        seconds: for all runs together.

    Raises:
        OSError: a process could not be started, or did not end in time.
    """
    each = max(_LEAST_S, seconds / (2 * RUNS * len(JOB_MIXES)))
    found = []
    for utilisation, beside in JOB_MIXES * RUNS:
        alone = _turn_s(cpu, utilisation, (), each)
        if alone <= ALONE * PERIOD_S:
            found.append(WaitSample(utilisation, beside, _turn_s(cpu, utilisation, beside, each) / alone))
    return found


def _turn_s(cpu: int, utilisation: float, beside: Sequence[float], seconds: float) -> float:
    """Return the seconds of one period of computing and sleeping."""
    with contextlib.ExitStack() as stack:
        for other in beside:
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

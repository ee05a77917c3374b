"""Jobs that compute and sleep by turns, beside others on one core: what `queueing` is fitted to.

Rule: a slowdown compares two runs one after the other, so that a machine that changes meanwhile spoils few of them; one
that others slowed while it was to be alone does not count.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence

from .sharing import session
from .waiting import Wait

#: Shares of the time that the job computes; what is beside it: one that never sleeps, or one or two like it.
UTILISATIONS = (0.3, 0.5, 0.7)
PERIOD_S, RUNS = 0.04, 3
#: A turn of a job that is alone may take so many periods.
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


def company() -> list[tuple[float, tuple[float, ...]]]:
    """Return what is measured: a job's utilisation, and those of the jobs beside it."""
    return [(u, beside) for u in UTILISATIONS for beside in ((1.0,), (u,), (u, u))]


def measure(cpu: int, seconds: float) -> list[Wait]:
    """Return the slowdowns of all company on one CPU, run by run, but for those that others disturbed.

    Raises:
        OSError: a process could not be started, or did not end in time.
    """
    mixes = company()
    each = max(_LEAST_S, seconds / (2 * RUNS * len(mixes)))
    found = []
    for _ in range(RUNS):
        for utilisation, beside in mixes:
            alone = _turn(cpu, utilisation, (), each)
            if alone <= ALONE * PERIOD_S:
                found.append(Wait(utilisation, beside, _turn(cpu, utilisation, beside, each) / alone))
    return found


def _turn(cpu: int, utilisation: float, beside: Sequence[float], seconds: float) -> float:
    """Seconds of one turn of computing and sleeping."""
    with contextlib.ExitStack() as stack:
        for other in beside:
            _began(stack.enter_context(session(cpu, _DUTY, other, _FOREVER_S, PERIOD_S)))
        job = stack.enter_context(session(cpu, _DUTY, utilisation, seconds, PERIOD_S))
        try:
            said, _ = job.communicate(timeout=_START_S + 20 * seconds)
        except subprocess.TimeoutExpired:
            raise OSError("a job that computes and sleeps did not end in time") from None
        words = said.split()
        if len(words) != 2:
            raise OSError("a job that computes and sleeps could not be run")
        return float(words[1])


def _began(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != "began\n":
        raise OSError("a job that computes and sleeps could not be started")

"""What a process gets of busy CPUs: real processes that compute next to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import pytest

from pilotfish.profiles.probes.obtainable_time import BUSY, busy_shares, obtainable

CPU = min(os.sched_getaffinity(0))
SPIN = f"import os; os.sched_setaffinity(0, {{{CPU}}}); print(flush=True); input()\nwhile True: pass"


@contextmanager
def others(number: int, *prefix: str) -> Iterator[None]:
    """Processes that want all of one CPU, from when all of them are there."""
    argv = [*prefix, sys.executable, "-ISc", SPIN]
    running = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(number)]
    try:
        for one in running:
            assert one.stdout and one.stdout.readline()
        for one in running:
            assert one.stdin
            one.stdin.write(b"\n")
            one.stdin.flush()
        yield
    finally:
        for one in running:
            one.kill()
            one.communicate()


pytestmark = pytest.mark.xdist_group("machine")


@pytest.mark.real
@pytest.mark.parametrize("number", [1, 3])
def test_a_busy_cpu_is_shared_with_those_that_compute(number: int) -> None:
    with others(number):
        busy = busy_shares({CPU})
        assert busy[CPU] > 0.6
        assert obtainable({CPU: 1.0})[CPU] < 1.2 / (number + 1) + 0.1


@pytest.mark.real
def test_nice_processes_leave_more_than_others() -> None:
    left = dict[tuple[str, ...], list[float]]()
    for prefix in 5 * [("nice", "-n", "15"), ()]:  # in turns, as the machine may do other things meanwhile
        with others(3, *prefix):
            left.setdefault(prefix, []).append(obtainable({CPU: 1.0})[CPU])
    assert median(left[()]) < median(left["nice", "-n", "15"])


@pytest.mark.real
def test_busy_cpus_have_the_same_share_and_free_ones_all_of_their_time() -> None:
    """The kernel moves processes: what one CPU gave in a moment must not draw all jobs to it."""
    second = max(os.sched_getaffinity(0))
    if second == CPU:
        pytest.skip("there is one CPU that we may use: shares of two CPUs were NOT compared")
    with others(5):
        left = obtainable({CPU: 1.0, second: 1.0, 10**6: 0.0})
    assert left[CPU] == left[second] < 0.9 and left[10**6] == 1.0


@pytest.mark.real
def test_a_free_cpu_is_not_tried_and_an_absent_one_is_not_there() -> None:
    assert obtainable({CPU: BUSY / 2}, seconds=1e9) == {CPU: 1.0}
    assert busy_shares({10**6}) == {}
    assert obtainable({10**6: 1.0}, seconds=0.01) == {10**6: 1.0}

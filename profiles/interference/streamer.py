"""A program that streams memory next to a job at a given pressure: `streamer.py CPU PRESSURE SIZE`.

Rule: it answers each line on stdin with "BYTES SECONDS", the bytes moved and the core time since the last answer, and
ends when stdin closes, so it does not outlive its parent.
"""

from __future__ import annotations

import os
import select
import sys
import time

#: Bytes of one copy: well under a millisecond, so that pressure is even and answers are immediate.
CHUNK = 1 << 20
#: Shortest sleep, seconds; shorter ones accumulate because the kernel's timers are inexact.
LEAST_SLEEP_S = 0.001


def stream(pressure: float, size: int) -> None:
    """Copy one buffer to another for a share of the time.

    Args:
        pressure: the share, (0, 1].
        size: of each buffer, bytes.
    """
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\2") * size)
    questions = select.poll()
    questions.register(sys.stdin, select.POLLIN)
    at = moved = 0
    before, owed = time.thread_time(), 0.0
    while True:
        began = time.perf_counter()
        target[at : at + CHUNK] = source[at : at + CHUNK]
        owed += (time.perf_counter() - began) * (1 / pressure - 1)
        at, moved = (at + CHUNK) % size, moved + 2 * CHUNK
        if owed > LEAST_SLEEP_S:
            slept = time.perf_counter()
            time.sleep(owed)
            owed -= time.perf_counter() - slept
        if questions.poll(0):
            if not sys.stdin.readline():
                return
            now = time.thread_time()
            print(moved, now - before, flush=True)
            moved, before = 0, now


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    stream(float(sys.argv[2]), int(sys.argv[3]) // CHUNK * CHUNK)

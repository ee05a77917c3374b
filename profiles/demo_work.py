"""Small real programs for the demo: each does a fixed amount of work, however busy the machine is.

work.py cpu SECONDS                  compute until SECONDS of CPU time are used
work.py stream MEGABYTES GIGABYTES   copy a buffer of MEGABYTES until GIGABYTES went to and from memory
work.py duty UTILISATION SECONDS     compute and sleep in turns; takes SECONDS on an idle machine
work.py sleep SECONDS                sleep
work.py bandwidth SECONDS            print the bytes/s that `stream` moves
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD_S = 0.04


def compute(until: float) -> None:
    """Compute until this thread has used `until` seconds of CPU time, including its start."""
    while time.thread_time() < until:
        pass


def stream(megabytes: float, gigabytes: float) -> None:
    """Copy between two buffers; each copy reads one and writes the other."""
    size = int(megabytes * 1e6)
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\2") * size)
    for _ in range(max(1, round(gigabytes * 1e9 / (2 * size)))):
        target[:] = source


def duty(utilisation: float, seconds: float) -> None:
    """Compute for a share of each period and sleep for the rest."""
    periods = max(1, round(seconds / PERIOD_S))
    for i in range(1, periods + 1):
        compute(i * utilisation * seconds / periods)
        time.sleep((1 - utilisation) * seconds / periods)


def bandwidth(seconds: float) -> None:
    """Print the bytes/s that `stream` moves with buffers of 64 MB, per second of CPU time: others may use the CPU."""
    size = 64_000_000
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\2") * size)
    copies, until, begin = 0, time.perf_counter() + seconds, time.thread_time()
    while not copies or time.perf_counter() < until:
        target[:] = source
        copies += 1
    print(2 * size * copies / (time.thread_time() - begin))


COMMANDS: dict[str, tuple[Callable[..., None], int]] = {
    "cpu": (compute, 1),
    "stream": (stream, 2),
    "duty": (duty, 2),
    "sleep": (time.sleep, 1),
    "bandwidth": (bandwidth, 1),
}


def main(words: list[str]) -> int:
    """Run a program by its command line; return 64 if it is unknown."""
    command, arity = COMMANDS.get(words[0] if words else "", (print, -1))
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        numbers = []
    if len(numbers) != arity:
        print(__doc__, file=sys.stderr)
        return 64
    command(*numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run a program next to a memory streamer, to measure its sensitivity and its pressure.

Rule: each run next to the streamer is compared with one alone just before it, because contention on shared hosts
changes within minutes. The streamer has a core to itself.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from ...formats.text import percent
from ...machine_share import affinity, usable_cpus, usable_memory
from ...simulate.errors import ConfigError
from ..calibration.node_hardware import last_caches
from ..measure.command import CommandError, measure
from ..measure.observer import cpu_model
from .scores import RunNextToStreamer, Scores, levels, pressure_of

PRESSURES = (0.25, 0.5, 1.0)
#: The streamer's rate alone is measured over so many seconds before each run.
ALONE_S = 0.4
PATIENCE_S = 30.0
#: Bounds of its two buffers, bytes, which are as large as the last-level cache, and their share of the memory.
SMALLEST, LARGEST, SHARE_OF_MEMORY = 64 << 20, 512 << 20, 1 / 16
#: Least CPU seconds of a meaningful run.
SHORTEST_S = 0.05


class CoRunError(CommandError):
    """There are no scores; `exit_code` is the program's, if it failed, else 1."""


class Streamer:
    """A streamer on `cpu`; leaving the context ends it."""

    def __init__(self, cpu: int, pressure: float, size: int) -> None:
        script = str(Path(__file__).with_name("streamer.py"))
        argv, pipe = [sys.executable, "-IS", script, str(cpu), str(pressure), str(size)], subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True)

    def __enter__(self) -> Streamer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def rate(self) -> float:
        """Return the bytes/s of core time that it moved since the last call. Raises CoRunError."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("\n")
            process.stdin.flush()
        answered, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        words = process.stdout.readline().split() if answered else []
        if len(words) != 2:
            raise CoRunError("the memory streamer does not answer")
        return float(words[0]) / max(float(words[1]), 1e-9)

    def rate_over(self, seconds: float) -> float:
        """Return the bytes/s of core time that it moves over the next seconds."""
        self.rate()
        time.sleep(seconds)
        return self.rate()


def co_run(
    name: str,
    argv: Sequence[str],
    *,
    rounds: int = 3,
    cpus: Sequence[int] | None = None,
    stdout: IO[str] | int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Scores:
    """Run `argv` alone and next to a streamer at each of PRESSURES, `rounds` times, and return its scores.

    Args:
        name: of the program.
        argv: the command and its arguments.
        rounds: runs at each pressure, >= 1.
        cpus: CPUs that it may use; None = all of ours but the last, which is the streamer's.
        stdout: destination of its standard output; None = ours.
        progress: called with a line before each step.

    Raises:
        ConfigError: there is no CPU left for the streamer.
        CommandError, CoRunError: the program cannot be started, fails, or is too short.
    """
    program_cpus, streaming = _places(cpus)
    date, size = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), buffer_size()
    progress(f"memory streamer on CPU {streaming}, two buffers of {size >> 20} MiB: how it slows another one")
    calibration = [(pressure, _slowed(pressure, streaming, program_cpus[0], size)) for pressure in PRESSURES]
    runs = []
    for i in range(rounds):
        for pressure in PRESSURES:
            progress(f"round {i + 1} of {rounds}: alone, then next to {percent(pressure)} of a streamer")
            alone_s = _core_time(argv, program_cpus, stdout)
            with Streamer(streaming, pressure, size) as streamer:
                before = streamer.rate_over(ALONE_S)
                beside_s = _core_time(argv, program_cpus, stdout)
                runs.append(RunNextToStreamer(pressure, alone_s, beside_s, before, streamer.rate()))
    effects = levels(runs)
    return Scores(name, effects, pressure_of(effects[-1].slowed, calibration), rounds, date, cpu_model())


def buffer_size() -> int:
    """Return the size of each of the streamer's buffers on this machine, bytes."""
    most = min(LARGEST, int(SHARE_OF_MEMORY * usable_memory()))
    return max(1 << 20, min(most, max(SMALLEST, *(size for _, size in last_caches([0])), 0)))


def _places(cpus: Sequence[int] | None) -> tuple[list[int], int]:
    all_cpus = usable_cpus() if cpus is None else affinity()
    program_cpus = all_cpus[:-1] if cpus is None else sorted(cpus)
    free_cpus = [cpu for cpu in all_cpus if cpu not in program_cpus]
    if not program_cpus or not free_cpus:
        allowed = "at least one for the program and one for the streamer"
        raise ConfigError("cpus", "", f"found {','.join(map(str, all_cpus))}, no CPU is left for the streamer", allowed)
    return program_cpus, free_cpus[-1]


def _slowed(pressure: float, one: int, other: int, size: int) -> float:
    """Return the core time factor of a streamer next to another one of that pressure."""
    with Streamer(one, 1.0, size) as streamer:
        alone = streamer.rate_over(ALONE_S)
        with Streamer(other, pressure, size) as neighbour:
            neighbour.rate()
            return alone / streamer.rate_over(ALONE_S)


def _core_time(argv: Sequence[str], cpus: Sequence[int], stdout: IO[str] | int | None) -> float:
    """Return the CPU seconds of one run. Raises CoRunError if it failed or was too short."""
    code, usage = measure(argv, cpus=cpus, stdout=stdout)
    if code:
        raise CoRunError(f"{argv[0]} ended with exit code {code}: there are no scores", code)
    if usage.cpu_s < SHORTEST_S:
        least = f"at least {SHORTEST_S:g} CPU seconds, better a few seconds"
        raise CoRunError(f"{argv[0]} used a core for {usage.cpu_s:.3f} s, too short to measure (allowed: {least})")
    return usage.cpu_s

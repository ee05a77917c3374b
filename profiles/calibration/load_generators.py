"""Compiled loops that load a core or the memory, run by threads side by side, each on its own CPU.

Rule: all threads begin together, and each is timed on its own. Memory is touched by the thread that streams it, or by
one elsewhere for remote memory. The loops release Python's lock. In mixes of tasks that stream at different rates, a
task's rate is measured alone, on the same node and day.
Source: J. McCalpin, STREAM (1995): triad, a = b + s * c, 24 bytes an element, reads for ownership not counted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
from numba import njit

from .fits import Mix
from .statistics import Array, figure

#: Bytes of a triad's element, as STREAM counts them.
BYTES = 24
#: Elements between two stretches of computing.
BLOCK = 512
STEPS = 1_000_000
#: Does a piece of work and returns its amount.
Chunk = Callable[[], float]
Arrays = tuple[Array, Array, Array]
#: A thread with its core for this share of the time is undisturbed; runs that suffice for a number.
ALONE, LEAST = 0.95, 3
#: Computing steps after each block of a triad: from pure streaming to hardly any traffic; those of the other tasks.
EXTRAS, RATES_OF_OTHERS = (0, 100, 200, 400, 800, 1600, 3200, 6400), (0, 200, 800)
MOST_OTHERS, _MIX_RUNS, SHORTEST_S = 3, 3, 0.01


@njit(nogil=True)
def triad(a: Any, b: Any, c: Any, factor: float, extra: int) -> float:
    """Compute a = b + factor * c, with `extra` dependent steps after each block to lower the bandwidth."""
    x = factor  # unknown at compile time, so that the steps are not optimised away
    for begin in range(0, len(a), BLOCK):
        for i in range(begin, min(begin + BLOCK, len(a))):
            a[i] = b[i] + factor * c[i]
        for _ in range(extra):
            x = x * 0.999999 + 1e-6
    return x


@njit(nogil=True)
def compute(seed: int) -> float:
    """Run STEPS dependent steps of integer and floating-point work without memory traffic."""
    state, x = seed, 0.5
    for _ in range(STEPS):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = x * 0.75 + (state & 1023) * 2.0**-12
    return x


@dataclass(frozen=True, slots=True)
class LoadRun:
    """Work per second of each thread, and the least share of time that a thread was on its core."""

    rates: tuple[float, ...]
    on_core: float


def side_by_side(cpus: Sequence[int], prepare: Callable[[int], Chunk], seconds: float, runs: int) -> list[LoadRun]:
    """Return the runs of threads side by side.

    Args:
        cpus: one for each thread.
        prepare: called in thread i on its CPU; returns the function that it repeats.
        seconds: of each run, > 0.
        runs: number of runs.
    """
    gate, stopped = threading.Barrier(len(cpus)), threading.Event()

    def member(number: int) -> list[tuple[float, float]]:
        keep_to(cpus[number])
        try:
            chunk, rates = prepare(number), []
            for _ in range(runs):
                gate.wait()
                rates.append(_rate(chunk, seconds, stopped))
            return rates
        except BaseException:
            gate.abort()
            raise

    with ThreadPoolExecutor(len(cpus)) as pool:
        try:
            by_thread = list(pool.map(member, range(len(cpus))))
        except BaseException:  # above all an interrupt: do not wait for the remaining runs
            stopped.set()
            gate.abort()
            raise
    return [
        LoadRun(tuple(rate for rate, _ in run), min(share for _, share in run)) for run in zip(*by_thread, strict=True)
    ]


def undisturbed(runs: Sequence[LoadRun]) -> list[LoadRun]:
    """Return the runs with all threads on their cores for ALONE of the time, or else the LEAST best ones."""
    least = sorted((run.on_core for run in runs), reverse=True)[:LEAST][-1]
    return [run for run in runs if run.on_core >= min(ALONE, least)]


def keep_to(cpu: int) -> None:
    """Pin the calling thread to a CPU (sched_setaffinity(2): 0 is the calling thread)."""
    os.sched_setaffinity(0, {cpu})


def _rate(chunk: Chunk, seconds: float, stopped: threading.Event) -> tuple[float, float]:
    amount, computed, begin = 0.0, time.thread_time(), time.perf_counter()
    while ((now := time.perf_counter()) < begin + seconds and not stopped.is_set()) or not amount:
        amount += chunk()
    return amount / (now - begin), (time.thread_time() - computed) / (now - begin)


def compute_chunk() -> float:
    """Run the reference loop and return its steps."""
    compute(12345)
    return STEPS


def streaming(size: int, extra: int = 0, arrays: Arrays | None = None) -> Chunk:
    """Return a function that runs a piece of a triad and returns its bytes.

    Args:
        size: elements of each array, >= 1.
        extra: computing steps after each block, >= 0.
        arrays: touched elsewhere; None = new ones, touched here.
    """
    a, b, c = touched(size) if arrays is None else arrays
    step = 1 << 19  # about a millisecond, so that Python's lock is rarely held
    turns = cycle([(a[i : i + step], b[i : i + step], c[i : i + step]) for i in range(0, size, step)])

    def chunk() -> float:
        piece = next(turns)
        triad(*piece, 3.0, extra)
        return float(BYTES * len(piece[0]))

    return chunk


def touched(size: int) -> Arrays:
    """Return three arrays whose pages are on the memory node of the calling thread (first touch)."""
    return np.full(size, 1.0), np.full(size, 2.0), np.full(size, 3.0)


def touched_from(cpu: int, size: int) -> Arrays:
    """Return such arrays, touched by a thread on another CPU."""
    with ThreadPoolExecutor(1, initializer=keep_to, initargs=(cpu,)) as pool:
        return pool.submit(touched, size).result()


def warm_up() -> None:
    """Compile the loops before anything is measured."""
    compute(1)
    triad(*touched(BLOCK), 3.0, 1)


def mixes(cpus: int) -> Iterator[list[int]]:
    """Yield the mixes for so many cores, as the computing steps of each task.

    The first task next to one to three others; then halves of all cores; then twice as many tasks as cores.
    """
    for others, extra, rate in product(range(1, min(MOST_OTHERS, cpus - 1) + 1), EXTRAS, RATES_OF_OTHERS):
        yield [extra, *[rate] * others]
    if cpus > MOST_OTHERS + 1:
        for extra in EXTRAS:
            yield [EXTRAS[0] if i % 2 else extra for i in range(cpus)]
    yield [EXTRAS[0]] * (2 * cpus)


def measure_mixes(cpus: Sequence[int], seconds: float, size: Callable[[int], int]) -> list[Mix]:
    """Return every mix.

    Args:
        cpus: of one memory channel, at least 2.
        seconds: for all mixes.
        size: number of tasks -> elements of each array of one; arrays should be larger than the caches.
    """
    array_count = min(MOST_OTHERS, len(cpus) - 1) + 1
    plans = list(mixes(len(cpus)))
    run_s = max(SHORTEST_S, seconds / (_MIX_RUNS * (len(EXTRAS) + len(plans))))
    arrays = [touched_from(cpu, size(2)) for cpu in cpus[:array_count]]

    def rates(extras: Sequence[int]) -> list[float]:
        """Bytes/s of each task, all of them at once."""
        tasks = len(extras)

        def prepare(i: int) -> Chunk:
            array = arrays[i] if tasks <= array_count else None
            return streaming(size(2) if array else size(tasks), extras[i], array)

        runs = side_by_side([cpus[i % len(cpus)] for i in range(tasks)], prepare, run_s, _MIX_RUNS)
        return [figure(task).value for task in zip(*(run.rates for run in undisturbed(runs)), strict=True)]

    alone = {extra: rates([extra])[0] / 1e6 for extra in EXTRAS}
    return [
        Mix(len(cpus), tuple(alone[task] for task in tasks),
            tuple(rate / 1e6 / alone[task] for task, rate in zip(tasks, rates(tasks), strict=True)))
        for tasks in plans
    ]  # fmt: skip

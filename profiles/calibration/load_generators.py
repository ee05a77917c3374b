"""Threads that work side by side, each kept to a CPU of its own, for a while.

Rule: all begin together, and each is counted over its own time; memory is touched by the thread that streams it,
or by one elsewhere where remote memory is meant.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from . import kernels
from .figures import Array

Chunk = Callable[[], float]  #: does a little, returns how much
Arrays = tuple[Array, Array, Array]
#: A thread is alone that has its core for this share of the time; so many runs in which all are do for a number.
ALONE, LEAST = 0.95, 3


@dataclass(frozen=True, slots=True)
class Run:
    """What each thread did a second, and the share of the time that each was on its core, the least of them."""

    rates: tuple[float, ...]
    on_core: float


def side_by_side(cpus: Sequence[int], prepare: Callable[[int], Chunk], seconds: float, runs: int) -> list[Run]:
    """Return what threads did side by side, run by run.

    Args:
        cpus: one for each thread.
        prepare: called in thread i, kept to its CPU; returns what it does again and again.
        seconds: of each run, > 0.
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
        except BaseException:  # an interrupt above all: nobody waits for the rest of it
            stopped.set()
            gate.abort()
            raise
    return [Run(tuple(rate for rate, _ in run), min(share for _, share in run)) for run in zip(*by_thread, strict=True)]


def undisturbed(runs: Sequence[Run]) -> list[Run]:
    """Return the runs in which nobody else was on the cores for more than a twentieth; LEAST of them at any rate, then
    those that were disturbed least."""
    least = sorted((run.on_core for run in runs), reverse=True)[:LEAST][-1]
    return [run for run in runs if run.on_core >= min(ALONE, least)]


def keep_to(cpu: int) -> None:
    """Keep the calling thread to a CPU (sched_setaffinity(2): 0 is the calling thread)."""
    os.sched_setaffinity(0, {cpu})


def _rate(chunk: Chunk, seconds: float, stopped: threading.Event) -> tuple[float, float]:
    done, computed, begin = 0.0, time.thread_time(), time.perf_counter()
    while ((now := time.perf_counter()) < begin + seconds and not stopped.is_set()) or not done:
        done += chunk()
    return done / (now - begin), (time.thread_time() - computed) / (now - begin)


def computing() -> Chunk:
    """Steps of the reference loop."""

    def chunk() -> float:
        kernels.compute(12345)
        return kernels.STEPS

    return chunk


def streaming(size: int, extra: int = 0, arrays: Arrays | None = None) -> Chunk:
    """Bytes of a triad.

    Args:
        size: elements of each array, >= 1.
        extra: steps of computing after each block, >= 0.
        arrays: touched elsewhere; None = new ones, touched here.
    """
    a, b, c = touched(size) if arrays is None else arrays
    step = 1 << 19  # about a millisecond: Python is held seldom
    pieces = [(a[i : i + step], b[i : i + step], c[i : i + step]) for i in range(0, size, step)]
    turn = 0

    def chunk() -> float:
        nonlocal turn
        piece = pieces[turn]
        turn = (turn + 1) % len(pieces)
        kernels.triad(*piece, 3.0, extra)
        return float(kernels.BYTES * len(piece[0]))

    return chunk


def touched(size: int) -> Arrays:
    """Three arrays whose pages are on the memory node of the calling thread (first touch)."""
    return np.full(size, 1.0), np.full(size, 2.0), np.full(size, 3.0)


def touched_from(cpu: int, size: int) -> Arrays:
    """The same, touched by a thread of its own that is kept to a CPU."""
    with ThreadPoolExecutor(1, initializer=keep_to, initargs=(cpu,)) as pool:
        return pool.submit(touched, size).result()


def warm_up() -> None:
    """Compile the loops, which is none of what is measured."""
    kernels.compute(1)
    kernels.triad(*touched(kernels.BLOCK), 3.0, 1)

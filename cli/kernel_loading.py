"""Compiled kernels: loaded before the time limit of a plan or the clock of a replay starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from .streams import note


def load_simulator() -> None:
    """Load the kernels of `plan` and `run`."""
    load_kernels("mapping.entry")


def load_kernels(*kernels: str) -> None:
    """Load compiled kernels, after compiling those that are missing, with lines about its progress."""
    from ..simulate.kernels.object_cache import is_warm, load

    if missing := [kernel for kernel in kernels if not is_warm(kernel)]:
        compile_with_notes(missing)
    for kernel in kernels:
        load(kernel, note)


def compile_with_notes(kernels: Sequence[str], workers: int | None = None) -> None:
    """Compile kernels; print what is compiled, how far it is as soon as that is known, and later from time to time.

    Args:
        kernels: their names.
        workers: processes at a time; None: one a core.
    """
    from ..daemon.compilation import Announcements, compile_kernels

    due = Announcements(time.monotonic)
    with closing(compile_kernels(kernels, note, workers)) as steps:
        for progress in steps:
            if due(progress):
                note(f"{progress}")

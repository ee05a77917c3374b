"""What holds while a run goes on: signals are collected, and the cycle's warnings are shown as our own.

Rule: everything is as it was before once the run is over.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from . import inputs


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list; the second of a kind acts as it always does."""
    caught: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        inputs.note("ending the running jobs; once more to leave them alone")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def cycle_warnings() -> Iterator[None]:
    """Show what the cycle warns of as our own warnings; single jobs are the view's affair."""

    class Tell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            inputs.warn(record.getMessage())

    top, cycle, handler = (
        logging.getLogger("pilotfish"),
        logging.getLogger("pilotfish.cycle"),
        Tell(logging.WARNING),
    )
    before = top.propagate
    silent = logging.NullHandler()
    top.propagate = False
    top.addHandler(silent)
    cycle.addHandler(handler)
    try:
        yield
    finally:
        cycle.removeHandler(handler)
        top.removeHandler(silent)
        top.propagate = before

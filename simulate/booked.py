"""What a resource manager's accounting has of a job that has ended, as a value.

Rule: what it did not gather is None, never 0: accounting that measures no CPU time says 0, and means that it knows
none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Booked:
    """A job's entry in the books.

    Args:
        name: as its user called it, "" = not told.
        completed: whether it ended well.
        began: when, ISO 8601; "" = not told.
        run_s: how long it ran, seconds, without the time for which it was suspended.
        nodes: how many it had, >= 1; `cores`: on each of them, >= 1.
        cpu_s: CPU seconds of the whole job, above 0.
        memory_bytes: of its tasks on one node, at their peak.
        joules: of its nodes while it ran, with whatever else ran there.
        placed: names of its nodes; empty = not told.
    """

    name: str
    completed: bool
    began: str
    run_s: float
    nodes: int = 1
    cores: int = 1
    cpu_s: float | None = None
    memory_bytes: float | None = None
    joules: float | None = None
    placed: tuple[str, ...] = ()

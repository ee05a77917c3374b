"""The accounting record of an ended job, as a resource manager's accounting has it.

Rule: a value that was not gathered is None, never 0; accounting that measures no CPU time reports 0 for unknown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccountingRecord:
    """The accounting record of a job.

    Args:
        name: its name; "" = unknown.
        completed: whether it ended successfully.
        began: its start, ISO 8601; "" = unknown.
        run_s: run time without suspended time, seconds.
        nodes: number of nodes, >= 1.
        cores: cores on each node, >= 1.
        cpu_s: CPU seconds of the whole job, above 0.
        memory_bytes: peak memory of its tasks on one node.
        joules: energy of its nodes while it ran, including other jobs on them.
        placed: names of its nodes; empty = unknown.
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

"""The accounting record of an ended job, as a resource manager's accounting has it.

Rule: a value that was not gathered is None, never 0; accounting that measures no CPU time reports 0 for unknown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccountingRecord:
    """The accounting record of a job."""

    name: str  # its name; "" = unknown
    completed: bool  # whether it ended successfully
    began: str  # its start, ISO 8601; "" = unknown
    run_s: float  # run time without suspended time, seconds
    nodes: int = 1  # number of nodes, >= 1
    cores: int = 1  # cores on each node, >= 1
    cpu_s: float | None = None  # CPU seconds of the whole job, above 0
    memory_bytes: float | None = None  # peak memory of its tasks on one node
    joules: float | None = None  # energy of its nodes while it ran, including other jobs on them
    placed: tuple[str, ...] = ()  # names of its nodes; empty = unknown

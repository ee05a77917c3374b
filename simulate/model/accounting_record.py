"""The accounting record of an ended job, as a resource manager's accounting has it.

Rule: a value that was not gathered is None, never 0; accounting that measures no CPU time reports 0 for unknown. A
record with an impossible number teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Share by which CPU time may exceed cores x run time, and seconds that a run time may lack: both are rounded.
_ROUNDED, _CUT_OFF_S = 0.05, 1.0
#: Why nothing can be learned from a record, in words for a count of jobs.
INCOMPLETE = "jobs that did not complete"
NO_RUN_TIME, NO_CPU_TIME = "jobs whose run time is not known", "jobs whose CPU time is not known"
TOO_MUCH_CPU_TIME = "jobs with more CPU time than cores x run time"


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

    @property
    def obstacle(self) -> str:
        """Return why nothing can be learned from this record, one of the constants above; "" if something can."""
        if not self.completed:
            return INCOMPLETE
        if not self.run_s:
            return NO_RUN_TIME
        if not self.cpu_s:
            return NO_CPU_TIME
        return "" if is_possible(self.cpu_s / self.nodes, self.run_s, self.cores) else TOO_MUCH_CPU_TIME


def is_possible(cpu_s: float, run_s: float, cores: int) -> bool:
    """Return whether a job can have used so much CPU time on a node.

    Args:
        cpu_s: CPU seconds there.
        run_s: run time, seconds; a fraction of a second may be cut off.
        cores: cores that it had there.
    """
    return cpu_s <= (1.0 + _ROUNDED) * cores * (run_s + _CUT_OFF_S)

"""From an entry in the resource manager's books to a measured run.

Rule: what the books do not have stays unknown; an entry without CPU time teaches nothing. How many threads there were
they do not tell: as many as the CPU time filled, at most one for each core.
"""

from __future__ import annotations

from ..simulate.booked import Booked
from .imports.imported import spread
from .measurement import Measurement


def measurement(entry: Booked, method: str, *, whole: bool = True) -> Measurement | None:
    """Return what a job's entry shows of it on each of its nodes; None where it did not end well, or without CPU time.

    Args:
        method: whose books they are, as the profile will say it.
        whole: it had its nodes for itself, so that their energy is its own.
    """
    if not (entry.completed and entry.cpu_s and entry.run_s):
        return None
    cpu_s = entry.cpu_s / entry.nodes
    watts = entry.joules / entry.run_s / entry.nodes if entry.joules and whole else None
    return Measurement(
        (spread(cpu_s, entry.run_s, entry.cores),),
        wall_s=entry.run_s,
        isolated_s=entry.run_s,
        cpu_s=cpu_s,
        date=entry.began,
        memory_bytes=entry.memory_bytes,
        power_watts=watts,
        sources={} if watts is None else {"power_watts": method},
        method=method,
    )

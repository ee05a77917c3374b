"""What held a job up, by its control group or by the node that it had to itself: a few facts with their units.

Rule: shares are of the run's time; what was not told is absent, never 0. They describe runs, and no model uses them: a
peak of memory that holds caches as well is no need of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

#: Fact -> what a resource manager calls it (see `adapters.local.group_use`), for those that are taken as they are.
PLAIN = {
    "throttled_s": "throttled_seconds",
    "memory_peak": "group_memory_bytes",
    "memory_high": "memory_high_events",
    "memory_max": "memory_max_events",
    "oom_kills": "oom_kill_events",
}
#: Shares of the run for which some, or all, of the job's tasks waited (Documentation/accounting/psi.rst of Linux).
STALLS = tuple(f"{resource}_{kind}" for resource in ("cpu", "memory", "io") for kind in ("some", "full"))
FACTS = (*PLAIN, *STALLS)


def strain(usage: Mapping[str, float], wall_s: float) -> dict[str, float]:
    """Return the facts that a job's usage holds.

    Args:
        usage: as a JobView has it.
        wall_s: how long the job lasted, > 0.
    """
    found = {fact: usage[name] for fact, name in PLAIN.items() if name in usage}
    for fact in STALLS:
        if (stalled_s := usage.get(f"stalled_{fact}_seconds")) is not None:
            found[fact] = min(1.0, stalled_s / wall_s)
    return found


def typical(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each fact's median over the runs that have it; of the peak the most."""
    found = {}
    for fact in FACTS:
        values = [run[fact] for run in runs if fact in run]
        if values:
            found[fact] = max(values) if fact == "memory_peak" else median(values)
    return found

"""Stall facts: what delayed a job, from its control group or from a node that it had to itself.

Rule: shares are of the run's time; an unreported fact is absent, never 0. The facts describe runs and no model uses
them: a memory peak that includes caches is not a memory requirement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

#: Fact -> its name in a job's usage (see `adapters.local.group_use`), for facts that are copied.
COPIED = {
    "throttled_s": "throttled_seconds",
    "memory_peak": "group_memory_bytes",
    "memory_high": "memory_high_events",
    "memory_max": "memory_max_events",
    "oom_kills": "oom_kill_events",
}
#: Shares of the run in which some, or all, of the job's tasks waited (Documentation/accounting/psi.rst of Linux).
STALLS = tuple(f"{resource}_{kind}" for resource in ("cpu", "memory", "io") for kind in ("some", "full"))
FACTS = (*COPIED, *STALLS)


def stall_facts(usage: Mapping[str, float], wall_s: float) -> dict[str, float]:
    """Return the facts in a job's usage.

    Args:
        usage: as in a JobView.
        wall_s: duration of the job, > 0.
    """
    facts = {fact: usage[name] for fact, name in COPIED.items() if name in usage}
    for fact in STALLS:
        if (stalled_s := usage.get(f"stalled_{fact}_seconds")) is not None:
            facts[fact] = min(1.0, stalled_s / wall_s)
    return facts


def typical(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each fact's median over the runs that have it, and the highest memory peak."""
    facts = {}
    for fact in FACTS:
        values = [run[fact] for run in runs if fact in run]
        if values:
            facts[fact] = max(values) if fact == "memory_peak" else median(values)
    return facts

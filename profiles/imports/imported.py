"""Runs that another program recorded, and the profile of several.

Rule: medians over the runs of a name, as for our own measurements; values that the program did not record stay unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...formats.documents.document_errors import bad
from ...simulate.model.accounting_record import AccountingRecord
from ...simulate.model.job import Profile, ThreadGroup
from ..estimate import estimate, usable
from ..measurement import Measurement

#: Excess over a whole number of threads that is ignored.
_SLACK = 0.15
#: Most CPUs of a node.
_MOST_THREADS = 2**16


@dataclass(frozen=True, slots=True)
class Imported:
    """A recorded run, the name of its profile, and remarks on the origin of the numbers."""

    name: str
    run: Measurement
    note: str


def accounted_run(entry: AccountingRecord, method: str, *, whole: bool = True) -> Measurement | None:
    """Return a job's accounting record as a run on each of its nodes; None if it failed or has no CPU time.

    The number of threads is not recorded: it is as many as the CPU time filled, at most one per core.

    Args:
        entry: the record; values that it lacks stay unknown.
        method: source of the record, as the profile names it.
        whole: the job had its nodes to itself, so that their energy is its own.
    """
    if not (entry.completed and entry.cpu_s and entry.run_s):
        return None
    cpu_s = entry.cpu_s / entry.nodes
    watts = entry.joules / entry.run_s / entry.nodes if entry.joules and whole else None
    return Measurement(
        (group_by_cpu_time(cpu_s, entry.run_s, entry.cores),),
        wall_s=entry.run_s,
        isolated_s=entry.run_s,
        cpu_s=cpu_s,
        date=entry.began,
        memory_bytes=entry.memory_bytes,
        power_watts=watts,
        sources={} if watts is None else {"power_watts": method},
        method=method,
    )


def group_by_cpu_time(cpu_s: float, wall_s: float, most: int | None = None) -> ThreadGroup:
    """Return as many equal threads as the CPU time of a node filled.

    Args:
        cpu_s: CPU seconds on a node.
        wall_s: duration, seconds.
        most: bound on the threads; None = that of any node.

    Raises:
        ConfigError: no node has so many CPUs.
    """
    filled = cpu_s / wall_s - _SLACK
    if most is None and not filled <= _MOST_THREADS:
        raise bad(f"{cpu_s:g} CPU seconds in {wall_s:g} s", f"those of {_MOST_THREADS:,} CPUs at the most")
    count = max(1, math.ceil(min(filled, most or _MOST_THREADS)))
    return ThreadGroup(count, cpu_s / count, min(1.0, cpu_s / count / wall_s))


def profiles_of(runs: Sequence[Imported], node_type: str | None, date: str) -> Mapping[str, Profile]:
    """Return one profile per name, in the order of first runs. O(runs).

    Args:
        runs: recorded runs.
        node_type: the cluster file's name for their node; None = unknown.
        date: for runs without one, ISO 8601.
    """
    named: dict[str, list[Imported]] = {}
    for run in runs:
        named.setdefault(run.name, []).append(run)
    return {name: _profile(name, of_name, node_type, date) for name, of_name in named.items()}


def _profile(name: str, runs: Sequence[Imported], node_type: str | None, date: str) -> Profile:
    measured = [replace(one.run, node_type=node_type, date=one.run.date or date) for one in runs]
    profile = estimate(name, measured)
    assert profile is not None, "parsers return successful runs"
    newest = usable(measured)[-1]
    note = next(one.note for one, run in zip(runs, measured, strict=True) if run is newest)
    return replace(profile, provenance=replace(profile.provenance, note=note))

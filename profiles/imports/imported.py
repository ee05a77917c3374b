"""Runs that another program recorded, and the profile of several.

Rule: medians over the runs of a name, as for our own measurements; values that the program did not record stay unknown.
What is left out is counted by its reason, and one odd run never refuses the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...formats.documents.document_errors import bad
from ...simulate.model.accounting_record import AccountingRecord
from ...simulate.model.job import Profile, ThreadGroup
from ..estimate import LATEST, equal_threads, estimate, usable
from ..measurement import Measurement

#: Excess over a whole number of threads that is ignored.
_SLACK = 0.15
#: Most CPUs of a node.
_MOST_THREADS = 2**16
#: No node draws more power, watts; more is an overflow of a counter.
_MOST_WATTS = 1e5
_OLD, _UNLIKE = (
    f"runs before the latest {LATEST} of their name",
    "runs with other nodes or cores than most of their name",
)


@dataclass(frozen=True, slots=True)
class Imported:
    """A recorded run, the name of its profile, and remarks on the origin of the numbers."""

    name: str
    run: Measurement
    note: str


@dataclass(frozen=True, slots=True)
class Imports:
    """Runs and omissions of a file.

    Args:
        runs: the recorded runs.
        left_out: why something was not read, in words for a count -> how many.
    """

    runs: Sequence[Imported]
    left_out: Counter[str] = field(default_factory=Counter)


def accounted_run(entry: AccountingRecord, method: str, *, whole: bool = True) -> Measurement:
    """Return a job's accounting record as a run on each of its nodes.

    The number of threads is not recorded: it is as many as the CPU time filled, at most one per core.

    Args:
        entry: the record, which has no `obstacle`; values that it lacks stay unknown.
        method: source of the record, as the profile names it.
        whole: the job had its nodes to itself, so that their energy is its own.
    """
    assert entry.cpu_s, "a record with an obstacle"
    cpu_s = min(entry.cpu_s / entry.nodes, entry.cores * max(1.0, entry.run_s))
    watts = entry.joules / entry.run_s / entry.nodes if entry.joules and whole else None
    if watts is not None and watts > _MOST_WATTS:
        watts = None
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
        request=f"{entry.nodes}x{entry.cores}",
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
    return equal_threads(cpu_s, wall_s, max(1, math.ceil(min(filled, most or _MOST_THREADS))))


def profiles_of(imports: Imports, node_type: str | None, date: str) -> tuple[Mapping[str, Profile], Mapping[str, int]]:
    """Return one profile per name, in the order of first runs, and what was left out. O(runs).

    Args:
        imports: recorded runs, and what was left out so far.
        node_type: the cluster file's name for their node; None = unknown.
        date: for runs without one, ISO 8601.
    """
    named: dict[str, list[Imported]] = {}
    for run in imports.runs:
        named.setdefault(run.name, []).append(run)
    profiles = {name: _profile(name, of_name, node_type, date) for name, of_name in named.items()}
    latest = sum(min(len(of_name), LATEST) for of_name in named.values())
    used = sum(profile.provenance.runs for profile in profiles.values())
    return profiles, imports.left_out + Counter({_UNLIKE: latest - used, _OLD: len(imports.runs) - latest})


def _profile(name: str, runs: Sequence[Imported], node_type: str | None, date: str) -> Profile:
    measured = [replace(one.run, node_type=node_type, date=one.run.date or date) for one in runs]
    profile = estimate(name, measured)
    assert profile is not None, "parsers return successful runs"
    newest = usable(measured)[-1].date
    note = next(one.note for one, run in zip(runs, measured, strict=True) if run.date == newest)
    return replace(profile, provenance=replace(profile.provenance, note=note))

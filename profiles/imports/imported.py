"""A run as another program saw it, and the profile of several.

Rule: medians over the runs of a name, as for those that we measured; what the program did not see stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ...simulate.formats.units import bad
from ...simulate.job import Profile, ThreadGroup
from ..estimate import estimate, usable
from ..measurement import Measurement

#: Core time by which a run may exceed a whole number of threads.
_SLACK = 0.15
#: No node has more CPUs.
_MOST_THREADS = 2**16


@dataclass(frozen=True, slots=True)
class Imported:
    """One run.

    Args:
        note: what a reader of the profile should know of where its numbers come from.
        power_watts: of a node while it ran there.
    """

    name: str
    run: Measurement
    note: str
    instructions: float | None = None
    ipc: float | None = None
    power_watts: float | None = None


def spread(cpu_s: float, wall_s: float, most: int | None = None) -> ThreadGroup:
    """As many threads as the CPU time of a node filled, at most `most`, which have it in equal parts.

    Raises:
        ConfigError: no node has so many.
    """
    filled = cpu_s / wall_s - _SLACK
    if most is None and not filled <= _MOST_THREADS:
        raise bad(f"{cpu_s:g} CPU seconds in {wall_s:g} s", f"those of {_MOST_THREADS:,} CPUs at the most")
    count = max(1, math.ceil(min(filled, most or _MOST_THREADS)))
    return ThreadGroup(count, cpu_s / count, min(1.0, cpu_s / count / wall_s))


def profiles_of(runs: Sequence[Imported], node_type: str | None, date: str) -> Mapping[str, Profile]:
    """One profile for each name, in the order of the first run of each. O(runs)."""
    named: dict[str, list[Imported]] = {}
    for run in runs:
        named.setdefault(run.name, []).append(run)
    return {name: _profile(name, of_name, node_type, date) for name, of_name in named.items()}


def _profile(name: str, runs: Sequence[Imported], node_type: str | None, date: str) -> Profile:
    measured = [replace(one.run, node_type=node_type, date=one.run.date or date) for one in runs]
    profile = estimate(name, measured)
    assert profile is not None, "parsers give runs that ended well"
    counts = {id(run) for run in usable(measured)}
    used = [one for one, run in zip(runs, measured, strict=True) if id(run) in counts]
    about = replace(profile.provenance, note=used[-1].note)
    return replace(
        profile,
        instructions=_median([one.instructions for one in used]),
        ipc=_median([one.ipc for one in used]),
        power_watts=_median([one.power_watts for one in used]),
        provenance=about,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

"""A run as another program saw it, and the profile of several.

Rule: medians over the runs of a name, as for those that we measured; what the program did not see stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ...simulate.job import Profile, ThreadGroup
from ..estimate import estimate, usable
from ..measurement import Measurement

#: Core time by which a run may exceed a whole number of threads.
_SLACK = 0.15


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
    """As many threads as the CPU time of a node filled, at most `most`, which have it in equal parts."""
    wanted = max(1, math.ceil(cpu_s / wall_s - _SLACK))
    count = wanted if most is None else min(most, wanted)
    return ThreadGroup(count, cpu_s / count, min(1.0, cpu_s / count / wall_s))


def profiles_of(runs: Sequence[Imported], node_type: str | None, date: str) -> Mapping[str, Profile]:
    """One profile for each name, in the order of the first run of each."""
    names = dict.fromkeys(run.name for run in runs)
    return {name: _profile(name, [run for run in runs if run.name == name], node_type, date) for name in names}


def _profile(name: str, runs: Sequence[Imported], node_type: str | None, date: str) -> Profile:
    measured = [replace(one.run, node_type=node_type, date=one.run.date or date) for one in runs]
    profile = estimate(name, measured)
    assert profile is not None, "parsers give runs that ended well"
    used = [one for one, run in zip(runs, measured, strict=True) if run in usable(measured)]
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

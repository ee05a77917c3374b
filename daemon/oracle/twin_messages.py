"""The question that the daemon asks the process of the twin, and its answer.

Rule: both are plain values, so that the daemon imports nothing of what makes the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TwinQuestion:
    """The queue of a Slurm at one moment.

    Args:
        texts: what its commands printed, by name in `SITE_FILES`.
        missing: name -> why a file is not there.
        time: when the jobs were printed, epoch seconds.
        runs: JobId -> bounds of its run time, see `RunTimeDraws`, and its group.
        begins: JobId -> when a job that is handed over is planned to begin, epoch seconds.
    """

    texts: Mapping[str, str]
    missing: Mapping[str, str]
    time: float
    runs: Mapping[str, tuple[float, float, float, int]]
    begins: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TwinAnswer:
    """Its forecasts.

    Args:
        jobs: JobId -> start, its earliest and latest, end, its earliest and latest; epoch seconds.
        unknown: JobId -> why the start of a waiting job is not known.
        why_not: why nothing is forecast; "": it is.
        unfollowed: what Slurm does and the forecasts do not, one sentence each.
        cpu_s: CPU time that it took.
    """

    jobs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""
    unfollowed: tuple[str, ...] = ()
    cpu_s: float = 0.0

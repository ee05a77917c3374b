"""A trace of the Standard Workload Format as jobs to predict: run times, or memory.

Rule: below 0 is not known, as the format has it, nor is an amount of 0 or a column in which all jobs are alike; an
estimate is the requested time or memory, never made up from what was used.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from ...simulate.errors import ConfigError
from ...simulate.workload import Workload
from .jobs import TRAITS, Asked
from .online import Array, Observations

#: What can be predicted: the columns of what was used and of what was asked for, and the unit of both in ours.
NEEDS = {"run-time": (None, "requested_time", 1.0), "memory": ("used_memory", "requested_memory", 1024.0)}


@dataclass(frozen=True, slots=True)
class Traced:
    """A trace's jobs, and what had to be assumed of them.

    Args:
        observed: the jobs and what they needed (s, or bytes of a processor).
        limits: what users asked for, in the same unit; nan = nothing.
        unknown_waits: jobs that do not say how long they waited, and are taken to have started at once.
    """

    observed: Observations
    limits: Array
    unknown_waits: int


def traced(workload: Workload, need: str = "run-time") -> Traced:
    """The jobs of a trace, for predicting one of `NEEDS`.

    Raises:
        ConfigError: the trace does not record what is to be predicted.
    """
    more = workload.more
    used, wanted, unit = NEEDS[need]
    values = workload.run_time if used is None else _recorded(more, used, len(workload)) * unit
    if not np.isfinite(values).any():
        raise ConfigError(workload.name, used or "run_time", f"no job's {need} is recorded", "a trace that has it")
    limits = _recorded(more, wanted, len(workload), even_alike=True) * unit
    waits = more.get("wait_time", np.full(len(workload), -1.0))
    ended = workload.submit_time + np.maximum(waits, 0.0) + workload.run_time
    columns = {**more, "size": workload.size, "walltime": more.get("requested_time")}
    traits = zip(*(_trait(columns.get(name), len(workload)) for name in TRAITS), strict=True)
    asked = (None if np.isnan(limit) else limit for limit in limits.tolist())
    jobs = [Asked(own, limit) for own, limit in zip(traits, asked, strict=True)]
    observed = Observations(jobs, workload.submit_time, ended, values)
    return Traced(observed, limits, int((waits < 0).sum()))


def _recorded(more: Mapping[str, Array], name: str, jobs: int, *, even_alike: bool = False) -> Array:
    """A column in which what is not known is nan: all of it where all jobs are alike, which says nothing of any."""
    column = more.get(name)
    if column is None or (not even_alike and len(np.unique(column)) < 2):
        return np.full(jobs, np.nan)
    return np.where(column > 0, column, np.nan)


def _trait(column: Array | None, jobs: int) -> list[Hashable | None]:
    if column is None or len(np.unique(column)) < 2:
        return [None] * jobs
    return [None if value < 0 else value for value in column.tolist()]

"""Jobs as a queue policy sees them: those that wait, and those that run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..model.intervals import Interval


@dataclass(frozen=True, slots=True, eq=False)
class QueuedJob:
    """A job as submitted.

    Args:
        number: position in the order of submission, from 0.
        id: id in the workload.
        size: requested resources.
        walltime: seconds after which the job is killed; inf means never.
        submit_time: seconds; for a job with dependencies, when they were met. Before that it is not shown.
        user: the user; None if the workload has none.

    `nodes`: over how many nodes the resources are spread evenly; the machine of a replay is one node. `predicted`:
    whether `walltime` is a predicted run time, at which the job is not killed: in a plan if no walltime is given, and
    in a replay with predictions. `limit`: seconds after which it is killed, where `walltime` is a prediction.
    `expected`: its predicted run time, seconds, where `walltime` is its limit; nan: not known.
    """

    number: int
    id: int | str
    size: int
    walltime: float
    submit_time: float
    user: Any = None
    nodes: ClassVar[int] = 1
    predicted: ClassVar[bool] = False
    limit: ClassVar[float] = math.nan
    expected: ClassVar[float] = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class NodeJob(QueuedJob):
    """A job of a plan, which runs on whole nodes or parts of them, or of a replay with predictions; see `QueuedJob`."""

    nodes: int = 1  # type: ignore[misc]
    predicted: bool = False  # type: ignore[misc]
    limit: float = math.nan  # type: ignore[misc]
    expected: float = math.nan  # type: ignore[misc]


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A running job.

    Args:
        job: the job.
        start_time: seconds.
        until: start time plus walltime, seconds: its latest end. If it is `predicted`, its expected end; in a replay, a
            job that outlasts that is shown with a later one, and the policy is called then.
        resources: first and last of each interval of its resources, ascending.
    """

    job: QueuedJob
    start_time: float
    until: float
    resources: tuple[Interval, ...]

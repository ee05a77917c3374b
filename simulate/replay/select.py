"""Which jobs of a workload are replayed, and how close together they come.

Rule: what is left out is counted, each under its own word.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError
from ..workload import Workload


@dataclass(frozen=True, slots=True)
class Select:
    """What to keep; None and empty = all.

    Args:
        begin, end: submitted at or after, and before, seconds on the trace's clock.
        users: ids of users, where the trace has them.
        least, most: resources asked for.
        load: arrivals come this many times as fast: times between submissions are divided by it.
    """

    begin: float | None = None
    end: float | None = None
    users: Collection[int] = ()
    least: int | None = None
    most: int | None = None
    load: float = 1.0

    def of(self, workload: Workload) -> Workload:
        """The jobs to replay. Raises ConfigError: users are asked for, and the workload knows none."""
        if self.begin is not None:
            workload = workload.take(workload.submit_time >= self.begin, "jobs submitted before the window")
        if self.end is not None:
            workload = workload.take(workload.submit_time < self.end, "jobs submitted after the window")
        if self.users:
            if "user" not in workload.more:
                raise ConfigError(workload.name, "user", "this workload does not say whose its jobs are")
            mine = np.isin(workload.more["user"], list(self.users))
            workload = workload.take(mine, "jobs of other users")
        if self.least is not None:
            workload = workload.take(workload.size >= self.least, "smaller jobs")
        if self.most is not None:
            workload = workload.take(workload.size <= self.most, "larger jobs")
        if self.load != 1.0 and len(workload):
            first = workload.submit_time[0]
            workload = replace(workload, submit_time=first + (workload.submit_time - first) / self.load)
        return workload

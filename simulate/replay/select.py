"""Select the jobs of a workload to replay, and scale their arrival rate.

Rule: jobs left out are counted, by reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError
from ..model.workload import Workload


@dataclass(frozen=True, slots=True)
class Select:
    """Criteria of the jobs to keep; None or empty means no restriction."""

    #: Keep jobs submitted in [begin, end), seconds on the trace's clock.
    begin: float | None = None
    end: float | None = None
    users: Collection[int] = ()  # user ids to keep
    #: Range of requested resources, inclusive.
    least: int | None = None
    most: int | None = None
    load: float = 1.0  # factor of the arrival rate: times between submissions are divided by it

    def of(self, workload: Workload) -> Workload:
        """Return the selected jobs. Raises ConfigError if users are selected and the workload has no user column."""
        if self.begin is not None:
            workload = workload.take(workload.submit_time >= self.begin, "jobs submitted before the window")
        if self.end is not None:
            workload = workload.take(workload.submit_time < self.end, "jobs submitted after the window")
        if self.users:
            if "user" not in workload.more:
                raise ConfigError(workload.name, "user", "this workload has no users")
            is_selected = np.isin(workload.more["user"], list(self.users))
            workload = workload.take(is_selected, "jobs of other users")
        if self.least is not None:
            workload = workload.take(workload.size >= self.least, "smaller jobs")
        if self.most is not None:
            workload = workload.take(workload.size <= self.most, "larger jobs")
        if self.load != 1.0 and len(workload):
            first = workload.submit_time[0]
            submit = first + (workload.submit_time - first) / self.load
            workload = replace(workload, submit_time=submit, epoch=None)
        return workload

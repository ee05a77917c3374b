"""Times at which the jobs of a resource manager's queue were read, and the jobs that we changed since.

Rule: a job that we changed is unread until it is read again, alone or with the whole queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable

#: Seconds for which a job that was read counts as fresh when it is to be changed.
FRESH_S = 2.0


class ReadTimes:
    """The times of the reads of a queue; a job is named by its id or its key.

    Args:
        clock: Monotonic clock, seconds.

    Attributes:
        whole_at: When the whole queue was read last, by the clock; at first, when this object was made.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self.whole_at, self._valid = clock, clock(), False
        self._read_alone: dict[Hashable, float] = {}
        self._changed: set[Hashable] = set()

    def note_whole(self) -> None:
        """Note that the whole queue was read now."""
        self.whole_at, self._valid = self._clock(), True
        self._read_alone.clear()
        self._changed.clear()

    def note_alone(self, jobs: Iterable[Hashable]) -> None:
        """Note that jobs were read now, without the rest of the queue."""
        times = dict.fromkeys(jobs, self._clock())
        self._read_alone |= times
        self._changed -= times.keys()

    def note_change(self, job: Hashable) -> None:
        """Note that we changed a job, or may have."""
        self._changed.add(job)

    def void(self) -> None:
        """Note that the queue must be read again, whatever was read before."""
        self._valid = False

    def age_s(self, job: Hashable = None) -> float:
        """Return the seconds since a job was read; None: the whole queue. Infinite if it was changed since."""
        if job is None:
            return self._clock() - self.whole_at if self._valid and not self._changed else math.inf
        if job in self._changed or not (self._valid or job in self._read_alone):
            return math.inf
        return self._clock() - self._read_alone.get(job, self.whole_at)

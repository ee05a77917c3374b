"""Records about OAR's jobs beyond their states: how long OAR takes to launch and to release them, and unusual ends.

Rule: each job counts once. The delays are those of OAR's own state logs: `launch`, from OAR's decision to the start of
the process; `release`, from the end of the process until its cores are free.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict, deque

from ..job_views import has_known_end, why_again
from .world import OarState

#: The usual launch is the median of the NEWEST; before FEWEST have been seen it is assumed, seconds.
NEWEST, FEWEST, ASSUMED_S = 50, 3, 2.0


class OarHistory:
    """The delays and the odd ends of the jobs that were seen."""

    def __init__(self) -> None:
        self._launches = deque[float](maxlen=NEWEST)
        self._counted_ids: dict[str, set[int]] = {name: set() for name in ("launch", "release", "unknown", "again")}
        self._seconds = defaultdict[str, float](float)
        self._number: Counter[str] = Counter()

    @property
    def launch_s(self) -> float:
        """Usual duration of a launch, seconds."""
        return statistics.median(self._launches) if len(self._launches) >= FEWEST else ASSUMED_S

    @property
    def unknown_ends(self) -> int:
        """Number of jobs that ended in a way that OAR does not state."""
        return self._number["unknown"]

    @property
    def delays(self) -> dict[str, tuple[int, float]]:
        """The number of jobs and the sum of their delays, seconds, by kind."""
        return {kind: (self._number[kind], self._seconds[kind]) for kind in ("launch", "release")}

    def note(self, world: OarState) -> list[str]:
        """Count what is new in a world; return a sentence for each new end that an operator should know. O(jobs)."""
        odd = []
        for job in world.jobs:
            if job.began is None and job.ended is None:
                continue
            if job.began is not None and job.decided and self._is_new("launch", job.id):
                self._seconds["launch"] += (launch_s := max(0.0, job.began - job.decided))
                self._launches.append(launch_s)
            if job.freed is not None and job.began is not None and job.ended and self._is_new("release", job.id):
                self._seconds["release"] += max(0.0, job.freed - job.ended)
            if job.state == "Error" and not has_known_end(job) and self._is_new("unknown", job.id):
                odd.append(f"OAR does not say how job {job.id} ended")
            if (why := why_again(job)) and self._is_new("again", job.id):
                odd.append(f"OAR could not launch job {job.id}, and submits it again: {why}")
        if any(len(counted_ids) > 2 * len(world.jobs) + 1000 for counted_ids in self._counted_ids.values()):
            current_ids = {job.id for job in world.jobs}
            for counted_ids in self._counted_ids.values():
                counted_ids &= current_ids
        return odd

    def _is_new(self, kind: str, job: int) -> bool:
        if job in self._counted_ids[kind]:
            return False
        self._counted_ids[kind].add(job)
        self._number[kind] += 1
        return True

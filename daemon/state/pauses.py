"""Pauses at run time: what an administrator has stopped, since when, until when, and why.

Rule: a pause is for one partition (of Slurm; a queue of OAR) or for all jobs; a later one for the same replaces it. It
is kept in the journal, and ends by itself at its time, by the resource manager's clock. A record that cannot be read is
a pause of everything, because the daemon cannot know what was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...simulate.model.job import Job
from .damage import REAL, TEXT, WHOLE, checked, optional

#: Under which the journal keeps them.
KEPT = "pauses"
_UNREADABLE = "the record of the pauses cannot be read (`pilotfish resume` ends this)"


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause, as an administrator asked for it.

    Args:
        partition: its name; "": all jobs.
        since: when it began, epoch seconds.
        until: when it ends by itself, epoch seconds; None: never.
        why: the administrator's words, or "".
        by: the administrator.
        keeps_held: the jobs that are held at its begin are not given back before their own deadlines.
    """

    partition: str = ""
    since: float = 0.0
    until: float | None = None
    why: str = ""
    by: str = ""
    keeps_held: bool = False

    @property
    def reason(self) -> str:
        """The reason why a job is not started, one sentence."""
        where = f" in partition {self.partition}" if self.partition else ""
        return f"pilotfish is paused{where}{self.why and f': {self.why}'}"


class Pauses:
    """The pauses that hold.

    Args:
        state: as `state` returned it; empty: none.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        try:
            pauses = [_pause(row) for row in (state or {}).get(KEPT, ())]
        except (TypeError, ValueError):
            pauses = [Pause(why=_UNREADABLE)]
        self._by_partition = {pause.partition: pause for pause in pauses}

    def __iter__(self) -> Iterator[Pause]:
        return iter([self._by_partition[name] for name in sorted(self._by_partition)])

    def __bool__(self) -> bool:
        return bool(self._by_partition)

    @property
    def of_all(self) -> Pause | None:
        """The pause of all jobs."""
        return self._by_partition.get("")

    @property
    def next_end(self) -> float:
        """The time at which the next one ends by itself, epoch seconds; inf: none does."""
        return min((pause.until for pause in self if pause.until is not None), default=math.inf)

    def of(self, job: Job) -> Pause | None:
        """Return the pause that holds for a job: that of all jobs, else that of one of its partitions. O(1)."""
        if not self._by_partition or "" in self._by_partition:
            return self.of_all
        partitions = dict(job.traits).get("queue", "").split(",")
        return next((self._by_partition[name] for name in partitions if name in self._by_partition), None)

    def begin(self, pause: Pause) -> None:
        """Begin a pause, or replace the one of the same partition."""
        self._by_partition[pause.partition] = pause

    def end(self, partition: str | None) -> list[Pause]:
        """End the pause of a partition ("": of all jobs), or with None every pause; return what has ended."""
        names = [*self._by_partition] if partition is None else [partition]
        return [self._by_partition.pop(name) for name in sorted(names) if name in self._by_partition]

    def expire(self, now: float) -> list[Pause]:
        """End the pauses whose time has come, and return them; `now` in epoch seconds."""
        over = [pause.partition for pause in self if pause.until is not None and pause.until <= now]
        return [self._by_partition.pop(name) for name in over]

    def state(self) -> dict[str, Any]:
        """Return what a restart needs."""
        return {KEPT: [asdict(pause) for pause in self]}


def _pause(row: Mapping[str, Any]) -> Pause:
    """Return a pause that was kept. Raises TypeError or ValueError: it cannot be read."""
    pause = Pause(**row)
    values = (pause.partition, pause.since, pause.until, pause.why, pause.by, int(pause.keeps_held))
    checked(values, (TEXT, REAL, optional(REAL), TEXT, TEXT, WHOLE))
    return pause

"""How far running jobs have come: they are simulated beside the real ones, and looked up.

Rule: the shadow starts what was seen to start, at the time it was seen to start, drops what has ended, and never
decides anything. A job's progress under contention is not linear in time; the engine that foretold it knows it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from ..adapters.simulated import SimulatedAdapter
from ..simulate.job import Job
from ..simulate.plan import Cancel, Start
from ..simulate.platform import Cluster


@dataclass(frozen=True, slots=True)
class Seen:
    """A job that runs: as it is planned, where, and since when (epoch seconds)."""

    job: Job
    nodes: tuple[str, ...]
    start_time: float


class Shadow:
    """The simulated twin of what runs on one cluster; a cluster that changes is shadowed anew."""

    def __init__(self) -> None:
        self._world: SimulatedAdapter | None = None
        self._seen: dict[str, Seen] = {}

    def follow(self, cluster: Cluster, running: Mapping[str, Seen], ended: Mapping[str, Seen], now: float) -> None:
        """Bring the shadow to `now` with exactly these jobs. O(running jobs), once for all that started and ended.

        Args:
            ended: jobs that ended since the last time; those that also started since then were company, too.
        """
        world = self._world
        if world is None or world.cluster is not cluster or now < world.time:
            oldest = min((seen.start_time for seen in running.values()), default=now)
            world = self._world = SimulatedAdapter(cluster, start_time=min(oldest, now))
            self._seen = {}
        new = {key: seen for key, seen in {**ended, **running}.items() if key not in self._seen}
        starts = [(min(seen.start_time, now), _start(key, seen)) for key, seen in new.items()]
        starts.sort(key=lambda start: start[0])
        refused = world.start_in_turn(starts)  # it is not followed; its progress is guessed from time
        self._seen |= {key: seen for key, seen in new.items() if key not in refused}
        world.advance(now - world.time)
        gone = [key for key, seen in self._seen.items() if running.get(key) != seen]
        for key in gone:  # news wakes the daemon, so an end is about as old as the snapshot that shows it
            world.apply(Cancel(key))
            world.forget(key)
            del self._seen[key]

    def progress(self, key: str) -> float | None:
        """Share of its work that the job has done by now, [0, 1]; None if it is not followed."""
        return self._world.progress(key) if self._world and key in self._seen else None


def _start(key: str, seen: Seen) -> Start:
    return Start(key, dataclasses.replace(seen.job, nodes=len(seen.nodes), walltime=None), seen.nodes)

"""A daemon with a series of every metric: on a played resource manager whose users hand jobs over, some held, some not.

Its arguments are the configuration and a folder of a site, whose card it shows. A second of the manager is one of ours.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pilotfish.adapters.base import AdapterError, BreakerState, Load
from pilotfish.cli.streams import show
from pilotfish.daemon.report import score_card
from pilotfish.daemon.service import Service
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import Snapshot
from tests.support.played_adapter import HandOverAdapter
from tests.support.played_manager import SimulatedManager

#: Seconds between two bursts of submissions, and jobs of each, so that some wait; run times of the jobs, and for how long
#: they are held: not all jobs are, and some holds run out.
EVERY_S, BURST, LENGTHS_S, HOLDS_S = 1.0, 5, (0.4, 0.7, 1.0), (30.0, 0.3, 30.0, None)


class Played(HandOverAdapter):
    """Counts its requests, as the adapters of real resource managers do."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(SimulatedManager(cluster, start_time=time.time(), pass_s=0.1, late_s=0.0, most_s=30.0))
        self._sent, self._submitted = Counter[tuple[str, str]](), 0
        self._seconds, self._submit_at = 0.0, time.time()

    def _ask(self, do: Callable[[], Any], *, change: bool = False) -> Any:
        call, began = "update" if change else "jobs", time.monotonic()
        try:
            answer = super()._ask(do, change=change)
        except AdapterError as error:
            self._sent[call, error.kind] += 1
            raise
        finally:
            self._seconds += time.monotonic() - began
        self._sent[call, "ok"] += 1
        return answer

    def load(self) -> Load:
        """Return the requests so far; one queue is disabled."""
        calls = Counter[str]()
        for (call, _), number in self._sent.items():
            calls[call] += number
        return Load(
            dict(self._sent), {call: (number, self._seconds) for call, number in calls.items()},
            {"queue": BreakerState.CLOSED}, 100.0, {"job": 0}, {"launch": (1, 0.1)}, 0, ("night",),
        )  # fmt: skip

    def snapshot(self) -> Snapshot:
        """Read the queue as it is now."""
        self._live_until(time.time())
        return super().snapshot()

    def queue(self) -> ObservedQueue:
        """Return the queue, in which each job takes a core of any node."""
        jobs = [
            ObservedJob(
                self._key(record), record.state, owner=1000, walltime=record.job.walltime, start_time=record.start_time,
                submit_time=record.submit_time, finish_time=record.finish_time, where=frozenset(record.nodes or self.manager.node_states),
                manager_start=record.submit_time + 1.0,
            )
            for record in self.manager.queue()
        ]  # fmt: skip
        nodes = {node.name: (node.type.cores, float(2**30)) for node in self.manager.cluster.nodes}
        return ObservedQueue(self.manager.time, jobs, nodes)

    def wait(self, timeout_s: float) -> bool:
        """Return at once: nothing is reported."""
        return False

    def _live_until(self, now: float) -> None:
        """Let time pass until `now`, in which users submit jobs."""
        while self._submit_at <= now:
            self.manager.advance(max(0.0, self._submit_at - self.manager.time))
            for _ in range(BURST):
                self._submit()
            self._submit_at += EVERY_S
        self.manager.advance(max(0.0, now - self.manager.time))

    def _submit(self) -> None:
        self._submitted += 1
        seconds, hold_s = LENGTHS_S[self._submitted % 3], HOLDS_S[self._submitted % 4]
        profile = Profile((ThreadGroup(1, seconds),))
        job = Job(f"j{self._submitted}", profile, walltime=5.0, command=("true",), owner=1000)
        self.manager.submit(job, comment="pilotfish" if hold_s else "", hold_s=hold_s)


if __name__ == "__main__":
    config, site = (Path(word) for word in sys.argv[1:3])
    words = ["score", str(site), "--repeat", "1", "--workers", "1", "--json"]
    score_card.FIRST_S = 0.5
    score_card.score_command = lambda file: [sys.executable, "-m", "pilotfish.cli", *words]
    make = lambda name, cluster, **options: Played(cluster)  # noqa: E731
    sys.exit(Service(config, show=show, make_adapter=make).run())

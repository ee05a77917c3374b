"""The record of a week of a site with 1,000 nodes and 50,000 jobs: its size, and what it costs.

The site is played: jobs come and end at random times, each look shows the queue as an adapter does, whose unchanged
jobs are the same objects, and a look is due every ten seconds if something has happened. Each half a minute the manager
expects other starts of all waiting jobs, and each five minutes they have another priority. The CPU time is that of
recording alone, as a share of the played time.
"""

from __future__ import annotations

import heapq
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pilotfish.adapters.base import Adapter, Capabilities
from pilotfish.daemon.recording.recorder import Recorder
from pilotfish.formats.record.segments import Bounds, RecordWriter
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import JobState, JobView, JobViews, NodeState, Snapshot

from .show import heading, table

NODES, JOBS, DAY_S, LOOK_S = 1000, 50_000, 86_400.0, 10.0
CLUSTER = Cluster("site", tuple(Node(f"n{number:04}", NodeType("t", 64, 2.5e11, 2e11)) for number in range(NODES)))


class PlayedQueue(Adapter):
    """A resource manager whose jobs wait for ten minutes in the mean and run for two hours."""

    name = "slurm"
    capabilities = Capabilities(events=False, offers=True)

    def __init__(self) -> None:
        self.now, self._number, self._draw = 1.7e9, 0, random.Random(0)
        self._events: list[tuple[float, int, str]] = []
        self._views, self._queued = dict[int, JobView](), dict[int, ObservedJob]()

    def snapshot(self) -> Snapshot:
        """Return all jobs."""
        return Snapshot(self.now, 1, CLUSTER, (NodeState.UP,) * NODES, JobViews(self._views.values()))

    def queue(self) -> ObservedQueue:
        """Return all jobs as the queue has them."""
        nodes = {node.name: (64, 2.5e11) for node in CLUSTER.nodes}
        return ObservedQueue(self.now, tuple(self._queued.values()), nodes)

    def wait(self, timeout_s: float) -> bool:
        """Report no event."""
        return False

    def advance(self, seconds: float, arrivals: int) -> bool:
        """Let jobs come, begin and end; return whether one did."""
        self.now += seconds
        for number, job in self._queued.items():
            if job.waiting and self.now % 30.0 < seconds:
                self._queued[number] = replace(job, manager_start=self.now + self._draw.randint(60, 3600))
            if job.waiting and self.now % 300.0 < seconds:
                self._views[number] = replace(self._views[number], priority=float(self._draw.randint(1, 10**6)))
        for _ in range(arrivals):
            self._begin()
        has_news = arrivals > 0
        while self._events and self._events[0][0] <= self.now:
            when, number, event = heapq.heappop(self._events)
            has_news = True
            if event == "start":
                self._show(number, JobState.RUNNING, when)
            else:
                del self._views[number], self._queued[number]
        return has_news

    def _begin(self) -> None:
        self._number += 1
        start = self.now + self._draw.expovariate(1 / 600.0)
        heapq.heappush(self._events, (start, self._number, "start"))
        heapq.heappush(self._events, (start + self._draw.expovariate(1 / 7200.0), self._number, "end"))
        self._show(self._number, JobState.PENDING, None)

    def _show(self, number: int, state: JobState, start: float | None) -> None:
        user, cores = number % 200, 1 << number % 7
        where = () if start is None else (CLUSTER.nodes[number % NODES].name,)
        name, account, key = f"run_{number % 300}", f"project{user % 40}", f"slurm/{number}"
        before = self._queued.get(number)
        submit = self.now if before is None else before.submit_time
        traits = (("user", str(2000 + user)), ("group", account), ("executable", name), ("queue", "batch"))
        job = Job(str(number), Profile((ThreadGroup(cores, 14_400.0),)), walltime=14_400.0, owner=2000 + user,
                  traits=traits, known_as=f"{name} of {account}/{2000 + user}")  # fmt: skip
        self._views[number] = JobView(key, job, state, where, submit, start)
        self._queued[number] = ObservedJob(
            key, state, name, 2000 + user, account, "batch", 1, cores, walltime=14_400.0, submit_time=submit,
            where=frozenset(where), start_time=start,
        )  # fmt: skip


def measure(quick: bool) -> None:
    """Print size and cost of a week; quick: of a day, times seven."""
    days = 1 if quick else 7
    heading(f"the record of a week of {NODES:,} nodes and {JOBS:,} jobs")
    with tempfile.TemporaryDirectory() as folder:
        manager = PlayedQueue()
        writer = RecordWriter(Path(folder), {"run": "r"}, Bounds(), lambda: manager.now)
        recorder = Recorder(writer, lambda: manager.now)
        recorded, looks, spent = recorder.adapter(manager), 0, 0.0
        every = 7 * DAY_S / JOBS
        for step in range(int(days * DAY_S / LOOK_S)):
            arrivals = int((step + 1) * LOOK_S / every) - int(step * LOOK_S / every)
            if not manager.advance(LOOK_S, arrivals):
                continue
            looks, began = looks + 1, time.process_time()
            recorder.clock()
            recorded.snapshot()
            recorded.queue()
            recorder.end_look()
            spent += time.process_time() - began
        recorder.close()
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    week = 7 / days
    row = (f"{looks * week:,.0f}", f"{size * week / 1e6:.1f} MB", f"{1e3 * spent / looks:.1f} ms",
           f"{100 * spent / (days * DAY_S):.3f} % of a core")  # fmt: skip
    table(("looks", "record", "CPU a look", "CPU"), [row])

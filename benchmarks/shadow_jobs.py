"""Many jobs through a daemon in shadow, and through a live one: memory, descriptors, record, journal, cost of a cycle.

The resource manager is a queue of its own in memory: it starts what waits on free nodes, first come first served; live,
it starts what was placed. Each job takes two seconds of its clock, and a cycle is one second. The CPU time is that of
this process; memory should not grow with the number of jobs.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilotfish.adapters.base import Adapter, Capabilities
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import assemble, decided_by
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.recording.begin_record import begin_record
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.journal import Journal
from pilotfish.formats.cluster import read_cluster
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Action, Place, Release
from pilotfish.simulate.model.snapshot import JobState, JobView, JobViews, NodeState, Snapshot

from .show import heading, table

JOBS, QUICK_JOBS = 100_000, 5000
NODES, RUN_S, PER_CYCLE = 40, 2.0, 16
CLUSTER = (
    "schema: pilotfish/cluster/v1\nname: lab\n"
    "node_types: {t: {cores: 1, memory: 4GiB, memory_bandwidth: 8GB/s}}\n"
    f"nodes: [{{names: 'n[1-{NODES}]', type: t}}]\n"
)
PROFILE = Profile((ThreadGroup(1, RUN_S),))


class QueueInMemory(Adapter):
    """A resource manager whose users hand every job over."""

    name = "queue"
    capabilities = Capabilities(virtual_time=True, events=False, offers=True)

    def __init__(self, config: DaemonConfig) -> None:
        self.cluster, self.time, self.number = read_cluster(config.cluster), 1e9, 0
        self.views: dict[str, JobView] = {}
        self.free = deque(node.name for node in self.cluster.nodes)
        self._version = 0

    def snapshot(self) -> Snapshot:
        """Return the nodes and the jobs that wait, run, or ended in the last second."""
        self._version += 1
        up = (NodeState.UP,) * NODES
        return Snapshot(self.time, self._version, self.cluster, up, JobViews(self.views.values()))

    def apply(self, action: Action) -> None:
        """Place or release a job."""
        view = self.views.get(action.key)
        if view is None or view.state is not JobState.PENDING:
            return
        if isinstance(action, Place) and set(action.nodes) <= set(self.free):
            for node in action.nodes:
                self.free.remove(node)
            self._begin(view, action.nodes)
        elif isinstance(action, Release):
            self.views[action.key] = replace(view, offered=False, due_why="it was released")

    def wait(self, timeout_s: float) -> bool:
        """Report no event."""
        return False

    def _begin(self, view: JobView, nodes: tuple[str, ...]) -> None:
        self.views[view.key] = replace(
            view, state=JobState.RUNNING, nodes=nodes, start_time=self.time, offered=False, restartable=False
        )

    def advance(self, new: int) -> None:
        """Go on by a second: jobs end, `new` ones come, and what has waited for a second is started."""
        self.time += 1.0
        for key, view in [*self.views.items()]:
            if view.state.ended:
                del self.views[key]
            elif view.state is JobState.RUNNING and self.time >= (view.start_time or 0.0) + RUN_S:
                self.free.extend(view.nodes)
                self.views[key] = replace(view, state=JobState.COMPLETED, finish_time=self.time, exit_code=0)
        for _ in range(new):
            self.number += 1
            job = Job(str(self.number), PROFILE, walltime=60.0, owner=1000 + self.number % 50)
            view = JobView(
                f"queue/{job.id}", job, JobState.PENDING, submit_time=self.time, restartable=True, offered=True
            )
            self.views[view.key] = view
        for view in [*self.views.values()]:
            if view.state is JobState.PENDING and self.free and self.time - (view.submit_time or 0.0) >= 2.0:
                self._begin(view, (self.free.popleft(),))


def measure(quick: bool) -> None:
    """Print what each fifth of the jobs costs in each mode."""
    jobs = QUICK_JOBS if quick else JOBS
    heading(f"{jobs:,} jobs through a daemon in shadow, and through a live one")
    rows = [row for mode in (RunMode.SHADOW, RunMode.LIVE) for row in _rows(mode, jobs)]
    table(("mode", "jobs", "CPU a cycle", "memory", "descriptors", "record", "journal a job"), rows)


def _rows(mode: RunMode, jobs: int) -> Iterator[tuple[str, ...]]:
    """Put jobs through a daemon in a mode, and yield what it costs after each fifth of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        document: dict[str, Any] = {
            "cluster": str(folder / "cluster.yaml"),
            "state_dir": str(folder / "state"),
            "mode": str(mode),
        }
        document |= {"policy": "mom", "without_gain": "place", "record": {"enabled": True, "max_mib": 20}}
        config = DaemonConfig.model_validate(document)
        manager = QueueInMemory(config)
        journal = Journal(config.journal)
        recorder = begin_record(config, manager, journal, time.monotonic, mode)
        assert recorder is not None, "the record is configured"
        adapter = recorder.adapter(manager)
        journal.keep_handed_over("queue", manager.time)
        cycle = assemble(
            adapter, Live(adapter) if mode.acts else Recording(lambda line: None, mode=mode), journal, Metrics(),
            decided_by(config, journal), recorder.clock, profiles=LearnedProfiles(config.profile_store),
            delays_file=config.delays,
        )  # fmt: skip
        every, began = jobs // 5, time.process_time()
        while manager.number < jobs:
            manager.advance(PER_CYCLE)
            recorder.end(cycle.run())
            if manager.number // every > (manager.number - PER_CYCLE) // every:
                spent, memory = time.process_time() - began, _memory_mib()
                files, began = len(os.listdir("/proc/self/fd")), time.process_time()
                size = config.journal.stat().st_size / manager.number
                record = sum(path.stat().st_size for path in config.record_folder.iterdir()) / 2**20
                yield (
                    str(mode), f"{manager.number:,}", f"{1e3 * spent / (every / PER_CYCLE):.1f} ms",
                    f"{memory:.0f} MiB", str(files), f"{record:.1f} MiB", f"{size:.0f} B",
                )  # fmt: skip
        recorder.close()
        journal.close()


def _memory_mib() -> float:
    """Return the memory of this process now, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20

"""A daemon on a played resource manager, recorded from its begin, and the replay of a record."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import assemble, decided_by
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.record_run import RecordRun
from pilotfish.daemon.recording.begin_record import begin_record
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.formats.cluster import read_cluster
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import NodeState
from tests.support.played_adapter import Answer, HandOverAdapter
from tests.support.played_manager import SimulatedManager

CLUSTER = (
    "schema: pilotfish/cluster/v1\nname: lab\nnode_types: {t: {cores: 4, memory: 8GiB, memory_bandwidth: 10GB/s}}\n"
    "nodes: [{names: 'n[1-4]', type: t}]\n"
)


class RecordedSite:
    """A daemon on a played resource manager, recorded from its begin."""

    def __init__(self, folder: Path, *, mode: RunMode = RunMode.LIVE, seed: int = 0, **options) -> None:
        self.draw = random.Random(seed)
        (folder / "cluster.yaml").write_text(CLUSTER)
        self.config = DaemonConfig(
            cluster=str(folder / "cluster.yaml"), state_dir=str(folder / "state"), record={"enabled": True},
            time_limit=None, budget=50, mode=mode if mode.keeps else "live", **options,
        )  # fmt: skip
        self.cluster = read_cluster(self.config.cluster)
        self.manager = SimulatedManager(self.cluster)
        self.fails = self.asks = 0.0  #: shares of requests that fail, and of breaths in which a client asks
        self.answered = Counter[str]()
        self.patience = 0  #: the most questions after which a cycle's search for a plan is cut; 0: none is
        self._questions_left = 0
        adapter = HandOverAdapter(self.manager, self._answer)
        self.journal = Journal(self.config.journal, in_memory=not mode.keeps)
        ticks = iter(range(10**9))
        self.recorder = begin_record(
            self.config, adapter, self.journal, lambda: self.manager.time + next(ticks) * 1.37e-4, mode
        )
        adapter = self.recorder.adapter(adapter)
        self.journal.keep_handed_over("played", 0.0)
        self.cycle = assemble(
            adapter, Live(adapter) if mode.acts else Recording(lambda line: None, mode=mode), self.journal, Metrics(),
            decided_by(self.config, self.journal), self.recorder.clock, stopwatch=lambda: 0.0,
            profiles=LearnedProfiles(self.config.profile_store),
            delays_file=self.config.delays if mode.keeps else None,
            stopping=self._is_over, breathe=self.recorder.breathing(self._answer_client),
        )  # fmt: skip
        self.cycle.tracker.note_input = self.recorder.note_input

    def _is_over(self) -> bool:
        self._questions_left -= 1
        return bool(self.patience) and self._questions_left < 0

    def _answer(self, change: bool) -> Answer:
        return Answer.LOST if self.draw.random() < self.fails else Answer.GIVEN

    def _answer_client(self) -> None:
        """Submit a workflow, or cancel a job that waits, in the middle of a cycle."""
        if not self.asks or self.draw.random() >= self.asks:
            return
        tracker = self.cycle.tracker
        waiting = [entry for entry in tracker.queue.active() if entry.waiting]
        kind = "cancel" if waiting and self.draw.random() < 0.4 else "submit"
        self.answered[kind] += 1
        with self.recorder.muted():
            if kind == "cancel":
                tracker.cancel([self.draw.choice(waiting)])
                return
            jobs = [self.job(name, Profile((ThreadGroup(2, 9.0),)), 20.0) for name in "ab"]
            workflow = Workflow(f"own{self.answered[kind]}", tuple(jobs))
            submission = Submission(f"{workflow.name}.1", workflow, tracker.now, owner=5)
            self.journal.submit(submission, None)
            tracker.add(submission)

    def run(self, cycles: int, step_s: float = 7.0) -> None:
        """Run cycles, and end the segment."""
        self.run_open(cycles, step_s)
        self.recorder.close()

    def run_open(self, cycles: int, step_s: float = 7.0) -> None:
        """Run cycles, and let the segment go on."""
        for _ in range(cycles):
            if self.draw.random() < 0.4:
                self.submit()
            if self.draw.random() < 0.05:
                states = (NodeState.UP, NodeState.DRAINED)
                self.manager.set_node(f"n{self.draw.randint(1, 4)}", self.draw.choice(states))
            if self.patience:
                self._questions_left = self.draw.randint(0, self.patience)
            with suppress(AdapterError):
                self.recorder.end(self.cycle.run())
            self.manager.advance(step_s)

    def submit(self) -> None:
        seconds = self.draw.choice((5.0, 30.0, 200.0))
        profile = Profile((ThreadGroup(self.draw.randint(1, 4), seconds, bandwidth=self.draw.choice((0.0, 4e9))),))
        self.manager.submit(self.job(f"j{self.draw.randint(0, 99)}", profile, 2 * seconds), hold_s=600.0)

    def job(self, name: str, profile: Profile, walltime: float) -> Job:
        return Job(name, profile, walltime=walltime, nodes=1)


def played(folder: Path, change=None):
    with RecordRun(folder, change) as run:
        return list(run.cycles()), run.comparison

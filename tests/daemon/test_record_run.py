"""A record that runs under the loop again: the same decisions, whatever happened to the record."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import assemble, decided_by
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.config_sections import AccessConfig, QuotaConfig
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.record_run import RecordRun
from pilotfish.daemon.recording.begin_record import begin_record
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.socket.access import Access
from pilotfish.daemon.socket.pause_requests import PauseRequests
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.users import Peer
from pilotfish.formats.cluster import read_cluster
from pilotfish.formats.record import segments
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.snapshot import NodeState
from tests.support.played_adapter import Answer, HandOverAdapter
from tests.support.played_manager import SimulatedManager

CLUSTER = (
    "schema: pilotfish/cluster/v1\nname: lab\nnode_types: {t: {cores: 4, memory: 8GiB, memory_bandwidth: 10GB/s}}\n"
    "nodes: [{names: 'n[1-4]', type: t}]\n"
)


class Site:
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
        self.fails = 0.0
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
        )  # fmt: skip
        self.cycle.tracker.note_input = self.recorder.note_input

    def _answer(self, change: bool) -> Answer:
        return Answer.LOST if self.draw.random() < self.fails else Answer.GIVEN

    def run(self, cycles: int, step_s: float = 7.0) -> None:
        for _ in range(cycles):
            if self.draw.random() < 0.4:
                self.submit()
            if self.draw.random() < 0.05:
                states = (NodeState.UP, NodeState.DRAINED)
                self.manager.set_node(f"n{self.draw.randint(1, 4)}", self.draw.choice(states))
            with suppress(AdapterError):
                self.recorder.end(self.cycle.run())
            self.manager.advance(step_s)
        self.recorder.close()

    def submit(self) -> None:
        seconds = self.draw.choice((5.0, 30.0, 200.0))
        profile = Profile((ThreadGroup(self.draw.randint(1, 4), seconds, bandwidth=self.draw.choice((0.0, 4e9))),))
        self.manager.submit(Job(f"j{self.draw.randint(0, 99)}", profile, walltime=2 * seconds, nodes=1), hold_s=600.0)


def played(folder: Path, change=None):
    with RecordRun(folder, change) as run:
        return list(run.cycles()), run.comparison


@pytest.mark.parametrize("mode", RunMode)
@pytest.mark.parametrize("policy", ["lookahead", "mom", "easy:order=sjf"])
def test_a_record_gives_the_same_decisions(tmp_path, mode, policy):
    site = Site(tmp_path, mode=mode, seed=3, policy=policy)
    site.run(120)
    cycles, comparison = played(site.config.record_folder)
    assert [cycle.number for cycle in cycles if cycle.differs] == []
    assert comparison.cycles == comparison.equal == 120
    assert comparison.decisions > 20 and comparison.strays == 0 and comparison.gaps == []


def test_a_pause_is_in_the_record(tmp_path):
    site = Site(tmp_path, seed=3)
    access = Access(AccessConfig(), QuotaConfig(), operated="", file=tmp_path)
    ask, peer = PauseRequests(site.cycle, access), Peer(os.geteuid(), os.getegid(), 1)
    site.run(30)
    ask.pause({"for_s": "210"}, peer)
    site.run(60)
    ask.pause({"partition": "gpu"}, peer)
    site.run(10)
    ask.resume({}, peer)
    site.run(30)
    cycles, comparison = played(site.config.record_folder)
    assert [cycle.number for cycle in cycles if cycle.differs] == []
    assert comparison.equal == comparison.cycles == 130
    started = {cycle.number for cycle in cycles if any("start" in text for text in cycle.played.get("did", ()))}
    assert not started & {*range(31, 60)} and min(started) < 31 and max(started) > 61


def test_requests_that_failed_fail_again(tmp_path):
    site = Site(tmp_path, seed=5)
    site.fails = 0.1
    site.run(150)
    _, comparison = played(site.config.record_folder)
    assert comparison.failed > 5 and comparison.equal == comparison.cycles == 150


def test_another_policy_shows_where_it_decides_otherwise(tmp_path):
    site = Site(tmp_path, seed=3, policy="lookahead")
    site.run(60)
    _, comparison = played(site.config.record_folder, lambda config: config.model_copy(update={"policy": "loadavg"}))
    assert 0 < comparison.equal < comparison.cycles


def test_a_record_that_was_cut_off_is_played_as_far_as_it_goes(tmp_path):
    site = Site(tmp_path, seed=3)
    site.run(80)
    (path,) = segments.segments(site.config.record_folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _, comparison = played(site.config.record_folder)
    assert 10 < comparison.cycles < 80 and comparison.equal == comparison.cycles
    (gap,) = comparison.gaps
    assert path.name in gap and "lines" in gap


def test_segments_that_follow_each_other_are_one_run(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 4000)
    monkeypatch.setattr(segments, "FLUSH_BYTES", 100)
    site = Site(tmp_path, seed=3)
    site.run(80)
    assert len(segments.segments(site.config.record_folder)) > 3
    _, comparison = played(site.config.record_folder)
    assert comparison.equal == comparison.cycles == 80 and comparison.gaps == []


def test_a_record_without_its_begin_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 4000)
    site = Site(tmp_path, seed=3)
    site.run(80)
    first, *_ = segments.segments(site.config.record_folder)
    first.unlink()
    _, comparison = played(site.config.record_folder)
    assert 0 < comparison.cycles < 80 and "begin of its run is not kept" in comparison.gaps[0]


def test_what_is_no_record_is_one_error(tmp_path):
    with pytest.raises(ConfigError, match="holds no segment"):
        played(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        played(tmp_path / "none")
    (tmp_path / "5-000.jsonl.gz").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"5-000\.jsonl\.gz"):
        played(tmp_path)

"""A record that runs under the loop again: the same decisions, whatever happened to the record."""

from __future__ import annotations

import os
import resource
import shutil

import pytest

from pilotfish.daemon.config_sections import AccessConfig, QuotaConfig
from pilotfish.daemon.recording.player import Player
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.socket.access import Access
from pilotfish.daemon.socket.pause_requests import PauseRequests
from pilotfish.daemon.state.users import Peer
from pilotfish.formats.record import segments
from pilotfish.simulate.errors import ConfigError
from tests.support import effort
from tests.support.recorded_site import RecordedSite, played


@pytest.mark.parametrize("mode", RunMode)
@pytest.mark.parametrize("policy", effort.some(["lookahead", "mom", "easy:order=sjf"], 1))
def test_a_record_gives_the_same_decisions(tmp_path, mode, policy):
    site = RecordedSite(tmp_path, mode=mode, seed=3, policy=policy)
    site.run(60)
    cycles, comparison = played(site.config.record_folder)
    assert [cycle.number for cycle in cycles if cycle.differs] == []
    assert comparison.cycles == comparison.equal == 60
    assert comparison.decisions > 10 and comparison.strays == 0 and comparison.gaps == []


@pytest.mark.parametrize("policy", effort.some(["lookahead", "easy:order=sjf"], 1))
def test_what_clients_ask_for_during_a_cycle_counts_from_there_on(tmp_path, policy):
    """On a busy machine a cycle is long, and a client is often answered between its snapshot and its plan."""
    site = RecordedSite(tmp_path, seed=3, policy=policy)
    site.asks = 0.05
    site.run(60)
    cycles, comparison = played(site.config.record_folder)
    assert [cycle.number for cycle in cycles if cycle.differs] == []
    assert comparison.equal == comparison.cycles == 60 and comparison.strays == 0 and comparison.gaps == []
    assert min(site.answered[kind] for kind in ("submit", "cancel")) > 3


def test_a_search_that_was_cut_ends_at_the_same_place(tmp_path, monkeypatch):
    site = RecordedSite(tmp_path, seed=5, policy="lookahead")
    site.patience = 3
    for _ in range(12):
        site.submit()
    site.run(40)
    cycles, comparison = played(site.config.record_folder)
    assert [cycle.number for cycle in cycles if cycle.differs] == []
    assert comparison.equal == comparison.cycles == 40 and comparison.cut > 5
    monkeypatch.setattr(Player, "stopping", lambda player: False)
    assert played(site.config.record_folder)[1].equal < 40  # what was cut would have ended otherwise


def test_a_pause_is_in_the_record(tmp_path):
    site = RecordedSite(tmp_path, seed=3)
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
    site = RecordedSite(tmp_path, seed=5)
    site.fails = 0.1
    site.run(90)
    _, comparison = played(site.config.record_folder)
    assert comparison.failed > 3 and comparison.equal == comparison.cycles == 90


def test_another_policy_shows_where_it_decides_otherwise(tmp_path):
    site = RecordedSite(tmp_path, seed=3, policy="lookahead")
    site.run(60)
    _, comparison = played(site.config.record_folder, lambda config: config.model_copy(update={"policy": "loadavg"}))
    assert 0 < comparison.equal < comparison.cycles


def test_a_record_that_was_cut_off_is_played_as_far_as_it_goes(tmp_path):
    site = RecordedSite(tmp_path, seed=3)
    site.run(80)
    (path,) = segments.segments(site.config.record_folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _, comparison = played(site.config.record_folder)
    assert 10 < comparison.cycles < 80 and comparison.equal == comparison.cycles
    (gap,) = comparison.gaps
    assert path.name in gap and "lines" in gap


@pytest.fixture(scope="module")
def in_segments(tmp_path_factory):
    """The folder of a record of 80 cycles in many segments; tests change copies of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "SEGMENT_BYTES", 4000)
        patch.setattr(segments, "FLUSH_BYTES", 100)
        site = RecordedSite(tmp_path_factory.mktemp("site"), seed=3)
        site.run(80)
    return site.config.record_folder


def test_segments_that_follow_each_other_are_one_run(in_segments):
    assert len(segments.segments(in_segments)) > 3
    _, comparison = played(in_segments)
    assert comparison.equal == comparison.cycles == 80 and comparison.gaps == []


def test_a_record_without_its_begin_says_so(tmp_path, in_segments):
    folder = shutil.copytree(in_segments, tmp_path / "record")
    first, *_ = segments.segments(folder)
    first.unlink()
    _, comparison = played(folder)
    assert 0 < comparison.cycles < 80 and "begin of its run is not kept" in comparison.gaps[0]


def test_a_pause_that_was_lost_in_a_gap_holds_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 4000)
    monkeypatch.setattr(segments, "FLUSH_BYTES", 100)
    site = RecordedSite(tmp_path, seed=3)
    requests = PauseRequests(site.cycle, Access(AccessConfig(), QuotaConfig(), operated="", file=tmp_path))
    site.run(20)
    before = len(segments.segments(site.config.record_folder))
    requests.pause({}, Peer(os.geteuid(), os.getegid(), 1))
    site.run(60)
    lost = segments.segments(site.config.record_folder)[before - 1 : before + 1]
    for path in lost:
        path.unlink()
    cycles, comparison = played(site.config.record_folder)
    modes = [(cycle.recorded.get("mode"), cycle.played.get("mode")) for cycle in cycles]
    assert 20 < comparison.cycles < 80 and {*modes} == {("live", "live"), ("paused", "paused")}


def test_what_is_no_record_is_one_error(tmp_path):
    with pytest.raises(ConfigError, match="holds no segment"):
        played(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        played(tmp_path / "none")
    (tmp_path / "5-000.jsonl.gz").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"5-000\.jsonl\.gz"):
        played(tmp_path)


@pytest.mark.long
def test_a_disk_that_was_full_for_a_while_is_a_gap_and_the_rest_is_played(tmp_path, monkeypatch):
    """The cycles of that time are lost. Those before decide the same, and the output names the gap."""
    monkeypatch.setattr(segments, "AGAIN_S", 0.0)
    monkeypatch.setattr(segments, "FLUSH_BYTES", 100)
    site = RecordedSite(tmp_path, mode=RunMode.DRY_RUN, seed=3)
    site.run_open(40)
    bound = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, bound[1]))  # no file may grow, as on a full disk
    try:
        site.run_open(20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bound)
    site.run(40)
    cycles, comparison = played(site.config.record_folder)
    assert 80 <= comparison.cycles < 100
    assert [cycle.number for cycle in cycles[:40] if cycle.differs] == []
    (gap,) = comparison.gaps
    assert "it ends in the middle, after " in gap and "had no room on the disk" in gap


def test_a_segment_without_its_first_line_is_left_out(tmp_path, monkeypatch):
    """As a power cut leaves it, before anything of it was on disk."""
    site = RecordedSite(tmp_path, mode=RunMode.DRY_RUN, seed=3)
    site.run(30)
    site.run(30)
    first, second = segments.segments(site.config.record_folder)
    second.write_bytes(b"")
    _, comparison = played(site.config.record_folder)
    assert comparison.equal == comparison.cycles == 30 and second.name in comparison.gaps[0]
    first.write_bytes(b"")
    with pytest.raises(ConfigError, match=first.name):
        played(site.config.record_folder)

"""The player gives the answers of the recorder, in their places."""

from pathlib import Path

from pilotfish.adapters.base import Capabilities
from pilotfish.daemon.recording.player import Player
from pilotfish.daemon.recording.recorder import Recorder
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.formats.record.segments import Bounds, RecordWriter, Segment, segments
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import NodeState, Snapshot

CLUSTER = Cluster("lab", (Node("n1", NodeType("t", 1, 1e9, 1e9)),))


class Manager:
    """A resource manager that has news when it is asked for the third time."""

    looks = 0

    def snapshot(self) -> Snapshot:
        return Snapshot(5.0, 1, CLUSTER, (NodeState.UP,), ())

    def wait(self, timeout_s: float) -> bool:
        self.looks += 1
        return self.looks == 3


def test_news_comes_at_the_same_place_of_a_search(tmp_path: Path) -> None:
    recorder = Recorder(RecordWriter(tmp_path, {}, Bounds(), lambda: 1e9), lambda: 1.0)
    adapter = recorder.adapter(Manager())
    adapter.snapshot()
    answers = [adapter.wait(0.0) for _ in range(4)]
    recorder.end(CycleReport(1, 0.0))
    recorder.close()
    (line,) = Segment.open(segments(tmp_path)[0]).lines()
    player = Player("memory", Capabilities(), CLUSTER)
    assert player.fileno() is not None, "a search asks for news"
    for _ in range(2):
        player.load_cycle(line)
        assert [player.wait(0.0) for _ in range(4)] == answers == [False, False, True, False]
    assert Player("memory", Capabilities(events=False), CLUSTER).fileno() is None

"""The record of a watch has whole looks only, and so decides the same when it is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.recording.queue_watch import Watch
from pilotfish.daemon.recording.recorder import Recorder
from pilotfish.formats.record.segments import Bounds, RecordWriter, Segment, segments
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.observed_queue import ObservedQueue
from pilotfish.simulate.model.snapshot import NodeState, Snapshot

CLUSTER = Cluster("lab", (Node("n1", NodeType("t", 1, 1e9, 1e9)),))


class Manager:
    """A resource manager whose queue is read once, and then ends with an error."""

    def __init__(self, error: BaseException) -> None:
        self.answers: list[BaseException | ObservedQueue] = [error, ObservedQueue(5.0, (), {})]

    def activity(self) -> None:
        """Count no events."""

    def snapshot(self) -> Snapshot:
        return Snapshot(5.0, 1, CLUSTER, (NodeState.UP,), ())

    def queue(self) -> ObservedQueue:
        answer = self.answers.pop()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def looks(folder: Path, error: BaseException, interrupt: type[BaseException] | None) -> list[bool]:
    """Return for each look of a record whether it failed."""
    recorder = Recorder(RecordWriter(folder, {}, Bounds(), lambda: 1e9), lambda: 1.0)
    watch = Watch(Manager(error), recorder, lambda: 1.0)
    assert watch.step()
    if interrupt is None:
        assert watch.step()
    else:
        with pytest.raises(interrupt):
            watch.step()
    recorder.close()
    return ["failed" in line for line in Segment.open(segments(folder)[0]).lines()]


def test_a_look_that_ctrl_c_interrupts_is_not_kept(tmp_path: Path) -> None:
    assert looks(tmp_path, KeyboardInterrupt(), KeyboardInterrupt) == [False]


def test_a_look_that_the_resource_manager_does_not_answer_is_kept(tmp_path: Path) -> None:
    assert looks(tmp_path, AdapterError("it is away"), None) == [False, True]

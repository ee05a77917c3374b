"""What the resource manager learns of the jobs that were placed or released."""

from __future__ import annotations

from typing import cast

import pytest

from pilotfish.adapters.base import Adapter
from pilotfish.daemon.apply import Applied
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.hold_advice import HoldAdvice
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Place, Release
from pilotfish.simulate.model.snapshot import NodeState, Snapshot

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 1, 2.0**30, 1e10)),))
SNAPSHOT = Snapshot(0.0, 1, CLUSTER, (NodeState.UP,), ())


class Told:
    """Only what is called of an adapter."""

    def __init__(self) -> None:
        self.gains: dict[str, bool] = {}

    def note_gain(self, key: str, *, gained: bool) -> None:
        self.gains[key] = gained


@pytest.mark.parametrize(
    ("worth", "dry", "expected"),
    [
        (True, False, {"rm/1": True, "rm/2": True}),
        (False, False, {"rm/1": False, "rm/2": False}),
        (None, False, {}),
        (True, True, {}),
    ],
)
def test_what_was_done_is_passed_on_and_nothing_else(worth: bool | None, dry: bool, expected: dict[str, bool]) -> None:
    adapter, job = Told(), Job("1", Profile((ThreadGroup(1, 1.0),)))
    done = [Place("rm/1", job, ("n1",)), Release("rm/2"), Cancel("rm/3")]
    report = CycleReport(1, 0.0, dry=dry, worth_holding=worth, applied=[Applied(action) for action in done])
    report.applied.append(Applied(Release("rm/4"), error="refused"))
    HoldAdvice(cast(Adapter, adapter)).on_cycle(report, SNAPSHOT)
    assert adapter.gains == expected

"""What the resource manager learns of the jobs that were placed or released."""

from __future__ import annotations

from typing import cast

import pytest

from pilotfish.adapters.base import Adapter, Capabilities
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.hold_advice import HEARTBEAT_S, HoldAdvice
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.applied import Applied
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Place, Release
from pilotfish.simulate.model.snapshot import NodeState, Snapshot

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 1, 2.0**30, 1e10)),))
SNAPSHOT = Snapshot(0.0, 1, CLUSTER, (NodeState.UP,), ())


class Told:
    """Only what is called of an adapter."""

    capabilities = Capabilities(offers=True)

    def __init__(self) -> None:
        self.gains: dict[str, float] = {}
        self.held_until: list[float] = []

    def keep_holding(self, until: float) -> None:
        self.held_until.append(until)

    def note_gain(self, key: str, gain_s: float) -> None:
        self.gains[key] = gain_s


@pytest.mark.parametrize(
    ("each", "dry", "expected"),
    [
        (2.0, False, {"rm/1": 2.0, "rm/2": 2.0}),
        (-1.0, False, {"rm/1": -1.0, "rm/2": -1.0}),
        (None, False, {}),
        (2.0, True, {}),
    ],
)
def test_what_was_done_is_passed_on_and_nothing_else(each: float | None, dry: bool, expected: dict[str, float]) -> None:
    adapter, job = Told(), Job("1", Profile((ThreadGroup(1, 1.0),)))
    done = [Place("rm/1", job, ("n1",)), Release("rm/2"), Cancel("rm/3")]
    report = CycleReport(
        1,
        0.0,
        RunMode.SHADOW if dry else RunMode.LIVE,
        gain_of_holding_s=each,
        applied=[Applied(action) for action in done],
    )
    report.applied.append(Applied(Release("rm/4"), error="refused"))
    HoldAdvice(cast(Adapter, adapter)).on_cycle(report, SNAPSHOT)
    assert adapter.gains == expected
    assert adapter.held_until == ([] if dry else [SNAPSHOT.time + HEARTBEAT_S])

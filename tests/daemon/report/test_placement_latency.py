"""Where the time goes from an end to the next start, and what a placement is expected to cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.delays import read_delays
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.report.placement_latency import ASSUMED_S, FEWEST, WRITE_EVERY_S, PlacementLatency
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.applied import Applied
from pilotfish.daemon.state.job_stages import STAGE_OF, JobStage
from pilotfish.daemon.state.queue import JobEvent, Queue
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Place, Start, Submit
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 1, 2.0**30, 1e10)),))
JOB = Job("a", Profile((ThreadGroup(1, 1.0),)))
SEEN_S, DECIDED_S, SENT_S, STARTED_S = 0.5, 0.25, 0.125, 1.0


class Played:
    """Cycles in which a job has ended, and the next is placed on its node and starts."""

    def __init__(self, launch_s: float = 0.0) -> None:
        self.now, self.number = 100.0, 0
        self.metrics = Metrics()
        self.latency = PlacementLatency(self.metrics, Queue(), lambda: self.now, lambda: launch_s)

    def snapshot(self) -> Snapshot:
        self.number += 1
        return Snapshot(1e9 + self.now, self.number, CLUSTER, (NodeState.UP,), ())

    def event(self, kind: str, name: str, **times: float) -> JobEvent:
        entry = Entry("rm", replace(JOB, id=name), 0)
        state = JobState.COMPLETED if "finish_time" in times else JobState.RUNNING
        entry.move(STAGE_OF[state], state)
        entry.nodes = ("n1",)
        for field, value in times.items():
            setattr(entry, field, value)
        return JobEvent(kind, entry, kind)

    def turn(self, *, error: str = "", dry: bool = False, start: type[Start] = Place) -> None:
        """A job ends, and the next is placed, or submitted; then it starts."""
        name = f"j{self.number}"
        seen = self.snapshot()
        self.latency.on_snapshot(seen)
        self.latency.on_events([self.event("ended", "before", finish_time=seen.time - SEEN_S)], seen)
        began = self.now + DECIDED_S
        self.now = began + SENT_S
        done = Applied(start(f"rm/{name}", JOB, ("n1",)), error=error, began=began, ended=self.now)
        self.latency.on_cycle(
            CycleReport(self.number, 0.0, RunMode.SHADOW if dry else RunMode.LIVE, applied=[done]), seen
        )
        sent = seen.time + DECIDED_S + SENT_S
        pending = self.event("seen", name, start_time=sent)  # assumed while it waits for its launch
        pending.entry.move(JobStage.HANDED)
        self.latency.on_events([pending], self.snapshot())
        self.now += 5.0
        self.latency.on_events([self.event("started", name, start_time=sent + STARTED_S)], self.snapshot())

    def count(self, phase: str) -> tuple[float, float]:
        """How often a phase was measured, and the sum, seconds."""
        get = self.metrics.registry.get_sample_value
        name, labels = "pilotfish_placement_latency_seconds", {"phase": phase}
        return get(f"{name}_count", labels) or 0.0, get(f"{name}_sum", labels) or 0.0


def test_each_phase_is_measured() -> None:
    played = Played()
    played.turn()
    for phase, seconds in (("seen", SEEN_S), ("decided", DECIDED_S), ("sent", SENT_S), ("started", STARTED_S)):
        assert played.count(phase) == (1.0, pytest.approx(seconds))


def test_what_a_placement_costs_is_assumed_until_it_was_measured() -> None:
    played = Played()
    for turn in range(FEWEST):
        assert played.latency.cost_s == played.latency.gap_s == ASSUMED_S, turn
        played.turn()
    assert played.latency.cost_s == pytest.approx(SEEN_S + DECIDED_S + SENT_S)
    assert played.latency.gap_s == pytest.approx(SEEN_S + DECIDED_S + SENT_S + STARTED_S)


@pytest.mark.parametrize("what", [{"error": "refused"}, {"dry": True}])
def test_what_did_not_happen_is_not_measured(what: dict[str, object]) -> None:
    played = Played()
    for _ in range(FEWEST):
        played.turn(**what)
    assert played.count("sent") == (0.0, 0.0) and played.latency.cost_s == ASSUMED_S


@pytest.mark.parametrize("launch_s", [0.0, 2.0])
def test_jobs_of_ours_count_where_a_launch_takes_time(launch_s: float) -> None:
    played = Played(launch_s)
    assert played.latency.gap_s == ASSUMED_S + launch_s and played.latency.of_all is (launch_s > 0.0)
    for _ in range(FEWEST):
        played.turn(start=Submit)
    gap_s = SEEN_S + DECIDED_S + SENT_S + STARTED_S
    assert played.latency.gap_s == pytest.approx(gap_s if launch_s else ASSUMED_S)


def test_the_distributions_are_kept_in_a_file_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "delays.json"
    played = Played()
    played.latency = PlacementLatency(played.metrics, Queue(), lambda: played.now, file=path)
    for _ in range(3):
        played.turn()
        played.now += WRITE_EVERY_S
    found = read_delays(path)
    assert [*found.samples["sent"]] == pytest.approx([SENT_S] * 3)
    assert [*found.samples["seen"]] == pytest.approx([SEEN_S] * 3)
    again = PlacementLatency(played.metrics, Queue(), lambda: played.now, delays=found, file=path)
    assert len(again.delays.samples["decided"]) == 3


def test_the_time_until_a_job_is_shown_is_measured_from_the_second_snapshot_on() -> None:
    played = Played()
    old, new = (
        JobView(f"rm/{name}", JOB, JobState.PENDING, submit_time=1e9 + played.now - since, offered=True)
        for name, since in (("old", 30.0), ("new", 0.5))
    )
    for views in ((old,), (old, new), (old, new)):
        seen = played.snapshot()
        played.latency.on_snapshot(Snapshot(seen.time, seen.version, CLUSTER, (NodeState.UP,), views))
    assert [*played.latency.delays.samples["submitted"]] == [0.5]

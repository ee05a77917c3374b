"""Idle nodes are powered down only if no job needs them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.planning.power_saving import REFUSED_S, PowerSaver
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Action
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

KIND = NodeType("t", 4, 2.0**32, 1e10)
CLUSTER = Cluster("c", tuple(Node(f"n{i}", KIND) for i in range(5)))
JOB = Job("j", Profile((ThreadGroup(1, 10.0),)))
NO_APPLIER = Recording(lambda line: None)
REPORT = CycleReport(1, 0.0)


def world(time: float, *views: JobView, states: tuple[NodeState, ...] = (NodeState.UP,) * 5) -> Snapshot:
    return Snapshot(time, 1, CLUSTER, states, views)


def running(node: str) -> JobView:
    return JobView(f"slurm/{node}", JOB, JobState.RUNNING, (node,))


def test_a_node_idle_for_long_goes_and_a_spare_stays() -> None:
    saver = PowerSaver(NO_APPLIER, 60.0, spare=2)
    assert saver.choose(world(0.0, running("n0"))) is None
    assert saver.choose(world(59.0, running("n0"))) is None
    chosen = saver.choose(world(60.0, running("n0")))
    assert chosen is not None and chosen.nodes == ("n1", "n2")


def test_use_restarts_the_idle_time_of_a_node() -> None:
    saver = PowerSaver(NO_APPLIER, 60.0, spare=0)
    saver.choose(world(0.0))
    saver.choose(world(50.0, running("n3")))
    chosen = saver.choose(world(70.0), planned={"n0"})
    assert chosen is not None and chosen.nodes == ("n1", "n2", "n4")


def test_no_node_goes_while_a_job_waits_for_nodes() -> None:
    saver = PowerSaver(NO_APPLIER, 1.0, spare=0)
    waiting = JobView("slurm/2", JOB, JobState.PENDING)
    later = JobView("slurm/3", JOB, JobState.PENDING, waits="Slurm says Dependency")
    saver.choose(world(0.0))
    assert saver.choose(world(10.0, waiting)) is None
    assert saver.choose(world(10.0, later)) is not None


@given(
    st.lists(st.sampled_from([*NodeState]), min_size=5, max_size=5),
    st.sets(st.integers(0, 4)),
    st.integers(0, 5),
)
def test_only_idle_nodes_that_are_up_go_and_never_more_than_the_surplus(
    states: list[NodeState], busy: set[int], spare: int
) -> None:
    saver = PowerSaver(NO_APPLIER, 10.0, spare)
    views = [running(f"n{i}") for i in busy]
    saver.choose(world(0.0, *views, states=tuple(states)))
    chosen = saver.choose(world(10.0, *views, states=tuple(states)))
    idle = {f"n{i}" for i, state in enumerate(states) if state is NodeState.UP and i not in busy}
    gone = set(chosen.nodes) if chosen else set()
    assert gone <= idle and len(gone) == max(0, len(idle) - spare)


class Refusing:
    """Slurm, where the user is not an administrator."""

    dry = False

    def __init__(self) -> None:
        self.asked = 0

    def apply(self, action: Action) -> None:
        self.asked += 1
        raise AdapterError("scontrol: Invalid user id", kind="refused")


def test_a_refused_request_is_repeated_only_after_a_pause() -> None:
    slurm = Refusing()
    saver = PowerSaver(slurm, 1.0, spare=0)
    for time in (0.0, 10.0, 20.0, 30.0):
        saver.on_cycle(REPORT, world(time))
    assert slurm.asked == 1
    saver.on_cycle(REPORT, world(10.0 + REFUSED_S))
    assert slurm.asked == 2


def test_a_dry_run_prints_the_action_once() -> None:
    lines: list[str] = []
    saver = PowerSaver(Recording(lines.append), 1.0, spare=4)
    for time in (0.0, 10.0, 20.0):
        saver.on_cycle(REPORT, world(time))
    assert lines == ["power off n0"]

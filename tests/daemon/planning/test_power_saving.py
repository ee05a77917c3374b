"""Nodes are powered down only if they are idle and no job needs them, and up only if they are off."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.planning.plan_cache import PlanCache
from pilotfish.daemon.planning.power_saving import LONGEST_S, REFUSED_S, SHOWN_S, NodeSwitcher
from pilotfish.daemon.planning.trigger import Trigger
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Queue
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.daemon.state.write_ahead import WriteAhead
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power, Transition
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.node_power import NodePower
from pilotfish.simulate.model.plan import Action, Plan, PlannedJob, PowerOff, PowerOn, PowerSwitch
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

POWER = Power(95.0, computing=190.0, off=9.0, switch_on=Transition(125.0, 100.0), switch_off=Transition(101.0, 6.0))
KIND = NodeType("t", 4, 2.0**32, 1e10, power=POWER)
CLUSTER = Cluster("c", tuple(Node(f"n{i}", KIND) for i in range(5)))
JOB = Job("j", Profile((ThreadGroup(1, 10.0),)))
UP = (NodeState.UP,) * 5


class Slurm:
    """Notes what it was asked to switch, or refuses it."""

    mode = RunMode.LIVE

    def __init__(self, *, refuses: bool = False) -> None:
        self.asked: list[Action] = []
        self.refuses = refuses

    def new(self, actions: list[Action]) -> list[Action]:
        return actions

    def apply(self, action: Action) -> None:
        self.asked.append(action)
        if self.refuses:
            raise AdapterError("scontrol: Invalid user id", kind="refused")


class Bench:
    """A switcher, with cycles at given times."""

    def __init__(self, applier: Slurm | Recording, *saving: float) -> None:
        self.slurm, self.trigger = applier, Trigger(PlanCache(None, lambda: 0.0))
        self.journal = Journal(Path(":memory:"), in_memory=True)
        write_ahead = WriteAhead(self.journal, Queue(), Unsaved(), dry=not applier.mode.acts)
        self.switcher = NodeSwitcher(applier, write_ahead, self.trigger, *saving)
        self.switcher.by_policy = not saving

    def choose(
        self, time: float, *views: JobView, states: tuple[NodeState, ...] = UP, planned: tuple[str, ...] = ()
    ) -> PowerOff | None:
        now = Snapshot(time, 1, CLUSTER, states, views)
        self.switcher.on_snapshot(now)
        return self.switcher.choose(now, planned)

    def cycle(self, time: float, *views: JobView, states: tuple[NodeState, ...] = UP, plan: Plan | None = None) -> None:
        now = Snapshot(time, 1, CLUSTER, states, views)
        self.switcher.on_snapshot(now)
        self.switcher.on_cycle(CycleReport(1, 0.0, self.slurm.mode, plan=plan), now)


def plan_of(*switches: PowerSwitch, jobs: tuple[PlannedJob, ...] = ()) -> Plan:
    return Plan("q", "c", "p", 0, 0.0, None, 0.0, 0.0, truncated=False, evaluations=1, jobs=jobs, switches=switches)


def running(node: str) -> JobView:
    return JobView(f"slurm/{node}", JOB, JobState.RUNNING, (node,))


def test_a_node_idle_for_long_goes_and_a_spare_stays() -> None:
    bench = Bench(Slurm(), 60.0, 2)
    assert bench.choose(0.0, running("n0")) is None
    assert bench.choose(59.0, running("n0")) is None
    chosen = bench.choose(60.0, running("n0"))
    assert chosen is not None and chosen.nodes == ("n1", "n2")


def test_it_wants_to_look_again_when_the_next_node_has_been_idle_for_long() -> None:
    """Nothing happens on an idle cluster; the action came with the next look, up to half a minute late."""
    bench = Bench(Slurm(), 60.0, 0)
    bench.choose(0.0, running("n0"))
    assert bench.trigger.recheck_at == 60.0
    bench.choose(20.0)
    assert bench.trigger.recheck_at == 60.0


def test_use_restarts_the_idle_time_of_a_node() -> None:
    bench = Bench(Slurm(), 60.0, 0)
    bench.choose(0.0)
    bench.choose(50.0, running("n3"))
    chosen = bench.choose(70.0, planned=("n0",))
    assert chosen is not None and chosen.nodes == ("n1", "n2", "n4")


def test_no_node_goes_while_a_job_waits_for_nodes() -> None:
    bench = Bench(Slurm(), 1.0, 0)
    waiting = JobView("slurm/2", JOB, JobState.PENDING)
    later = JobView("slurm/3", JOB, JobState.PENDING, waits="Slurm says Dependency")
    bench.choose(0.0)
    assert bench.choose(10.0, waiting) is None
    assert bench.choose(10.0, later) is not None


STATES = st.lists(st.sampled_from([*NodeState]), min_size=5, max_size=5).map(tuple)
BUSY = st.sets(st.integers(0, 4))


@given(STATES, BUSY, st.integers(0, 5))
def test_only_idle_nodes_that_are_up_go_and_never_more_than_the_surplus(
    states: tuple[NodeState, ...], busy: set[int], spare: int
) -> None:
    bench = Bench(Slurm(), 10.0, spare)
    views = [running(f"n{i}") for i in busy]
    bench.choose(0.0, *views, states=states)
    chosen = bench.choose(10.0, *views, states=states)
    idle = {f"n{i}" for i, state in enumerate(states) if state is NodeState.UP and i not in busy}
    gone = set(chosen.nodes) if chosen else set()
    assert gone <= idle and len(gone) == max(0, len(idle) - spare)


@given(STATES, BUSY, st.sets(st.integers(0, 4)), st.integers(0, 4), st.booleans())
def test_a_policy_switches_idle_nodes_off_and_nodes_that_are_off_on_and_no_others(
    states: tuple[NodeState, ...], busy: set[int], wanted: set[int], starts_on: int, waits: bool
) -> None:
    bench = Bench(Slurm())
    views = [running(f"n{i}") for i in busy]
    if waits:
        views.append(JobView("slurm/2", JOB, JobState.PENDING))
    nodes = tuple(f"n{i}" for i in sorted(wanted))
    job = PlannedJob("slurm/9", (f"n{starts_on}",), 0.0, 10.0, 10.0, 1.0)
    bench.cycle(0.0, *views, states=states, plan=plan_of(PowerOff(nodes), PowerOn(nodes), jobs=(job,)))
    off = {name for it in bench.slurm.asked if isinstance(it, PowerOff) for name in it.nodes}
    on = {name for it in bench.slurm.asked if isinstance(it, PowerOn) for name in it.nodes}
    up = {f"n{i}" for i, state in enumerate(states) if state is NodeState.UP}
    assert on == {f"n{i}" for i in wanted if states[i] is NodeState.ASLEEP}
    assert off == (set() if waits else {*nodes} & up - {f"n{i}" for i in busy} - {f"n{starts_on}"})


def test_a_job_that_the_policy_knows_keeps_no_node_on() -> None:
    bench, waiting = Bench(Slurm()), JobView("slurm/2", JOB, JobState.PENDING, offered=True)
    later = PlannedJob("slurm/2", ("n1",), 50.0, 60.0, 10.0, 1.0)
    bench.cycle(0.0, waiting, plan=plan_of(PowerOff(("n1",))))
    assert not bench.slurm.asked and bench.trigger.recheck_at < math.inf
    bench.cycle(0.0, waiting, plan=plan_of(PowerOff(("n1",)), jobs=(later,)))
    assert bench.slurm.asked == [PowerOff(("n1",))]


def test_what_is_being_switched_is_known_until_it_has_ended() -> None:
    bench, down, asleep = Bench(Slurm()), (NodeState.DOWN, *UP[1:]), (NodeState.ASLEEP, *UP[1:])

    def power(time: float, states: tuple[NodeState, ...]) -> NodePower:
        bench.trigger.recheck_at = math.inf
        bench.cycle(time, states=states)
        return bench.switcher.power(Snapshot(time, 1, CLUSTER, states, ()))

    bench.cycle(0.0, plan=plan_of(PowerOff(("n0",))))
    assert power(1.0, UP).switching == power(2.0, down).switching == {"n0": (False, 6.0)}
    assert power(9.0, asleep).off == ["n0"] and not power(9.0, asleep).switching
    bench.cycle(10.0, states=asleep, plan=plan_of(PowerOn(("n0",))))
    assert power(20.0, UP).switching == {"n0": (True, 110.0)} and bench.trigger.recheck_at == 110.0
    assert not power(110.0, UP).switching


def test_nodes_that_boot_for_a_job_are_counted_on() -> None:
    bench, unknown = Bench(Slurm()), (NodeState.UNKNOWN, *UP[1:])
    boots = JobView("slurm/1", JOB, JobState.CONFIGURING, ("n0",))
    bench.cycle(0.0, boots, running("n1"), states=unknown)
    now = Snapshot(0.0, 1, CLUSTER, unknown, (boots, running("n1")))
    assert bench.switcher.returning == {"n0"} == bench.switcher.power(now).waking


def test_a_switch_that_does_not_happen_is_forgotten() -> None:
    bench = Bench(Slurm())
    bench.cycle(0.0, plan=plan_of(PowerOff(("n0",))))
    bench.cycle(SHOWN_S, plan=None)
    assert not bench.switcher.returning
    bench.cycle(10.0, plan=plan_of(PowerOff(("n0",))))
    bench.cycle(20.0, states=(NodeState.DOWN, *UP[1:]))
    assert [*bench.switcher.returning] == ["n0"]
    bench.cycle(10.0 + LONGEST_S, states=(NodeState.DOWN, *UP[1:]))
    assert not bench.switcher.returning


@pytest.mark.parametrize("saving", [(1.0, 0), ()])
def test_a_refused_request_is_repeated_only_after_a_pause(saving: tuple[float, ...]) -> None:
    slurm = Slurm(refuses=True)
    bench, plan = Bench(slurm, *saving), None if saving else plan_of(PowerOff(("n0",)))
    bench.cycle(0.0)
    for time in (10.0, 20.0, 30.0):
        bench.cycle(time, plan=plan)
    assert len(slurm.asked) == 1 and not bench.switcher.returning
    bench.cycle(10.0 + REFUSED_S, plan=plan)
    assert len(slurm.asked) == 2


def test_a_dry_run_prints_the_action_once() -> None:
    lines: list[str] = []
    bench = Bench(Recording(lines.append), 1.0, 4)
    for time in (0.0, 10.0, 20.0):
        bench.cycle(time)
    asleep = (*UP[:4], NodeState.ASLEEP)
    for time in (30.0, 40.0):
        bench.cycle(time, states=asleep, plan=plan_of(PowerOff(("n1", "n2")), PowerOn(("n4",))))
    assert lines == ["power off n0", "power off n[1-2]", "power on n4"]

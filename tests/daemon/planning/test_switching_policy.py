"""Policies that switch nodes, in the control loop of the service on simulated nodes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.live_component import use_policy
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power, Transition
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState, NodeState
from pilotfish.simulate.queue_policies.energy.kept_nodes import KeptNodes
from tests.support import effort

POWER = Power(95.0, computing=190.0, off=9.0, switch_on=Transition(125.0, 10.0), switch_off=Transition(101.0, 5.0))
KIND = NodeType("t", 2, 1e9, 1e10, power=POWER)
HALF = "easy+proportional:rho=0.5,period=60"


def cluster_of(*kinds: NodeType) -> Cluster:
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i, kind in enumerate(kinds)))


def job(id: str, seconds: float = 20.0, nodes: int = 1) -> Job:
    return Job(id, Profile((ThreadGroup(2, seconds),)), nodes=nodes, walltime=seconds + 0.5)


class Site:
    """A simulated cluster and the daemon of now."""

    def __init__(self, policy: str, *kinds: NodeType, lines: list[str] | None = None) -> None:
        self.adapter, self.policy, self.lines = SimulatedAdapter(cluster_of(*(kinds or [KIND] * 4))), policy, lines
        self.started = 0
        self.restart()

    def restart(self, journal: Journal | None = None) -> None:
        """Start a daemon that knows nothing but its configuration, and a journal."""
        use_policy(self.policy)
        journal = journal or Journal(Path(":memory:"), in_memory=True)
        applier = Live(self.adapter) if self.lines is None else Recording(self.lines.append)
        options = Options(policy=self.policy, objective="turnaround", window=WINDOW)
        guard = Guard(bound=0.5, window=3, fallback="slf")
        self.cycle = assemble(
            self.adapter, applier, journal, Metrics(), Deciding(guard, options), lambda: self.adapter.time
        )
        self.journal = journal

    def submit(self, *jobs: Job) -> None:
        self.started += 1
        submission = Submission(f"w.{self.started}", Workflow("w", jobs), self.adapter.time)
        self.journal.submit(submission, None)
        self.cycle.tracker.add(submission)

    def run_until(self, time: float) -> None:
        """Let cycles run as the service does; none may fail."""
        while True:
            report = self.cycle.run()
            assert not report.failures
            if self.cycle.trigger.changed:
                continue
            if self.adapter.time >= time:
                return
            self.adapter.wait(min(self.cycle.trigger.recheck_at, time) - self.adapter.time)

    @property
    def kept(self) -> set[str]:
        """The nodes that the policy keeps off."""
        kept = self.cycle.planner.kept.kept
        assert isinstance(kept, KeptNodes)
        return {*kept.state().get("off", ())}

    @property
    def asleep(self) -> set[str]:
        states = zip(self.adapter.cluster.index, self.adapter.node_states, strict=True)
        return {name for name, state in states if state is NodeState.ASLEEP}

    def begins(self) -> dict[str, float | None]:
        return {view.key.rpartition("/")[2]: view.start_time for view in self.adapter.snapshot().jobs}


def test_half_of_the_nodes_go_off_while_no_job_was_ever_submitted() -> None:
    site = Site(HALF)
    site.run_until(100.0)
    assert site.asleep == {"n2", "n3"}
    assert [(it.node, it.on, it.begin) for it in site.adapter.power.switched] == [(2, False, 0.0), (3, False, 0.0)]


def test_jobs_wait_for_nodes_that_are_on_and_a_wide_one_wakes_those_that_are_off() -> None:
    site = Site(HALF)
    site.run_until(30.0)
    site.submit(job("a", 100.0), job("b", 90.0), job("c", 30.0))
    site.run_until(60.0)
    assert site.begins() == {"a": 30.0, "b": 30.0} and site.asleep == {"n2", "n3"}
    site.run_until(200.0)
    assert site.begins()["c"] == pytest.approx(120.0, abs=1e-3)
    site.submit(job("wide", nodes=3))
    site.run_until(205.0)
    assert site.begins()["wide"] == 210.0


def test_a_restarted_daemon_learns_from_the_states_what_it_kept_off() -> None:
    site = Site(HALF)
    site.run_until(30.0)
    site.restart()
    site.run_until(100.0)
    assert len(site.adapter.power.switched) == 2 and site.asleep == {"n2", "n3"}
    site.submit(job("a", 50.0), job("b", 50.0), job("c", 30.0))
    site.run_until(110.0)
    assert set(site.begins()) == {"a", "b"} and site.asleep == {"n2", "n3"}


def test_nodes_are_switched_on_before_jobs_need_them_also_by_a_restarted_daemon() -> None:
    """By the load that waits, at the end of a period; without that each job would wait for the one node."""
    site = Site("easy+inertial:v_ub=30,period=20")
    site.run_until(150.0)
    assert len(site.asleep) == 4
    site.restart()
    site.run_until(151.0)
    site.submit(*(job(f"j{i}", 60.0) for i in range(8)))
    site.run_until(165.0)
    assert site.asleep == {"n1", "n2", "n3"}, "one node wakes for a job, the others at the end of a period"
    site.run_until(400.0)
    woken = [it for it in site.adapter.power.switched if it.on and it.node > 0]
    assert woken and min(it.begin for it in woken) >= 170.0
    begun = {view.start_time for view in site.adapter.snapshot().jobs}
    assert {it.end for it in woken if it.begin < 200.0} <= begun, "jobs start as soon as a node has booted"


BOTH = "easy+inertial:v_ub=30,period=%s+opportunistic:t_idle=5"


def test_after_a_restart_nodes_that_another_part_switched_off_wake_for_any_job() -> None:
    """None is kept off, because no period has passed. A kept one would wake at the end of a period only."""
    site = Site(BOTH % 1000)
    site.run_until(50.0)
    assert len(site.asleep) == 4 and not site.kept
    site.restart(site.journal)
    site.run_until(51.0)
    site.submit(*(job(f"j{i}") for i in range(4)))
    site.run_until(100.0)
    assert site.begins() == dict.fromkeys(("j0", "j1", "j2", "j3"), pytest.approx(61.0, abs=0.5))


@pytest.mark.parametrize("killed_at", effort.some([3.0, 21.0, 45.0, 61.0, 83.0, 150.0, 190.0], 1))
@pytest.mark.parametrize(
    "policy",
    [HALF, "easy+inertial:v_ub=30,period=20", BOTH % 20, "easy+energybud:budget=200%,end=1e6+inertial:period=20"],
)
def test_a_kill_changes_nothing_about_which_nodes_are_kept_off(policy: str, killed_at: float) -> None:
    """What was decided is in the journal one cycle later. After the kill it is known before the next decision."""
    site = Site(policy)
    site.run_until(30.0)
    site.submit(job("a", 40.0), job("wide", 5.0, nodes=3))
    site.run_until(killed_at)
    site.cycle.run()
    before = site.kept
    assert {*site.journal.kept()["off"]} == before
    site.restart(site.journal)
    assert site.kept == before
    site.run_until(400.0)
    assert set(site.begins()) == {"a", "wide"}


def test_a_policy_with_other_options_goes_on_with_the_same_nodes() -> None:
    site = Site("easy+inertial:v_ub=30,period=20")
    site.run_until(150.0)
    before = site.kept
    assert before == site.asleep == {"n0", "n1", "n2", "n3"}
    site.policy = "easy+inertial:v_ub=60,period=40"
    use_policy(site.policy)
    site.cycle.planner.kept.use(site.policy)
    assert site.kept == before


def test_neither_drained_nodes_nor_those_of_others_are_switched_off() -> None:
    site = Site("easy+opportunistic:t_idle=10")
    site.adapter.node_states[0] = NodeState.DRAINED
    site.adapter.apply(Submit("other/1", job("x", 1000.0), ("n1",)))
    site.run_until(100.0)
    assert site.asleep == {"n2", "n3"} and site.adapter.node_states[0] is NodeState.DRAINED
    (view,) = site.adapter.snapshot().jobs
    assert view.state is JobState.RUNNING


def test_a_dry_run_prints_what_it_would_switch_and_switches_nothing() -> None:
    lines: list[str] = []
    site = Site(HALF, lines=lines)
    site.run_until(500.0)
    assert lines == ["power off n[2-3]"] and not site.asleep
    lines = []
    site = Site("easy+inertial:v_ub=30,period=20")
    site.run_until(150.0)
    site.lines = lines
    site.restart()
    site.submit(*(job(f"j{i}", 60.0, nodes=1) for i in range(8)))
    before = site.asleep
    site.run_until(400.0)
    assert [line for line in lines if line.startswith("power on ")] and site.asleep == before


@pytest.mark.parametrize(
    "kinds",
    [
        (dataclasses.replace(KIND, power=None),) * 3,
        (KIND, dataclasses.replace(KIND, name="u", power=dataclasses.replace(POWER, idle=50.0)), KIND),
    ],
    ids=["unknown", "different"],
)
@pytest.mark.parametrize("policy", ["easy+opportunistic:t_idle=10", HALF, "easy+inertial:period=20"])
def test_live_nodes_are_switched_whatever_is_known_of_their_power(policy: str, kinds: tuple[NodeType, ...]) -> None:
    site = Site(policy, *kinds)
    site.adapter.power.can_switch = True
    site.run_until(150.0)
    assert site.asleep
    site.submit(job("wide", nodes=3))
    site.run_until(200.0)
    assert set(site.begins()) == {"wide"}


def test_a_cluster_without_any_usable_node_is_no_failure() -> None:
    site = Site(HALF)
    site.adapter.node_states[:] = [NodeState.DOWN] * 4
    site.submit(job("a"))
    site.run_until(100.0)
    site.adapter.node_states[:] = [NodeState.UP] * 4
    site.run_until(101.0)
    assert site.begins() == {"a": 100.0}

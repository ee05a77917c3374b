"""States of nodes that jobs share: as on numbered resources where both are the same, and the laws elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.kernels.queue.power.tables import TO_IDLE, TO_OFF
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, Power, Transition
from pilotfish.simulate.model.machine import Powers, machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import Opportunistic
from pilotfish.simulate.queue_policies.interface import QueueView, Start, Switch, Wake
from pilotfish.simulate.queue_policies.policy_specs import Easy, Saving, Strict, parse
from pilotfish.simulate.replay.energy import track
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.world.world_parts import Part
from tests.reference.plain_shared_nodes import Plain
from tests.simulate.replay.test_powered import BUDGETS, CAPS, GAPS, JOB, KEEPERS, POWERS, SHUTDOWNS
from tests.simulate.replay.worlds.test_shared_nodes import agree, nodes_of, shapes_of
from tests.simulate.replay.worlds.test_shared_nodes import workload as with_memory
from tests.support.instances import rows_of

FIXED = st.sampled_from(["fcfs", "sjf", "largest"])
#: One-resource jobs fit or not, whichever node is free; strict order looks at no node beyond now.
EVEN = st.builds(lambda kind, order, off, keeper: Saving(kind(order), off, None, keeper),
                 st.sampled_from([Easy, Strict]), FIXED, SHUTDOWNS, KEEPERS)  # fmt: skip
LIMITED = st.builds(lambda order, off, limit: Saving(Strict(order), off, limit),
                    FIXED, SHUTDOWNS, st.one_of(st.none(), CAPS, BUDGETS))  # fmt: skip
SINGLE = rows_of(GAPS, [n / 8 for n in range(4, 97)], [n / 8 for n in range(4, 97)], [1])


def cluster_of(nodes: int, powers: Powers, cores: int = 1) -> Cluster:
    """Return nodes without contention; `powers`: those of a whole node."""
    assert powers.off is not None
    power = Power(
        powers.idle, computing=powers.computing, budget_idle=powers.budget_idle, off=powers.off,
        budget_computing=powers.budget_computing, switch_on=Transition(powers.on_w, powers.on_s),
        switch_off=Transition(powers.off_w, powers.off_s),
    )  # fmt: skip
    kind = NodeType("t", cores, 8e9, 1e10, 1, 1e9, contention=Contention.NONE, power=power)
    return Cluster("c", tuple(Node(f"n{i}", kind) for i in range(nodes)))


def lasting(rows: list[Any], most: int) -> Workload:
    """Return jobs that fit on the machine and take some time."""
    rows = [(gap, max(run, 0.5), max(wall, 0.5), min(size, most), 0, 0) for gap, run, wall, size in rows]
    return with_memory(rows)


@given(st.one_of(st.tuples(st.lists(SINGLE, min_size=1, max_size=24), EVEN),
                 st.tuples(st.lists(JOB, min_size=1, max_size=20), LIMITED)),
       st.integers(2, 8), POWERS)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_with_one_core_a_node_and_no_contention_it_is_the_rigid_replay(
    case: tuple[list[Any], Saving], machine: int, powers: Powers
) -> None:
    rows, policy = case
    if policy.limit is not None:
        powers = replace(powers, off_s=0.0)  # so that no machine is off when the first waiting job needs it
    jobs = lasting(rows, machine)
    done, rigid = replay(jobs, machine_of(cluster_of(machine, powers)), policy, parts=(Part(),), contention=True), replay(jobs, machine, policy, powers=powers)  # fmt: skip
    for name in ("start_time", "finish_time", "taken_time"):
        assert np.allclose(getattr(done, name), getattr(rigid, name), rtol=0, atol=1e-6), name
    assert done.booted.tolist() == rigid.booted.tolist()
    for name in ("time", "until", "size"):
        assert np.allclose(done.changes[name], rigid.changes[name], rtol=0, atol=1e-6), name
    assert ((done.changes["kind"] == TO_IDLE) == (rigid.changes["kind"] == TO_IDLE)).all()


PARTS = ("opportunistic", "opportunistic:t_idle=2", "powercap:cap=70%", "energybud:budget=80%,stage=2+opportunistic",
         "reducepc:budget=80%", "proportional:rho=0.5,period=2", "inertial:v_ub=2,period=2+opportunistic:t_idle=1")  # fmt: skip
POWER = Powers(8.0, 24.0, 8.0, 24.0, 1.0, 30.0, 2.0, 10.0, 0.5)


def crowd(rows: list[Any]) -> Workload:
    return with_memory([(gap, max(run, 0.5), max(wall, run, 0.5) + 1.0, size, rate, 0) for gap, run, wall, size, rate in rows])  # fmt: skip


ROWS = st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])], *[st.integers(0, 9).map(float)] * 2,
                          st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([0, 5])), min_size=1, max_size=16)  # fmt: skip


BASES = st.sampled_from(["easy", "strict", "easy:share=1.2", "easy:share=none", "easy:order=wfp3,share=2"])


def contending() -> Cluster:
    """Return nodes whose jobs share a memory."""
    cluster = cluster_of(3, POWER, cores=4)
    kind = replace(cluster.nodes[0].type, contention=Contention.EQUAL_SHARE)
    return replace(cluster, nodes=tuple(replace(node, type=kind) for node in cluster.nodes))


@given(ROWS, st.sampled_from(PARTS), BASES, st.sampled_from([0.0, 0.75]))
@settings(max_examples=250, deadline=None)
def test_jobs_that_contend_progress_as_in_the_reference(rows: list[Any], parts: str, base: str, takes: float) -> None:
    jobs, cluster = crowd(rows), contending()
    policy = parse(f"{base}+{parts}")
    done = replay(jobs, machine_of(cluster), policy, contention=True, decision_time=takes)
    plain = Plain(jobs, cluster, shapes_of(jobs, cluster), actual=True)
    plain.follow(dict(enumerate(done.start_time.tolist())), nodes_of(done, [4, 4, 4]))
    agree(done, plain)
    no_node_is_used_while_it_is_off(done)


@given(ROWS, st.sampled_from(PARTS), st.sampled_from([0.0, 1.0, 1.2, 2.0]))
@settings(max_examples=200, deadline=None)
def test_parts_keep_the_bound_of_sharing(rows: list[Any], parts: str, bound: float) -> None:
    """A node that boots for a job is not shared by another one before, of which a forecast would know nothing."""
    jobs, cluster = crowd(rows), contending()
    jobs = replace(jobs, walltime=np.full(len(jobs), 1e3))
    done = replay(jobs, machine_of(cluster), parse(f"easy:share={bound or 'none'}+{parts}"))
    ran = np.flatnonzero(~done.rejected)
    for row in ran.tolist():
        alone = replay(jobs.take(np.array([row])), machine_of(cluster), parse("slf"))
        longest = (alone.finish_time - alone.start_time)[0] * max(bound, 1.0)
        assert done.finish_time[row] - done.start_time[row] <= longest * (1 + 1e-6) + 1e-6


@given(ROWS, st.sampled_from(["easy:share=1.2", "easy:share=none"]), st.integers(55, 100),
       st.sampled_from(["", "+opportunistic:t_idle=1"]))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_jobs_that_share_start_below_a_cap(rows: list[Any], base: str, percent: int, shutdown: str) -> None:
    jobs, machine = crowd(rows), machine_of(contending())
    policy: Any = parse(f"{base}+powercap:cap={percent}%{shutdown}")
    done = replay(jobs, machine, policy)
    assert isinstance(machine.powers, Powers)
    (begin, end), allowed = policy.limit.window(jobs) or (0.0, 0.0), policy.limit.allowed(machine.powers, 12)
    assert not done.rejected.any()
    for time in done.taken_time[(done.taken_time >= begin) & (done.taken_time < end)].tolist():
        assert jobs.size[(done.taken_time <= time) & (done.finish_time > time)].sum() <= allowed


def no_node_is_used_while_it_is_off(done: Replayed) -> None:
    """Assert that at each time there are as many resources in each state as there can be."""
    powers = machine_of(cluster_of(3, POWER, cores=4)).powers
    assert isinstance(powers, Powers)
    found = track(done, powers)
    assert (found.counts >= 0).all() and (found.counts.sum(axis=1) == 12).all()
    assert not (found.counts[:, 0] % 4).any(), "nodes are off as a whole"


@given(ROWS, st.sampled_from(["easy", "strict", "easy:order=sjf", "easy:share=1.2", "easy:order=wfp3,share=none"]))
@settings(max_examples=60, deadline=None)
def test_a_part_that_does_nothing_changes_nothing(rows: list[Any], base: str) -> None:
    jobs, cluster = crowd(rows), cluster_of(3, POWER, cores=4)
    plain = parse(base)
    saving = parse(f"{base}+opportunistic:t_idle=inf+powercap:cap=100%")
    done, other = (
        replay(jobs, machine_of(cluster), each, parts=(Part(),), contention=True) for each in (saving, plain)
    )
    for name in ("start_time", "finish_time", "pieces"):
        assert np.array_equal(getattr(done, name), getattr(other, name)), name
    assert not len(done.changes) and not done.booted.any()


class NodeSwitcher:
    """Starts jobs where they fit, also on nodes that are off or boot, and switches nodes at random."""

    powered = True

    def __init__(self, seed: int) -> None:
        self.draw, self.consumed, self.switched = np.random.default_rng(seed), list[tuple[float, float]](), -1.0

    def decide(self, now: QueueView) -> Any:
        states, draw, free = now.states, self.draw, now.free_nodes()
        assert states is not None
        self.consumed.append((now.time, states.consumed))
        off = {node for node, bounds in enumerate(now.machine.nodes) if bounds[0] in _each(states.off)}
        for job in now.waiting:
            nodes = free.where(job)
            if nodes is not None and draw.integers(0, 2):
                free.take(job, nodes)
                yield Start(job, nodes=None if draw.integers(0, 3) == 0 and len(now.waiting) == 1 else nodes)
        empty = {node for node, cores in enumerate(free.cores.tolist()) if cores == 4}
        for on, some in ((True, empty & off), (False, empty - off)) if now.time > self.switched else ():
            self.switched = now.time
            chosen = [now.machine.nodes[node] for node in sorted(some) if draw.integers(0, 2)]
            yield Switch([] if len(now.waiting) == 1 else chosen, on)
        yield Wake(now.time + float(draw.integers(1, 4)))


def _each(intervals: Any) -> set[int]:
    return {one for first, last in intervals for one in range(first, last + 1)}


@given(ROWS, st.integers(0, 2**32), st.sampled_from([0.0, 0.5]))
@settings(max_examples=100, deadline=None)
def test_a_policy_of_ones_own_switches_nodes(rows: list[Any], seed: int, takes: float) -> None:
    jobs, cluster, policy = crowd(rows), cluster_of(3, POWER, cores=4), NodeSwitcher(seed)
    done = replay(jobs, machine_of(cluster), policy, contention=True, decision_time=takes)
    assert not done.rejected.any()
    no_node_is_used_while_it_is_off(done)
    powers = machine_of(cluster).powers
    assert isinstance(powers, Powers)
    assert (done.start_time[done.booted > 0] == done.taken_time[done.booted > 0] + powers.on_s).all()
    found = track(done, powers)
    for time, joules in policy.consumed:  # energy is the integral of power
        if time <= found.time[-1]:
            assert joules == pytest.approx(found.between(found.time[0], time), rel=1e-6, abs=1e-5)


class Decides:
    """Makes its decisions for some calls."""

    powered = True

    def __init__(self, *calls: Any) -> None:
        self.calls = list(calls)

    def decide(self, now: QueueView) -> Any:
        yield from self.calls.pop(0)(now) if self.calls else map(Start, now.waiting)


def test_a_node_boots_as_a_whole_and_on_nodes_come_first() -> None:
    """The first two jobs fill half of n0; the third boots n1, whose other cores are ready at the same time."""
    rows = [(0.0, 9.0, 9.0, 2, 0, 0), (2.0, 9.0, 9.0, 2, 0, 0), (0.0, 9.0, 9.0, 2, 0, 0), (1.0, 9.0, 9.0, 2, 0, 0)]
    first = lambda now: [Switch([now.machine.nodes[1]], on=False), *map(Start, now.waiting)]  # noqa: E731
    done = replay(
        with_memory(rows), machine_of(cluster_of(2, POWER, cores=4)), Decides(first), parts=(Part(),), contention=True
    )
    assert nodes_of(done, [4, 4]) == {0: (0,), 1: (0,), 2: (1,), 3: (1,)}
    assert done.start_time.tolist() == [0.0, 2.0, 4.0, 4.0] and done.taken_time.tolist() == [0.0, 2.0, 2.0, 3.0]
    assert done.booted.tolist() == [0, 0, 2, 0]
    assert done.changes.tolist() == [(TO_OFF, 0.0, 0.5, 4), (TO_IDLE, 2.0, 4.0, 2)]


@pytest.mark.parametrize(
    ("part", "when"), [("opportunistic", 0.0), ("opportunistic:t_idle=2", 2.0), ("proportional:rho=0", 0.0)]
)
def test_nodes_that_the_first_waiting_job_needs_stay_on(part: str, when: float) -> None:
    """n2 and n3 are idle, and the second job needs one of them at 10 s: only n3 is switched off before."""
    rows = [(0.0, 10.0, 10.0, 8, 0, 0), (0.0, 5.0, 5.0, 12, 0, 0)]
    cluster = cluster_of(4, replace(POWER, off_s=20.0), cores=4)
    done = replay(with_memory(rows), machine_of(cluster), parse(f"easy+{part}"), parts=(Part(),), contention=True)
    assert done.start_time.tolist() == [0.0, 10.0] and not done.booted.any()
    assert nodes_of(done, [4] * 4) == {0: (0, 1), 1: (0, 1, 2)}
    assert done.changes[:1].tolist() == [(TO_OFF, when, when + 20.0, 4)]


def test_a_node_is_switched_as_a_whole_and_only_while_nothing_runs_on_it() -> None:
    jobs, cluster = with_memory([(0.0, 9.0, 9.0, 2, 0, 0)]), cluster_of(2, POWER, cores=4)
    for resources, why in (([(0, 1)], "whole nodes"), ([(0, 3)], "it switches resource 0 .allowed: free resources")):
        decides = Decides(lambda now, which=resources: [*map(Start, now.waiting), Switch(which, on=False)])
        with pytest.raises(PolicyError, match=why):
            replay(jobs, machine_of(cluster), decides, parts=(Part(),), contention=True)


def test_cores_are_not_switched_one_by_one() -> None:
    jobs, cluster = with_memory([(0.0, 9.0, 9.0, 2, 0, 0)]), cluster_of(2, POWER, cores=4)
    machine = machine_of(cluster)
    with pytest.raises(ConfigError, match="it switches nodes, and the resources of this machine are cores"):
        replay(jobs, machine, Saving(Easy(), Opportunistic()))
    with pytest.raises(PolicyError, match="nodes as resources, or cores of nodes that jobs share"):
        replay(jobs, machine, Decides(lambda now: [Switch([(0, 3)], on=False)]))
    with pytest.raises(ConfigError, match="the power of this machine is not known"):
        kind = replace(cluster.nodes[0].type, power=None)
        replay(
            jobs,
            machine_of(Cluster("c", (Node("n", kind),))),
            parse("easy+opportunistic"),
            parts=(Part(),),
            contention=True,
        )

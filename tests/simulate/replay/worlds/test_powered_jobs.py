"""States of machines under Python policies: the Python form of the energy-saving parts equals the compiled one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.machine import TAURUS_POWERS, MixedPowers, Powers
from pilotfish.simulate.model.network import Network
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.interface import QueueView, Start, Switch, Wake
from pilotfish.simulate.queue_policies.order_ranks import CHANGING, ORDERS
from pilotfish.simulate.queue_policies.policy_specs import Easy, Saving, Strict, parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.energy import consumed, track
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.simulate.replay.test_networked import chained
from tests.simulate.replay.test_powered import (
    BOOTING,
    BUDGETS,
    CAPS,
    DENSE,
    JOB,
    KEEPERS,
    KINDS,
    MACHINES,
    POWERS,
    SHARES,
    SHUTDOWNS,
    THIRD,
    TIGHT,
    TIGHT_THIRDS,
)
from tests.simulate.replay.test_replay import places, workload
from tests.simulate.replay.worlds.test_dependencies import TASKS, graphs
from tests.simulate.world.test_known_run_times import Table

#: The Python form draws random orders differently.
STEADY = st.sampled_from([each for each in (*ORDERS, *CHANGING) if each != "random"])
BASES = st.builds(lambda kind, order: kind(order), st.sampled_from([Easy, Easy, Strict]), STEADY)
POLICIES = st.builds(Saving, BASES, SHUTDOWNS, st.one_of(st.none(), CAPS, BUDGETS), KEEPERS)


def in_python(jobs: Workload, machine: int, policy: Saving, powers: Powers, **options: Any) -> Replayed:
    """Replay under the Python form of a policy."""
    window = policy.limit.window(jobs) if policy.limit else None
    return replay(jobs, machine, uncompiled(policy, 0, window=window), powers=powers, **options)


def agree(own: Replayed, ours: Replayed, powers: Powers) -> None:
    """Assert that two replays have the same schedule, switches and boots."""
    for name in ("start_time", "finish_time", "taken_time", "booted"):
        assert np.array_equal(getattr(own, name), getattr(ours, name), equal_nan=True), name
    assert [places(own, i) for i in range(len(own.booted))] == [places(ours, i) for i in range(len(ours.booted))]
    changes = [
        [(KINDS[each["kind"]] == "to idle", each["time"], each["until"], each["size"]) for each in done.changes]
        for done in (own, ours)
    ]
    assert changes[0] == changes[1]
    assert consumed(own, powers) == consumed(ours, powers)


def fitting(rows: list[Any], machine: int) -> Workload:
    """Return jobs that fit on the machine: the Python form does not see the submissions of others."""
    return workload([(gap, run, wall, min(size, machine)) for gap, run, wall, size in rows])


@given(st.lists(JOB, min_size=1, max_size=24), MACHINES, POLICIES, POWERS)
@settings(max_examples=300, deadline=None)
def test_the_python_form_equals_the_compiled_one(rows: list[Any], machine: int, policy: Saving, powers: Powers) -> None:
    jobs = fitting(rows, machine)
    agree(in_python(jobs, machine, policy, powers), replay(jobs, machine, policy, powers=powers), powers)


@given(st.one_of(st.tuples(st.lists(DENSE, min_size=6, max_size=24), TIGHT, POWERS),
                 st.tuples(st.lists(THIRD, min_size=6, max_size=24), TIGHT_THIRDS, BOOTING)),
       st.sampled_from([3, 4, 5]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_the_python_form_equals_the_compiled_one_with_little_energy(case: Any, machine: int) -> None:
    rows, policy, powers = case
    jobs = fitting(rows, machine)
    agree(in_python(jobs, machine, policy, powers), replay(jobs, machine, policy, powers=powers), powers)


@given(TASKS, MACHINES, POLICIES, POWERS, st.data())
@settings(max_examples=200, deadline=None)
def test_the_python_form_equals_the_compiled_one_with_dependencies(
    rows: list[Any], machine: int, policy: Saving, powers: Powers, data: st.DataObject
) -> None:
    rows = [(*(round(seconds, 6) for seconds in times), size) for *times, size in rows]  # 1e-283 s of load are rounding
    jobs = data.draw(graphs(fitting(rows, machine)))
    limit = replace(policy.limit, end=min(policy.limit.end, 32.0)) if policy.limit else None
    policy = replace(policy, limit=limit)
    agree(in_python(jobs, machine, policy, powers), replay(jobs, machine, policy, powers=powers), powers)


@given(TASKS, MACHINES, BASES, SHUTDOWNS, SHARES, POWERS, st.data())
@settings(max_examples=200, deadline=None)
def test_a_cap_on_dependent_jobs_has_no_end(
    rows: list[Any], machine: int, base: Easy | Strict, off: Any, share: Any, powers: Powers, data: st.DataObject
) -> None:
    """It is one that ends long after all jobs, except for jobs that it never lets start: these are rejected."""
    jobs = data.draw(graphs(fitting(rows, machine)))
    above = share.absolute(machine * powers.budget_computing) - machine * powers.budget_idle
    extra = powers.budget_computing - powers.budget_idle
    allowed = machine if above >= extra * machine else max(0, math.floor(above / extra))
    endless = replay(jobs, machine, Saving(base, off, PowerCap(cap=share)), powers=powers)
    running = [(endless.start_time <= now) & (now < endless.finish_time) for now in endless.start_time]
    assert all(jobs.size[row].sum() <= allowed for row in running)
    assert (endless.rejected & ~endless.stranded == (jobs.size > allowed) & ~endless.stranded).all()
    if (jobs.size <= allowed).all():
        long = Saving(base, off, PowerCap(end=1e6, cap=share))
        agree(endless, replay(jobs, machine, long, powers=powers), powers)


@given(chained(), POLICIES, POWERS)
@settings(max_examples=150, deadline=None)
def test_the_python_form_equals_the_compiled_one_on_a_network(
    scene: tuple[Workload, Network], policy: Saving, powers: Powers
) -> None:
    jobs, network = scene
    machine = len(network.speeds)
    jobs = replace(jobs, walltime=np.minimum(jobs.walltime, 1e3), size=np.minimum(jobs.size, machine))
    limit = replace(policy.limit, end=min(policy.limit.end, 32.0)) if policy.limit else None
    policy = replace(policy, limit=limit)
    compiled = replay(jobs, machine, policy, powers=powers, network=lambda: network)
    agree(in_python(jobs, machine, policy, powers, network=lambda: network), compiled, powers)


@given(st.lists(JOB, min_size=1, max_size=24), MACHINES, POLICIES, POWERS)
@settings(max_examples=100, deadline=None)
def test_run_times_predicted_as_walltimes_change_nothing(
    rows: list[Any], machine: int, policy: Saving, powers: Powers
) -> None:
    jobs = fitting(rows, machine)
    predicted = replay(jobs, machine, policy, powers=powers, run_times=Table([None] * len(jobs)))
    agree(predicted, in_python(jobs, machine, policy, powers), powers)


@given(st.lists(JOB, min_size=1, max_size=24), MACHINES, POLICIES, POWERS, st.sampled_from([0.25, 1.0, 7.5]))
@settings(max_examples=100, deadline=None)
def test_a_decision_takes_effect_when_it_has_been_made(
    rows: list[Any], machine: int, policy: Saving, powers: Powers, takes: float
) -> None:
    jobs = fitting(rows, machine)
    done = replay(jobs, machine, policy, powers=powers, decision_time=takes)
    assert (done.taken_time >= jobs.submit_time + takes).all()
    keeps_the_laws(done, powers)


@pytest.mark.parametrize(
    "text",
    [
        "easy+opportunistic:t_idle=300", "easy+energybud:budget=60%+opportunistic", "easy+reducepc:budget=70%",
        "easy+powercap:cap=70%+opportunistic:t_idle=600", "strict+proportional:period=3600",
        "easy:order=sjf+inertial:period=3600+opportunistic:t_idle=300+energybud:budget=80%",
    ],
)  # fmt: skip
def test_the_python_form_equals_the_compiled_one_with_the_power_of_a_real_node(text: str) -> None:
    jobs, policy = lublin(150, 256, kind="untyped", load=1.2), parse(text)
    agree(in_python(jobs, 256, policy, TAURUS_POWERS), replay(jobs, 256, policy), TAURUS_POWERS)


def keeps_the_laws(done: Replayed, powers: Powers) -> None:
    """Assert that no resource is used twice at a time, and that jobs that boot resources begin after the boot."""
    ran = np.flatnonzero(~done.rejected).tolist()
    assert np.array_equal(done.start_time, np.where(done.booted > 0, done.taken_time + powers.on_s, done.start_time),
                          equal_nan=True)  # fmt: skip
    used = sorted((done.taken_time[i], done.finish_time[i], one) for i in ran for one in places(done, i))
    until: dict[int, float] = {}
    for taken, finish, one in used:
        assert until.get(one, -math.inf) <= taken, f"resource {one} is used twice"
        until[one] = finish
    counts = track(done, powers).counts
    assert (counts >= 0).all() and (counts.sum(axis=1) == done.machine).all()


class Switcher:
    """Starts jobs and switches machines at random, and checks what it sees."""

    powered = True

    def __init__(self, seed: int, machine: int, powers: Powers) -> None:
        self.draw, self.machine, self.powers = np.random.default_rng(seed), machine, powers
        self.consumed, self.switched = list[tuple[float, float]](), -math.inf

    def decide(self, now: QueueView) -> Any:
        states, draw = now.states, self.draw
        assert states is not None
        self.consumed.append((now.time, states.consumed))
        each = [[one for first, last in intervals for one in range(first, last + 1)]
                for intervals in (now.free_resources, states.off, [r for it in states.switching for r in it.resources],
                                  [r for it in now.running for r in it.resources])]  # fmt: skip
        free, off, switching, busy = each
        assert sorted(free + switching + busy) == list(range(self.machine)) and set(off) <= set(free)
        assert np.flatnonzero(states.idle_since <= now.time).tolist() == sorted(set(free) - set(off))
        assert [it.until for it in states.switching] == sorted(it.until for it in states.switching)
        for job in now.waiting:
            if job.size <= len(free) and draw.integers(0, 2):
                chosen = draw.permutation(free)[: job.size].tolist()
                yield Start(job, [(one, one) for one in chosen])
                free = [one for one in free if one not in chosen]
        for on in (False, True) if now.time > self.switched else ():  # else one of no duration is followed by another
            self.switched = now.time
            some = [one for one in free if (one in off) == on and draw.integers(0, 2)]
            yield Switch([(one, one) for one in some], on)
        yield Wake(now.time + float(draw.integers(1, 4)))


@given(st.lists(JOB, min_size=1, max_size=24), st.integers(9, 16), POWERS, st.integers(0, 2**32),
       st.sampled_from([0.0, 0.5, 3.0]), st.booleans())  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_policy_of_ones_own_switches_machines(
    rows: list[Any], machine: int, powers: Powers, seed: int, takes: float, predicts: bool
) -> None:
    jobs, policy = workload(rows), Switcher(seed, machine, powers)
    expected: Any = Table([5.0 if i % 2 else None for i in range(len(jobs))]) if predicts else "walltime"
    done = replay(jobs, machine, policy, powers=powers, decision_time=takes, run_times=expected)
    assert not done.rejected.any()
    keeps_the_laws(done, powers)
    found = track(done, powers)
    for time, joules in policy.consumed:  # energy is the integral of power
        if time <= found.time[-1]:
            assert joules == pytest.approx(found.between(found.time[0], time), rel=1e-9, abs=1e-9)


class Idle:
    """Starts jobs in order, and makes some decisions at the first call."""

    def __init__(self, *decisions: Any, powered: bool = True) -> None:
        self.decisions, self.powered = list(decisions), powered

    def decide(self, now: QueueView) -> Any:
        decisions, self.decisions = self.decisions, []
        yield from decisions
        yield from (Start(job) for job in now.waiting if job.size <= now.free)


TINY = Powers(1.0, 2.0, 1.0, 2.0, 0.0, 3.0, 5.0, 2.0, 1.0)


def test_machines_that_are_on_come_first_and_others_boot() -> None:
    jobs = workload([(0.0, 1.0, 1.0, 1), (2.0, 4.0, 4.0, 1), (0.0, 4.0, 4.0, 2)])
    done = replay(jobs, 3, Idle(Switch([(1, 2)], on=False)), powers=TINY)
    assert [places(done, i) for i in range(3)] == [[0], [0], [1, 2]]
    assert done.start_time.tolist() == [0.0, 2.0, 7.0] and done.taken_time.tolist() == [0.0, 2.0, 2.0]
    assert done.booted.tolist() == [0, 0, 2] and done.finish_time.tolist() == [1.0, 6.0, 11.0]
    assert done.changes.tolist() == [(4, 0.0, 1.0, 2)]


@pytest.mark.parametrize(
    ("decisions", "powers", "why"),
    [
        ([Switch([(0, 9)], on=False)], TINY, "invalid resources 0 to 9"),
        ([Switch([(0, 0)], on=True)], TINY, "it switches resource 0 on (allowed: resources that are off)"),
        ([Switch([(0, 1)], on=False), Switch([(1, 2)], on=False)], TINY, "it switches resource 1 (allowed: free res"),
        ([Switch(7, on=False)], TINY, "its resources are 7"),
        ([Switch([(0, 0)], on=False)], replace(TINY, off=None), "machines whose power when off is known"),
    ],
)
def test_invalid_switches_are_rejected(decisions: list[Any], powers: Powers, why: str) -> None:
    with pytest.raises(PolicyError) as caught:
        replay(workload([(0.0, 1.0, 1.0, 1)]), 3, Idle(*decisions), powers=powers)
    assert why in str(caught.value)


def test_a_policy_that_is_not_powered_cannot_switch() -> None:
    with pytest.raises(PolicyError, match=r"it switches machines off .allowed: in a replay, under a class with"):
        replay(workload([(0.0, 1.0, 1.0, 1)]), 3, Idle(Switch([(0, 0)], on=False), powered=False))


def test_a_powered_policy_needs_equal_and_known_powers() -> None:
    jobs = workload([(0.0, 1.0, 1.0, 1)])
    with pytest.raises(ConfigError, match="the power of this machine is not known"):
        replay(jobs, 3, Idle(), powers=None)
    with pytest.raises(ConfigError, match="the resources of this machine differ in power"):
        replay(jobs, 3, Idle(), powers=MixedPowers(((1, TINY), (2, replace(TINY, idle=2.0)))))

"""Switching machines off, limits of power and energy: the compiled replay equals the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.machine import TAURUS_POWERS, Powers
from pilotfish.simulate.model.workload import LONGEST, Workload
from pilotfish.simulate.queue_policies.energy.power_policies import (
    EnergyBudget,
    Inertial,
    Opportunistic,
    PowerCap,
    Proportional,
    ReducePC,
)
from pilotfish.simulate.queue_policies.order_ranks import CHANGING, ORDERS
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import Easy, Saving, Strict, parse
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.reference.plain_powered import Machine
from tests.simulate.replay.test_replay import places, workload
from tests.support import effort
from tests.support.instances import rows_of

#: Numbers with exact sums and products, so the order of additions does not matter.
WHOLE = [float(n) for n in range(13)]
TIMES = [*(7 * WHOLE), *(n / 8 for n in range(97))]
GAPS = [0.0, 0.0, 0.5, 1.0, 1.0, 3.0]
JOB = rows_of(GAPS, TIMES, TIMES, range(1, 10))
ENDLESS = rows_of(GAPS, TIMES, [*TIMES, *(len(TIMES) * [np.inf])], range(1, 10))
MACHINES = st.sampled_from([2, 3, 4, 5, 6, 8, 9, 70])  # small machines, so that jobs compete
POWERS = st.builds(
    lambda idle, more, over, off, on_s, off_s: Powers(
        idle, idle + more, idle + over, idle + more + over, off, idle + 1, on_s, idle / 2, off_s
    ),
    st.integers(1, 8).map(float), st.integers(1, 8).map(float), st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.25]), st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 0.5, 3.0]),
)  # fmt: skip
SHARES = st.integers(0, 16).map(lambda n: Amount(n / 16, share=True))
SPAN = st.tuples(st.sampled_from([-np.inf, 0.0, 2.0, 5.0]), st.sampled_from([np.inf, 8.0, 16.0]))
SHUTDOWNS = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 4.0]).map(Opportunistic))
CAPS = st.builds(lambda cap, span: PowerCap(span[0], span[1], cap), SHARES, SPAN)
STAGES = st.sampled_from([1.0, 2.0, 600.0])
BUDGETS = st.builds(lambda kind, share, span, stage: kind(*span, share, stage),
                    st.sampled_from([EnergyBudget, ReducePC]), SHARES, SPAN, STAGES)  # fmt: skip
LATER, PASSES = st.sampled_from(["later", "now"]), st.sampled_from(["event", "period"])
INERTIAL = st.builds(Inertial, st.sampled_from([0.0, 2.0, 1e4]), st.sampled_from([1.0, 2.0]),
                     st.sampled_from(["double", "plus-one"]), LATER, PASSES)  # fmt: skip
KEEPERS = st.one_of(
    st.none(),
    st.builds(Proportional, st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), st.sampled_from([1.0, 4.0]), LATER, PASSES),
    INERTIAL,
)
BASES = st.builds(lambda kind, order: kind(order), st.sampled_from([Easy, Easy, Strict]),
                  st.sampled_from([*ORDERS, *CHANGING]))  # fmt: skip
POLICIES = st.builds(Saving, BASES, SHUTDOWNS, st.one_of(st.none(), CAPS, BUDGETS), KEEPERS)
KINDS = {4: "to off", 5: "to kept", 6: "to idle"}


TIGHT = st.builds(
    lambda order, kind, share, off: Saving(Easy(order), off, kind(budget=Amount(share / 32, share=True), stage=1.0)),
    st.sampled_from(["fcfs", *CHANGING]), st.sampled_from([EnergyBudget, ReducePC]), st.integers(12, 28), SHUTDOWNS,
)  # fmt: skip
DENSE = rows_of([0.0, 0.5], TIMES, WHOLE, range(1, 5))
#: Numbers whose sums depend on the order of additions.
THIRDS = [n / 3 for n in range(37)]
THIRD = rows_of([0.0, 1 / 3, 0.5], THIRDS, THIRDS, range(1, 5))
#: Machines that boot for as long as a job runs.
BOOTING = st.builds(
    lambda idle, more, on_s: Powers(idle, idle + more, idle, idle + more, 0.0, idle + more, on_s, idle, 0.5),
    st.integers(1, 8).map(float), st.integers(1, 24).map(lambda n: n / 3), st.sampled_from([1 / 3, 1.0, 2.5]),
)  # fmt: skip
TIGHT_THIRDS = st.builds(
    lambda kind, share, stage, off: Saving(Easy(), off, kind(budget=Amount(share / 36, share=True), stage=stage)),
    st.sampled_from([EnergyBudget, ReducePC]), st.integers(9, 34), st.sampled_from([1.0, 4.0, 16.0]),
    st.sampled_from([None, Opportunistic(0.0), Opportunistic(1.0)]),
)  # fmt: skip


def same(rows: list[Any], machine: int, policy: Saving, powers: Powers, seed: int) -> None:
    """Check that the compiled replay equals the reference to the last bit."""
    alike(workload(rows), machine, policy, powers, seed)


def alike(jobs: Workload, machine: int, policy: Saving, powers: Powers, seed: int) -> Replayed:
    """Check the same for a workload."""
    done = replay(jobs, machine, policy, seed=seed, powers=powers)
    drawn = np.random.default_rng(seed).permutation(len(jobs)).tolist()
    plain = Machine(jobs, machine, policy, powers, drawn)
    start, finish, where, changes = plain.run()
    assert np.array_equal(done.start_time, start, equal_nan=True)
    assert np.array_equal(done.finish_time, finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == where
    found = [(KINDS[each["kind"]], each["time"], each["size"]) for each in done.changes]
    assert found == [(kind, time, len(changed)) for kind, time, changed in changes]
    assert done.booted.sum() == sum(booted for _, booted in plain.booting)
    return done


#: The first waiting job needs machines that are kept off, and can spare one of the others at each pass.
WIDE = [(0.0, 0.0, 0.0, size) for size in (1, 1, 1, 1, 1, 1, 3, 7)]
KEPT = Saving(Easy(), keeper=Proportional(0.0, 1.0, passes="period"))


@given(st.lists(JOB, min_size=1, max_size=24), MACHINES, POLICIES, POWERS, st.integers(0, 2))
@example(WIDE, 8, KEPT, Powers(1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.0, 0.5, 3.0), 0)
@settings(max_examples=600, deadline=None)
def test_it_equals_the_reference(rows: list[Any], machine: int, policy: Saving, powers: Powers, seed: int) -> None:
    same(rows, machine, policy, powers, seed)


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_cap_of_a_number_of_resources_allows_these(machine: int, wanted: int) -> None:
    """Watts are rounded, and so are shares of them: 100 % of nine resources of 203.12 W allowed eight."""
    full, allowed = PowerCap(cap=Amount(1.0, share=True)), min(wanted, machine)
    watts = machine * TAURUS_POWERS.budget_idle + allowed * (TAURUS_POWERS.budget_computing - TAURUS_POWERS.budget_idle)
    assert full.allowed(TAURUS_POWERS, machine) == machine
    assert PowerCap(cap=Amount(watts)).allowed(TAURUS_POWERS, machine) == allowed


@given(st.lists(ENDLESS, min_size=1, max_size=24), MACHINES, st.builds(Saving, BASES, SHUTDOWNS), POWERS)
@settings(max_examples=150, deadline=None)
def test_it_equals_the_reference_without_walltimes(
    rows: list[Any], machine: int, policy: Saving, powers: Powers
) -> None:
    same(rows, machine, policy, powers, 0)


@given(st.lists(DENSE, min_size=6, max_size=24), st.sampled_from([3, 4, 5]), TIGHT, POWERS)
@settings(max_examples=600, deadline=None)
def test_it_equals_the_reference_with_little_energy(
    rows: list[Any], machine: int, policy: Saving, powers: Powers
) -> None:
    same(rows, machine, policy, powers, 0)


#: The budget suffices exactly for the first job, in thirds of a joule, whatever the order of a sum.
EXACT = [
    (0.5, 4.0, 4.0, 3), (0.5, 2.0, 6.0, 3), (0.0, 4 / 3, 4.0, 3), (1 / 3, 8 / 3, 8.0, 2), (1 / 3, 7 / 3, 7.0, 1),
    (0.5, 5 / 3, 5 / 3, 1), (0.0, 1.0, 3.0, 2), (0.5, 12.0, 12.0, 1), (1 / 3, 4 / 3, 4.0, 1),
]  # fmt: skip
PAYS = Saving(Easy(), Opportunistic(1.0), ReducePC(budget=Amount(11 / 12, share=True), stage=1.0))
#: The budget suffices for the first job except for its boot: it reserves this instant, and no job may overtake it.
BUT_FOR_ITS_BOOT = [
    (1.0, 1.0, 1.0, 4), (1.0, 2.0, 2.0, 3), (0.25, 0.5, 1.0, 2), (0.5, 3.0, 3.0, 4), (0.5, 1.0, 7.0, 3),
    (0.25, 1.0, 2.0, 2), (0.25, 1.0, 7.0, 5), (0.5, 1.0, 8.0, 1), (1.0, 1.0, 5.0, 4),
]  # fmt: skip
HALF = Saving(Easy(), Opportunistic(1.0), EnergyBudget(budget=Amount(0.5, share=True), stage=4.0))
#: A job that would run longest lacks energy at its end, which is not examined for shorter jobs.
LONGER = [
    (0.5, 4 / 3, 4.0, 3), (0.0, 2.0, 2.0, 1), (0.5, 1 / 9, 1 / 3, 4), (1 / 3, 11 / 9, 11 / 3, 2),
    (1 / 3, 7 / 9, 7 / 3, 3), (0.0, 2.0, 2.0, 2), (0.0, 1.0, 4 / 3, 1), (0.0, 4.0, 4.0, 2), (0.5, 2.0, 6.0, 1),
    (0.5, 4.0, 4.0, 3),
]  # fmt: skip
AT_ONCE = Saving(Easy(), Opportunistic(0.0), ReducePC(budget=Amount(8 / 15, share=True), stage=1.0))
#: Machines are being switched off when the number of free machines is computed.
ON_THEIR_WAY = [
    (0.0, 1.0, 1.0, 3), (1.0, 3.5, 7.0, 4), (0.25, 1.0, 5.0, 1), (1.0, 0.5, 1.0, 1), (1.0, 8.0, 8.0, 4),
    (0.0, 8.0, 8.0, 1), (0.25, 4.0, 8.0, 5), (0.5, 1.0, 2.0, 3), (0.0, 1.0, 4.0, 4),
]  # fmt: skip
SHARED = Saving(Easy(), Opportunistic(0.0), ReducePC(budget=Amount(9 / 16, share=True), stage=1.0))


@given(st.lists(THIRD, min_size=6, max_size=24), st.sampled_from([3, 4, 5]), TIGHT_THIRDS, BOOTING)
@example(EXACT, 3, PAYS, Powers(6.0, 8.0, 6.0, 8.0, 0.0, 7.0, 2.5, 3.0, 0.5))
@example(LONGER, 4, AT_ONCE, Powers(7.0, 26 / 3, 7.0, 26 / 3, 0.0, 8.0, 0.0, 3.5, 0.5))
@example(ON_THEIR_WAY, 5, SHARED, Powers(4.0, 15.0, 4.0, 15.0, 0.0, 15.0, 1.0, 0.0, 0.5))
@example(BUT_FOR_ITS_BOOT, 5, HALF, Powers(2.0, 10.0, 2.0, 10.0, 0.0, 10.0, 1.0, 0.0, 0.0))
@settings(max_examples=600, deadline=None)
def test_it_equals_the_reference_with_little_energy_boots_and_rounding(
    rows: list[Any], machine: int, policy: Saving, powers: Powers
) -> None:
    same(rows, machine, policy, powers, 0)


def each(*columns: Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*map(st.sampled_from, columns))


#: In the end only a job without work waits: of the work of the others, summed in thirds, nothing may be left behind.
WORKLESS = [
    (0.0, 2.0, 2.0, 1), (0.5, 1.0, 1.0, 1), (0.5, 3.0, 8.0, 2), (1 / 3, 1.0, 34 / 3, 4), (0.0, 0.0, 1 / 3, 1),
    (0.0, 1.0, 8.0, 2), (0.0, 0.0, 0.0, 1),
]  # fmt: skip
DOUBLING = Saving(Strict("fcfs"), keeper=Inertial(2.0, 1.0, "double", "later", "event"))
MIXED = st.one_of(each([0.0, 0.5], TIMES, WHOLE, range(1, 5)), each([0.0, 1 / 3, 0.5], THIRDS, THIRDS, range(1, 5)))


@given(st.lists(MIXED, min_size=6, max_size=40), st.sampled_from([3, 4, 5, 8]),
       st.builds(Saving, BASES, SHUTDOWNS, st.one_of(st.none(), CAPS, BUDGETS), INERTIAL), POWERS)  # fmt: skip
@example(WORKLESS, 8, DOUBLING, Powers(1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.0, 0.5, 0.0))
@settings(max_examples=400, deadline=None)
def test_it_equals_the_reference_with_an_incremental_horizon(
    rows: list[Any], machine: int, policy: Saving, powers: Powers
) -> None:
    same(rows, machine, policy, powers, 0)


def test_a_reservation_is_updated_when_machines_are_kept_off() -> None:
    """A wide job may use them then, so there are more spare machines."""
    rows = [(0.0, 0.0, 0.0, 1), (1.0, 0.0, 0.0, 1), (0.0, 1.0, 0.125, 2)]
    rows += [(0.0, 0.0, 0.0, 3), (0.0, 0.0, 0.0, 6), (0.0, 1.0, 1.0, 2), (0.0, 0.0, 0.0, 7)]
    powers = Powers(1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.0, 0.5, 0.5)
    for passes in ("event", "period"):
        same(rows, 8, Saving(Easy(), keeper=Proportional(0.0, 1.0, "later", passes)), powers, 0)


@pytest.mark.parametrize(
    "text",
    effort.some(
        [
            "easy+opportunistic:t_idle=300",
            "easy+energybud:budget=60%+opportunistic",
            "easy+reducepc:budget=70%",
            "easy+energybud:budget=45%,stage=300+opportunistic:t_idle=60",
            "easy+reducepc:budget=60%+inertial",
            "easy+powercap:cap=70%+opportunistic:t_idle=600",
            "easy:order=sjf+inertial:period=3600+opportunistic:t_idle=300+energybud:budget=80%",
            "strict+proportional:period=3600",
            "easy:order=wfp3+opportunistic:t_idle=300",
            "easy:order=unicep+energybud:budget=60%+opportunistic",
        ]
    ),
)
def test_it_equals_the_reference_with_the_power_of_a_real_node(text: str) -> None:
    jobs, policy = lublin(150, 256, kind="untyped", load=1.2), parse(text)
    done, plain = replay(jobs, 256, policy), Machine(jobs, 256, policy, TAURUS_POWERS)
    start, _, where, changes = plain.run()
    assert np.array_equal(done.start_time, start, equal_nan=True) and len(done.changes) == len(changes)
    assert [places(done, i) for i in range(len(jobs))] == where


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("easy+inertial:v_ub=5", "period"), ("easy+proportional", "period"), ("easy+energybud:budget=60%", "stage"),
        ("easy+reducepc:budget=60%,begin=5", "stage"),
    ],
)  # fmt: skip
def test_too_many_periods_or_stages_are_rejected(policy: str, key: str) -> None:
    jobs = workload([(0.0, 10.0, 20.0, 2), (1e14, 10.0, 20.0, 2)])
    with pytest.raises(ConfigError, match=rf"policy: {key}: .* seconds, and w lasts 1e\+14 .allowed: 1e\+04 or more"):
        replay(jobs, 4, parse(policy))
    done = replay(jobs, 4, parse(policy.replace(":", f":{key}=1e13,") if ":" in policy else f"{policy}:{key}=1e13"))
    assert not done.rejected.any()


@pytest.mark.parametrize("policy", ["strict", "easy", "easy+opportunistic", "easy+powercap:cap=100%", "conservative"])
def test_longest_times(policy: str) -> None:
    done = replay(workload([(0.0, LONGEST, LONGEST, 3)] * 9), 4, parse(policy))
    assert done.start_time.tolist() == [i * LONGEST for i in range(9)]

"""The compiled replay with contention equals the reference to the last bit, and satisfies its laws."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from pilotfish.simulate.model.machine import Powers, machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.policy_options import Amount
from pilotfish.simulate.queue_policies.policy_specs import (
    JOBS,
    RESOURCES,
    RULES,
    Contending,
    Nodes,
    Pairs,
    Saving,
    Strict,
)
from pilotfish.simulate.replay.energy import span
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.worlds.contended import ContendedReplay, contended_track
from pilotfish.simulate.world import slices
from tests.reference.plain_contended import Plain, shares

I5 = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=3500.0, dc=45000.0, dd=3000.0)
KIND = NodeType("i5", 4, 8e9, 38.4e9, frequency=3.4e9, power=Power(20.0, 6.14, 5.59))
TIMES = st.one_of(st.just(0.0), st.integers(0, 9).map(float), st.floats(0, 9, allow_subnormal=False))
#: Gap, work, walltime, size, GB/s per task, GB per task.
JOB = st.tuples(
    *(TIMES, TIMES, st.one_of(st.just(math.inf), TIMES)),
    *(st.integers(1, 9), st.integers(0, 30), st.sampled_from((0, 0, 1, 3))),
)
POLICY = st.one_of(
    st.builds(Pairs, st.sampled_from(list(JOBS)), st.sampled_from(list(RESOURCES))),
    st.builds(Nodes, st.sampled_from(list(JOBS)), st.sampled_from(list(RULES))),
)


def replay_contended(jobs: Workload, cluster: Cluster, policy: Any, **settings: Any) -> ContendedReplay:
    """Return the replay of a policy whose tasks contend."""
    replayed = replay(jobs, machine_of(cluster), policy, **settings)
    assert isinstance(replayed, ContendedReplay)
    return replayed


def kind(model: Contention, cores: int, sockets: int, ghz: float, idle_uncore: float = 1.0) -> NodeType:
    """Return a node type with one contention model."""
    power = Power(20.0, 6.14 * ghz / 3.4, 5.59 * ghz / 3.4, idle_uncore=idle_uncore)
    constants = I5 if model is Contention.PIECEWISE_LINEAR else None
    return NodeType(
        f"{model}-{cores}-{sockets}-{ghz}", cores, 4.5e9, 38.4e9 * sockets, sockets, ghz * 1e9, contention=model,
        power=power, piecewise=constants, remote_access_penalty=1.5 if ghz < 2 else 1.0,
    )  # fmt: skip


KINDS = st.builds(
    kind, st.sampled_from(Contention), st.integers(2, 5), st.integers(1, 2), st.sampled_from((1.7, 2.5, 3.4)),
    st.sampled_from((1.0, 0.05)),
)  # fmt: skip


def cluster(*kinds: NodeType) -> Cluster:
    return Cluster("c", tuple(Node(f"n{i}", each) for i, each in enumerate(kinds)))


def workload(rows: list[Any]) -> Workload:
    gaps, runs, walls, sizes, rates, memories = zip(*rows, strict=True) if rows else ((),) * 6
    submit, run, wall = (np.array(column, np.float64) for column in (np.cumsum(gaps), runs, walls))
    more = {"volume": run * np.array(rates) * 1e9, "memory": np.array(memories) * 1e9}
    return Workload("w", np.arange(1, len(rows) + 1), submit, run, wall, np.array(sizes, np.int64), more=more)


def places(done: ContendedReplay, i: int) -> list[int]:
    begin = done.piece0[i]
    pieces = done.pieces[begin : begin + done.piece_count[i]].tolist()
    return [number for first, last in pieces for number in range(first, last + 1)]


@given(st.lists(JOB, max_size=25), st.lists(KINDS, min_size=1, max_size=3), POLICY, st.integers(0, 2**64 - 1))
@settings(max_examples=200, deadline=None)  # the first compiles
def test_replay_equals_the_reference(rows: list[Any], kinds: list[NodeType], policy: Contending, seed: int) -> None:
    jobs, machine = workload(rows), cluster(*kinds)
    done, plain = replay_contended(jobs, machine, policy, seed=seed), Plain(jobs, machine, policy, seed)
    assert np.array_equal(done.start_time, plain.start, equal_nan=True)
    assert np.array_equal(done.finish_time, plain.finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == [sorted(each) for each in plain.places]
    assert done.overran.tolist() == plain.overran
    assert done.joules == pytest.approx(plain.joules, rel=1e-9, abs=1e-9)


class Recent:
    """Predicts the mean run time of the jobs of this size that have ended, 5 s at first."""

    def __init__(self, jobs: Workload) -> None:
        self.jobs, self.known = jobs, dict[int, list[float]]()

    def expected(self, row: int) -> float:
        return float(np.mean(self.known.get(int(self.jobs.size[row]), [5.0])))

    def ended(self, row: int, ran: float | None = None) -> None:
        self.known.setdefault(int(self.jobs.size[row]), []).append(float(self.jobs.run_time[row]))


SHORTEST = st.builds(Pairs, st.just("shortest"), st.sampled_from(("high_gflops", "high_core")))


@given(
    st.lists(JOB, max_size=25), st.lists(KINDS, min_size=1, max_size=3), POLICY | SHORTEST,
    st.sampled_from((0.0, 0.5, 2.0, 3.7)), st.sampled_from(("walltime", "actual", "predicted")),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_decisions_that_take_time_and_known_run_times_equal_the_reference(
    rows: list[Any], kinds: list[NodeType], policy: Contending, takes: float, known: str
) -> None:
    jobs, machine = workload(rows), cluster(*kinds)
    known = known if takes else "predicted"
    told = Recent(jobs) if known == "predicted" else known
    done = replay_contended(jobs, machine, policy, seed=3, decision_time=takes, run_times=told)
    hears = {"walltime": None, "actual": "actual", "predicted": Recent(jobs)}[known]
    plain = Plain(jobs, machine, policy, 3, takes, hears)
    assert np.array_equal(done.start_time, plain.start, equal_nan=True)
    assert np.array_equal(done.finish_time, plain.finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == [sorted(each) for each in plain.places]
    assert done.overran.tolist() == plain.overran
    assert done.joules == pytest.approx(plain.joules, rel=1e-9, abs=1e-9)


@given(st.lists(JOB, min_size=1, max_size=25), st.lists(KINDS, min_size=1, max_size=3), POLICY, st.booleans())
@settings(max_examples=200, deadline=None)
def test_decisions_that_take_no_time_change_nothing(
    rows: list[Any], kinds: list[NodeType], policy: Contending, follows: bool
) -> None:
    """The compiled loop, and the one that asks at each instant; a clock that stands still measures nothing."""
    jobs, machine = workload(rows), cluster(*kinds)
    if follows and len(jobs) > 1:
        jobs = replace(jobs, dependencies=Dependencies(np.array([0]), np.array([len(jobs) - 1])))
    once, asked = (replay_contended(jobs, machine, policy, decision_time=takes) for takes in (0.0, None))
    for column in ("submit_time", "start_time", "finish_time", "task_end", "task_core", "pieces", "jobs_joules"):
        same = np.array_equal(getattr(once, column), getattr(asked, column), equal_nan=column != "pieces")
        assert same, column
    assert (once.instants, once.joules, once.stranded.tolist()) == (
        asked.instants, asked.joules, asked.stranded.tolist()
    )  # fmt: skip


@given(st.lists(JOB, min_size=1, max_size=25), st.lists(KINDS, min_size=1, max_size=3), POLICY)
@settings(max_examples=100, deadline=None)
def test_energy_of_jobs_is_part_of_the_energy_of_the_machine(
    rows: list[Any], kinds: list[NodeType], policy: Contending
) -> None:
    jobs, machine = workload(rows), cluster(*kinds)
    done = replay_contended(jobs, machine, policy)
    begin, end = span(done)
    mine = np.nansum(done.jobs_joules)
    assert done.joules is not None and mine <= done.joules * (1 + 1e-9) + 1e-9
    own = sum(_own_joules(done, machine, p, begin, end) for p in range(len(done.processors.node)))
    base = sum(each.power.idle for each in kinds if each.power) * (end - begin)
    assert own + base == pytest.approx(done.joules, rel=1e-9, abs=1e-9)


def _own_joules(done: ContendedReplay, machine: Cluster, p: int, begin: float, end: float) -> float:
    """Return the power of one processor, from the times of its tasks alone."""
    power = machine.nodes[done.processors.node[p]].type.power
    assert power is not None
    mine = done.task_processor == p
    spans = list(zip(done.start_time[done.task_job][mine].tolist(), done.task_end[mine].tolist(), strict=True))
    moments = sorted({begin, end, *(t for pair in spans for t in pair)})
    joules = 0.0
    for a, b in pairwise(moments):
        n = sum(low <= a and b <= high for low, high in spans)
        joules += (power.per_core * n + power.per_socket * (1.0 if n else power.idle_uncore)) * (b - a)
    return joules


@given(st.lists(JOB, min_size=1, max_size=25), st.lists(KINDS, min_size=1, max_size=3), POLICY)
@settings(max_examples=100, deadline=None)
def test_power_integrates_to_the_consumed_energy(rows: list[Any], kinds: list[NodeType], policy: Contending) -> None:
    jobs, machine = workload(rows), cluster(*kinds)
    done, plain = replay_contended(jobs, machine, policy), Plain(jobs, machine, policy)
    found = contended_track(done)
    assert found is not None and found.joules[-1] == pytest.approx(done.joules, rel=1e-9, abs=1e-9)
    assert (found.counts.sum(axis=1) == done.machine).all() and (found.counts >= 0).all()
    assert (found.watts >= found.least_watts - 1e-9).all() and (np.diff(found.time) > 0).all()
    drawn = dict(plain.log)
    assert found.watts[1:] == pytest.approx([drawn[time] for time in found.time.tolist()[1:]])
    assert summarise(done).consumed_joules == done.joules


@given(st.lists(JOB, max_size=40), st.integers(1, 8), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_tasks_without_memory_traffic_run_in_strict_order(rows: list[Any], nodes: int, cores: int) -> None:
    jobs = replace(workload(rows), more={})
    one = replay_contended(jobs, cluster(*[replace(KIND, cores=cores)] * nodes), Pairs("first", "high_core"))
    other = replay(jobs, nodes * cores, Strict())
    assert np.array_equal(one.start_time, other.start_time, equal_nan=True)
    assert np.array_equal(one.finish_time, other.finish_time, equal_nan=True)
    apart = other.start_time + jobs.run_time != other.start_time + jobs.walltime
    assert np.array_equal(one.overran, other.overran & apart) and np.array_equal(one.rejected, other.rejected)


@given(KINDS, st.lists(st.floats(0, 60e9), min_size=1, max_size=6), st.floats(0, 60e9))
def test_a_new_task_never_speeds_up_another(each: NodeType, demands: list[float], newcomer: float) -> None:
    before, after = shares(each, demands), shares(each, [*demands, newcomer])
    assert all(0 < new <= old * (1 + 1e-12) for new, old in zip(after, before, strict=False))


@given(st.lists(JOB, min_size=1, max_size=20), st.lists(KINDS, min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_no_contention_equals_tasks_without_memory_traffic(rows: list[Any], kinds: list[NodeType]) -> None:
    jobs = workload(rows)
    still = replace(jobs, more={**jobs.more, "volume": np.zeros(len(jobs))})
    alone = [replace(each, contention=Contention.NONE, piecewise=None) for each in kinds]
    one, other = replay_contended(jobs, cluster(*alone), Pairs()), replay_contended(still, cluster(*kinds), Pairs())
    assert np.array_equal(one.finish_time, other.finish_time, equal_nan=True)
    assert np.array_equal(one.start_time, other.start_time, equal_nan=True)


@given(st.lists(JOB, min_size=1, max_size=20), st.integers(1, 3), POLICY)
@settings(max_examples=100, deadline=None)
def test_work_is_conserved(rows: list[Any], nodes: int, policy: Contending) -> None:
    """The integral of the reference rates of each task over its run is its work."""
    rows = [(gap, run, math.inf, size, rate, memory) for gap, run, _, size, rate, memory in rows]
    jobs, each = workload(rows), kind(Contention.MAX_MIN, 4, 1, 3.4)
    done = replay_contended(jobs, cluster(*[each] * nodes), policy)
    demand = np.array([row[4] * 1e9 if row[1] > 0 else 0.0 for row in rows])
    columns = (done.task_job, done.task_core, done.start_time[done.task_job], done.task_end)
    tasks = list(zip(*(column.tolist() for column in columns), strict=True))  # job, core, begin, end
    did = np.zeros(len(tasks))
    moments = sorted({t for *_, begin, end in tasks for t in (begin, end)})
    for a, b in pairwise(moments):
        for node in range(nodes):
            there = [k for k, (_, core, low, high) in enumerate(tasks) if core // 4 == node and low <= a and b <= high]
            if there:
                did[there] += np.array(shares(each, [float(demand[tasks[k][0]]) for k in there])) * (b - a)
    assert did == pytest.approx([rows[i][1] for i, *_ in tasks], rel=1e-9, abs=1e-9)


def test_four_tasks_that_exceed_the_bandwidth() -> None:
    """38.4 GB/s for four tasks that demand 19.2 each: half speed; alone, and two together: full speed."""
    rows = [(0.0, 100.0, math.inf, many, 19.2, 0) for many in (1, 1, 2)]
    for count, last in ((1, 100.0), (2, 100.0), (3, 200.0)):
        done = replay_contended(workload(rows[:count]), cluster(KIND), Pairs())
        assert done.finish_time.max() == pytest.approx(last)


def test_energy_of_one_task() -> None:
    """A task of 100 s on one of four cores consumes the energy of one core, the processor and the node."""
    done = replay_contended(workload([(5.0, 100.0, math.inf, 1, 0, 0)]), cluster(KIND), Pairs())
    assert done.joules == pytest.approx(100 * (6.14 + 5.59 + 20)) == pytest.approx(done.jobs_joules[0])


def test_run_times_refer_to_the_slowest_node() -> None:
    slow, fast = replace(KIND, name="slow", frequency=1.7e9), replace(KIND, name="fast", frequency=3.4e9)
    jobs = workload([(0.0, 100.0, math.inf, 4, 0, 0)] * 2)
    done = replay_contended(jobs, cluster(slow, fast), Nodes(rule="fastest"))
    assert done.finish_time.tolist() == [50.0, 100.0] and places(done, 0) == [4, 5, 6, 7]


def test_a_job_holds_its_cores_until_its_last_task_ends() -> None:
    slow, fast = replace(KIND, name="slow", cores=1, frequency=1.7e9), replace(KIND, name="fast", cores=1)
    done = replay_contended(workload([(0.0, 100.0, math.inf, 2, 0, 0)] * 2), cluster(slow, fast), Pairs())
    assert sorted(done.task_end.tolist()) == [50.0, 100.0, 150.0, 200.0]
    assert done.start_time.tolist() == [0.0, 100.0]


@pytest.mark.parametrize("policy", [Pairs(), Pairs("random", "random")])
def test_slices_do_not_change_the_result(policy: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1.0, 3.0 + i % 5, math.inf, 1 + i % 3, i % 20, 0) for i in range(60)]
    seen = list[float]()
    whole = replay_contended(workload(rows), cluster(KIND, KIND), policy)
    monkeypatch.setattr(slices, "MOST", 7)
    steps = replay_contended(workload(rows), cluster(KIND, KIND), policy, progress=seen.append)
    assert np.array_equal(whole.finish_time, steps.finish_time) and seen == sorted(seen) and len(seen) > 5


def test_impossible_combinations_are_rejected() -> None:
    jobs = workload([(0.0, 1.0, 1.0, 1, 0, 0)])
    with pytest.raises(ConfigError, match="the power of this machine is not known"):
        replay_contended(jobs, cluster(replace(KIND, power=None)), Pairs("first", "low_power"))
    shared = Cluster("c", tuple(Node(f"n{i}", KIND, "m0") for i in range(2)))
    with pytest.raises(ConfigError, match="share the memory 'm0'"):
        replay_contended(jobs, shared, Pairs())


def test_huge_amounts_still_end() -> None:
    jobs = workload([(0.0, 1e-300, math.inf, 2, 0, 0), (0.0, 1.0, math.inf, 1, 0, 0)])
    jobs = replace(jobs, more={"volume": np.full(2, 1e24), "memory": np.array([0.0, 1e24])})
    done = replay_contended(jobs, cluster(KIND), Pairs())
    assert np.isfinite(done.finish_time[0]) and done.rejected.tolist() == [False, True]


@given(st.lists(JOB, min_size=1, max_size=12), st.sampled_from(list(JOBS)), st.sampled_from((0.25, 2, 64)))
@settings(max_examples=50)
def test_decisions_do_not_depend_on_run_times(rows: list[Any], rule: str, longer: float) -> None:
    """Which of the jobs submitted together start at once, and where, does not depend on their run times."""
    jobs = workload([(0.0, run + 1.0, wall + 1.0, size, rate, memory) for _, run, wall, size, rate, memory in rows])
    more = {**jobs.more, "volume": jobs.more["volume"] * longer}  # the same bandwidth
    two = (
        replay_contended(jobs, cluster(KIND, KIND), Pairs(rule)),
        replay_contended(replace(jobs, run_time=jobs.run_time * longer, more=more), cluster(KIND, KIND), Pairs(rule)),
    )
    first, second = ([places(done, i) for i in np.flatnonzero(done.start_time == 0.0)] for done in two)
    assert first == second and np.array_equal(two[0].start_time == 0.0, two[1].start_time == 0.0)


# --- under a power cap ---
SPAN = st.tuples(st.sampled_from((-math.inf, 2.0, 6.5)), st.sampled_from((math.inf, 9.0, 20.0)))
CAPS = st.builds(
    lambda percent, span: PowerCap(span[0], span[1], Amount(percent / 100, share=True)), st.integers(55, 100), SPAN
)
ALIKE = st.builds(
    lambda each, count: cluster(*[replace(each, power=Power(20.0, 6.14, 5.59))] * count), KINDS, st.integers(1, 3)
)


@given(
    *(
        st.lists(JOB, min_size=1, max_size=25),
        ALIKE,
        POLICY,
        CAPS,
        st.booleans(),
        st.sampled_from((0.0, 0.0, 0.5, 3.7)),
    ),
    st.integers(0, 9),
)
@settings(max_examples=250, deadline=None)
def test_under_a_power_cap_it_equals_the_reference(
    rows: list[Any], machine: Cluster, policy: Contending, cap: PowerCap, follows: bool, takes: float, seed: int
) -> None:
    jobs, whole = workload(rows), machine_of(machine)
    if follows and len(jobs) > 1:
        jobs = replace(jobs, dependencies=Dependencies(np.array([0]), np.array([len(jobs) - 1])))
    done = replay(jobs, whole, Saving(policy, limit=cap), seed=seed, decision_time=takes)
    assert isinstance(done, ContendedReplay)
    assert isinstance(whole.powers, Powers)
    window, allowed = cap.window(jobs) or (0.0, 0.0), cap.allowed(whole.powers, whole.processors)
    plain = Plain(jobs, machine, policy, seed, takes, cap=(*window, allowed))
    assert np.array_equal(done.start_time, plain.start, equal_nan=True)
    assert np.array_equal(done.finish_time, plain.finish, equal_nan=True)
    assert [places(done, i) for i in range(len(jobs))] == [sorted(each) for each in plain.places]
    for time in done.start_time.tolist():
        if window[0] + takes <= time < window[1]:
            assert jobs.size[(done.start_time <= time) & (done.finish_time > time)].sum() <= allowed


@given(st.lists(JOB, min_size=1, max_size=25), ALIKE, POLICY, st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_a_cap_that_caps_nothing_changes_nothing(
    rows: list[Any], machine: Cluster, policy: Contending, seed: int
) -> None:
    jobs, capped = workload(rows), Saving(policy, limit=PowerCap(cap=Amount(1.0, share=True)))
    done, base = (replay(jobs, machine_of(machine), each, seed=seed) for each in (capped, policy))
    for column in ("start_time", "finish_time", "pieces", "rejected"):
        assert np.array_equal(getattr(done, column), getattr(base, column), equal_nan=column[-4:] == "time"), column

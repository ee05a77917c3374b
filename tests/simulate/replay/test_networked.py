"""Jobs on a network: the compiled replay equals the reference, and satisfies the laws of fair sharing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute, unlimited
from pilotfish.simulate.model.programs import Even, Matrix, Part, ProgramBuilder, Stage, Steps, Store, Wait
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.reference.plain_network import plain_network
from tests.simulate.replay.test_replay import JOB, places
from tests.simulate.replay.test_replay import workload as plain_workload

AMOUNT = st.one_of(st.just(0.0), st.floats(0.01, 100.0))
STORAGE = st.sampled_from(["disk", "tape"])
PHASE = st.one_of(
    st.builds(Wait, AMOUNT),
    st.builds(Even, AMOUNT, AMOUNT),
    st.builds(Store, STORAGE, AMOUNT, AMOUNT),
    st.builds(Stage, STORAGE, STORAGE, AMOUNT),
    st.just("matrix"),
)
PART = st.recursive(
    PHASE, lambda inner: st.builds(Steps, st.lists(inner, min_size=1, max_size=3).map(tuple), st.integers(1, 2)),
    max_leaves=4,
)  # fmt: skip


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw up to three clusters of up to four hosts, two storages, and links between them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    ports = st.one_of(st.just(math.inf), st.floats(1.0, 50.0))
    clusters = [NetworkPlace(f"c{i}", draw(ports), draw(st.booleans()), draw(ports)) for i in range(len(sizes))]
    links = [Link(f"l{i}", draw(st.floats(1.0, 60.0))) for i in range(draw(st.integers(0, 4)))]
    number, ways = len(sizes) + 2, []
    for _ in range(number * number):
        through = draw(st.lists(st.integers(0, len(links) - 1), max_size=3, unique=True)) if links else []
        ways.append(NetworkRoute(tuple(through), draw(st.sampled_from([0.0, 0.25])), draw(ports)))
    speeds = np.array([draw(st.floats(0.5, 4.0)) for _ in range(sum(sizes))])
    places_ = [*clusters, NetworkPlace("disk"), NetworkPlace("tape")]
    whose = np.repeat(np.arange(len(sizes)), sizes)
    return Network(speeds, whose, places_, links, ways, {"disk": len(sizes), "tape": len(sizes) + 1})


def filled(draw: st.DrawFn, part: Any, size: int) -> Part:
    """Draw phases, with matrices of that size."""
    if isinstance(part, Steps):
        return Steps(tuple(filled(draw, each, size) for each in part.parts), part.repeat)
    if part == "matrix":
        flops = draw(st.one_of(st.just([]), st.lists(AMOUNT, min_size=size, max_size=size)))
        sent = draw(st.one_of(st.just([]), st.lists(AMOUNT, min_size=size * size, max_size=size * size)))
        return Matrix(tuple(flops), tuple(sent))
    found: Part = part
    return found


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Workload, list[Part], Network]:
    """Draw jobs and a network."""
    network = draw(networks())
    rows, parts, laying, programs = [], [], ProgramBuilder(), []
    for _ in range(draw(st.integers(1, 8))):
        size = draw(st.integers(1, len(network.speeds) + 1))
        wall = draw(st.one_of(st.floats(0.5, 400.0), st.just(math.inf)))
        rows.append((draw(st.floats(0.0, 50.0)), wall, size))
        parts.append(filled(draw, draw(PART), size))
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    rows, parts = [rows[i] for i in order], [parts[i] for i in order]
    for part, (_, _, size) in zip(parts, rows, strict=True):
        number = laying.add(part, size)
        assert number is not None
        programs.append(number)
    return workload(rows, laying, programs), parts, network


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Workload, list[Part], Network]:
    """Draw many jobs that send at once, each over some of a few links."""
    count, number = draw(st.integers(2, 4)), 4
    links = [Link(f"l{i}", draw(st.floats(1.0, 10.0))) for i in range(count)]
    routes = st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True).map(tuple)
    ways = [NetworkRoute() if a == b else NetworkRoute(draw(routes)) for a in range(number) for b in range(number)]
    whose = np.arange(12) % number
    network = Network(np.ones(12), whose, [NetworkPlace(f"p{i}") for i in range(number)], links, ways)
    amount, laying, parts = st.floats(0.1, 10.0), ProgramBuilder(), []
    rows = [(0.0, math.inf, draw(st.integers(2, 3))) for _ in range(draw(st.integers(2, 5)))]
    for _, _, size in rows:
        sent = draw(st.lists(amount, min_size=size * size, max_size=size * size))
        parts.append(Matrix(tuple([draw(amount)] * size), tuple(sent)))
    numbers = [laying.add(part, size) for part, (_, _, size) in zip(parts, rows, strict=True)]
    return workload(rows, laying, [number or 0 for number in numbers]), list(parts), network


def workload(rows: list[tuple[float, float, int]], laying: ProgramBuilder, programs: list[int]) -> Workload:
    """Return jobs with programs."""
    submit, wall, size = (np.array(column) for column in zip(*rows, strict=True))
    return Workload(
        "w", np.arange(1, len(rows) + 1), submit.astype(float), np.full(len(rows), math.nan), wall.astype(float),
        size.astype(np.int64), more={"program": np.array(programs)}, programs=laying.programs(),
    )  # fmt: skip


def run(jobs: Workload, network: Network, policy: str = "easy") -> Replayed:
    """Return the replay."""
    return replay(jobs, len(network.speeds), parse(policy), network=lambda: network)


@given(st.one_of(scenes(), crowds()))
@settings(max_examples=200)
def test_replay_equals_the_reference(scene: tuple[Workload, list[Part], Network]) -> None:
    jobs, parts, network = scene
    done = run(jobs, network)
    start, finish, killed = plain_network(jobs, parts, network)
    np.testing.assert_allclose(done.start_time, start, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(done.finish_time, finish, rtol=1e-6, atol=1e-6)
    assert done.overran.tolist() == killed


SAVING = (
    "opportunistic", "opportunistic:t_idle=5+powercap:cap=60%", "inertial:period=5,v_ub=20", "energybud:budget=70%"
)  # fmt: skip
OTHERS = st.sampled_from(
    [f"conservative:allocation={each}" for each in ALLOCATIONS] + [f"easy+{each}" for each in SAVING]
)


@given(st.one_of(scenes(), crowds()), OTHERS)
@settings(max_examples=100)
def test_run_times_follow_from_the_network_under_every_policy(
    scene: tuple[Workload, list[Part], Network], policy: str
) -> None:
    jobs, parts, network = scene
    bounded = replace(jobs, walltime=np.minimum(jobs.walltime, 1e5))
    done = run(bounded, network, policy)
    ran = np.argsort(done.start_time, kind="stable")[: (~done.rejected).sum()]
    began = replace(bounded.take(ran), submit_time=done.start_time[ran])
    where = [places(done, i) for i in ran]
    start, finish, killed = plain_network(began, [parts[i] for i in ran], network, given=where)
    assert start == done.start_time[ran].tolist() and killed == done.overran[ran].tolist()
    np.testing.assert_allclose(done.finish_time[ran], finish, rtol=1e-6, atol=1e-6)


@st.composite
def chained(draw: st.DrawFn) -> tuple[Workload, Network]:
    """Draw jobs on a network, some of which wait for others."""
    jobs, _, network = draw(st.one_of(scenes(), crowds()))
    row = st.integers(0, len(jobs) - 1)
    edges = sorted({(a, b) for a, b in draw(st.lists(st.tuples(row, row), max_size=6)) if a < b})
    before, after = np.array(edges, np.int64).reshape(-1, 2).T
    return replace(jobs, dependencies=Dependencies(before, after) if edges else None), network


SPECS = ("easy", "strict", "easy:order=sjf", "conservative", "conservative:allocation=contiguous")


@given(chained(), st.sampled_from(SPECS), st.sampled_from((0.0, 2.0)))
@settings(max_examples=200)
def test_a_policy_in_python_gives_the_schedule_of_the_compiled_one(
    scene: tuple[Workload, Network], policy: str, decision_time: float
) -> None:
    jobs, network = scene
    jobs = replace(jobs, walltime=np.minimum(jobs.walltime, 1e5))
    takes = {} if policy.startswith("conservative") else {"decision_time": decision_time}
    where: dict[str, Any] = {"machine": len(network.speeds), "network": lambda: network}
    compiled = replay(jobs, policy=parse(policy), **where, **takes)
    python = replay(jobs, policy=uncompiled(parse(policy), 0), **where, **takes)
    predicted = replay(jobs, policy=parse(policy), run_times=Heard([None] * len(jobs)), **where, **takes)
    for other in (python, predicted):  # what is predicted are the walltimes
        for name in ("submit_time", "start_time", "finish_time", "rejected", "stranded", "overran"):
            assert np.array_equal(getattr(compiled, name), getattr(other, name), equal_nan=True), name
        assert [places(compiled, i) for i in range(len(jobs))] == [places(other, i) for i in range(len(jobs))]


class Heard:
    """Predicts given run times, and keeps how long jobs ran."""

    def __init__(self, values: list[float | None]) -> None:
        self.values, self.ran = values, dict[int, float | None]()

    def expected(self, row: int) -> float | None:
        return self.values[row]

    def ended(self, row: int, ran: float | None = None) -> None:
        self.ran[row] = ran


def test_a_prediction_knows_how_long_jobs_took_on_the_network() -> None:
    """Job 0 sends 4 bytes over a link of 1 byte/s; job 2 needs all hosts; job 3 ends before it begins, as predicted."""
    laying = ProgramBuilder()
    parts = (Even(0.0, 2.0), 2), (Even(1.0, 0.0), 1), (Even(5.0, 0.0), 3), (Even(2.0, 0.0), 1)
    numbers = [laying.add(*each) or 0 for each in parts]
    network = Network(
        np.ones(3), np.zeros(3, np.int64), [NetworkPlace("hosts")], [Link("l", 1.0)], [NetworkRoute((0,))]
    )
    jobs = workload([(0.0, 90.0, 2), (0.0, 90.0, 1), (0.5, 90.0, 3), (2.0, 90.0, 1)], laying, numbers)
    heard = Heard([4.0, 1.0, 5.0, 2.0])
    done = replay(jobs, 3, parse("easy"), network=lambda: network, run_times=heard)
    assert (done.start_time.tolist(), done.finish_time.tolist()) == ([0.0, 0.0, 4.0, 2.0], [4.0, 1.0, 9.0, 4.0])
    assert heard.ran == {1: 1.0}, "what had ended when job 3 was submitted"


def test_who_is_killed_no_longer_slows_others_down_from_then_on_alone() -> None:
    """Job 0 reads 1 byte; job 1 sends 2 bytes over the same link, and is killed at 1 s."""
    laying = ProgramBuilder()
    numbers = np.array([laying.add(Store("disk", 1.0, 0.0), 1), laying.add(Even(0.0, 1.0), 2)])
    ways = [NetworkRoute((0,)), NetworkRoute(), NetworkRoute((0,)), NetworkRoute()]
    places_ = [NetworkPlace("hosts", duplex=False), NetworkPlace("disk")]
    network = Network(np.ones(3), np.zeros(3, np.int64), places_, [Link("l", 1.0)], ways, {"disk": 1})
    jobs = replace(workload([(0.0, 1e5, 1), (0.0, 1.0, 2)], laying, numbers.tolist()), dependencies=None)
    for policy in (parse("easy"), uncompiled(parse("easy"), 0)):
        done = replay(jobs, 3, policy, network=lambda: network)
        assert (done.finish_time.tolist(), done.overran.tolist()) == ([1.5, 1.0], [False, True])


@given(
    st.lists(JOB, max_size=25), st.integers(1, 90),
    st.sampled_from((
        "easy", "strict:order=sjf", "easy:order=wfp3", "conservative", "conservative:allocation=local",
        "easy+opportunistic:t_idle=3", "easy+inertial:period=5+energybud:budget=70%", "strict+powercap:cap=60%",
    )),
)  # fmt: skip
def test_jobs_without_communication_run_as_without_a_network(rows: list[Any], machine: int, policy: str) -> None:
    jobs, laying = plain_workload(rows), ProgramBuilder()
    assume(not ((jobs.run_time > 0) & (jobs.run_time < 1e-9)).any())  # so short that they end when they start
    steps = [(Wait if i % 2 else Even)(seconds) for i, seconds in enumerate(jobs.run_time.tolist())]
    numbers = [-1 if i % 3 == 0 else laying.add(step, 1) or 0 for i, step in enumerate(steps)]
    known = np.where(np.array(numbers, np.int64) < 0, jobs.run_time, math.nan)
    told = replace(jobs, run_time=known, more={"program": np.array(numbers, np.int64)}, programs=laying.programs())
    network = Network(np.ones(machine), np.zeros(machine, np.int64), [NetworkPlace("all", 1.0)], ways=[NetworkRoute()])
    late = (
        (known != known) & (np.arange(len(jobs)) % 2 == 1) & (jobs.run_time == jobs.walltime)
    )  # a wait must be shorter
    alike = replace(jobs, more={"late": late & (jobs.run_time > 0)})
    one, other = run(told, network, policy), replay(alike, machine, parse(policy))
    assert one.changes.tolist() == other.changes.tolist()
    for name in ("start_time", "finish_time", "taken_time", "rejected", "overran", "pieces"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=getattr(one, name).dtype == float)


@given(scenes(), st.integers(0, 7), st.floats(1.0, 50.0))
def test_decisions_do_not_depend_on_the_future(
    scene: tuple[Workload, list[Part], Network], which: int, more: float
) -> None:
    jobs, parts, network = scene
    one, i = run(jobs, network), which % len(jobs)
    laying, longer = ProgramBuilder(), list(parts)
    longer[i] = Steps((parts[i], Wait(more)))
    numbers = [laying.add(part, size) or 0 for part, size in zip(longer, jobs.size.tolist(), strict=True)]
    other = run(replace(jobs, more={"program": np.array(numbers)}, programs=laying.programs()), network)
    before = one.start_time < np.nan_to_num(one.finish_time[i], nan=math.inf) - 1e-6
    np.testing.assert_array_equal(one.start_time[before], other.start_time[before])


def test_an_unknown_network_is_rejected() -> None:
    laying = ProgramBuilder()
    jobs = workload([(0.0, 9.0, 2)], laying, [laying.add(Even(1.0, 1.0), 2) or 0])
    with pytest.raises(ConfigError, match="the network of the machine is not known"):
        replay(jobs, 2, parse("easy"))
    with pytest.raises(ConfigError, match="the network joins 2 hosts, and the machine has 3"):
        replay(jobs, 3, parse("easy"), network=lambda: unlimited([1.0, 1.0]))
    done = replay(jobs, 2, parse("easy"), network=lambda: unlimited([1.0, 2.0]))
    assert done.finish_time.tolist() == [1.0], "limited by the slower host"

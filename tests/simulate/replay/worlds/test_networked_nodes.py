"""Jobs that communicate on nodes that they share progress as in the reference, and satisfy the laws of both worlds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
)
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, Matrix, Part, ProgramBuilder, Stage, Steps, Store, Wait
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.interface import Start
from pilotfish.simulate.queue_policies.policy_specs import ON_NODES, parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.node_allocation import NodeShapes
from pilotfish.simulate.world.replay_result import Replayed
from tests.reference.plain_networked_nodes import PlainNodes
from tests.simulate.replay.test_replay import places
from tests.simulate.replay.worlds.test_shared_nodes import nodes_of

SPEEDS = (1.0, 2.5)  # Gflop/s of a core
AMOUNTS = st.sampled_from((0.0, 1.0, 3.0, 10.0, 24.5))


@st.composite
def phases(draw: Any, size: int) -> Part:
    """A phase of a job of that size: Gflop, GB, and GB of memory."""
    which = draw(st.integers(0, 9))
    if which == 0:
        return Wait(draw(st.sampled_from((0.0, 1.0, 4.0))))
    if which < 4:
        return Store("disk", draw(AMOUNTS), draw(AMOUNTS))
    if which == 4:
        return Stage("disk", "disk", draw(AMOUNTS))
    flops, moved = draw(AMOUNTS), draw(st.sampled_from((0.0, 2.0, 30.0)))
    if which < 8 or size > 4:
        return Even(flops, draw(AMOUNTS), moved)
    each = tuple(draw(AMOUNTS) for _ in range(size))
    sent = tuple(draw(AMOUNTS) * (i % (size + 1) > 0) for i in range(size * size))
    return Matrix(each, draw(st.sampled_from(((), sent))), moved)


@st.composite
def programs(draw: Any, size: int) -> Part:
    parts = draw(st.lists(phases(size), min_size=1, max_size=3))
    return parts[0] if len(parts) == 1 else Steps(tuple(parts), draw(st.integers(1, 2)))


@st.composite
def workloads(draw: Any, *, rigid: bool = True) -> tuple[Workload, list[Part | None]]:
    count = draw(st.integers(1, 7))
    sizes = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    parts = [None if rigid and draw(st.integers(0, 3)) == 0 else draw(programs(size)) for size in sizes]
    return laid_out(draw, sizes, parts), parts


def laid_out(draw: Any, sizes: list[int], parts: list[Part | None]) -> Workload:
    """Return the workload of these programs, and of jobs that compute for their run times."""
    count, builder = len(sizes), ProgramBuilder()
    gaps = draw(st.lists(st.sampled_from((0.0, 0.0, 0.0, 1.0, 2.5)), min_size=count, max_size=count))
    numbers = [-1 if part is None else builder.add(part, size) for part, size in zip(parts, sizes, strict=True)]
    run = np.where(np.array(numbers) < 0, draw(st.sampled_from((1.0, 8.0))), math.nan)
    walls = draw(st.lists(st.sampled_from((4.0, 9.0, 30.0, 400.0, 400.0)), min_size=count, max_size=count))
    more = {
        "program": np.array(numbers, np.int64), "volume": np.full(count, 6.0), "memory": np.zeros(count),
        "user": np.arange(count) % 2,
    }  # fmt: skip
    return Workload(
        "w", np.arange(1, count + 1), np.cumsum(gaps), run, np.array(walls), np.array(sizes), more=more,
        programs=builder.programs(),
    )  # fmt: skip


MODELS = st.sampled_from((Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN))


@st.composite
def clusters(draw: Any, models: Any = MODELS) -> Cluster:
    def kind(number: int) -> NodeType:
        everyone = draw(st.sampled_from(ContendingThreads))
        return NodeType(
            f"k{number}", draw(st.integers(1, 4)), 1e9, 10.0, speed=draw(st.sampled_from(SPEEDS)),
            contention=draw(models), contending_threads=everyone,
        )  # fmt: skip

    kinds = [kind(i) for i in range(draw(st.integers(1, 2)))]
    count = draw(st.integers(1, 4))
    domains = draw(st.booleans())
    # Nodes that share a memory are of one type.
    nodes = [Node(f"n{i}", kinds[0] if domains and i < 2 else kinds[i % len(kinds)], "both" if domains and i < 2 else None)
             for i in range(count)]  # fmt: skip
    return Cluster("c", tuple(nodes))


@st.composite
def networks(draw: Any, cluster: Cluster) -> Network:
    """Two groups of nodes and a storage, with links that several routes use."""
    count, speeds = len(cluster.nodes), [node.type.relative_speed for node in cluster.nodes]
    rates = st.sampled_from((math.inf, 4.0, 10.0, 33.0))
    places = [
        NetworkPlace(name, draw(rates), draw(st.booleans()), draw(rates)) for name in ("east", "west")
    ] + [NetworkPlace("disk")]  # fmt: skip
    links = [Link("backbone", draw(st.sampled_from((3.0, 12.0)))), Link("disk", 5.0)]
    lag = draw(st.sampled_from((0.0, 0.25)))
    across, disk = NetworkRoute((0,), lag), NetworkRoute((1,), lag, draw(st.sampled_from((math.inf, 2.0))))
    near = NetworkRoute((), draw(st.sampled_from((0.0, 0.5))))
    far = NetworkRoute((0, 1), lag)
    ways = [near, across, disk, across, near, far, disk, far, disk]
    where = np.arange(count) >= draw(st.integers(0, count))
    return Network(
        np.array(speeds), where.astype(np.int64), places, links, ways, {"disk": 2}, increments=draw(st.booleans())
    )


def shared(jobs: Workload, cluster: Cluster, network: Network | None, policy: Any, **more: Any) -> Replayed:
    wired = replace(cluster, wiring=network and Wired(network))
    machine = replace(machine_of(wired), network=(lambda: network) if network else None)
    return replay(jobs, machine, policy, contention=True, **more)


class Wired:
    """A wiring with this network."""

    storages, ignored = ("disk",), ()

    def __init__(self, network: Network) -> None:
        self._network = network

    def network(self) -> Network:
        return self._network


class First:
    """The first job that fits, as a user writes it."""

    def decide(self, now: Any) -> Any:
        free = now.free_nodes()
        for job in now.waiting:
            nodes = free.where(job)
            if nodes is not None:
                free.take(job, nodes)
                yield Start(job, nodes=nodes)


SPECS = ("easy", "easy:order=sjf", "strict", "conservative", "easy:share=1.2", "conservative:share=1.2", *ON_NODES)
POLICIES = st.one_of(st.sampled_from(SPECS).map(parse), st.builds(First))


def check(done: Replayed, parts: list[Part | None], cluster: Cluster, network: Network, *, near: float = 1e-6) -> None:
    """Assert that jobs hold resources of their own, and progress as in the reference."""
    jobs, shapes = done.workload, NodeShapes(cluster)
    found = [shapes.of(int(size), 0.0) for size in jobs.size]
    assert done.rejected.tolist() == [shape is None for shape in found]
    ran = np.flatnonzero(~done.rejected).tolist()
    busy = sorted((done.start_time[i], done.finish_time[i], one) for i in ran for one in places(done, i))
    last: dict[int, float] = {}
    for start, finish, one in busy:
        assert last.get(one, -math.inf) <= start + 1e-9
        last[one] = finish
    plain = PlainNodes(jobs, parts, cluster, network, [shape[1] if shape else 0 for shape in found])
    cores = [node.type.cores for node in cluster.nodes]
    plain.follow({row: float(done.start_time[row]) for row in ran}, nodes_of(done, cores))
    ends = [plain.finish.get(row, math.nan) for row in range(len(jobs))]
    np.testing.assert_allclose(done.finish_time, ends, rtol=near, atol=near)
    assert set(np.flatnonzero(done.overran).tolist()) == plain.killed


@given(st.data(), workloads(), clusters(), POLICIES, st.sampled_from((0.0, 0.7)))
@settings(max_examples=300, deadline=None)
def test_jobs_progress_as_in_the_reference(
    data: Any, made: tuple[Workload, list[Part | None]], cluster: Cluster, policy: Any, takes: float
) -> None:
    (jobs, parts), network = made, data.draw(networks(cluster))
    check(shared(jobs, cluster, network, policy, decision_time=takes), parts, cluster, network)


@given(st.data(), workloads(rigid=False), POLICIES)
@settings(max_examples=200, deadline=None)
def test_without_contention_it_is_the_replay_on_the_network(
    data: Any, made: tuple[Workload, list[Part]], policy: Any
) -> None:
    """On nodes of one core, a job has its nodes and their ports alone."""
    kind = NodeType("one", 1, 1e9, 10.0, speed=2.0, contention=Contention.NONE)
    cluster = Cluster("c", tuple(Node(f"n{i}", kind) for i in range(data.draw(st.integers(1, 6)))))
    policy, network = (
        parse(data.draw(st.sampled_from(("easy", "strict", "conservative")))),
        data.draw(networks(cluster)),
    )
    jobs, _ = made
    done = shared(jobs, cluster, network, policy)
    alone = replay(jobs, len(cluster.nodes), policy, network=lambda: network)
    for column in ("start_time", "finish_time"):
        np.testing.assert_allclose(getattr(done, column), getattr(alone, column), rtol=1e-6, atol=1e-6)
    assert done.overran.tolist() == alone.overran.tolist() and done.rejected.tolist() == alone.rejected.tolist()


@given(st.data(), clusters(), st.sampled_from((*SPECS[:6], "slf")), st.booleans())
@settings(max_examples=200, deadline=None)
def test_on_an_unlimited_network_there_is_contention_alone(
    data: Any, cluster: Cluster, policy: str, follows: bool
) -> None:
    """What jobs send takes no time then, so they are jobs that compute and move their memory."""
    count = data.draw(st.integers(1, 7))
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    parts = [
        Even(data.draw(st.sampled_from((1.0, 3.0, 10.0))), 1.0, data.draw(st.sampled_from((0.0, 9.0)))) for _ in sizes
    ]
    jobs = laid_out(data.draw, sizes, parts)
    if follows and count > 1:
        jobs = replace(jobs, dependencies=Dependencies(np.array([0]), np.array([count - 1])))
    slowest = min(kind.relative_speed for kind in cluster.types)
    plain = replace(
        jobs, programs=None, run_time=np.array([part.flops / slowest for part in parts]),
        more={"volume": np.array([part.moved for part in parts]), "memory": np.zeros(count)},
    )  # fmt: skip
    done = shared(jobs, cluster, None, parse(policy))
    rigid = replay(plain, machine_of(cluster), parse(policy), contention=True)
    for column in ("start_time", "finish_time"):
        np.testing.assert_allclose(getattr(done, column), getattr(rigid, column), rtol=1e-9, atol=1e-6)
    assert done.overran.tolist() == rigid.overran.tolist() and done.stranded.tolist() == rigid.stranded.tolist()


def wired(model: Contention = Contention.EQUAL_SHARE, **more: Any) -> tuple[Cluster, Network]:
    """Two nodes of four cores, 1 flop/s each, whose ports carry 10 bytes/s."""
    kind = NodeType("four", 4, 1e9, 8.0, speed=1.0, contention=model, **more)
    network = Network(np.ones(2), np.zeros(2, np.int64), [NetworkPlace("all", 10.0)], ways=[NetworkRoute()])
    return Cluster("c", (Node("a", kind), Node("b", kind)), source="lab.yaml"), network


def one_after_another(*rows: tuple[int, Part]) -> Workload:
    builder = ProgramBuilder()
    numbers = [builder.add(part, size) for size, part in rows]
    size, count = np.array([size for size, _ in rows]), len(rows)
    return Workload(
        "w", np.arange(count), np.zeros(count), np.full(count, math.nan), np.full(count, 1e3), size,
        more={"program": np.array(numbers)}, programs=builder.programs(),
    )  # fmt: skip


def test_jobs_on_a_node_share_its_port_and_its_memory() -> None:
    cluster, network = wired()
    # Two ranks on each node: each sends to the two on the other node, so a port carries 2 x 2 x 5 = 20 bytes each way.
    sends = Even(0.0, 5.0)
    done = shared(one_after_another((4, sends)), cluster, network, parse("easy"))
    assert done.finish_time.tolist() == [pytest.approx(1e-6, abs=1e-5)], "four ranks fit on one node"
    twice = shared(one_after_another((8, sends)), cluster, network, parse("easy"))
    assert twice.finish_time[0] == pytest.approx(4 * 4 * 5 / 10)
    # Memory: 4 ranks alone want 4 x 4 = 16 of 8 bytes/s, so they compute at half speed.
    slow = shared(one_after_another((4, Even(10.0, 0.0, 40.0))), cluster, network, parse("easy"))
    assert slow.finish_time[0] == pytest.approx(20.0)


def test_a_job_that_sends_leaves_the_memory_to_others() -> None:
    cluster, network = wired()
    cluster = replace(cluster, nodes=cluster.nodes[:1])
    network = replace(network, speeds=np.ones(1), place_of=np.zeros(1, np.int64), storages={"disk": 0})
    two = one_after_another((2, Even(10.0, 0.0, 40.0)), (2, Store("disk", 50.0, 0.0)))
    done = shared(two, cluster, network, parse("easy"))
    assert done.finish_time.tolist() == pytest.approx([10.0, 10.0])
    both = shared(one_after_another(*[(2, Store("disk", 50.0, 0.0))] * 2), cluster, network, parse("easy"))
    assert both.finish_time.tolist() == pytest.approx([20.0, 20.0]), "they share the port"


def test_the_energy_of_a_job_is_that_of_its_flops() -> None:
    cluster, network = wired(power=Power(100.0, computing=180.0))
    part = Steps((Even(10.0, 0.0, 40.0), Even(0.0, 5.0), Wait(3.0)), 2)
    done = shared(one_after_another((8, part), (3, part)), cluster, network, parse("easy"))
    # A core takes (180 - 100) / 4 joules a flop more than idle, however long it takes.
    assert done.above_idle is not None and done.above_idle.tolist() == pytest.approx([8 * 400.0, 3 * 400.0])


def test_what_cannot_be_simulated_is_refused() -> None:
    constants = PiecewiseLinear(-7e-6, 4000, 1600, 350, 1300, 350)
    cluster, network = wired(Contention.PIECEWISE_LINEAR, sockets=2, piecewise=constants)
    jobs = one_after_another((4, Even(1.0, 1.0)))
    with pytest.raises(ConfigError, match="processors of a node progress on their own"):
        shared(jobs, cluster, network, parse("easy"))
    with pytest.raises(ConfigError, match="not known in advance"):
        shared(jobs, *wired(), parse("easy"), run_times="actual")

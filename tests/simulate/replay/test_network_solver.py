"""How jobs share links: SimGrid's increments next to max-min fairness; what a host sends itself; late waits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, Matrix, Part, ProgramBuilder, Stage, Steps, Wait
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.reference.plain_network import plain_network
from tests.simulate.replay.test_networked import crowds, workload


def replayed(parts: list[Part], net: Network, wall: float = math.inf, policy: str = "strict") -> Replayed:
    """Return a replay of jobs of two hosts (one for a storage) that are submitted at once."""
    laying = ProgramBuilder()
    numbers = [laying.add(part, 2) or 0 for part in parts]
    jobs = workload([(0.0, wall, 2)] * len(parts), laying, numbers)
    chosen = uncompiled(parse("strict"), 0) if policy == "python" else parse(policy)
    return replay(jobs, len(net.speeds), chosen, network=lambda: net)


def three_pairs(*, increments: bool) -> Network:
    """Return hosts of 1 flop/s: 0 sends to 1 over a link of 100 bytes/s, 2 to 3 over it and one of 60, 4 to 5 over that."""
    through = {(0, 1): (0,), (2, 3): (0, 1), (4, 5): (1,)}
    ways = [NetworkRoute(through.get((a, b), ())) for a in range(6) for b in range(6)]
    places = [NetworkPlace(f"h{i}") for i in range(6)]
    return Network(np.ones(6), np.arange(6), places, [Link("l0", 100.0), Link("l1", 60.0)], ways, increments=increments)


@pytest.mark.parametrize("policy", ["strict", "easy", "python"])
@pytest.mark.parametrize(
    ("increments", "a", "b"),
    [
        # A and B get 50 bytes/s each, C needs 1. B has 1000 bytes left after 60 s, and then 59 bytes/s.
        (False, 60.0, 60.0 + 1000 / 59),
        # Round 1: A 50, B 30, C 1, which is enough. Left: 20 and 29. Round 2: A 10, B 10; C's byte is taken again.
        # B has 2000 bytes left after 50 s. Then it gets 30 bytes/s, and the 29 that are left.
        (True, 50.0, 50.0 + 2000 / 59),
    ],
)  # fmt: skip
def test_a_job_bound_by_its_hosts_is_taken_from_the_link_again(
    policy: str, increments: bool, a: float, b: float
) -> None:
    sent = (((), 3000.0), ((), 4000.0), ((1000.0, 0.0), 1000.0))
    parts: list[Part] = [Matrix(flops, (0.0, amount, 0.0, 0.0)) for flops, amount in sent]
    done = replayed(parts, three_pairs(increments=increments), policy=policy)
    assert done.finish_time.tolist() == pytest.approx([a, b, 1000.0])


@given(crowds())
def test_increments_are_those_of_the_reference(scene: tuple[Workload, list[Part], Network]) -> None:
    jobs, parts, net = scene
    net = replace(net, increments=True)
    start, finish, _ = plain_network(jobs, parts, net)
    done = replay(jobs, len(net.speeds), parse("easy"), network=lambda: net)
    assert done.start_time.tolist() == pytest.approx(start, rel=1e-6)
    assert done.finish_time.tolist() == pytest.approx(finish, rel=1e-6)


@pytest.mark.parametrize(
    ("place", "own", "lasts"),
    [
        (NetworkPlace("p", 100.0, loops=True), NetworkRoute(), 4.0),  # 300 + 100 bytes leave host 0
        (NetworkPlace("p", 100.0, duplex=False, loops=True), NetworkRoute(), 4.0),
        (NetworkPlace("p", 100.0, limit=50.0, loops=True), NetworkRoute((), 0.5), 8.5),
        (NetworkPlace("p", 100.0), NetworkRoute((), 0.25, flow=50.0), 6.25),
        (NetworkPlace("p", 100.0), NetworkRoute((0,)), 30.0),  # a link of 10 bytes/s
    ],
)
def test_what_a_host_sends_itself(place: NetworkPlace, own: NetworkRoute, lasts: float) -> None:
    net = Network(np.ones(2), np.zeros(2, np.int64), [place], [Link("l", 10.0)], [NetworkRoute()], own=[own])
    done = replayed([Matrix((), (300.0, 100.0, 0.0, 0.0))], net)
    assert done.finish_time[0] == pytest.approx(lasts)


def test_a_storage_that_sends_itself() -> None:
    ways = [NetworkRoute()] * 3 + [NetworkRoute((), 0.5, flow=10.0)]
    net = Network(np.ones(2), np.zeros(2, np.int64), [NetworkPlace("p"), NetworkPlace("disk")], [], ways, {"disk": 1})
    assert replayed([Stage("disk", "disk", 100.0)], net).finish_time[0] == pytest.approx(10.5)


@pytest.mark.parametrize("policy", ["strict", "easy", "python"])
@pytest.mark.parametrize(
    ("part", "killed"),
    [(Wait(8.0), True), (Even(8.0), False), (Steps((Wait(4.0), Even(4.0))), False), (Steps((Even(4.0), Wait(4.0))), True)],
)  # fmt: skip
def test_a_wait_that_ends_at_the_walltime_is_killed(policy: str, part: Part, killed: bool) -> None:
    """Source: recordings of Batsim 4.2.1: a delay must be shorter than what is left of the walltime."""
    net = Network(np.ones(2), np.zeros(2, np.int64), [NetworkPlace("p")], [], [NetworkRoute()])
    laying = ProgramBuilder()
    jobs = workload([(0.0, 8.0, 2)], laying, [laying.add(part, 2) or 0])
    chosen = uncompiled(parse("strict"), 0) if policy == "python" else parse(policy)
    done = replay(jobs, 2, chosen, network=lambda: net)
    assert (done.overran.tolist(), done.finish_time.tolist()) == ([killed], [8.0])

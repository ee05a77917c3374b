"""The energy that a policy asks for is the energy of the result at that time, in every world."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Contention
from pilotfish.simulate.model.machine import MixedPowers, Powers, machine_of
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, Matrix, Part, ProgramBuilder, Steps, Wait, Work
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.interface import Decision, Kill, QueueView, Start, Wake
from pilotfish.simulate.replay.energy import consumed, track
from pilotfish.simulate.replay.replay import Replayed, replay
from tests.reference.plain_network import unrolled
from tests.simulate.replay.test_load_energy import POWERS, SENDS, SPEEDS, WATTS, seconds_of
from tests.simulate.replay.test_networked import crowds, scenes, workload
from tests.simulate.replay.worlds.test_networked_nodes import Wired, workloads
from tests.simulate.replay.worlds.test_networked_nodes import networks as node_networks
from tests.simulate.replay.worlds.test_powered_nodes import cluster_of
from tests.simulate.replay.worlds.test_shared_nodes import workload as with_memory


class Asks:
    """Starts jobs in order, kills some, and asks for the energy at each call."""

    powered = True

    def __init__(self, kills: int = 0) -> None:
        self.kills, self.known = kills, list[tuple[float, float]]()

    def decide(self, now: QueueView) -> Iterable[Decision]:
        assert now.states is not None
        self.known.append((now.time, now.states.energy()))
        if self.kills and len(self.known) % self.kills == 0 and len(now.running):
            yield Kill(now.running[0])
            yield Wake(now.time)
        for job in now.waiting:
            if job.size > now.free:
                return
            yield Start(job)
            return


def checked(asks: Asks, done: Replayed, powers: Powers | MixedPowers | None) -> None:
    """Check what was asked for against the result."""
    assert powers is not None and asks.known
    found = track(done, powers)
    assert found.joules[-1] == pytest.approx(consumed(done, powers), rel=1e-9, abs=1e-9)
    rows = dict(zip(found.time.tolist(), found.joules.tolist(), strict=True))
    same = [(joules, rows[time]) for time, joules in asks.known if time in rows]
    assert same
    for joules, expected in same:
        assert joules == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(st.data(), st.integers(0, 5), st.sampled_from([0.0, 0.75]))
def test_known_run_times(data: Any, kills: int, takes: float) -> None:
    """Jobs that compute, that only wait, and that do both in phases."""
    power = Powers(1.0, 12.0, 1.0, 12.0, 0.0, 1.0, 0.0, 1.0, 0.0, epsilon=data.draw(st.sampled_from([None, 2.0])))
    parts = [Wait(6.0), Even(8.0), Steps((Wait(2.0), Even(8.0)), 2), Steps((Matrix((4.0, 10.0)), Wait(3.0)), 3)]
    chosen: list[Part] = data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=8))
    run = np.array([float(sum(map(seconds_of, unrolled(part)))) for part in chosen])
    works = np.empty(len(chosen), object)
    works[:] = [Work(part, 2, 2.0) if isinstance(part, Steps) else None for part in chosen]
    jobs = workload([(float(2 * i), 9.0, 2) for i in range(len(chosen))], ProgramBuilder(), [0] * len(chosen))
    computes = np.array([not isinstance(part, Wait) for part in chosen])
    jobs = replace(jobs, run_time=run, programs=None, more={"work": works, "computes": computes})
    asks = Asks(0 if takes else kills)  # what it kills may have ended by then
    checked(asks, replay(jobs, 5, asks, powers=power, decision_time=takes), power)


def without_latency(net: Network) -> Network:
    """Return a network on which the power of a phase never has to wait for the end of a latency."""
    return replace(net, ways=[replace(way, latency=0.0) for way in net.ways], own=[])


@given(st.one_of(scenes(), crowds()), st.integers(0, 5))
def test_a_network(scene: tuple[Workload, list[Part], Network], kills: int) -> None:
    jobs, _, net = scene
    asks, net = Asks(kills), without_latency(net)
    done = replay(jobs, len(net.speeds), asks, network=lambda: net, powers=POWERS, log_power=True)
    checked(asks, done, POWERS)


def test_the_power_of_a_phase_counts_when_its_latency_is_over() -> None:
    """It sends for 40 s at 7.75 W, two of them idle, after a latency of 2 s; another job comes after 1 s and 3 s."""
    net = Network(
        SPEEDS, np.zeros(2, np.int64), [NetworkPlace("p", 100.0)], [Link("l", 1e6)], [NetworkRoute((0,), 2.0)]
    )
    laying = ProgramBuilder()
    programs = [laying.add(SENDS, 2) or 0, *[laying.add(Wait(1.0), 1) or 0] * 2]
    jobs, asks = workload([(0.0, math.inf, 2), (1.0, math.inf, 1), (3.0, math.inf, 1)], laying, programs), Asks()
    done = replay(jobs, 2, asks, network=lambda: net, powers=POWERS, log_power=True)
    known = dict(asks.known)
    assert known[1.0] == pytest.approx(2.0) and known[3.0] == pytest.approx(3 * WATTS)
    assert track(done, POWERS).joules[-1] == pytest.approx(42 * WATTS + 2 * (2.0 + 0.0))


@given(st.data(), st.booleans())
def test_nodes_that_jobs_share(data: Any, networked: bool) -> None:
    jobs, _ = data.draw(workloads())
    kind = data.draw(st.sampled_from([Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN]))
    cluster = cluster_of(3, POWERS, cores=4)
    node = replace(cluster.nodes[0].type, contention=kind, speed=2.0, memory_bandwidth=10.0)
    cluster = replace(cluster, nodes=tuple(replace(each, type=node) for each in cluster.nodes))
    net = without_latency(data.draw(node_networks(cluster)))
    if not networked:
        jobs = with_memory([(1.0, 4.0, 9.0, size, 5, 0) for size in jobs.size.tolist()])
    machine = replace(machine_of(replace(cluster, wiring=Wired(net))), network=lambda: net)
    asks = Asks()
    done = replay(jobs, machine, asks, contention=True, log_power=True)
    checked(asks, done, machine.powers)

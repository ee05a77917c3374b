"""Jobs whose events a kernel processes are shown, started and ended as those of the plain Python world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.machine import Machine
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.interface import Kill, QueueView, Reject, Start, Wake
from pilotfish.simulate.queue_policies.numbered_resources import NumberedResources
from pilotfish.simulate.replay import tables
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.worlds.stepwise_jobs import StepwiseJobs
from pilotfish.simulate.world.drive import drive
from pilotfish.simulate.world.rigid_rates import RigidRates
from pilotfish.simulate.world.simulated_world import SimulatedWorld
from tests.simulate.replay.test_replay import ENDLESS, JOB, workload
from tests.support.python_policies import shown

RESULTS = ("submit_time", "start_time", "finish_time", "rejected", "stranded", "overran", "pieces", "piece0",
           "piece_count", "killed", "instants")  # fmt: skip


def rigid(jobs: Workload, machine: Machine, policy: Any) -> SimulatedWorld:
    return SimulatedWorld(jobs, policy, "policy", NumberedResources(machine), RigidRates(jobs))


class Anything:
    """Random decisions; it looks at some of the snapshots only, and then at all of them or at a part."""

    def __init__(self, seed: int, kills: bool) -> None:
        self.kills, self.draw, self.seen = kills, np.random.default_rng(seed), list[Any]()

    def decide(self, now: QueueView) -> Any:
        draw, free, acted = self.draw, now.free, False
        self.seen.append((now.time, free, len(now.ended), [job.number for job in now.submitted]))
        if draw.random() < 0.3:
            self.seen.append(shown(now))
        if draw.random() < 0.3:
            self.seen.append([(it.job.number, it.start_time, it.until) for it in now.running])
        killed = [it for it in now.running if draw.random() < 0.1] if self.kills and draw.random() < 0.3 else []
        named = draw.random() < 0.3
        places = [one for first, last in now.free_resources for one in range(first, last + 1)] if named else []
        for job in now.waiting:
            if draw.random() < 0.05:
                yield Reject(job)
            elif job.size <= free and draw.random() < 0.6:
                free -= job.size
                chosen = None
                if named:
                    chosen = [(one, one) for one in draw.permutation(places)[: job.size].tolist()]
                    places = [one for one in places if (one, one) not in chosen]
                yield Start(job, chosen)
                acted = True
                if not named and draw.random() < 0.1:
                    break
        for it in killed:
            yield Kill(it)
        if now.waiting:
            yield Wake(now.time + float(draw.integers(0 if acted or killed else 1, 4)))


def run(world: Any, jobs: Any, machine: int, seed: int, takes: float) -> tuple[list[Any], Any]:
    policy = Anything(seed, kills=takes == 0.0)
    loop = world(jobs, Machine(machine), policy)
    done = drive(loop, 0.0, decision_time=takes, clock=lambda: 0.0, progress=lambda now: None)
    return policy.seen, [np.asarray(getattr(done, name)).tolist() for name in RESULTS]


@given(
    st.one_of(st.lists(JOB, max_size=30), st.lists(ENDLESS, max_size=30)),
    st.integers(1, 70),
    st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=6),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.0, 0.5, 3.0]),
)
@settings(max_examples=200, deadline=None)
def test_it_shows_and_does_what_the_plain_world_does(
    rows: list[Any], machine: int, pairs: list[tuple[int, int]], seed: int, takes: float
) -> None:
    jobs = workload(rows)
    edges = sorted({(a, b) for a, b in pairs if a < b < len(jobs)})
    before, after = np.array(edges, np.int64).reshape(-1, 2).T
    jobs = replace(jobs, dependencies=Dependencies(before, after) if edges else None)
    (one, done), (other, wanted) = (run(world, jobs, machine, seed, takes) for world in (StepwiseJobs, rigid))
    assert one == other
    np.testing.assert_equal(done, wanted)


def test_the_table_of_resources_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, grow = list[int](), tables.grow
    monkeypatch.setattr(f"{StepwiseJobs.__module__}.grow", lambda world: (grown.append(1), grow(world))[1])

    class Scatters:
        def decide(self, now: QueueView) -> Any:
            return [Start(job, [(one, one) for one in range(0, 24, 2)]) for job in now.waiting if now.free == 24][:1]

    done = replay(workload([(0.0, 1.0, 9.0, 12)] * 100), 24, Scatters())
    assert grown and done.start_time.tolist() == [*range(100)]
    assert done.pieces["first"].tolist() == [*range(0, 24, 2)] * 100

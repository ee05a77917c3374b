"""Lookahead judges whole runs: a run that never ends must not look short."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, CpuSharing, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective
from pilotfish.simulate.planning.lookahead import Search, default_budget, queue_budget
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.search_moves import Candidate
from pilotfish.simulate.planning.simulation import Simulation


def cluster_of(count: int, oversubscription: float) -> Cluster:
    """Return nodes as in the paper: equal shares of the bandwidth among all threads."""
    kind = NodeType(
        "paper", 4, 8e9, 10e9, contention=Contention.EQUAL_SHARE, contending_threads=ContendingThreads.ALL,
        cpu_sharing=CpuSharing.PER_THREAD,
    )  # fmt: skip
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(count)), oversubscription)


def test_jobs_that_wait_for_each_other_never_count_as_run() -> None:
    """A deliberate wait that closes a cycle leaves jobs unstarted: that is no plan, not a short one."""
    jobs = tuple(Job(name, Profile((ThreadGroup(1, 5.0),))) for name in "abc")
    simulation = Simulation(Workflow("circle", jobs), cluster_of(1, 1.0))
    simulation.run("mom")
    places, keys, caps = simulation.world.placed.copy(), np.arange(3.0), np.full(1, math.inf)
    assert simulation.follow(places, keys, np.array([-1, -1, -1]), caps)[0] == pytest.approx(5.0)
    assert simulation.follow(places, keys, np.array([1, 0, -1]), caps) == (math.inf, math.inf)


def test_a_job_waits_deliberately_if_stacking_wastes_the_node() -> None:
    """Two bandwidth hogs together take four times as long as one (twice the share, twice the threads)."""
    hog = Profile((ThreadGroup(4, 10.0, bandwidth=5e9),))
    workflow = Workflow("hogs", tuple(Job(f"h{i}", hog) for i in range(2)))
    site = cluster_of(1, math.inf)
    stacked, searched = plan(workflow, site, policy="mom"), plan(workflow, site)
    assert stacked.makespan == pytest.approx(80.0)
    assert searched.makespan == pytest.approx(40.0)
    assert sorted(job.start_time for job in searched.jobs) == pytest.approx([0.0, 20.0])
    assert searched.makespan >= searched.lower_bound * (1 - 1e-9)


def random_workflow(seed: int) -> Workflow:
    """Return six to fourteen jobs of four kinds, most of which wait for one or two others."""
    draw = random.Random(seed)
    kinds = []
    for _ in range(4):
        count, demand, utilisation = draw.randint(1, 4), draw.uniform(1.0, 20.0), draw.uniform(0.5, 1.0)
        kinds.append(Profile((ThreadGroup(count, demand, utilisation, bandwidth=draw.uniform(0.0, 6e9)),)))
    jobs: list[Job] = []
    for i in range(draw.randint(6, 14)):
        before = draw.sample(jobs[-6:], min(len(jobs[-6:]), draw.randint(0, 2)))
        jobs.append(Job(f"j{i}", draw.choice(kinds), tuple(job.id for job in before)))
    return Workflow("random", tuple(jobs))


@pytest.mark.long
def test_no_move_of_one_job_would_have_been_better() -> None:
    """A plan with budget left has tried every job elsewhere; few plans have none left."""
    spent, budget, found = 0, 300, 0
    for seed in range(300):
        site = cluster_of(2 + seed % 3, (1.0, 2.0, math.inf)[seed // 3 % 3])
        made = plan(random_workflow(seed), site, seed=seed, budget=budget)
        costs = [job.why.cost_s for job in made.jobs if job.why is not None]
        assert made.evaluations <= budget
        if made.evaluations < budget:
            assert min(costs) >= 0.0, seed
        found += len(costs)
        spent += made.evaluations == budget
    assert spent <= 15
    assert found >= 2500


def test_runner_ups_are_found_beyond_the_budget() -> None:
    """The plan is the same with or without explanation; every job gets its next best node even without budget."""
    workflow, site = random_workflow(1), cluster_of(3, 2.0)
    told, untold = (plan(workflow, site, budget=4, explain=explain) for explain in (True, False))
    assert (told.evaluations, told.makespan) == (untold.evaluations, untold.makespan) == (4, told.makespan)
    assert all(job.why is not None for job in told.jobs)


def test_polishing_moves_jobs_while_the_plan_gains() -> None:
    """Two long and two short jobs start on one node of two: the long ones part, then nothing else gains."""
    demands = {"a": 8.0, "b": 8.0, "c": 3.0, "d": 3.0}
    jobs = tuple(Job(name, Profile((ThreadGroup(1, demand),))) for name, demand in demands.items())
    kind = NodeType("plain", 1, 8e9, 10e9, contention=Contention.NONE, cpu_sharing=CpuSharing.PER_THREAD)
    simulation = Simulation(Workflow("four", jobs), Cluster("lab", (Node("n0", kind), Node("n1", kind)), math.inf))
    search = Search(simulation, Objective(), seed=0, budget=100, stop=None)
    search.best = Candidate(np.zeros(4, np.int64), np.arange(4.0), np.full(4, -1), np.full(2, math.inf))
    search.best_value = simulation.follow(search.best.places, np.arange(4.0), np.full(4, -1), np.full(2, math.inf))[0]
    assert search.best_value == pytest.approx(22.0)
    search._polish()
    assert search.best_value == search.best_end[0] == pytest.approx(11.0)
    assert {job: (node, value) for job, (node, value) in search.alternatives(0).items()} == {
        job: (1 - int(search.best.places[job]), pytest.approx(19.0 if job < 2 else 14.0)) for job in range(4)
    }


def test_a_short_queue_is_searched_briefly_and_a_long_one_as_long_as_any_workflow() -> None:
    assert queue_budget(1, 1, 2, 3600.0) == 64 and queue_budget(0, 0, 9, 0.0) == 24
    assert queue_budget(12, 12, 2, 3600.0) == default_budget(12)
    assert queue_budget(500, 3, 4, 3600.0) <= default_budget(500)
    assert queue_budget(12, 12, 2, 20.0) == 500, "seconds of work deserve no seconds of search"

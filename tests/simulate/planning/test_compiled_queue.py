"""The plan of a queue policy in compiled code is the plan of the policy in Python, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective, Submitted
from pilotfish.simulate.model.plan import Plan, RunningJob
from pilotfish.simulate.planning import queue_mapping
from pilotfish.simulate.planning.compiled_queue import run_compiled
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.planning.simulation import Simulation
from pilotfish.simulate.queue_policies.easy_policy import Backfilling
from pilotfish.simulate.queue_policies.order import Order
from pilotfish.simulate.queue_policies.order_ranks import CHANGING, ORDERS

GIB = 2.0**30
SECONDS = st.integers(1, 12).map(float) | st.floats(0.5, 12.0)
POWER = Power(idle=50.0, computing=100.0)


@st.composite
def queues(draw: st.DrawFn) -> tuple[Workflow, Cluster, list[RunningJob], list[Submitted], list[str]]:
    """Draw jobs that wait next to running ones, some beyond their walltimes or with more threads than cores."""
    cores = draw(st.lists(st.integers(2, 6), min_size=1, max_size=5))
    kinds = {n: NodeType(f"t{n}", n, 8 * GIB, 1e9, speed=1e9 * (1 + n % 2), power=POWER) for n in cores}
    cluster = Cluster("lab", tuple(Node(f"n{i}", kinds[n]) for i, n in enumerate(cores)), 2.0)
    jobs, running, submitted = list[Job](), list[RunningJob](), list[Submitted]()
    for i in range(draw(st.integers(1, 16))):
        runs = i < 5 and draw(st.booleans())
        names = draw(st.lists(st.sampled_from([*cluster.index]), min_size=1, max_size=len(cores), unique=True))
        widest = sorted(cores)[-len(names)]
        group = ThreadGroup(
            draw(st.integers(1, widest + 1 if runs else widest)), draw(SECONDS),
            utilisation=draw(st.sampled_from([1.0, 0.6])), bandwidth=draw(st.sampled_from([0.0, 4e8])),
        )  # fmt: skip
        allowed = {name for name, n in zip(cluster.index, cores, strict=True) if n >= group.count}
        job = Job(
            f"j{i}", Profile((group,)), nodes=len(names), walltime=draw(st.none() | SECONDS),
            memory=draw(st.sampled_from([0.0, 3 * GIB])),
            allowed=frozenset(allowed) if draw(st.booleans()) and len(allowed) >= len(names) else None,
        )  # fmt: skip
        jobs.append(job)
        if runs:
            elapsed = draw(st.just(0.0) | st.floats(0.0, 20.0))
            running.append(RunningJob(job.id, tuple(names), draw(st.floats(0.0, 0.99)), elapsed))
        elif draw(st.booleans()):
            submitted.append(Submitted((job.id,), draw(SECONDS)))
    usable = draw(st.lists(st.sampled_from([*cluster.index]), min_size=1, unique=True) | st.just([*cluster.index]))
    return Workflow("w", tuple(jobs)), cluster, running, submitted, usable


class InPython(Backfilling):
    """The same policy, which is not compiled because it is another class."""


def planned(kind: type[Backfilling], order: str, fills: bool, queue: tuple, **options: object) -> Plan:
    workflow, cluster, running, submitted, usable = queue
    POLICIES["mine"] = QueueMapping("mine", lambda seed: kind(Order(order, seed), fills=fills))
    return plan(
        workflow, cluster, policy="mine", underway=running, submitted=submitted, available=usable, may_reject=True,
        objective=Objective("turnaround"), **options,
    )  # fmt: skip


def without_energy(made: Plan) -> Plan:
    return replace(made, energy_j=None, jobs=tuple(replace(job, energy_j=None) for job in made.jobs))


@given(queues(), st.sampled_from([name for name in ORDERS if name not in CHANGING]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_compiled_plan_is_the_plan_of_the_policy_in_python(queue: tuple, order: str, fills: bool) -> None:
    try:
        expected = planned(InPython, order, fills, queue)
    except Exception as error:  # a job that can never start
        with pytest.raises(type(error), match=r"never|fit"):
            planned(Backfilling, order, fills, queue)
        return
    made = planned(Backfilling, order, fills, queue)
    assert without_energy(made) == without_energy(expected)
    assert made.energy_j == pytest.approx(expected.energy_j)
    assert [job.energy_j for job in made.jobs] == pytest.approx([job.energy_j for job in expected.jobs])


def simulation_of(*jobs: Job) -> Simulation:
    cluster = Cluster("lab", tuple(Node(f"n{i}", NodeType("t", 4, 8 * GIB, 1e9)) for i in range(2)), 2.0)
    return Simulation(Workflow("w", jobs), cluster)


def job_of(name: str, threads: int = 1, **changes: object) -> Job:
    return Job(name, Profile((ThreadGroup(threads, 5.0),)), walltime=9.0, **changes)


PHASES = Phase(0.5, 1.0, 0.0), Phase(0.5, 0.5, 0.0)


@pytest.mark.parametrize(
    ("jobs", "order", "possible"),
    [
        ([job_of("a"), job_of("b", 4, nodes=2)], "fcfs", True),
        ([job_of("a"), job_of("b", after=("a",))], "fcfs", False),
        ([job_of("a"), job_of("b", 6)], "fcfs", False),  # it is rejected: 6 threads on 4 cores
        ([job_of("a")], "wfp3", False),
        ([Job("a", Profile((ThreadGroup(1, 5.0), ThreadGroup(2, 3.0))))], "fcfs", False),
        ([Job("a", Profile((ThreadGroup(1, 5.0, phases=PHASES),)))], "fcfs", False),
    ],
)
def test_what_only_python_can_do_is_left_to_it(jobs: list[Job], order: str, possible: bool) -> None:
    simulation = simulation_of(*jobs)
    before = simulation.world.buffer.copy()
    reserved = run_compiled(simulation, Backfilling(Order(order), fills=True), (), ())
    assert (reserved is not None) is possible
    assert possible or np.array_equal(simulation.world.buffer, before)


def test_the_policies_of_the_product_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_mapping, "PlanRun", None)
    queue = Workflow("w", (job_of("a"), job_of("b"))), simulation_of().cluster, [], [], ["n0", "n1"]
    assert [job.start_time for job in planned(Backfilling, "sjf", True, queue).jobs] == [0.0, 0.0]

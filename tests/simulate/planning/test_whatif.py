"""What-if questions: forecasts change nothing, decisions are the best of the forecasts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvariantError
from pilotfish.simulate.kernels.mapping import layout
from pilotfish.simulate.model.cluster import Cluster, Contention
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.simulation import Simulation
from tests.support.instances import PAPER, circumstances, clusters, fitting, flow, make_cluster, make_job, workflows

#: Columns that a kernel uses as scratch: no answer depends on their content between calls.
SCRATCH = {"strands": {"mark", "local"}, "domains": {"mark"}, "nodes": {"end_exact"}}
ANSWERS = {"jobs": {"alt", "alt_cost", "score"}}


def moment(data: Any, most_nodes: int = 1, **fixed: Any) -> tuple[Simulation, list[str]]:
    """Draw a simulation in the middle of a run, and the jobs that could start."""
    waiting = workflows(phased=True, nodes=most_nodes, edges=0)
    workflow, cluster = data.draw(fitting(clusters(**fixed), waiting, spare=1))
    state = data.draw(circumstances(workflow, cluster))
    simulation = Simulation(workflow, cluster, **state)
    simulation.settle()
    busy = {u.id for u in state["underway"]} | state["done"]
    ready = [j.id for j in workflow.jobs if j.id not in busy and set(j.after) <= state["done"]]
    assume(ready)
    return simulation, ready


def table_contents(simulation: Simulation, *ignore: dict[str, set[str]]) -> dict[str, Any]:
    """Return everything in the tables that has a meaning."""
    result = {}
    kept = "nodes domains jobs strands parts placed queues queued queued_key heap heap_time clock"
    for name in kept.split():
        table = getattr(simulation.world, name)
        hidden = set().union(*(i.get(name, set()) for i in (SCRATCH, *ignore)))
        columns = [c for c in table.dtype.names or [] if c not in hidden]
        result[name] = table[columns].tolist() if table.dtype.names else table.tolist()
    return result


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_forecast_changes_nothing_and_repeats_itself(data: Any) -> None:
    simulation, ready = moment(data)
    before = repr(table_contents(simulation))
    asked = [(j, [n.name], p) for j in ready for n in simulation.cluster.nodes for p in ("let", "mom")]
    first = [simulation.forecast(*question) for question in asked]
    assert repr(table_contents(simulation)) == before
    assert [simulation.forecast(*question) for question in reversed(asked)] == first[::-1]
    assert all(value > 0.0 for value in first)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.permutations(PAPER))
def test_a_decision_is_the_best_of_the_forecasts_regardless_of_earlier_questions(data: Any, order: list[str]) -> None:
    simulation, ready = moment(data)
    before = repr(table_contents(simulation, ANSWERS, {"placed": set()}) | {"placed": None})
    for policy in (*order, *order):
        for job_id in ready:
            assert simulation.decide(job_id, policy) == brute_force(simulation, job_id, policy), (job_id, policy)
    load = {"nodes": {"load", "load_time", "energy", "energy_time"}}
    assert repr(table_contents(simulation, ANSWERS, load) | {"placed": None}) == before or "loadavg" in order


def brute_force(simulation: Simulation, job_id: str, policy: str) -> tuple[str, ...] | None:
    """Return the first node in file order that no other beats by more than 1e-9; of equal loads the fastest one."""
    job, world = simulation.workflow.jobs[simulation.workflow.index[job_id]], simulation.world
    best, incumbent, fastest = None, math.inf, 0.0
    for node, row in zip(simulation.cluster.nodes, world.nodes, strict=True):
        memory, speed = max(job.memory, job.profile.memory), node.type.relative_speed
        if row["alloc"] + job.profile.threads > row["limit"] or row["used"] + memory > node.type.memory:
            continue
        if policy == "slf":
            score = row["live"] / node.type.cores
        elif policy == "loadavg":
            score = row["load"] / node.type.cores
        else:
            score = simulation.forecast(job_id, [node.name], policy)
        faster = policy in ("slf", "loadavg") and score == incumbent and speed > fastest
        if best is None or score < incumbent * (1 - 1e-9) or faster:
            best, incumbent, fastest = (node.name,), score, speed
    return best


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(["let", "mom"]))
def test_nodes_of_a_wide_job_are_no_worse_than_the_best_single_ones(data: Any, policy: str) -> None:
    simulation, ready = moment(data, most_nodes=3, remote_access_penalty=1.0)
    for job_id in ready:
        chosen = simulation.decide(job_id, policy)
        if chosen is None or len(chosen) == 1:
            continue
        assert len(set(chosen)) == len(chosen) == simulation.workflow.jobs[simulation.workflow.index[job_id]].nodes
        scores = [(simulation.forecast(job_id, [n.name], policy), i) for i, n in enumerate(simulation.cluster.nodes)
                  if brute_force_fits(simulation, job_id, i)]  # fmt: skip
        greedy = [simulation.cluster.nodes[i].name for _, i in sorted(scores)[: len(chosen)]]
        assert simulation.forecast(job_id, chosen, policy) <= simulation.forecast(job_id, greedy, policy) * (1 + 1e-7)


def brute_force_fits(simulation: Simulation, job_id: str, node: int) -> bool:
    job, row = simulation.workflow.jobs[simulation.workflow.index[job_id]], simulation.world.nodes[node]
    memory = max(job.memory, job.profile.memory)
    return bool(row["alloc"] + job.profile.threads <= row["limit"] and row["used"] + memory <= row["memory"])


def test_policies_do_not_mix_their_scores() -> None:
    workflow = flow(make_job("long", 100.0), make_job("a"), make_job("b"), make_job("new", 1.0))
    residents = [RunningJob("long", ("n0",)), RunningJob("a", ("n1",)), RunningJob("b", ("n1",))]
    simulation = Simulation(workflow, make_cluster(2), underway=residents)
    simulation.settle()
    for policy, node in (("let", "n0"), ("mom", "n1"), ("let", "n0")):
        assert simulation.decide("new", policy) == (node,)


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_among_alike_nodes_a_wide_job_takes_the_emptiest(busy: int) -> None:
    cluster = make_cluster(4, contention=Contention.MAX_MIN)
    residents = [make_job(f"r{i}", 100.0 - i, b=8e9) for i in range(busy)]
    workflow = flow(*residents, make_job("wide", 10.0, b=8e9, nodes=2))
    simulation = Simulation(workflow, cluster, underway=[RunningJob(f"r{i}", (f"n{i}",)) for i in range(busy)])
    simulation.settle()
    best = min(
        itertools.combinations([n.name for n in cluster.nodes], 2), key=lambda pair: simulation.forecast("wide", pair)
    )
    assert simulation.decide("wide", "let") == best == (f"n{busy}", f"n{busy + 1}")


@settings(max_examples=80, deadline=None)
@given(fitting(clusters(shared=True), workflows(phased=True)), st.sampled_from(PAPER))
def test_step_by_step_equals_one_run(instance: tuple[Workflow, Cluster], policy: str) -> None:
    """A policy in Python, using settle, decide, start and advance, gets the result of the compiled loop."""
    workflow, cluster = instance
    whole = Simulation(workflow, cluster).run(policy)
    expected = whole.start.tolist(), whole.finish.tolist()
    simulation = Simulation(workflow, cluster)
    simulation.settle()
    jobs, ready = simulation.world.jobs, dict[str, tuple[int, int]]()
    for turn in itertools.count():
        done = {j.id for j, row in zip(workflow.jobs, jobs, strict=True) if row["state"] == layout.DONE}
        for i, job in enumerate(workflow.jobs):
            if jobs[i]["state"] < layout.RUNNING and set(job.after) <= done:
                ready.setdefault(job.id, (turn, i))
        for job_id in sorted(ready, key=lambda name: ready[name]):
            nodes = simulation.decide(job_id, policy)
            if nodes is not None:
                simulation.start(job_id, nodes)
                del ready[job_id]
        if math.isinf(simulation.next_event):
            break
        simulation.advance(simulation.next_event)
    assert (jobs["start"].tolist(), jobs["finish"].tolist()) == (pytest.approx(expected[0], rel=1e-9, abs=1e-9),
                                                                 pytest.approx(expected[1], rel=1e-9))  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(fitting(clusters(), workflows()), st.sampled_from(PAPER))
def test_a_copy_is_independent(instance: tuple[Workflow, Cluster], policy: str) -> None:
    workflow, cluster = instance
    simulation = Simulation(workflow, cluster)
    simulation.settle()
    before, twin = table_contents(simulation), simulation.copy()
    twin.run(policy)
    assert repr(table_contents(simulation)) == repr(before)
    simulation.run(policy)
    assert repr(table_contents(simulation)) == repr(table_contents(twin))
    assert not np.shares_memory(simulation.world.buffer, twin.world.buffer)


def test_an_outcome_is_not_changed_by_later_runs() -> None:
    simulation = Simulation(flow(make_job("a", 5.0), make_job("b", 7.0)), make_cluster(2))
    slf = simulation.run("slf")
    before = slf.finish.tolist()
    simulation.run("loadavg")  # places both on one node
    assert slf.finish.tolist() == before == [5.0, 7.0]


@given(st.data(), st.booleans(), st.floats(0.0, 300.0))
@settings(max_examples=60, deadline=None)
def test_the_progress_of_all_jobs_is_that_of_each(data: Any, phased: bool, until: float) -> None:
    workflow, cluster = data.draw(fitting(clusters(), workflows(phased=phased, nodes=2, edges=0), spare=1))
    simulation = Simulation(workflow, cluster, **data.draw(circumstances(workflow, cluster)))
    simulation.settle()
    simulation.advance(until)
    running = [job.id for job in workflow.jobs if simulation.runs(job.id)]
    assert simulation.progress_of_all() == {name: simulation.progress(name) for name in running}


def test_ended_groups_stay_ended_after_adoption() -> None:
    """A job whose first group has ended continues with the second alone, also in the simulation that adopts it."""
    job = Job("j", Profile((ThreadGroup(3, 1.0), ThreadGroup(1, 50.0))))
    cluster = make_cluster(2, cores=4)
    first = Simulation(flow(job), cluster, underway=[RunningJob("j", ("n0",))])
    first.settle()
    first.advance(10.0)
    second = Simulation(flow(job, make_job("new", 5.0, 4)), cluster, underway=[RunningJob("j", ("n0",))])
    second.adopt(first)
    assert second.world.nodes["live"].tolist() == first.world.nodes["live"].tolist() == [1.0, 0.0]
    assert second.forecast("new", ["n0"], "mom") == pytest.approx(40.0 + 1.25)
    second.advance(100.0)
    assert second.world.jobs["finish"][0] == pytest.approx(50.0)


def test_calls_that_would_corrupt_the_tables_are_refused() -> None:
    cluster, workflow = make_cluster(3), flow(make_job("old"), make_job("new"), make_job("wide", nodes=2))
    simulation = Simulation(workflow, cluster, underway=[RunningJob("old", ("n0",))])
    simulation.settle()
    before = repr(table_contents(simulation))
    for question in (
        lambda: simulation.decide("old", "mom"),
        lambda: simulation.start("old", ["n1"]),
        lambda: simulation.start("new", ["n1", "n2"]),
        lambda: simulation.start("wide", ["n1"]),
        lambda: simulation.start("wide", ["n1", "n1"]),
        lambda: simulation.forecast("new", ["n1", "n2"]),
        lambda: simulation.forecast("new", []),
    ):
        with pytest.raises(InvariantError, match=r"cannot|already"):
            question()
    assert repr(table_contents(simulation)) == before


@pytest.mark.parametrize("until", [4.9, -1.0, math.inf, math.nan])
def test_time_goes_neither_back_nor_to_infinity(until: float) -> None:
    simulation = Simulation(flow(make_job("a")), make_cluster(), underway=[RunningJob("a", ("n0",))])
    simulation.settle()
    simulation.advance(5.0)
    before = repr(table_contents(simulation))
    with pytest.raises(InvariantError, match=r"cannot advance to .* now is 5 s"):
        simulation.advance(until)
    assert repr(table_contents(simulation)) == before
    simulation.advance(5.0)
    simulation.advance(10.0)
    assert simulation.world.jobs["finish"].tolist() == [pytest.approx(10.0)]


@pytest.mark.parametrize(
    ("places", "waits"),
    [
        ([0, 1, 1], [-1, -1]),  # the wide job twice on one node
        ([0, 1, 3], [-1, -1]),
        ([-1, 1, 2], [-1, -1]),
        ([0, 1, 2], [2, -1]),
    ],
)
def test_an_impossible_mapping_is_refused(places: list[int], waits: list[int]) -> None:
    simulation = Simulation(flow(make_job("narrow"), make_job("wide", nodes=2)), make_cluster(3))
    keys, caps = np.zeros(2), np.full(3, math.inf)
    name = "wide" if places[1:] != [1, 2] else "narrow"
    with pytest.raises(InvariantError, match=f"'{name}' cannot run as mapped"):
        simulation.follow(np.array(places), keys, np.array(waits), caps)
    assert simulation.follow(np.array([0, 1, 2]), keys, np.array([-1, -1]), caps)[0] == pytest.approx(10.0)


def test_a_mapping_ignores_done_jobs() -> None:
    simulation = Simulation(flow(make_job("old"), make_job("new")), make_cluster(2), done=["old"])
    makespan, _ = simulation.follow(np.array([-1, 1]), np.zeros(2), np.array([-1, 0]), np.full(2, math.inf))
    assert makespan == pytest.approx(10.0)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_if_is_what_happens_with_the_job_and_without_it(data: Any) -> None:
    simulation, ready = moment(data, most_nodes=2)
    job_id = data.draw(st.sampled_from(ready))
    nodes = simulation.decide(job_id, "slf")
    assume(nodes is not None)
    before = repr(table_contents(simulation, ANSWERS))
    left, slowdown, others, delay_s, crowding, alone = simulation.what_if(job_id, nodes)
    assert crowding >= 1.0 and alone in (0, 1)
    assert repr(table_contents(simulation, ANSWERS)) == before
    assert left == pytest.approx(simulation.forecast(job_id, nodes, "let"))
    without, with_it = ends_of(simulation), ends_of(started(simulation, job_id, nodes))
    job = simulation.workflow.index[job_id]
    kinds = [int(simulation.world.nodes[simulation.cluster.index[name]]["type"]) for name in nodes]
    alone = max(simulation.isolated[simulation.world.jobs[job]["cls"], kind] for kind in kinds)
    assert left == pytest.approx(with_it.pop(job)) and slowdown == pytest.approx(max(1.0, left / alone))
    assert delay_s == pytest.approx(sum(max(0.0, with_it[other] - without[other]) for other in without), abs=1e-6)
    assert others == pytest.approx(max([1.0, *(with_it[other] / without[other] for other in without)]), rel=1e-6)


def started(simulation: Simulation, job_id: str, nodes: tuple[str, ...]) -> Simulation:
    twin = simulation.copy()
    twin.start(job_id, nodes)
    return twin


def ends_of(simulation: Simulation) -> dict[int, float]:
    """Return when each running job ends if nothing else starts, seconds from now."""
    twin = simulation.copy()
    running = np.flatnonzero(twin.world.jobs["state"] == layout.RUNNING)
    now = float(twin.world.clock["now"])
    while math.isfinite(twin.next_event):
        twin.advance(twin.next_event)
    return {int(job): float(twin.world.jobs[job]["finish"]) - now for job in running}

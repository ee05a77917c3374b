"""How long users of a queue wait: the objectives, their bound, and the queue order that they are compared with."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective, Submitted
from pilotfish.simulate.model.plan import Plan, RunningJob
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.open_queue import LONGER, SPARE_S
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.easy_policy import Backfilling
from pilotfish.simulate.queue_policies.order import Order

ONE_CORE = NodeType("one", 1, 4 * 2.0**30, 1e10)


def cluster_of(nodes: int, oversubscription: float = 3.0) -> Cluster:
    return Cluster("lab", tuple(Node(f"n{i}", ONE_CORE) for i in range(nodes)), oversubscription)


def spin(name: str, seconds: float, *after: str) -> Job:
    """A job that computes for so long on a core of its own."""
    return Job(name, Profile((ThreadGroup(1, seconds),)), after=after)


def each_alone(jobs: tuple[Job, ...], **times: float) -> list[Submitted]:
    return [Submitted((job.id,), **times) for job in jobs]


def planned(
    jobs: tuple[Job, ...],
    submitted: list[Submitted],
    kind: str = "turnaround",
    nodes: int = 1,
    policy: str = "lookahead",
) -> Plan:
    workflow = Workflow("queue", jobs)
    return plan(
        workflow, cluster_of(nodes), policy=policy, objective=Objective(kind), submitted=submitted, explain=False
    )


def ends(made: Plan) -> dict[str, float]:
    return {job.id: job.finish_time for job in made.jobs}


def test_a_short_job_does_not_share_its_core_with_long_ones() -> None:
    """Sharing one core, both would end at 40 and 110 s."""
    jobs = (spin("long", 100.0), spin("short", 20.0))
    found = ends(planned(jobs, each_alone(jobs)))
    assert found == pytest.approx({"short": 20.0, "long": 120.0})


def test_a_workflow_is_waited_for_as_a_whole() -> None:
    """Its jobs end together at the earliest; the single job, submitted at the same time, is shorter and goes first."""
    flow = (spin("a", 30.0), spin("b", 30.0, "a"))
    made = planned((*flow, spin("single", 10.0)), [Submitted(("a", "b")), Submitted(("single",))])
    found = ends(made)
    assert found == pytest.approx({"single": 10.0, "a": 40.0, "b": 70.0})


def test_one_workflow_alone_is_planned_for_its_makespan() -> None:
    jobs = tuple(spin(f"j{i}", 5.0 + i) for i in range(9))
    whole = Workflow("w", jobs)
    by_makespan = plan(whole, cluster_of(2), objective=Objective("makespan"), explain=False)
    for kind in ("turnaround", "slowdown"):
        assert plan(whole, cluster_of(2), objective=Objective(kind), explain=False).makespan == by_makespan.makespan


def test_the_slowdown_of_a_short_job_weighs_more() -> None:
    """Turnaround is indifferent to the order of equal sums; slowdown is not."""
    jobs = (spin("long", 200.0), *(spin(f"s{i}", 20.0) for i in range(3)))
    found = ends(planned(jobs, each_alone(jobs), "slowdown"))
    assert max(found[f"s{i}"] for i in range(3)) == pytest.approx(60.0) and found["long"] == pytest.approx(260.0)


def test_what_has_waited_for_long_is_not_overtaken_again() -> None:
    """Its end in the queue's own order was promised; what can no longer be kept is planned as that order has it."""
    jobs = (spin("old", 100.0), *(spin(f"new{i}", 50.0) for i in range(6)))
    overtaken = ends(planned(jobs, each_alone(jobs)))
    assert overtaken["old"] > 150.0
    promised = [Submitted(("old",), 400.0, -100.0), *each_alone(jobs[1:])]
    assert ends(planned(jobs, promised))["old"] < overtaken["old"]


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.floats(1.0, 500.0), min_size=1, max_size=7),
    kind=st.sampled_from(("turnaround", "slowdown")),
    nodes=st.integers(1, 3),
)
def test_no_job_ends_later_than_the_bound_and_the_mean_never_gets_worse(lengths, kind, nodes) -> None:
    jobs = tuple(spin(f"j{i}", length) for i, length in enumerate(lengths))
    made = planned(jobs, each_alone(jobs), kind, nodes)
    found, plain = ends(made), made.plain_finish_times
    scale = {
        job.id: 1.0 if kind == "turnaround" else max(length, 10.0) for job, length in zip(jobs, lengths, strict=True)
    }
    assert all(found[name] <= (LONGER * plain[name] + SPARE_S) * (1 + 1e-6) for name in found)
    gained = mean(plain[name] / scale[name] for name in found) - mean(found[name] / scale[name] for name in found)
    assert gained >= -1e-9


def ends_under(policy: str, jobs: tuple[Job, ...], nodes: int) -> dict[str, float]:
    return ends(plan(Workflow("queue", jobs), cluster_of(nodes), policy=policy, explain=False))


@pytest.mark.parametrize("policy", ["slf", "mom", "let", "lookahead"])
def test_every_policy_is_compared_with_the_queues_own_order(policy: str) -> None:
    """It is backfilling: one job a core, in the order of the queue."""
    jobs = tuple(spin(f"j{i}", 10.0 * (i + 1)) for i in range(5))
    result = planned(jobs, each_alone(jobs), policy=policy, nodes=2)
    POLICIES["backfilling"] = QueueMapping("backfilling", lambda seed: Backfilling(Order("fcfs", seed), fills=True))
    assert result.plain_finish_times == pytest.approx(ends_under("backfilling", jobs, 2))


def test_where_threads_outnumber_cores_the_own_order_is_that_of_the_least_load() -> None:
    """Backfilling gives each thread a core, so it would never start such a job."""
    jobs = (Job("two", Profile((ThreadGroup(2, 10.0),))), *(spin(f"j{i}", 10.0 * (i + 1)) for i in range(3)))
    result = planned(jobs, each_alone(jobs), nodes=2)
    assert result.plain_finish_times == pytest.approx(ends_under("slf", jobs, 2))


def test_the_order_without_submissions_is_not_simulated() -> None:
    assert (
        plan(Workflow("w", (spin("a", 1.0),)), cluster_of(1), objective=Objective("turnaround")).plain_finish_times
        == {}
    )


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_equal_jobs_the_one_that_counts_more_goes_first(first: str) -> None:
    jobs = (spin("a", 100.0), spin("b", 100.0))
    found = ends(planned(jobs, [Submitted((job.id,), weight=2.0 if job.id == first else 0.5) for job in jobs]))
    assert found == pytest.approx({"a": 200.0, "b": 200.0} | {first: 100.0})


def test_a_long_job_that_counts_enough_goes_before_a_short_one() -> None:
    jobs = (spin("long", 100.0), spin("short", 60.0))
    plain = ends(planned(jobs, each_alone(jobs)))
    heavy = ends(planned(jobs, [Submitted(("long",), weight=5.0), Submitted(("short",), weight=0.5)]))
    assert plain == pytest.approx({"short": 60.0, "long": 160.0})
    assert heavy == pytest.approx({"long": 100.0, "short": 160.0})


def wide(name: str, seconds: float, nodes: int = 3, **changes: object) -> Job:
    """A job that computes for so long on a core of each of several nodes."""
    return Job(name, Profile((ThreadGroup(1, seconds),)), nodes=nodes, **changes)


@settings(max_examples=40, deadline=None)
@given(
    shapes=st.lists(st.tuples(st.floats(1.0, 500.0), st.integers(1, 3)), min_size=1, max_size=8),
    chained=st.booleans(), kind=st.sampled_from(("turnaround", "slowdown")), oversubscription=st.sampled_from((1.0, 3.0)),
)  # fmt: skip
def test_with_wide_jobs_no_plan_is_worse_than_backfilling(shapes, chained, kind, oversubscription) -> None:
    """Nor does it break the bound, also where jobs wait for others."""
    jobs = tuple(
        wide(f"j{i}", length, nodes, after=(f"j{i - 1}",) if chained and i == 1 else ())
        for i, (length, nodes) in enumerate(shapes)
    )
    result = plan(
        Workflow("queue", jobs), cluster_of(3, oversubscription), objective=Objective(kind), submitted=each_alone(jobs),
        explain=False,
    )  # fmt: skip
    finish, plain = ends(result), result.plain_finish_times
    scale = {f"j{i}": 1.0 if kind == "turnaround" else max(length, 10.0) for i, (length, _) in enumerate(shapes)}
    assert all(finish[name] <= (LONGER * plain[name] + SPARE_S) * (1 + 1e-6) for name in finish)
    if not chained:  # the slowdown of a chain is that of its jobs alone
        gained = mean((plain[name] - finish[name]) / scale[name] for name in finish)
        assert gained >= -1e-6


def test_a_wide_job_gets_its_nodes_although_narrow_ones_could_use_them() -> None:
    """Two of its three nodes are free; each narrow job that started on one would keep the wide one waiting."""
    jobs = (wide("running", 100.0, 1), wide("wide", 50.0), *(spin(f"narrow{i}", 120.0) for i in range(4)))
    running = RunningJob("running", ("n0",))
    result = plan(
        Workflow("queue", jobs), cluster_of(3, 1.0), objective=Objective("turnaround"), underway=[running],
        submitted=[Submitted(("wide",), 1000.0, -266.0), *each_alone(jobs[2:])], explain=False,
    )  # fmt: skip
    assert ends(result)["wide"] == pytest.approx(150.0)


def test_jobs_of_which_nothing_is_known_take_no_nodes_from_a_wide_job() -> None:
    """They fill idle nodes, but not those that the wide job waits for; one that ends before does."""
    unknown = [Job(f"unknown{i}", DEFAULT_PROFILE) for i in range(3)]
    jobs = (wide("running", 50.0, 1), wide("wide", 50.0), *unknown)
    result = plan(
        Workflow("queue", jobs), cluster_of(3, 1.0), objective=Objective("turnaround"),
        underway=[RunningJob("running", ("n0",))],
        submitted=[Submitted(("wide",), 1000.0, -301.0), *each_alone(jobs[2:])], explain=False,
    )  # fmt: skip
    assert ends(result)["wide"] == pytest.approx(100.0)

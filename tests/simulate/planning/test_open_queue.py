"""How long users of a queue wait: the objectives, their bound, and the queue order that they are compared with."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective, Submitted
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning.open_queue import LONGER, SPARE_S
from pilotfish.simulate.planning.planner import plan

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


@pytest.mark.parametrize("policy", ["slf", "mom", "let"])
def test_every_policy_is_compared_with_the_queues_own_order(policy: str) -> None:
    jobs = tuple(spin(f"j{i}", 10.0 * (i + 1)) for i in range(5))
    made = planned(jobs, each_alone(jobs), policy=policy, nodes=2)
    own = planned(jobs, each_alone(jobs), policy="slf", nodes=2)
    assert made.plain_finish_times == ends(own)


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

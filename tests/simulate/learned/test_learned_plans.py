"""A learned order in plans: names decide nothing, no node is oversubscribed, and a trusted copy of sjf is sjf."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.entry_points import register_mapping_policy
from pilotfish.simulate.learned.guarded_order import GuardedOrder, Seen
from pilotfish.simulate.learned.learned_mapping import LearnedMapping
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.queue_policies.learned_order import LearnedOrder
from tests.simulate.queue_policies.test_learned_order import WEIGHTS
from tests.support.learned_models import SJF

KIND = NodeType("t", 4, 8e9, 1e10, contention=Contention.NONE)
LAB = Cluster("lab", (Node("n0", KIND), Node("n1", KIND)))
ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=10)
NAME, SJF_NAME = "learned:law.pfmodel.json", "easy:order=sjf"
Rows = list[tuple[int, int, int]]


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    """Register the policy that the learned one is compared with."""
    register_mapping_policy(SJF_NAME)


def planned(rows: Rows, weights: tuple[float, ...], names: list[str], policy: str = NAME) -> Plan:
    training = Seen((0.0, math.inf), (0.0, 1.0), math.inf, (8, 8))
    POLICIES[NAME] = LearnedMapping(NAME, GuardedOrder(LearnedOrder("m", weights), "sjf", training, "0"))
    jobs = tuple(
        Job(name, Profile((ThreadGroup(threads, float(run)),)), walltime=float(run + slack), owner=ord(name[0]))
        for name, (run, slack, threads) in zip(names, rows, strict=True)
    )
    return plan(Workflow("w", jobs), LAB, policy=policy, explain=False)


@given(ROWS, WEIGHTS)
@settings(max_examples=30, deadline=None)
def test_names_of_jobs_and_users_change_nothing_and_no_node_is_oversubscribed(
    rows: Rows, weights: tuple[float, ...]
) -> None:
    names = [f"{letter}job" for letter in "abcdefghij"[: len(rows)]]
    first, second = (planned(rows, weights, one) for one in (names, [f"z{name}" for name in names[::-1]]))
    assert [(job.start_time, job.nodes) for job in first.jobs] == [(job.start_time, job.nodes) for job in second.jobs]
    assert [job.scored for job in first.jobs] == [job.scored for job in second.jobs]
    for moment in {job.start_time for job in first.jobs}:
        running = [
            (job, row) for job, row in zip(first.jobs, rows, strict=True)
            if job.start_time <= moment < job.finish_time - 1e-9
        ]  # fmt: skip
        for node in ("n0", "n1"):
            assert sum(row[2] for job, row in running if node in job.nodes) <= 4


@given(ROWS)
@settings(max_examples=20, deadline=None)
def test_a_copy_of_sjf_gives_its_plan_and_forecasts_the_same_starts(rows: Rows) -> None:
    names = [f"j{place}" for place in range(len(rows))]
    learned, expected = planned(rows, SJF, names), planned(rows, SJF, names, SJF_NAME)
    starts = [job.start_time for job in expected.jobs]
    assert [job.start_time for job in learned.jobs] == starts
    assert [job.scored and job.scored.baseline_start_s for job in learned.jobs] == starts

"""Residents stand for running jobs where these are too many: they hold as much, end no earlier, and are few."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.planning import plan_steps, residents
from pilotfish.daemon.planning.guarded_planner import _decides_in_python, simulate_plan
from pilotfish.daemon.planning.problem import SHARED, Options, Problem
from pilotfish.daemon.planning.residents import CROWD, FEW, with_residents
from pilotfish.simulate.model.capacity import memory_need
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob

TYPE = NodeType("t", 64, 1e9, 1e12)


def cluster_of(nodes: int) -> Cluster:
    return Cluster("x", tuple(Node(f"n{i}", TYPE) for i in range(nodes)))


def job_of(name: str, seconds: float, **values: object) -> Job:
    return Job(name, Profile((ThreadGroup(1, seconds, bandwidth=2e6),)), **values)


def problem_of(cluster: Cluster, pairs: list[tuple[Job, RunningJob]], *waiting: Job) -> Problem:
    work = Workflow("w", (*(job for job, _ in pairs), *waiting))
    return Problem(work, tuple(run for _, run in pairs), tuple(cluster.index), {}, {})


def single_jobs(count: int, nodes: int, longest_s: float = 900.0) -> list[tuple[Job, RunningJob]]:
    """Return so many running jobs of one node, all with another end."""
    return [
        (
            job_of(f"r{i}", 1.0 + longest_s * i / count, walltime=2.0 + 2.0 * longest_s * i / count, memory=float(i)),
            RunningJob(f"r{i}", (f"n{i % nodes}",), 0.25, 0.5),
        )
        for i in range(count)
    ]


def wide_jobs(count: int, wide: int, nodes: int) -> list[tuple[Job, RunningJob]]:
    names = [tuple(f"n{(i + k) % nodes}" for k in range(wide)) for i in range(count)]
    return [(job_of(f"r{i}", 20.0 + 9 * i, nodes=wide), RunningJob(f"r{i}", row)) for i, row in enumerate(names)]


def held(problem: Problem, cluster: Cluster) -> np.ndarray:
    """Return threads, bytes, bytes/s and the seconds until the last end of each node."""
    sums, jobs = np.zeros((4, len(cluster.nodes))), problem.workflow.jobs
    for run in problem.running:
        job = jobs[problem.workflow.index[run.id]]
        for name in run.nodes:
            (group,), node = job.profile.groups, cluster.index[name]
            sums[:3, node] += group.count, memory_need(job), group.count * group.bandwidth
            sums[3, node] = max(sums[3, node], (1.0 - run.progress) * job.profile.isolated_time)
    return sums


def test_few_running_jobs_are_planned_with_as_they_are():
    cluster = cluster_of(4)
    for pairs, in_python in (
        (single_jobs(4 * CROWD, 4), False),
        (single_jobs(FEW, 4), True),
        (wide_jobs(SHARED // 4, 4, 512), False),
    ):
        cluster = cluster_of(4 if pairs[0][0].nodes == 1 else 512)
        problem = problem_of(cluster, pairs)
        assert with_residents(problem, cluster, in_python=in_python) is problem


@given(
    st.lists(st.tuples(st.floats(0.1, 1e7), st.floats(0.0, 0.989), st.integers(0, 2), st.integers(1, 3)), min_size=4),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_residents_hold_what_their_jobs_hold_and_end_no_earlier_and_not_much_later(rows, in_python):
    cluster, grid = cluster_of(3), residents.COARSE if in_python else residents.FINE
    pairs = []
    for i, (seconds, progress, node, wide) in enumerate(rows):
        names = tuple(f"n{(node + k) % 3}" for k in range(wide))
        pairs.append(
            (job_of(f"r{i}", seconds, nodes=wide, memory=8.0 * i), RunningJob(f"r{i}", names, progress, seconds / 2))
        )
    problem = problem_of(cluster, pairs)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CROWD", "FEW", "SHARED"):
            patch.setattr(residents, name, 1)
        merged = with_residents(problem, cluster, in_python=in_python)
    before, after = held(problem, cluster), held(merged, cluster)
    assert np.allclose(before[:3], after[:3], rtol=1e-9)
    ratio = grid[1] / grid[0]
    assert (after[3] >= before[3] * (1 - 1e-12)).all()
    assert (after[3] <= np.maximum(before[3] * ratio, grid[0]) * (1 + 1e-9)).all()
    jobs = merged.workflow.jobs
    limits = [jobs[merged.workflow.index[run.id]].walltime for run in merged.running]
    assert all((limit is not None) == in_python for limit in limits) or merged is problem
    assert len(merged.workflow.index) == len(jobs) and {run.id for run in merged.running} == set(merged.workflow.index)


def test_the_residents_of_a_node_are_few_however_many_jobs_it_runs():
    cluster = cluster_of(2)
    for count in (2_000, 20_000):
        problem = problem_of(cluster, single_jobs(count, 2, 1e6))
        for in_python, grid in ((False, residents.FINE), (True, residents.COARSE)):
            merged = with_residents(problem, cluster, in_python=in_python)
            assert 2 < len(merged.running) <= 2 * (np.searchsorted(grid, 1e6) + 1)


def test_jobs_that_share_many_nodes_do_not_tie_these_together():
    cluster = cluster_of(200)
    merged = with_residents(problem_of(cluster, wide_jobs(16, 100, 200)), cluster, in_python=False)
    assert {len(run.nodes) for run in merged.running} == {1} and len(merged.running) <= 1600
    alone = [
        (dataclasses.replace(job, profile=Profile((ThreadGroup(64, 9.0),))), run)
        for job, run in wide_jobs(16, 100, 1600)
    ]
    problem = problem_of(cluster_of(1600), alone)
    assert with_residents(problem, cluster_of(1600), in_python=False) is problem  # each has its nodes to itself


def test_a_job_waits_for_the_resident_that_stands_for_its_predecessor():
    cluster = cluster_of(1)
    after = job_of("next", 5.0, after=("r40", "r41", "r59"))
    merged = with_residents(problem_of(cluster, single_jobs(60, 1), after), cluster, in_python=False)
    job = merged.workflow.jobs[merged.workflow.index["next"]]
    assert len(job.after) == 2 and {*job.after} < {run.id for run in merged.running}  # the first two end together
    plan = simulate_plan(problem_of(cluster, single_jobs(60, 1), after), cluster, Options(policy="slf"))
    assert [job.id for job in plan.jobs] == ["next"] and plan.jobs[0].start_time >= 0.75 * 900.0 * 59 / 60


def test_a_policy_in_python_is_called_a_bounded_number_of_times_for_running_jobs():
    calls = {}
    for count in (FEW + 100, 4 * FEW):
        cluster, breaths = cluster_of(64), list[int]()
        problem = problem_of(cluster, single_jobs(count, 64), job_of("new", 5.0, nodes=64))
        options = Options(policy="conservative", breathe=lambda breaths=breaths: breaths.append(1))
        plan = simulate_plan(problem, cluster, options)
        assert [job.id for job in plan.jobs] == ["new"]
        calls[count] = len(breaths)
    assert max(calls.values()) < 100  # each end is a breath; the jobs all have another


def test_a_bounded_number_of_jobs_is_looked_at_between_two_breaths(monkeypatch):
    monkeypatch.setattr(plan_steps, "STEP_JOBS", 50)
    since, most, total = 0, 0, 0
    need = memory_need

    def counted(job: Job) -> float:
        nonlocal since, total
        since, total = since + 1, total + 1
        return need(job)

    def breathe() -> None:
        nonlocal since, most
        since, most = 0, max(most, since)

    monkeypatch.setattr(residents, "memory_need", counted)
    cluster = cluster_of(2)
    with_residents(problem_of(cluster, single_jobs(900, 2)), cluster, in_python=False, breathe=breathe)
    assert total >= 900 and most <= 50


@pytest.mark.parametrize(
    ("policy", "in_python"),
    [("easy", False), ("strict", False), ("easy:share=1.5", True), ("conservative", True), ("let", False)],
)
def test_only_policies_that_are_called_at_each_end_plan_coarsely(policy, in_python):
    cluster = cluster_of(2)
    problem = problem_of(cluster, [], job_of("a", 1.0), job_of("b", 1.0))
    simulate_plan(problem, cluster, Options(policy=policy))  # makes the policy known
    assert _decides_in_python(policy, problem) == in_python
    follows = problem_of(cluster, [], job_of("a", 1.0), job_of("b", 1.0, after=("a",)))
    phased = Profile((ThreadGroup(1, 2.0, phases=(Phase(0.5, 1.0, 0.0), Phase(0.5, 0.5, 1e8))),))
    for harder in (follows, problem_of(cluster, [], Job("a", phased))):
        assert _decides_in_python(policy, harder) == (policy != "let")


def test_overdue_jobs_are_expected_for_as_long_again():
    cluster = cluster_of(1)
    pairs = [(job, dataclasses.replace(run, elapsed_s=job.walltime + 500.0)) for job, run in single_jobs(FEW + 1, 1)]
    merged = with_residents(problem_of(cluster, pairs), cluster, in_python=True)
    limits = {merged.workflow.jobs[merged.workflow.index[run.id]].walltime for run in merged.running}
    assert limits == {960.0} and not math.isinf(max(limits))

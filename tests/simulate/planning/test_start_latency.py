"""Plans where a job starts some time after its nodes are free."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Phase, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective, Submitted
from pilotfish.simulate.model.plan import Plan, RunningJob
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.simulation import Simulation
from pilotfish.simulate.planning.start_latency import delayed

CLUSTER = Cluster("lab", (Node("n0", NodeType("one", 1, 4 * 2.0**30, 1e10)),), 3.0)
PHASES = (Phase(0.25, 0.5, 1e9), Phase(0.75, 1.0, 2e9))
GROUPS = st.builds(
    ThreadGroup,
    st.integers(1, 2),
    st.floats(0.1, 100.0),
    st.floats(0.01, 1.0),
    bandwidth=st.floats(0.0, 1e9),
    phases=st.sampled_from([(), PHASES]),
)


def spins(count: int, seconds: float) -> Workflow:
    """Equal jobs that compute for so long on a core of their own."""
    profile = Profile((ThreadGroup(1, seconds),))
    return Workflow("queue", tuple(Job(f"j{i}", profile) for i in range(count)))


def planned(workflow: Workflow, latency_s: float) -> Plan:
    names = [job.id for job in workflow.jobs]
    return plan(
        workflow,
        CLUSTER,
        objective=Objective("turnaround"),
        submitted=[Submitted((name,)) for name in names],
        explain=False,
        late=names,
        latency_s=latency_s,
    )


def most_at_once(made: Plan) -> int:
    return max(sum(a.start_time <= b.start_time < a.finish_time for a in made.jobs) for b in made.jobs)


def test_jobs_run_together_where_each_wait_would_leave_the_core_idle() -> None:
    """One after the other, eight jobs of 2 s wait 1, 2, ... 7 times for 1 s more; the mean end alone would be 9 s."""
    assert most_at_once(planned(spins(8, 2.0), 0.0)) == 1
    assert most_at_once(planned(spins(8, 2.0), 1.0)) > 1


def test_a_latency_that_is_short_against_the_jobs_changes_nothing() -> None:
    assert most_at_once(planned(spins(8, 200.0), 1.0)) == 1


@given(st.integers(1, 6), st.floats(0.5, 50.0), st.floats(0.01, 5.0))
@settings(max_examples=25)
def test_forecasts_are_those_of_the_jobs_as_they_are(count: int, seconds: float, latency_s: float) -> None:
    made = planned(spins(count, seconds), latency_s)
    assert made.makespan == pytest.approx(count * seconds) == max(job.finish_time for job in made.jobs)


@given(st.lists(GROUPS, min_size=1, max_size=3), st.floats(0.01, 10.0))
def test_a_job_alone_takes_longer_by_the_latency_and_does_the_same_work(
    groups: list[ThreadGroup], latency_s: float
) -> None:
    job = Job("a", Profile(tuple(groups)))
    (after,) = delayed(Workflow("w", (job,)), {"a"}, latency_s).jobs
    for group, later in zip(groups, after.profile.groups, strict=True):
        assert later.isolated_time == pytest.approx(group.isolated_time + latency_s)
        assert later.demand == pytest.approx(group.demand, rel=1e-4, abs=1e-4)
        moved = group.mean_bandwidth * group.isolated_time
        assert later.mean_bandwidth * later.isolated_time == pytest.approx(moved)
        assert sum(phase.share for phase in later.phases) == pytest.approx(1.0)


def test_other_jobs_and_shared_profiles_stay_as_they_are() -> None:
    workflow = spins(4, 10.0)
    later = delayed(workflow, {"j0", "j1"}, 1.0)
    assert later.jobs[0].profile is later.jobs[1].profile is not workflow.jobs[0].profile
    assert later.jobs[2:] == workflow.jobs[2:] and later.jobs[2].profile is workflow.jobs[2].profile


def test_a_job_under_way_is_not_late() -> None:
    workflow = spins(2, 10.0)
    made = plan(workflow, CLUSTER, underway=[RunningJob("j0", ("n0",), 0.5)], late={"j1"}, latency_s=1.0, explain=False)
    ends = {job.id: job.finish_time for job in made.jobs}
    assert ends["j1"] == pytest.approx(15.0)


def test_only_a_search_is_made_with_the_latency() -> None:
    workflow = spins(3, 10.0)
    for policy in ("let", "mom", "slf", "loadavg"):
        with_it = plan(workflow, CLUSTER, policy=policy, late={"j0", "j1", "j2"}, latency_s=5.0, explain=False)
        without = plan(workflow, CLUSTER, policy=policy, explain=False)
        assert dataclasses.replace(with_it, simulated_in=0.0) == dataclasses.replace(without, simulated_in=0.0)


def test_the_idle_phase_uses_no_core() -> None:
    """Beside a job that computes for 10 s, one of 10 s that idles 10 s first does not slow it."""
    workflow = delayed(spins(2, 10.0), {"j1"}, 10.0)
    simulation = Simulation(workflow, CLUSTER)
    simulation.run("slf")
    assert simulation.world.jobs["finish"].tolist() == pytest.approx([10.0, 20.0], rel=1e-4)


@given(st.integers(1, 5), st.floats(0.5, 50.0), st.floats(0.01, 5.0))
@settings(max_examples=25)
def test_each_job_of_a_chain_is_expected_later_by_all_starts_before_it(
    count: int, seconds: float, latency_s: float
) -> None:
    jobs = spins(count, seconds).jobs
    chain = [dataclasses.replace(job, after=tuple(f"j{i - 1}" for i in [i] if i)) for i, job in enumerate(jobs)]
    made = planned(Workflow("chain", tuple(chain)), latency_s)
    for number, job in enumerate(made.jobs):
        assert job.start_time == pytest.approx(number * seconds)
        assert job.late_s == pytest.approx((number + 1) * latency_s, rel=1e-3)


def test_a_job_under_way_is_expected_as_it_is() -> None:
    first, last = spins(2, 10.0).jobs
    flow = Workflow("w", (first, dataclasses.replace(last, after=("j0",))))
    running = [RunningJob("j0", ("n0",), 0.5)]
    made = plan(flow, CLUSTER, underway=running, late={"j1"}, latency_s=1.0, explain=False)
    assert [job.late_s for job in made.jobs] == pytest.approx([0.0, 1.0], abs=1e-4)

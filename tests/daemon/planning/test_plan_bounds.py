"""The work of a plan is counted and bounded, however many jobs wait and run; what starts now is as without a bound."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pilotfish.daemon.planning import plan_bounds
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.plan_bounds import FOR_NOW, FORESIGHT, window
from pilotfish.daemon.planning.problem import LATER, WINDOW, Options, Problem
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, RunningJob
from pilotfish.simulate.planning.queue_mapping import BEYOND, PlanRun
from tests.support import effort

CORES = 64
KIND = NodeType("t", CORES, 1e9, 1e12, power=Power(100.0, 5.0))
#: Every family of policies that is called in Python.
FAMILIES = ("easy:share=1.5", "conservative", "conservative:share=1.5", "easy+powercap:cap=95%", "easy:order=wfp3",
            "pairs")  # fmt: skip


def problem_of(running: int, waiting: int, nodes: int) -> tuple[Problem, Cluster]:
    """Return running jobs with different ends, spread over the nodes, and waiting jobs of different sizes."""
    draw = random.Random(1)
    cluster = Cluster("lab", tuple(Node(f"n{i}", KIND) for i in range(nodes)))
    about = Provenance("measured", runs=100, interval=(0.9, 1.1), spread=0.1)

    def job(name: str, threads: int, node_count: int) -> Job:
        seconds = draw.uniform(100.0, 90_000.0)
        profile = Profile((ThreadGroup(threads, seconds, bandwidth=2e6),), provenance=about)
        return Job(name, profile, walltime=1.5 * seconds, nodes=node_count)

    present = [job(f"r{i}", 1, 1) for i in range(running)]
    places = tuple(RunningJob(it.id, (f"n{i % nodes}",), 0.25, 0.0) for i, it in enumerate(present))
    queue = [job(f"w{i}", draw.choice((1, 16, 64)), draw.choice((1, 1, 2))) for i in range(waiting)]
    return Problem(Workflow("queue", (*present, *queue)), places, tuple(cluster.index), {}, {}), cluster


class Work:
    """Counts the work of the policy in a plan, for what starts now and for what starts later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.later = self.last = 0
        call_policy = PlanRun.call_policy

        def counted(run: PlanRun) -> list[Any]:
            before, decisions = run.work, call_policy(run)
            self.last = run.work - before
            if run.now > 0.0:
                self.later += self.last
            else:
                self.now += self.last
            return decisions

        monkeypatch.setattr(PlanRun, "call_policy", counted)


def bounded(problem: Problem, cluster: Cluster, policy: str, most: int | None = WINDOW) -> Plan:
    return simulate_plan(problem, cluster, Options(policy, window=most))


@pytest.mark.parametrize("policy", effort.some(FAMILIES))
def test_what_starts_later_is_forecast_with_a_bound_of_work(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole plan of the first four would take two to eight times that."""
    work = Work(monkeypatch)
    problem, cluster = problem_of(300, 100, 8)
    plan = bounded(problem, cluster, policy)
    assert work.later <= FORESIGHT + work.last
    shown = {job.id for job in plan.jobs}
    assert {name for name in problem.workflow.index if name[0] == "w"} == {name for name in (*shown, *plan.waits)
                                                                          if name[0] == "w"}  # fmt: skip
    assert not plan.truncated and not plan.rejected


@pytest.mark.parametrize(
    "policy", ["easy:share=1.5", "conservative", "conservative:share=1.5", "easy+powercap:cap=95%"]
)
def test_a_plan_with_less_foresight_is_the_beginning_of_the_whole_plan(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, cluster = problem_of(100, 40, 4)
    full = {job.id: job for job in bounded(problem, cluster, policy, None).jobs}
    monkeypatch.setattr("pilotfish.daemon.planning.guarded_planner.FORESIGHT", 300_000)
    plan = bounded(problem, cluster, policy)
    jobs = {job.id: job for job in plan.jobs}
    left_out = full.keys() - jobs.keys()
    assert left_out and len(jobs) > 100 and BEYOND in plan.waits.values() and plan.waits.keys() == left_out
    begun = {name for name, job in full.items() if job.start_time <= 0.0}
    assert begun <= jobs.keys()
    for name, job in jobs.items():
        assert (job.start_time, job.nodes) == (full[name].start_time, full[name].nodes)
    assert min(full[name].start_time for name in left_out) >= max(job.start_time for job in jobs.values())
    assert plan.makespan_within is None
    assert any(job.within is not None for job in jobs.values()), "what starts now keeps its interval"
    assert all(job.within is None or job.within.earliest <= job.finish_time <= job.within.latest
               for job in jobs.values())  # fmt: skip


@pytest.mark.parametrize("policy", ["conservative", "conservative:share=1.5", "conservative+powercap:cap=95%"])
def test_the_window_is_shorter_the_more_jobs_run_on_the_more_nodes(policy: str) -> None:
    """But it always has the first job."""
    for windows in (
        [window(policy, running, 256) for running in (0, 10, 100, 300, 1000, 100_000)],
        [window(policy, 300, nodes) for nodes in (1, 16, 256, 4096, 100_000)],
    ):
        assert all(WINDOW >= more >= fewer >= 1 for more, fewer in pairwise(windows))
        assert windows[-1] < windows[0]


@pytest.mark.parametrize("policy", ["lookahead", "mom", "easy", "easy:share=1.5", "./mine.py:Mine", "batsim:ipc:///x"])
def test_policies_that_compare_jobs_with_the_present_only_have_the_whole_window(policy: str) -> None:
    assert window(policy, 100_000, 100_000) == WINDOW


@pytest.mark.parametrize(("policy", "running", "nodes"),
                         effort.some([("conservative", 300, 64), ("conservative:share=1.5", 50, 8),
                                      ("conservative:share=1.5", 300, 32)], 1))  # fmt: skip
def test_what_starts_now_is_decided_with_a_bound_of_work(
    policy: str, running: int, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is an estimate: the searches of one job may compare nodes again and again."""
    work = Work(monkeypatch)
    problem, cluster = problem_of(running, 2 * window(policy, running, nodes), nodes)
    bounded(problem, cluster, policy)
    assert 0 < work.now <= 2 * FOR_NOW


def test_the_daemon_says_of_which_jobs_it_knows_no_start(bench: Any, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """First of those beyond the window, then of those that the plan ends before; each is planned in its turn."""
    monkeypatch.setattr(plan_bounds, "FOR_NOW", 250_000)
    options = Options("conservative:share=1.5", window=WINDOW)
    bench.cycle.planner.use(options)
    flow = bench.submit(*(kit.job(f"j{i:02}", seconds=10.0, threads=2, walltime=20.0) for i in range(40)))
    bench.run(1)
    tracker = bench.cycle.tracker
    considered = bench.cycle.planner.window(tracker.snapshot)
    assert 1 <= considered < 20
    later = [key for key, why in tracker.limited.items() if why == LATER]
    assert f"{flow}/j00" not in later and f"{flow}/j39" in later
    assert not tracker.stuck and all(tracker.queue.find(key).outlook is None for key in later)
    monkeypatch.setattr("pilotfish.daemon.planning.guarded_planner.FORESIGHT", 0)
    bench.cycle.planner.use(replace(options, policy="easy:share=1.5"))
    bench.run(300)
    assert set(bench.states(flow).values()) == {"completed"} and not tracker.limited

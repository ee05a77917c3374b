"""Clients are answered between two steps of a plan, and a policy that keeps them waiting is named."""

import logging

from pilotfish.daemon.planning import node_shortlist, plan_steps
from pilotfish.daemon.planning.node_shortlist import shortlist
from pilotfish.daemon.planning.plan_steps import LONG_S, WARN_S, PlanSteps
from pilotfish.daemon.planning.problem import Problem
from pilotfish.simulate.model.capacity import memory_need
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob

PROFILE = Profile((ThreadGroup(1, 10.0),))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_policy_that_keeps_clients_waiting_is_named_once_in_a_while(caplog):
    clock, answers = Clock(), []

    def answer() -> None:
        answers.append(clock.now)
        clock.now += 5.0  # the time of answers is no step

    def plan(policy: str, *steps: float) -> float:
        planned.begin()
        for step in steps[:-1]:
            clock.now += step
            planned()
        clock.now += steps[-1]
        return planned.end(policy)

    planned = PlanSteps(answer, clock)
    with caplog.at_level(logging.WARNING, "pilotfish.cycle"):
        assert plan("quick", 0.1, 0.2, 0.1) == 0.2 or answers
        assert len(answers) == 2 and not caplog.messages
        assert abs(plan("slow", 0.1, LONG_S + 0.7) - (LONG_S + 0.7)) < 1e-9
        plan("slow", LONG_S + 9.0)
        plan("other", LONG_S + 1.0, 0.1)
        assert [text.split(",")[0] for text in caplog.messages] == [
            "policy slow kept clients waiting for 1.2 s", "policy other kept clients waiting for 1.5 s",
        ]  # fmt: skip
        clock.now += WARN_S
        plan("slow", 2.0 * LONG_S + 1.0)
    assert len(caplog.messages) == 3 and "2.0 s" in caplog.messages[-1]


def problem_of(jobs: int, nodes: int) -> tuple[Problem, Cluster]:
    """Return a problem with one waiting job, and so many running ones."""
    cluster = Cluster("x", tuple(Node(f"n{i}", NodeType("t", 64, 1e9, 1e9)) for i in range(nodes)))
    running = [RunningJob(f"r{i}", (f"n{i * 7 % nodes}", f"n{(i * 7 + 1) % nodes}"), i % 10 / 10) for i in range(jobs)]
    work = Workflow("w", (Job("j", PROFILE), *(Job(one.id, PROFILE, nodes=2, memory=float(i)) for i, one in
                                                 enumerate(running))))  # fmt: skip
    return Problem(work, tuple(running), tuple(cluster.index), {}, {}), cluster


def test_a_shortlist_of_nodes_looks_at_a_bounded_number_of_jobs_between_two_breaths(monkeypatch):
    monkeypatch.setattr(plan_steps, "STEP_JOBS", 100)
    problem, cluster = problem_of(3000, 1000)
    looked, most, since = 0, 0, 0
    need = memory_need

    def counted(job: Job) -> float:
        nonlocal looked
        looked += 1
        return need(job)

    def breathe() -> None:
        nonlocal most, since
        most, since = max(most, looked - since), looked

    monkeypatch.setattr(node_shortlist, "memory_need", counted)
    shortlist(problem, cluster, breathe)
    assert looked > 3000 and most <= 100


def test_the_load_of_each_node_is_that_of_its_jobs():
    problem, cluster = problem_of(500, 300)
    running = {one.id: one for one in problem.running}
    last, threads, used = node_shortlist._loads(problem, running, cluster, lambda: None)
    for place, node in enumerate(cluster.nodes):
        here = [job for job in problem.workflow.jobs if job.id in running and node.name in running[job.id].nodes]
        assert threads[place] == len(here) and used[place] == sum(job.memory for job in here)
        assert last[place] == max(((1.0 - running[job.id].progress) * 10.0 for job in here), default=0.0)

"""The graph of a workflow: edges from predecessors, and one sentence for each error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.job import Job, Workflow
from tests.support.instances import flow, make_job, workflows


def chain(*edges: str) -> Workflow:
    """Return jobs from strings like "c<a,b": c waits for a and b."""
    jobs = []
    for edge in edges:
        name, _, before = edge.partition("<")
        jobs.append(make_job(name, 1.0, 1, *(before.split(",") if before else ())))
    return Workflow("lab", tuple(jobs), source="flow.yaml")


def test_edges_run_from_predecessors() -> None:
    dag = chain("a", "b<a", "c<a,b").dag
    assert set(dag.edges) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert list(dag.nodes) == ["a", "b", "c"]


def test_a_job_may_wait_for_one_that_comes_later_in_the_file() -> None:
    assert set(chain("b<a", "a").dag.edges) == {("a", "b")}


@pytest.mark.parametrize(
    "workflow, message",
    [
        (chain("a<b", "b<a"), "flow.yaml: jobs wait for each other in a cycle: "),
        (chain("x", "a<x,c", "b<a", "c<b", "y<c"), "cycle: "),
        (chain("a<a"), "cycle: a -> a$"),
        (
            chain("load", "b<laod"),
            "job 'b' waits for 'laod', which is not a job of this workflow; did you mean 'load'\\?",
        ),
        (chain("a", "b<zebra"), "job 'b' waits for 'zebra', which is not a job of this workflow$"),
        (chain("a", "b", "a"), "flow.yaml: job 'a' is defined twice"),
        (Workflow("lab", ()), "lab: jobs: the workflow has no jobs"),
    ],
)
def test_errors_name_the_job(workflow: Workflow, message: str) -> None:
    with pytest.raises(InvalidJobError, match=message):
        _ = workflow.dag


def test_only_the_jobs_of_the_cycle_are_named() -> None:
    with pytest.raises(InvalidJobError) as caught:
        _ = chain("x", "a<x,c", "b<a", "c<b", "y<c").dag
    named = str(caught.value).split("cycle: ")[1].split(" -> ")
    assert named[0] == named[-1] and sorted(named[1:]) == ["a", "b", "c"]


def test_waiting_twice_for_the_same_job_is_waiting_once() -> None:
    job = Job("b", make_job("b").profile, after=("a", "a"))
    assert list(flow(make_job("a"), job).dag.edges) == [("a", "b")]


@settings(max_examples=30, deadline=None)
@given(workflows())
def test_the_graph_is_built_once_and_holds_every_edge(workflow: Workflow) -> None:
    assert workflow.dag is workflow.dag
    assert workflow.dag.number_of_edges() == sum(len(set(job.after)) for job in workflow.jobs)

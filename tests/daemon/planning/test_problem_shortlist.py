"""The window: which of many waiting jobs a plan considers."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.planning.problem import SHARED, build_problem
from pilotfish.daemon.state.job_stages import STAGE_OF
from pilotfish.daemon.state.queue import Queue, Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.model.snapshot import JobState, NodeState, Snapshot

CLUSTER = Cluster("lab", tuple(Node(f"n{i}", NodeType("t", 2, 1e9, 1e10)) for i in range(2)))


def posed(jobs, window, **states):
    """Return the problem of one workflow."""
    submission = Submission("w", Workflow("w", tuple(jobs)), 0.0)
    for name, state in states.items():
        submission.entries[name].move(STAGE_OF[state], state)
        submission.entries[name].nodes = ("n0",)
    queue = Queue()
    queue.add(submission)
    snapshot = Snapshot(100.0, 1, CLUSTER, (NodeState.UP,) * 2, ())
    return build_problem(queue, snapshot, window=window)


def ids(problem) -> list[str]:
    return [job.id.partition("/")[2] for job in problem.workflow.jobs]


def job(name: str, *after: str, memory: float = 0.0) -> Job:
    return Job(name, DEFAULT_PROFILE, after=after, memory=memory, command=("true",))


def test_the_first_jobs_are_planned_and_the_rest_is_left_for_later():
    problem = posed([job(f"j{i}") for i in range(9)], 3)
    assert ids(problem) == ["j0", "j1", "j2"] == [key[2:] for key in problem.startable]
    assert problem.beyond


def test_a_long_chain_in_front_hides_no_startable_job():
    chain = [job("c0"), *(job(f"c{i}", f"c{i - 1}") for i in range(1, 9))]
    problem = posed([*chain, job("free"), job("other")], 3)
    assert ids(problem) == ["c0", "c1", "c2", "free", "other"]
    assert list(problem.startable) == ["w/c0", "w/free", "w/other"]


def test_each_shape_has_its_turn():
    large = [job(f"large{i}", memory=9e8) for i in range(9)]
    problem = posed([*large, job("small")], 4)
    assert "small" in ids(problem)


def test_running_jobs_and_their_successors_come_first():
    jobs = [job("r"), *(job(f"j{i}") for i in range(9)), job("s", "r")]
    problem = posed([jobs[0], jobs[-1], *jobs[1:-1]], 2, r=JobState.RUNNING)
    assert ids(problem) == ["r", "s", "j0", "j1"] and "w/s" not in problem.startable


@st.composite
def dags(draw):
    count = draw(st.integers(1, 12))
    after = [draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(count)]
    jobs = [job(f"j{i}", *(f"j{k}" for k in sorted(after[i])), memory=draw(st.sampled_from([0.0, 1e8, 9e9])))
            for i in range(count)]  # fmt: skip
    return draw(st.permutations(jobs))


@given(jobs=dags(), window=st.integers(1, 14))
def test_a_window_is_complete_ordered_and_bounded(jobs, window):
    every, seen = posed(jobs, None), posed(jobs, window)
    if len(every.workflow.jobs) <= window:
        assert seen == every
    assert len(seen.workflow.jobs) <= 2 * window
    assert [name for name in ids(every) if name in ids(seen)] == ids(seen)
    for one in seen.workflow.jobs:
        assert {before.removeprefix("w/") for before in one.after} <= set(ids(seen))
    assert seen.startable.keys() == every.startable.keys() or len(seen.startable) >= window
    assert seen.stuck == every.stuck


def test_a_successor_of_a_job_that_fits_nowhere_is_left_out():
    jobs = [job("big", memory=9e9), job("child", "big"), job("free")]
    assert ids(posed(jobs, None)) == ["free"]
    assert ids(posed([dataclasses.replace(one) for one in jobs], 2)) == ["free"]


def test_jobs_that_share_many_nodes_are_planned_in_turns_and_others_pass_them():
    wide = [Job(f"w{i}", DEFAULT_PROFILE, nodes=2, command=("true",)) for i in range(600)]
    problem = posed([*wide, job("narrow")], 1000)
    assert sum(one.nodes for one in problem.workflow.jobs if one.nodes > 1) == SHARED
    assert ids(problem) == [*(f"w{i}" for i in range(SHARED // 2)), "narrow"] and problem.beyond
    whole = dataclasses.replace(DEFAULT_PROFILE, groups=(dataclasses.replace(DEFAULT_PROFILE.groups[0], count=2),))
    alone = posed([Job(f"w{i}", whole, nodes=2, command=("true",)) for i in range(600)], 1000)
    assert len(alone.workflow.jobs) == 600 and not alone.beyond  # they share no node, so a run stays cheap

"""Queues of jobs that may run on some of the nodes only: as a plain reference has them, and as EASY with one class."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.node_classes import NodeClasses, node_classes
from pilotfish.simulate.replay.replay import replay
from tests.reference.plain_classes import PlainJob, plain_starts

NAMES = ("a", "b", "c", "d")
seconds = st.integers(1, 20).map(float)


@dataclass
class Drawn:
    """A queue: nodes with cores; running jobs with cores on one node; waiting jobs."""

    nodes: dict[str, int]
    running: list[PlainJob]
    waiting: list[PlainJob]

    def classes(self) -> NodeClasses:
        """Return its classes of nodes."""
        held = [(frozenset(job.has), len(job.has)) for job in self.running]
        return node_classes(self.nodes, held, [job.nodes for job in self.waiting])

    def starts(self) -> list[float]:
        """Return when each job starts."""
        jobs = [*self.running, *self.waiting]
        begin, run, wall = (np.array([getattr(job, name) for job in jobs], float) for name in ("begin", "run", "wall"))
        links = [(before, i) for i, job in enumerate(jobs) for before in job.after]
        before, after = np.array(links, np.int64).reshape(-1, 2).T
        size = [job.size for job in jobs]
        return self.classes().start_times(size, begin, run, wall, Dependencies(before, after)).tolist()


@st.composite
def queues(draw: st.DrawFn, most_nodes: int = 4) -> Drawn:
    nodes = {name: draw(st.integers(1, 3)) for name in NAMES[: draw(st.integers(1, most_nodes))]}
    running, waiting = list[PlainJob](), list[PlainJob]()
    for name, cores in nodes.items():
        if taken := draw(st.integers(0, cores)):
            run = draw(seconds)
            wall = run + draw(st.integers(0, 5))
            running.append(PlainJob(0.0, run, wall, taken, frozenset({name}), has=[name] * taken, start=0.0))
    for number in range(draw(st.integers(1, 8))):
        where = frozenset(draw(st.sets(st.sampled_from(sorted(nodes)), min_size=1)))
        size = draw(st.integers(1, sum(nodes[name] for name in where)))
        run = draw(seconds)
        job = PlainJob(float(draw(st.sampled_from([0, 0, 0, 7]))), run, run + draw(st.integers(0, 9)), size, where)
        if number and draw(st.integers(0, 3)) == 0:
            job.after = (len(running) + draw(st.integers(0, number - 1)),)
        waiting.append(job)
    return Drawn(nodes, running, waiting)


@given(queues())
def test_it_is_the_plain_reference(drawn: Drawn) -> None:
    found, classes = drawn.starts(), drawn.classes()
    may = {name: [name in job.nodes for job in drawn.waiting] for name in drawn.nodes}
    kinds = list(dict.fromkeys(job.nodes for job in drawn.waiting))
    place = {tuple(column): k for k, column in enumerate(classes.may.T.astype(bool).tolist())}
    order = {name: place[tuple(name in where for where in kinds)] for name in may}
    cores = [name for name, count in drawn.nodes.items() for _ in range(count)]
    assert found == plain_starts(sorted(cores, key=order.__getitem__), [*drawn.running, *drawn.waiting])


@given(queues(most_nodes=1))
def test_with_one_class_it_is_easy_backfilling(drawn: Drawn) -> None:
    jobs = [*drawn.running, *drawn.waiting]
    for job in jobs:
        job.begin, job.after = 0.0, ()
    begin, run, wall = (np.array([getattr(job, name) for job in jobs], float) for name in ("begin", "run", "wall"))
    whole = Workload("queue", np.arange(len(jobs)), begin, run, wall, np.array([job.size for job in jobs]))
    assert drawn.starts() == replay(whole, sum(drawn.nodes.values()), Easy()).start_time.tolist()


@given(queues())
def test_jobs_never_have_more_cores_than_the_nodes_that_they_may_use(drawn: Drawn) -> None:
    jobs, starts = [*drawn.running, *drawn.waiting], drawn.starts()
    assert not any(map(math.isnan, starts))
    for count in range(1, len(drawn.nodes) + 1):
        for some in map(frozenset, itertools.combinations(drawn.nodes, count)):
            inside = [(start, job) for start, job in zip(starts, jobs, strict=True) if job.nodes <= some]
            for now, _ in inside:
                used = sum(job.size for start, job in inside if start <= now < start + job.run)
                assert used <= sum(drawn.nodes[name] for name in some)


def test_classes_that_few_may_use_are_taken_first() -> None:
    both, one = frozenset("ab"), frozenset("a")
    found = node_classes({"a": 2, "b": 2}, [(frozenset("b"), 1)], [both, both, one])
    assert found.cores.tolist() == [2, 2] and found.held.tolist() == [[1, 0]]
    assert found.may.tolist() == [[1, 1], [0, 1]] and found.kind.tolist() == [0, 0, 0, 1]
    assert [found.room(i) for i in (1, 3)] == [4, 2]


@pytest.mark.parametrize("where", [frozenset("x"), frozenset()])
def test_a_job_without_a_node_never_starts(where: frozenset[str]) -> None:
    jobs = [PlainJob(0.0, 5.0, 5.0, 1, where), PlainJob(0.0, 5.0, 5.0, 1, frozenset("a"))]
    found = Drawn({"a": 1}, [], jobs).starts()
    assert math.isnan(found[0]) and found[1] == 0.0

"""What policies see: the choice among the nodes on which a job fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.queue_policies.free_nodes import FreeNodes, NodeNeed
from pilotfish.simulate.queue_policies.queued_job import NodeJob
from tests.reference.plain_node_choice import chosen


def room(free: list[int], speeds: list[float] | None) -> FreeNodes:
    cores, memory = np.array(free), np.full(len(free), 1.0)
    known = None if speeds is None else np.array(speeds)
    return FreeNodes(cores, memory, lambda job: NodeNeed(1), lambda it: (), known)


def job(nodes: int) -> NodeJob:
    return NodeJob(0, "a", nodes, 9.0, 0.0, None, nodes)


NODES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0.8, 1.0, 1.25)), st.integers(0, 2)), min_size=1)


@given(NODES, st.integers(1, 9))
def test_a_job_gets_the_nodes_of_the_reference(nodes: list[tuple[int, float, int]], wanted: int) -> None:
    free, speeds, _ = (list(column) for column in zip(*nodes, strict=True))
    fits = [node for node, cores in enumerate(free) if cores > 0]
    found = room(free, speeds).where(job(wanted))
    expected = chosen(fits, speeds, wanted)
    assert (found if found is None else tuple(sorted(found))) == expected
    if found is not None:
        assert min(speeds[node] for node in found) == sorted(speeds[node] for node in fits)[-wanted]
    assert room(free, None).where(job(wanted)) == (tuple(fits[:wanted]) if len(fits) >= wanted else None)


@given(NODES, st.integers(1, 9))
def test_speed_decides_only_among_nodes_of_equal_rank(nodes: list[tuple[int, float, int]], wanted: int) -> None:
    free, speeds, ranks = (list(column) for column in zip(*nodes, strict=True))
    found = room(free, speeds).where(job(wanted), rank=np.array(ranks))
    plain = room(free, None).where(job(wanted), rank=np.array(ranks))
    assert (found is None) == (plain is None)
    if found is not None and plain is not None:
        assert sorted(ranks[node] for node in found) == sorted(ranks[node] for node in plain)
        assert min(speeds[node] for node in found) >= min(speeds[node] for node in plain)


@pytest.mark.parametrize(
    ("speeds", "wanted", "expected"),
    [
        ([0.9, 1.0, 1.1, 1.0], 1, (2,)),  # the fastest
        ([0.9, 1.0, 1.1, 1.0], 2, (1, 3)),  # 2 and 1 would be no faster
        ([0.9, 1.0, 1.1, 1.0], 4, (0, 1, 2, 3)),
        ([1.0, 1.2, 1.1], 2, (1, 2)),
        ([1.0, 1.0, 1.0], 2, (0, 1)),
    ],
)
def test_a_wide_job_leaves_faster_nodes_that_would_not_help_it(
    speeds: list[float], wanted: int, expected: tuple[int, ...]
) -> None:
    found = room([1] * len(speeds), speeds).where(job(wanted))
    assert found is not None and tuple(sorted(found)) == expected

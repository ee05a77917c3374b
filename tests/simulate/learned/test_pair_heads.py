"""A head gives only what is allowed, and each choice among the rows that its definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.arrays import Array
from pilotfish.simulate.learned.node_clusters import node_clusters
from pilotfish.simulate.learned.packed_pairs import PackedPairs
from pilotfish.simulate.learned.pair_heads import HEADS, PairHead

Decisions = tuple[Array, Array, Array]


@st.composite
def decisions(draw: st.DrawFn) -> Decisions:
    """Return mask, jobs and nodes of some decisions; each has an allowed pair."""
    count, jobs, nodes = (draw(st.integers(1, most)) for most in (4, 5, 6))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    mask = random.random((count, jobs * nodes)) < draw(st.sampled_from((0.1, 0.5, 1.0)))
    mask[np.arange(count), random.integers(0, jobs * nodes, count)] = True
    levels = draw(st.sampled_from((2, 1000)))
    columns = (random.integers(0, levels, (count, rows, columns)) / levels for rows, columns in ((jobs, 4), (nodes, 3)))
    job_rows, node_rows = (part.astype(np.float32) for part in columns)
    return mask, job_rows, node_rows


@pytest.mark.parametrize("name", HEADS)
@given(data=st.data(), world=decisions())
def test_only_what_is_allowed_is_chosen(name: str, data: st.DataObject, world: Decisions) -> None:
    mask, jobs, nodes = world
    calls = list[tuple[int, PackedPairs]]()

    def choose(number: int, rows: PackedPairs) -> Array:
        assert (rows.counts > 0).all() and len(rows.first) == len(mask)
        calls.append((number, rows))
        return rows.first + np.array([data.draw(st.integers(0, count - 1)) for count in rows.counts.tolist()])

    actions = HEADS[name].actions(mask, jobs, nodes, choose)
    assert mask[np.arange(len(mask)), actions].all()
    assert [number for number, _ in calls] == list(range(len(HEADS[name].inputs)))
    assert [rows.rows.shape[1] for _, rows in calls] == list(HEADS[name].inputs)


@given(world=decisions(), last=st.booleans())
def test_a_double_head_chooses_a_job_that_fits_and_then_its_node(world: Decisions, last: bool) -> None:
    mask, jobs, nodes = world
    allowed, scored = mask.reshape(len(mask), jobs.shape[1], -1), list[PackedPairs]()

    def choose(_: int, rows: PackedPairs) -> Array:
        scored.append(rows)
        return rows.first + rows.counts - 1 if last else rows.first

    actions = HEADS["double"].actions(mask, jobs, nodes, choose)
    for place, fits in enumerate(allowed):
        may_start = np.flatnonzero(fits.any(axis=1))
        job = may_start[-1 if last else 0]
        node = np.flatnonzero(fits[job])[-1 if last else 0]
        assert actions[place] == job * nodes.shape[1] + node
        first, count = scored[0].first[place], scored[0].counts[place]
        assert (scored[0].rows[first : first + count] == jobs[place, may_start]).all()
        first, count = scored[1].first[place], scored[1].counts[place]
        assert (scored[1].rows[first : first + count, 4:] == nodes[place, fits[job]]).all()


@given(world=decisions(), clusters=st.integers(1, 4))
def test_a_clustered_head_scores_jobs_with_centres_and_takes_the_first_node_with_room(
    world: Decisions, clusters: int
) -> None:
    mask, jobs, nodes = world
    labels, centres = node_clusters(nodes, clusters)
    expected = [
        (place, job, cluster, int(np.flatnonzero(fits[job] & (labels[place] == cluster))[0]))
        for place, fits in enumerate(mask.reshape(len(mask), jobs.shape[1], -1))
        for job in range(jobs.shape[1])
        for cluster in range(clusters)
        if (fits[job] & (labels[place] == cluster)).any()
    ]
    scored = list[PackedPairs]()

    def choose(_: int, rows: PackedPairs) -> Array:
        scored.append(rows)
        return rows.first

    PairHead(clusters=clusters).actions(mask, jobs, nodes, choose)
    (rows,) = scored
    assert rows.actions.tolist() == [job * nodes.shape[1] + node for _, job, _, node in expected]
    for row, (place, job, cluster, _) in zip(rows.rows, expected, strict=True):
        assert row.tolist() == [*jobs[place, job].tolist(), *centres[place, cluster].astype(np.float32).tolist()]

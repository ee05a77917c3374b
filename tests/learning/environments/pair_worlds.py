"""Random worlds of environment A, for several tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from pilotfish.learning.environments.interface import Environment
from pilotfish.learning.environments.pairs import PairNode
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.model.workload import Workload
from tests.reference.plain_pairs import Job

DUE = ("any", "largest", "first", "shortest", "smallest")
NODES = st.lists(st.tuples(st.integers(1, 8), st.sampled_from([1.0, 2.0, 2.5, 3.5])), min_size=1, max_size=4)


@st.composite
def traces(draw: st.DrawFn, largest: int, least: int = 1, most: int = 12) -> list[Job]:
    """Draw jobs that fit a node of `largest` processors; many share an instant."""
    count = draw(st.integers(least, most))
    submit = sorted(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    job = st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, largest))
    rest = draw(st.lists(job, min_size=count, max_size=count))
    return [
        (float(at), float(run), float(max(run, 1) + more), size)
        for at, (run, more, size) in zip(submit, rest, strict=True)
    ]


def workload(jobs: Sequence[Job]) -> Workload:
    submit, run, wall, size = (np.array(column) for column in zip(*jobs, strict=True))
    return Workload("made", np.arange(len(jobs)), submit, run, wall, size.astype(np.int64))


def nodes(rows: Sequence[tuple[int, float]]) -> list[PairNode]:
    return [PairNode(processors, speed) for processors, speed in rows]


def any_action(world: Environment, random: np.random.Generator) -> Array:
    """Return one of the allowed actions of each copy."""
    return np.where(world.mask, random.random(world.mask.shape), -1.0).argmax(axis=1)

"""Columns of starts: the same values as a tuple of starts, and outcomes that are made of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.slurm.job_labels import job_labels
from pilotfish.simulate.slurm.start_columns import SiteStart, SiteStarts

from .small_sites import NODES, job, site

PLACE = site([job(id="1"), job(id="2", user="bob")])
NAMES = [node.name for node in NODES]
STARTS = st.builds(
    SiteStart, job=st.integers(0, 1), partition=st.just("main"), start=st.integers(0, 99).map(float),
    end=st.none() | st.integers(100, 199).map(float), nodes=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    by=st.sampled_from(["main", "backfill", ""]), priority=st.integers(0, 2**40),
)  # fmt: skip


@given(st.lists(STARTS, max_size=6).map(tuple))
def test_columns_are_a_sequence_of_the_same_starts(starts: tuple[SiteStart, ...]) -> None:
    columns = SiteStarts.of(PLACE, starts)
    assert columns == starts and starts == columns and tuple(columns) == starts
    assert [columns[row] for row in range(-len(starts), 0)] == [*starts] and columns[::2] == starts[::2]
    assert SiteStarts.of(PLACE, columns) is columns
    cpus = np.array([node.cpus for node in NODES])
    assert columns.sums(cpus).tolist() == [sum(cpus[NAMES.index(name)] for name in one.nodes) for one in starts]
    assert SiteStarts.of(PLACE, [*starts, SiteStart(0, "main", 1.0, None, (), "main", 1)]) != columns


def test_a_label_is_the_name_of_one_job_alone() -> None:
    jobs = [job(id="1", name="a"), job(id="2", name="1"), job(id="3", name="3"), job(id="4", name="b"),
            job(id="5", name="b"), job(id="7_1", name="c", task=1), job(id="8", name="")]  # fmt: skip
    assert job_labels(jobs) == ["a", "2", "3", "4", "5", "c_1", "8"]

"""Workflows of STREAM jobs: their published properties hold, and the same seed gives the same workflow."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.workflows.workflow import dump_workflow
from pilotfish.simulate.generate import published_workflows
from pilotfish.simulate.generate.workflows import SHAPES, stream, stream_profiles

ALL = (*SHAPES, *published_workflows.SHAPES)


def test_the_36_jobs_are_in_the_published_ranges() -> None:
    profiles = stream_profiles()
    assert len(set(profiles)) == len(profiles) == 36
    for profile in profiles:
        (group,) = profile.groups
        assert 4 <= group.count <= 28 and 3.6e9 <= group.bandwidth <= 10.5e9
        assert 10.0 <= profile.isolated_time <= 100.0 / 0.9
    assert min(p.threads for p in profiles) < 7 and max(p.threads for p in profiles) > 25


@pytest.mark.parametrize("shape", ALL)
@given(jobs=st.integers(1, 300), seed=st.integers(0, 10**6))
def test_every_shape_is_a_graph_without_cycles(shape: str, jobs: int, seed: int) -> None:
    flow = stream(jobs, shape=shape, seed=seed)
    known: set[str] = set()
    for job in flow.jobs:  # each waits only for those before it
        assert set(job.after) <= known and job.id not in known and len(set(job.after)) == len(job.after)
        known.add(job.id)
    assert {job.profile for job in flow.jobs} <= set(stream_profiles())
    if shape in SHAPES:
        assert len(flow.jobs) == jobs
    assert stream(jobs, shape=shape, seed=seed) == flow


@pytest.mark.parametrize("shape", published_workflows.SHAPES)
def test_tasks_of_a_category_are_equal_and_about_as_many_as_requested(shape: str) -> None:
    flow = stream(500, shape=shape, seed=1)
    assert 0.9 * 500 <= len(flow.jobs) <= 500
    kinds: dict[str, set[object]] = {}
    for job in flow.jobs:
        kinds.setdefault(job.id.rpartition("_")[0], set()).add(job.profile)
    assert len(kinds) >= 4 and all(len(profiles) == 1 for profiles in kinds.values())


def test_the_shapes_of_layers_and_diamonds() -> None:
    places = {job.id: i for i, job in enumerate(stream(80, shape="layered").jobs)}
    for job in stream(80, shape="layered").jobs:
        assert all(places[before] // 10 == places[job.id] // 10 - 1 for before in job.after)
        assert len(job.after) in ((1, 2, 3) if places[job.id] >= 10 else (0,))
    widths = [len(job.after) for job in stream(21, shape="diamonds").jobs]
    assert widths == [0, 1, 1, 1, 1, 4] + [1, 1, 1, 1, 4] * 3


def test_the_same_workflow_on_any_machine() -> None:
    text = "".join(dump_workflow(stream(50, shape=shape, seed=2)) for shape in ALL)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "8f78e466309f265a"

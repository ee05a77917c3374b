"""Releases of held jobs that the resource manager's own jobs would pass."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.planning.passing import passed
from pilotfish.daemon.planning.problem import Problem
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob
from pilotfish.simulate.model.snapshot import JobState, JobView

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from(("batch", "gpu", "batch,gpu")))


def job_of(name: str, nodes: int = 1, cores: int = 1, partition: str = "batch") -> Job:
    profile = Profile((ThreadGroup(cores, 10.0),))
    return Job(f"rm/{name}", profile, nodes=nodes, traits=(("queue", partition),))


def own(job: Job, **changes: object) -> JobView:
    """A waiting job that was not handed over."""
    return dataclasses.replace(JobView(job.id, job, JobState.PENDING), **changes)


def reasons(held: Job, *views: JobView, start: float = 50.0, is_held: bool = True) -> dict[str, str]:
    entry = Entry("rm", dataclasses.replace(held, id=held.id.removeprefix("rm/")), 0, offered=True)
    entry.held = is_held
    planned = (PlannedJob(held.id, ("n1",), start, start + 10.0, 10.0, 1.0),)
    plan = Plan("q", "c", "easy", 0, 1.0, None, 1.0, 0.0, False, 7, planned)
    return passed(plan, Problem(Workflow("q", (held,)), (), ("n1",), {held.id: entry}, {}), views)


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (1, 4), (3, 4)])
def test_a_held_job_is_released_when_any_other_waits_in_its_partition(size: tuple[int, int]) -> None:
    """Slurm reserves nodes for a wide one, so that it passes small ones, too."""
    assert reasons(job_of("1", 1, 2), own(job_of("7", *size))) == {
        "rm/1": "a job that is not held waits in its partition batch, and would pass it"
    }


def test_a_resource_manager_without_partitions_has_one_queue() -> None:
    job, other = (dataclasses.replace(job_of(name), traits=()) for name in "17")
    assert reasons(job, own(other)) == {"rm/1": "a job that is not held waits in its partition, and would pass it"}


def test_a_job_that_a_canary_leaves_to_the_resource_manager_passes_it() -> None:
    assert reasons(job_of("1"), own(job_of("7"), restartable=True, due=0.0, due_why="control group"))


@pytest.mark.parametrize(
    "other",
    [
        own(job_of("7", partition="gpu")),
        own(job_of("7"), state=JobState.RUNNING, nodes=("n1",)),
        own(job_of("7"), offered=True),  # held, too, or placed
        own(job_of("7"), waits="Slurm says Dependency"),
    ],
)
def test_what_cannot_pass_it_leaves_it_held(other: JobView) -> None:
    assert reasons(job_of("1", 1, 2), other) == {}


@pytest.mark.parametrize("case", [{"start": 0.0}, {"is_held": False}])
def test_a_job_that_starts_now_or_is_not_held_is_not_released(case: dict[str, float]) -> None:
    assert reasons(job_of("1"), own(job_of("7")), **case) == {}


@given(held=SIZES, waiting=st.lists(SIZES, max_size=6))
def test_it_is_released_if_and_only_if_a_job_waits_in_one_of_its_partitions(held, waiting) -> None:
    views = [own(job_of(str(number), *size)) for number, size in enumerate(waiting)]
    shares = any(not set(size[2].split(",")).isdisjoint(held[2].split(",")) for size in waiting)
    assert bool(reasons(job_of("held", *held), *views)) is shares

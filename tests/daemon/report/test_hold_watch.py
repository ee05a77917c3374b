"""Holds and waits as metrics: each hold is counted once, by how it ended, and each wait by who decided."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.simulate.model.snapshot import JobState, JobView


def holds(bench, end: str) -> float:
    return bench.value("hold_seconds_count", end=end)


def waits(bench, decider: str) -> tuple[float, float]:
    return bench.value("job_waiting_seconds_count", decided_by=decider), bench.value(
        "job_waiting_seconds_sum", decided_by=decider
    )


@pytest.fixture
def full(offering, kit):
    """A bench whose nodes are taken by a job that was there before the daemon."""
    for node in ("n1", "n2"):
        job = kit.job(node, threads=2, seconds=1e5)
        view = JobView(f"rjms/{node}", job, JobState.RUNNING, (node,), submit_time=1.0, start_time=5.0)
        offering.manager.views[view.key] = view
    return offering


def test_a_hold_ends_when_its_job_is_placed(offering, kit) -> None:
    offering.run(1)
    offering.manager.offer(kit.job("1", seconds=500.0), due=offering.manager.time + 900.0)
    offering.run(1)
    assert offering.value("held_jobs") == 1.0
    offering.manager.views["rjms/1"] = dataclasses.replace(offering.manager.views["rjms/1"], due=None)
    offering.run(3)
    assert offering.value("held_jobs") == 0.0 and holds(offering, "placed") == 1.0
    assert waits(offering, "pilotfish")[0] == 1.0 and waits(offering, "manager")[0] == 0.0


def test_a_hold_that_nobody_ended_has_expired(full, kit) -> None:
    manager = full.manager
    manager.offer(kit.job("1", threads=2, seconds=50.0), due=manager.time + 2.0)
    full.run(1)
    manager.advance(5.0)
    view = manager.views["rjms/1"]
    manager.views["rjms/1"] = dataclasses.replace(view, due=None, offered=False)
    full.run(1)
    assert (holds(full, "expired"), holds(full, "gone")) == (1.0, 0.0)


def test_a_job_that_its_user_cancels_is_gone(full, kit) -> None:
    manager = full.manager
    manager.offer(kit.job("1", threads=2, seconds=50.0), due=manager.time + 900.0)
    full.run(1)
    del manager.views["rjms/1"]
    full.run(1)
    assert (holds(full, "gone"), holds(full, "expired")) == (1.0, 0.0)


def test_waits_of_others_count_once_and_only_if_the_start_was_seen(full, kit) -> None:
    full.run(2)
    assert waits(full, "manager") == (0.0, 0.0), "they ran before"
    manager = full.manager
    del manager.views["rjms/n1"]
    view = JobView(
        "rjms/9", kit.job("9", threads=2, seconds=1e5), JobState.RUNNING, ("n1",), submit_time=manager.time - 40.0
    )
    manager.views["rjms/9"] = dataclasses.replace(view, start_time=manager.time)
    full.run(3)
    assert waits(full, "manager") == (1.0, 40.0)


def test_ends_are_counted_by_state(bench, kit) -> None:
    bench.manager.exits = {}
    bench.submit(kit.job("a", seconds=2.0), kit.job("b", "a", seconds=2.0))
    bench.run(9)
    assert bench.value("jobs_ended_total", state="completed") == 2.0
    assert bench.value("jobs_ended_total", state="failed") == 0.0

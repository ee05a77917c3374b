"""A cycle takes in a bounded number of handed-over jobs, in turns by user; the others follow without further news."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from pilotfish.daemon.learning.job_profiles import GivenProfiles
from pilotfish.daemon.state.handed_over import CHANGED, MOST_TAKEN_IN, NAMES_PER_JOB, beyond
from pilotfish.simulate.model.snapshot import JobState

ADA, BOB = 1001, 1002


class Predictions(GivenProfiles):
    """Counts the jobs for which a profile is wanted, by name; `in_cycle` since the last cycle began."""

    def __init__(self) -> None:
        self.jobs, self.in_cycle = Counter[str](), 0

    def with_profile(self, job):
        self.jobs[job.id] += 1
        self.in_cycle += 1
        return job


@pytest.fixture
def world(offering):
    offering.profiles = Predictions()
    offering.restart()
    return offering


def offer(world, kit, names, owner, **changes) -> None:
    for name in names:
        world.manager.offer(kit.job(str(name), threads=2, seconds=500, owner=owner), **changes)


def taken_in(world) -> dict[str, str]:
    """Return why each job that was taken in waits, by name."""
    return {name: entry.wait_reason for name, entry in world.cycle.tracker.queue.submissions["rjms"].entries.items()}


def cycle(world) -> None:
    world.profiles.in_cycle = 0
    world.run(1, step_s=0.0)
    assert world.profiles.in_cycle <= MOST_TAKEN_IN


def settle(world) -> int:
    """Go through cycles for as long as the daemon itself wants one at once; return their number."""
    for number in range(1, 100):
        cycle(world)
        if not world.cycle.trigger.changed:
            return number
    raise AssertionError("the cycles do not end")


@pytest.mark.parametrize("waits", ["", "held by its user"])
def test_every_job_is_taken_in_once_in_turns_by_user_without_further_news(world, kit, waits) -> None:
    offer(world, kit, range(3 * MOST_TAKEN_IN), ADA, waits=waits)
    offer(world, kit, ["b1", "b2", "b3"], BOB, waits=waits)
    cycle(world)
    first = taken_in(world).keys()
    assert {"b1", "b2", "b3", "0"} <= first and len(first) == MOST_TAKEN_IN
    assert world.cycle.trigger.changed, "the next cycle must not wait for an event"
    assert settle(world) >= 3
    assert len(taken_in(world)) == len(world.profiles.jobs) == 3 * MOST_TAKEN_IN + 3
    assert set(world.profiles.jobs.values()) == {1}
    assert list(taken_in(world))[:2] == ["0", "1"], "they stay in the resource manager's order"


def test_a_blocked_journal_keeps_the_jobs_that_wait_for_their_turn(world, kit) -> None:
    offer(world, kit, range(2 * MOST_TAKEN_IN), ADA)
    world.journal._db.execute("PRAGMA query_only = ON")
    for _ in range(3):
        cycle(world)
        assert world.cycle.tracker.blocked and world.cycle.trigger.changed
    assert len(taken_in(world)) == 2 * MOST_TAKEN_IN and not world.manager.runs
    world.journal._db.execute("PRAGMA query_only = OFF")
    settle(world)
    assert world.manager.runs and not world.cycle.tracker.blocked


def test_a_job_that_leaves_the_queue_before_its_turn_is_never_taken_in(world, kit) -> None:
    offer(world, kit, range(MOST_TAKEN_IN + 5), ADA)
    cycle(world)
    gone, ended, taken_back, begun, stays = (f"rjms/{MOST_TAKEN_IN + number}" for number in range(5))
    views, now = world.manager.views, world.manager.time
    del views[gone]
    views[ended] = dataclasses.replace(views[ended], state=JobState.CANCELLED, offered=False, finish_time=now)
    views[taken_back] = dataclasses.replace(views[taken_back], offered=False, restartable=False)
    views[begun] = dataclasses.replace(
        views[begun], state=JobState.RUNNING, nodes=("n1",), start_time=now, offered=False, restartable=False
    )
    settle(world)
    assert taken_in(world).keys() == {*map(str, range(MOST_TAKEN_IN)), stays.removeprefix("rjms/")}
    assert not any(world.journal.records(key) for key in (gone, ended, taken_back, begun))


def test_a_job_that_is_due_before_its_turn_is_released_and_journalled(world, kit) -> None:
    offer(world, kit, range(MOST_TAKEN_IN), ADA)
    offer(world, kit, ["late"], ADA, due=world.manager.time, due_why="it was held for an hour")
    cycle(world)
    assert "late" not in taken_in(world) and not world.manager.views["rjms/late"].offered
    world.cycle.tracker.save()
    texts = [(record["kind"], record["text"]) for record in world.journal.records("rjms/late")]
    assert texts == [("applied", "release rjms/late: it was held for an hour")]
    outcomes = world.journal._read("SELECT outcome FROM intents WHERE key = 'rjms/late'")
    assert outcomes == [("done",)]
    settle(world)
    assert "late" not in taken_in(world)


def test_after_a_restart_the_rest_is_taken_in_and_nothing_twice(world, kit) -> None:
    offer(world, kit, range(2 * MOST_TAKEN_IN + 1), ADA, waits="held by its user")
    cycle(world)
    world.restart()
    assert len(taken_in(world)) == MOST_TAKEN_IN
    settle(world)
    assert len(taken_in(world)) == 2 * MOST_TAKEN_IN + 1
    assert set(taken_in(world).values()) == {"held by its user"}
    assert not world.manager.runs and not world.cycle.trigger.changed


def test_a_changed_job_is_not_started_as_it_was(world, kit) -> None:
    offer(world, kit, ["x"], ADA, waits="held by its user")
    settle(world)
    offer(world, kit, range(MOST_TAKEN_IN), ADA, waits="held by its user")
    changed = kit.job("x", threads=1, seconds=500, owner=ADA)
    world.manager.offer(changed)  # it may start now, and asks for less
    cycle(world)
    assert taken_in(world)["x"] == CHANGED and not world.manager.runs
    settle(world)
    placed = world.cycle.tracker.queue.find("rjms/x")
    assert world.manager.runs == {"rjms/x": 1} and placed.job == changed


def test_dependencies_count_once_the_predecessor_is_taken_in(world, kit) -> None:
    names = [f"before{number}" for number in range(MOST_TAKEN_IN)]
    world.manager.offer(kit.job("after", names[-1], seconds=5, owner=ADA), waits=f"it depends on {names[-1]}")
    offer(world, kit, names, ADA, waits="held by its user")
    cycle(world)
    queue = world.cycle.tracker.queue
    assert queue.find("rjms/after").job.after == () and queue.find(f"rjms/{names[-1]}") is None
    settle(world)
    assert queue.find("rjms/after").job.after == (names[-1],)


def test_lists_of_allowed_nodes_that_differ_count_by_their_length(kit) -> None:
    shared = frozenset(f"n{number}" for number in range(NAMES_PER_JOB))
    alike = {str(number): kit.job(str(number), allowed=shared) for number in range(10)}
    differing = {name: dataclasses.replace(job, allowed=frozenset([*shared, name])) for name, job in alike.items()}
    assert beyond(alike, 8) == {"7", "8", "9"}
    assert beyond(differing, 8) == {"4", "5", "6", "7", "8", "9"}
    huge = frozenset(map(str, range(100 * NAMES_PER_JOB)))
    assert beyond({"a": kit.job("a", allowed=huge), "b": kit.job("b")}, 8) == {"b"}

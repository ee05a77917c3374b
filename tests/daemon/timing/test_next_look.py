"""What a cycle leaves to look for: whatever the daemon must do at a time of its own, it sees in time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from pilotfish.adapters.base import Activity, AdapterError, Capabilities
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.state.job_stages import JobStage
from pilotfish.daemon.timing.cadence import Cadence
from pilotfish.daemon.timing.next_look import LINGER_S, NextLook
from pilotfish.daemon.tracker import PIN_S
from pilotfish.simulate.model.snapshot import JobState, JobView


class Polled:
    """The bench with a resource manager that says nothing by itself; `clock` is the time that passes here."""

    def __init__(self, kit: SimpleNamespace, bench, **options: Callable[[], bool]) -> None:
        self.bench, self.manager = bench, bench.manager
        self.manager.capabilities = Capabilities(events=False)
        self.next_change, self.cadence = math.inf, Cadence(1.0)
        self.manager.next_change = lambda now: self.next_change
        self.clock, self.job = 0.0, kit.job("1")
        self.look = NextLook(self.manager, bench.cycle.tracker, self.cadence, lambda: self.clock, **options)
        bench.cycle.observers = (self.look, *bench.cycle.observers)
        bench.cycle.clock = lambda: self.clock

    def need(self, after_s: float = 1.0):
        """Run a cycle, and return what it leaves to look for."""
        self.bench.run(1, step_s=0.0)
        found = self.look.need
        self.manager.advance(after_s)
        self.clock += after_s
        return found

    def show(self, **changes: object) -> None:
        """Let the resource manager show a job that was handed over."""
        shown = JobView("slurm/1", self.job, JobState.PENDING, offered=True, submit_time=self.manager.time)
        self.manager.views["slurm/1"] = dataclasses.replace(shown, **changes)


@pytest.fixture
def polled(kit, bench) -> Polled:
    return Polled(kit, bench)


def test_it_is_idle_only_some_time_after_the_last_job(kit, polled: Polled) -> None:
    assert polled.need().idle
    polled.bench.submit(kit.job("a", seconds=5.0))
    assert not polled.need().idle and not polled.need(10.0).idle  # it waits, and runs
    assert not polled.need(LINGER_S).idle  # it has ended
    assert polled.need().idle


def test_who_saves_power_is_never_idle(kit, bench) -> None:
    assert not Polled(kit, bench, idle_nodes=lambda: True).need().idle


def test_an_adapter_with_events_needs_nothing(polled: Polled) -> None:
    polled.manager.capabilities = Capabilities()
    need = polled.need()
    assert not need.idle and polled.look.look_s == 0.0


def test_a_running_job_ends_at_its_forecast(kit, polled: Polled) -> None:
    polled.bench.submit(kit.job("a", seconds=50.0))
    polled.need(1.0)
    assert polled.need().end_s == pytest.approx(49.0, abs=1.1)


def test_what_fails_is_tried_again_soon(kit, polled: Polled) -> None:
    flow = polled.bench.submit(kit.job("a"))
    polled.manager.refuse[f"{flow}/a"] = AdapterError("no answer", transient=True, kind="timeout")
    need = polled.need()
    assert need.unsettled
    polled.manager.refuse.clear()
    settled = [polled.need(30.0) for _ in range(20)][-1]
    assert not settled.unsettled


def test_a_cancellation_is_open_until_the_job_has_ended(kit, polled: Polled) -> None:
    flow = polled.bench.submit(kit.job("a", seconds=1000.0))
    polled.need()
    tracker = polled.bench.cycle.tracker
    assert not polled.need().unsettled
    polled.manager.refuse[f"{flow}/a"] = AdapterError("no answer", transient=True, kind="timeout")
    tracker.cancel([tracker.queue.find(f"{flow}/a")])
    assert polled.need().unsettled and polled.need().unsettled
    polled.manager.refuse.clear()
    polled.need()
    assert not polled.need().unsettled


def test_a_cancellation_whose_end_is_not_seen_yet_is_open(kit, polled: Polled) -> None:
    flow = polled.bench.submit(kit.job("a", seconds=1000.0))
    polled.need()
    entry = polled.bench.cycle.tracker.queue.find(f"{flow}/a")
    polled.need()
    entry.cancel_wanted, entry.not_before = True, polled.manager.time + 100.0
    assert polled.need().unsettled


def test_what_cannot_be_written_is_open(polled: Polled) -> None:
    assert not polled.need().unsettled
    polled.bench.cycle.tracker.write_ahead.blocked = "the disk is full"
    polled.bench.cycle.tracker.write_ahead.save = lambda: None
    assert polled.need().unsettled


def test_a_plan_is_made_again_in_time(kit, polled: Polled) -> None:
    """The plan expects a start in 5 s: nothing else makes the daemon look before."""
    for name in "abcdef":
        polled.bench.submit(kit.job(name, seconds=1000.0))
    polled.cadence.count(0.0, Activity(0))
    polled.look.begin()
    polled.bench.run(1, step_s=0.0)
    polled.look.end(polled.bench.cycle.trigger, completed=True)
    again = polled.bench.cycle.trigger.recheck_at - polled.manager.time
    assert again < 30.0 and polled.cadence.due(changed=False) == pytest.approx(max(1.0, again))


def test_a_cycle_that_failed_is_followed_by_another(polled: Polled) -> None:
    polled.cadence.count(0.0, Activity(0))
    polled.look.begin()
    polled.look.end(polled.bench.cycle.trigger, completed=False)
    assert polled.cadence.due(changed=False) == 1.0
    polled.look.end(polled.bench.cycle.trigger, completed=False, again_s=40.0)  # as the breaker says
    assert polled.cadence.due(changed=True) == polled.cadence.due(changed=False) == 40.0


def test_counts_are_read_when_they_are_due_and_confirm_that_nothing_has_happened(polled: Polled) -> None:
    asked, confirmed, counts = list[float](), list[float](), [Activity(0)]

    def count() -> Activity:
        asked.append(polled.clock)
        return counts[0]

    polled.manager.activity = count
    polled.look._confirm = lambda: confirmed.append(polled.clock)
    polled.look.begin()
    polled.bench.run(1, step_s=0.0)
    polled.look.end(polled.bench.cycle.trigger, completed=True)
    assert asked == [0.0] and confirmed == []
    while polled.clock < 40.0:
        left = polled.look.left_s(changed=False)
        assert left > 0
        polled.clock += left
    assert asked == [0.0, 12.0, 24.0, 36.0] and confirmed == asked[1:]
    counts[0] = Activity(1)
    polled.clock += polled.look.left_s(changed=False)
    assert polled.look.left_s(changed=False) <= 0 and len(confirmed) == 3


def test_a_question_needs_a_look_if_the_counts_have_moved_since_the_last(polled: Polled) -> None:
    counts, asked = [Activity(0)], list[float]()

    def count() -> Activity:
        asked.append(polled.clock)
        return counts[0]

    def cycle(*, completed: bool = True) -> None:
        polled.look.begin()
        polled.bench.run(1, step_s=0.0)
        polled.look.end(polled.bench.cycle.trigger, completed=completed)

    polled.manager.activity = count
    cycle()
    polled.clock = 5.0
    assert not polled.look.outdated() and not polled.look.outdated() and asked == [0.0, 5.0]
    counts[0] = Activity(0, others=1)
    polled.clock = 6.0
    assert polled.look.outdated() and polled.look.left_s(changed=False) > 0, "without a question it rests"
    cycle()
    counts[0] = Activity(0, others=2)
    assert not polled.look.outdated(), "what was read just now is new enough"
    polled.clock = 9.0
    cycle(completed=False)
    polled.clock = 20.0
    assert not polled.look.outdated(), "another failure would let users wait"
    polled.manager.capabilities = Capabilities(events=True)
    cycle()
    polled.clock = 40.0
    assert not polled.look.outdated(), "it says itself when something happens"


def test_counts_that_cannot_be_read_are_left_alone_and_the_cadence_holds(polled: Polled) -> None:
    asked = list[float]()

    def fail() -> Activity:
        asked.append(polled.clock)
        raise AdapterError("Access denied", kind="refused")

    polled.manager.activity = fail
    polled.bench.submit(polled.job)
    while polled.clock < 130.0:
        began = polled.look.begin()
        polled.bench.run(1, step_s=0.0)
        polled.look.end(polled.bench.cycle.trigger, completed=True)
        polled.bench.cycle.trigger.changed = False
        polled.clock += polled.look.left_s(changed=False)
        assert polled.clock - began == pytest.approx(1.0)
    assert asked == [0.0, 60.0, 120.0]


def test_a_start_that_failed_is_tried_again_in_time(kit, polled: Polled) -> None:
    polled.bench.submit(kit.job("a", seconds=1000.0))
    polled.need()
    entry = polled.bench.cycle.tracker.queue.active()[0]
    entry.move(JobStage.WAITING)
    entry.not_before = polled.manager.time + 17.0
    polled.manager.views.clear()
    assert polled.need().change_s == pytest.approx(17.0)


def test_a_pin_and_a_hold_end_in_time(polled: Polled) -> None:
    now = polled.manager.time
    polled.show(due=now + 40.0, waits="it is held")
    assert polled.need(0.0).change_s == pytest.approx(40.0)
    polled.show(due=now + 40.0, nodes=("n1",), pinned_since=now - 1.0)
    assert polled.need(0.0).change_s == pytest.approx(PIN_S - 1.0)
    polled.next_change = now + 2.0
    assert polled.need(0.0).change_s == pytest.approx(2.0)


def test_a_dry_run_does_not_look_for_what_it_leaves_alone(polled: Polled) -> None:
    polled.bench.cycle.applier = Recording(lambda line: None)
    polled.show(due=polled.manager.time - 5.0, waits="it is held")
    assert polled.need().change_s == math.inf


def test_a_job_that_left_the_queue_is_looked_for_a_while(kit, polled: Polled) -> None:
    polled.bench.submit(kit.job("a", seconds=1000.0))
    polled.need()
    assert not polled.need().unsettled
    polled.manager.views.clear()
    polled.manager.records = {}
    assert polled.need().unsettled
    assert not [polled.need(30.0) for _ in range(4)][-1].unsettled

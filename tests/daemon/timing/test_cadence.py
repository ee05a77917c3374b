"""When the next cycle is due: never late, and whatever is heard, only a share of the time is spent on cycles."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import Activity
from pilotfish.daemon.timing.cadence import (
    FOLLOW_S,
    IDLE_COUNT_S,
    IDLE_FACTOR,
    IDLE_SHARE,
    LARGEST_SHARE,
    LEAST_GAP_S,
    LONGEST_REST_S,
    LOOKS_S,
    NEAR_S,
    NODES_S,
    POLL_SHARE,
    PROMPT_EVERY,
    PROMPT_EVERY_S,
    QUIET_COUNT_S,
    Cadence,
    Need,
)


def test_without_events_it_is_a_fixed_cadence() -> None:
    cadence = Cadence(1.0)
    cadence.begin(100.0)
    cadence.end(100.4)
    assert cadence.due(changed=False) == 101.0
    assert cadence.due(changed=True) == 100.0 + LEAST_GAP_S


@pytest.mark.parametrize("every_s", [0.2, 1.0, 600.0])
def test_an_event_is_looked_at_again_until_the_next_cycle_would_do(every_s: float) -> None:
    cadence = Cadence(every_s)
    cadence.begin(100.0)
    cadence.end(100.001)
    cadence.hear(100.1)
    for after in (after for after in LOOKS_S if after < every_s):
        look = cadence.due(changed=False)
        assert look == 100.1 + after
        cadence.begin(look)
        cadence.end(look + 0.001)
    assert cadence.due(changed=False) == pytest.approx(look + every_s)


@pytest.mark.parametrize("length", [0.1, 1.0])
def test_the_cycle_before_puts_off_a_look_at_an_event_unless_there_was_none_for_a_while(length: float) -> None:
    cadence = Cadence(60.0)
    for number, waits_s in enumerate((0.0, length / LARGEST_SHARE, 0.0)):
        now = 100.0 + number * max(PROMPT_EVERY_S, PROMPT_EVERY * length) * 0.6
        cadence.begin(now)
        cadence.end(now + length)
        cadence.hear(now + length)
        assert cadence.due(changed=False) == pytest.approx(now + max(waits_s, length + LOOKS_S[0]))


def test_an_event_does_not_wait_for_the_late_look_at_one_before() -> None:
    cadence = Cadence(60.0)
    cadence.hear(100.0)
    for look in LOOKS_S[:-1]:
        cadence.begin(100.0 + look)
        cadence.end(100.0 + look)
    cadence.hear(105.0)
    assert cadence.due(changed=False) == 105.0 + LOOKS_S[0]


def test_an_event_during_a_cycle_is_looked_at_after_it() -> None:
    cadence = Cadence(10.0)
    cadence.begin(100.0)
    cadence.hear(100.3)
    cadence.end(100.5)
    assert cadence.due(changed=False) == 100.0 + 0.5 / LARGEST_SHARE


@given(
    lengths=st.lists(st.floats(0.001, 2.0), min_size=2, max_size=20),
    gaps=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=200),
)
def test_a_flood_of_events_causes_only_its_share_of_cycles(lengths: list[float], gaps: list[float]) -> None:
    cadence, now = Cadence(60.0), 1000.0
    due = not_again = now
    for number, length in enumerate(lengths):
        now = max(now, due)
        cadence.begin(now)
        began = now
        now += length
        cadence.end(now)
        for gap in gaps[number % len(gaps) :]:
            cadence.hear(now + gap)
        due = cadence.due(changed=False)
        assert due <= began + 60.0
        if due < began + min(60.0, length / LARGEST_SHARE) - 1e-9:
            assert max(due, now + max(gaps[number % len(gaps) :])) >= not_again - 1e-9
            not_again = now + max(PROMPT_EVERY_S, PROMPT_EVERY * length)


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30))
def test_no_event_waits_longer_than_its_first_look(gaps: list[float]) -> None:
    """However often it hears, the look at what was heard first is not put off."""
    cadence, now = Cadence(60.0), 1000.0
    cadence.begin(now)
    cadence.end(now)
    first = now + gaps[0]
    for gap in gaps:
        now += gap
        cadence.hear(now)
        assert cadence.due(changed=False) <= max(first + LOOKS_S[0], 1000.0 + LEAST_GAP_S) + 1e-9


Times = Sequence[float]


class World:
    """A resource manager that counts, and a daemon that goes by the cadence: `looks` and `counted` are when it did."""

    def __init__(self, cadence: Cadence, arrivals: Times = (), others: Times = (), nodes: Times = ()) -> None:
        self.cadence, self.moves = cadence, [sorted(times) for times in (arrivals, others, nodes)]
        self.looks, self.counted = list[float](), list[float]()

    def _count(self, now: float) -> None:
        self.counted.append(now)
        self.cadence.count(now, Activity(*(bisect_right(times, now) for times in self.moves)))

    def run(self, until: float, need: Need = Need(), look_s: float = 0.05) -> None:
        """Serve from 0; every look takes `look_s`."""
        now = 0.0
        while now < until:
            if not self.cadence.counts_serve(now):
                self._count(now)
            self.cadence.begin(now)
            self.looks.append(now)
            now += look_s
            self.cadence.end(now, need, look_s)
            while now < (due := self.cadence.due(changed=False)) and now < until:
                now = min(due, max(now, self.cadence.count_due()))
                if now < due:
                    self._count(now)

    def seen_after(self, move: float) -> float:
        """After how many seconds a look began that shows the move; inf if none did."""
        return next((look - move for look in self.looks if look >= move), math.inf)


moments = st.lists(st.floats(1.0, 900.0), max_size=40)
EPS = 1e-6


def test_while_nothing_happens_only_counts_are_read() -> None:
    world = World(Cadence(1.0))
    world.run(600.0)
    assert len(world.looks) == 20 and 300 <= len(world.counted) <= 340
    idle = World(Cadence(1.0))
    idle.run(600.0, Need(idle=True))
    assert len(idle.looks) == 2 and len(idle.counted) <= 60  # at 1 RPC and up to 5, less than 6 RPCs a minute


@given(arrivals=moments, others=moments, look_s=st.floats(0.01, 3.0), every_s=st.sampled_from([0.2, 1.0, 5.0]))
def test_what_is_counted_is_seen_in_time_and_at_its_share(
    arrivals: list[float], others: list[float], look_s: float, every_s: float
) -> None:
    world = World(Cadence(every_s), arrivals, others)
    world.run(1000.0, look_s=look_s)
    pause = max(every_s, look_s, min(look_s / POLL_SHARE, LONGEST_REST_S))
    for move in (*arrivals, *others):
        assert world.seen_after(move) <= max(every_s, QUIET_COUNT_S) + pause + EPS
    gaps = [late - early for early, late in zip(world.looks, world.looks[1:], strict=False)]
    assert min(gaps) >= pause - EPS and max(gaps) <= max(30.0, pause) + max(every_s, QUIET_COUNT_S) + EPS


@given(arrivals=moments, others=moments, nodes=moments, look_s=st.floats(0.01, 3.0))
def test_idle_it_sees_arrivals_and_only_these_before_the_bound(
    arrivals: list[float], others: list[float], nodes: list[float], look_s: float
) -> None:
    world = World(Cadence(1.0, 30.0), arrivals, others, nodes)
    world.run(1000.0, Need(idle=True), look_s)
    pause = max(1.0, min(look_s / IDLE_SHARE, 30.0))
    for move in arrivals:
        assert world.seen_after(move) <= IDLE_COUNT_S + pause + look_s + EPS
    looks = len(world.looks)
    assert looks <= 1 + len(arrivals) + 1000.0 / (IDLE_FACTOR * 30.0)
    assert looks <= 2 + (1000.0 + 30.0) / pause


@given(first=st.floats(0.5, 250.0), quiet_s=st.floats(60.0, 300.0), look_s=st.floats(0.01, 3.0))
def test_idle_it_sees_the_first_arrivals_after_a_start_and_after_a_quiet_time_however_long_a_look_takes(
    first: float, quiet_s: float, look_s: float
) -> None:
    later = first + quiet_s
    world = World(Cadence(1.0, 30.0), [first, later])
    world.run(1000.0, Need(idle=True), look_s)
    for move in (first, later):
        assert world.seen_after(move) <= IDLE_COUNT_S + max(1.0, look_s) + EPS


def test_idle_a_question_has_an_answer_as_new_as_that_while_jobs_are_handed_over() -> None:
    """Starts and ends that move counters are seen by who asks, and only then."""
    cadence = Cadence(1.0, 30.0)
    cadence.count(0.0, Activity(0))
    cadence.begin(0.0)
    cadence.end(0.1, Need(idle=True), 0.1)
    assert cadence.question_counts_due() == 1.0 and cadence.question_due() == 30.0
    cadence.count(5.0, Activity(0, others=3))
    assert cadence.question_due() == 1.0 and cadence.due(changed=False) == IDLE_FACTOR * 30.0
    cadence.begin(5.0)
    cadence.end(6.0, Need(idle=True), 1.0)
    cadence.count(6.5, Activity(0, others=4))
    assert cadence.question_due() == 5.0 + 1.0 / POLL_SHARE, "users who ask do not make it read all the time"


def test_idle_on_a_busy_site_it_is_bound_by_its_share() -> None:
    world = World(Cadence(1.0, 30.0), arrivals=[float(second) for second in range(1000)])
    world.run(1000.0, Need(idle=True), 0.2)
    assert 30 <= len(world.looks) <= 1 + (1000.0 + 30.0) / 20.0
    costly = World(Cadence(1.0, 30.0), arrivals=[float(second) for second in range(1000)])
    costly.run(1000.0, Need(idle=True), 0.5)
    assert 1000.0 / 42.0 - 1 <= len(costly.looks) <= 1 + (1000.0 + 30.0) / 30.0


def test_after_counts_moved_they_are_read_at_the_cadence_for_a_while() -> None:
    world = World(Cadence(1.0), others=[100.0])
    world.run(200.0)
    lively = [time for time in world.counted if 102.0 < time < 130.0]
    assert len(lively) >= 25 and len([time for time in world.counted if time > 140.0]) <= 35


@given(nodes=moments)
def test_nodes_that_report_are_looked_at_soon_but_seldom(nodes: list[float]) -> None:
    world = World(Cadence(1.0), nodes=nodes)
    world.run(1000.0)
    assert all(world.seen_after(move) <= NODES_S + QUIET_COUNT_S + EPS for move in nodes)
    gaps = [late - early for early, late in zip(world.looks, world.looks[1:], strict=False)]
    assert min(gaps) >= NODES_S - EPS


def test_it_looks_again_after_counts_that_moved_because_nodes_are_freed_later() -> None:
    world = World(Cadence(1.0), others=[100.0])
    world.run(125.0)
    first = next(look for look in world.looks if look >= 100.0)
    after = [look - first for look in world.looks if first < look < first + 11.0]
    assert after == pytest.approx([max(each, 1.0) for each in FOLLOW_S], abs=0.1)


@given(change_s=st.floats(-5.0, 100.0), end_s=st.floats(0.0, 100.0))
def test_it_looks_when_something_changes_by_itself_and_counts_near_a_forecast_end(
    change_s: float, end_s: float
) -> None:
    cadence = Cadence(1.0)
    cadence.count(0.0, Activity(0))
    cadence.begin(0.0)
    cadence.end(0.0, Need(change_s=change_s, end_s=end_s))
    assert cadence.due(changed=False) == min(max(1.0, change_s), 30.0)
    now, counted = 0.0, []
    while now < 60.0:
        now = cadence.count_due()
        counted.append(now)
        cadence.count(now, Activity(0))
    near = [time for time in counted if end_s - NEAR_S <= time <= end_s + NEAR_S]
    assert all(late - early <= 1.0 + EPS for early, late in itertools.pairwise(near))
    assert all(late - early <= QUIET_COUNT_S + EPS for early, late in itertools.pairwise(counted))


@pytest.mark.parametrize("need", [Need(unsettled=True), Need()], ids=["unsettled", "no counts"])
def test_it_looks_at_the_cadence_where_counts_do_not_serve(need: Need) -> None:
    cadence = Cadence(1.0)
    cadence.count(0.0, Activity(0) if need.unsettled else None)
    cadence.begin(0.0)
    cadence.end(0.02, need, 0.02)
    assert cadence.due(changed=False) == 1.0
    cadence.end(0.5, need, 0.5)  # a look of 500 ms is not made every second
    assert cadence.due(changed=False) == pytest.approx(0.5 / POLL_SHARE)


@given(st.lists(st.floats(0.001, 3.0), min_size=1, max_size=30), st.booleans())
def test_it_is_never_later_than_the_bound(lengths: list[float], idle: bool) -> None:
    """However costly a look is, and whatever the counts say."""
    cadence, now = Cadence(1.0, 30.0), 0.0
    for length in lengths:
        cadence.count(now, Activity(0))
        cadence.begin(now)
        cadence.end(now + length, Need(idle=idle), length)
        due = cadence.due(changed=False)
        assert now + 1.0 <= due <= now + 30.0 * (IDLE_FACTOR if idle else 1.0)
        now = due


def test_after_a_failure_only_the_next_attempt_counts() -> None:
    cadence = Cadence(0.5)
    cadence.begin(100.0)
    cadence.end(100.1)
    cadence.fail(100.1, 0.0)
    cadence.hear(100.2)
    assert cadence.due(changed=True) == 100.6
    cadence.begin(100.6)
    cadence.end(100.7)
    cadence.fail(100.7, 40.0)
    assert cadence.due(changed=True) == cadence.due(changed=False) == 140.7
    cadence.begin(140.7)
    assert cadence.due(changed=True) < 141.0

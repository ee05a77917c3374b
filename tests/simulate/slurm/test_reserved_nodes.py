"""Reservations keep their nodes from jobs outside them and have them for jobs inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.kernels.slurm import reserved_nodes
from pilotfish.simulate.kernels.slurm.tables import CANDIDATES
from pilotfish.simulate.slurm.reservation_tables import instances, unfollowed_reservations
from pilotfish.simulate.slurm.site import SiteReservation
from tests.simulate.slurm.small_sites import NODES, T0, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
ALL = set(range(len(NODES)))


def reservation(start: int, end: int, nodes: Iterable[int], name: str = "r", **changes: Any) -> SiteReservation:
    """Return a reservation of these nodes, in minutes after T0."""
    flags = frozenset(changes.pop("flags", "").split())
    names = tuple(NODES[node].name for node in nodes)
    return SiteReservation(name, T0 + 60 * start, T0 + 60 * end, names, flags=flags, **changes)


def answer(hand: Hand, start: int = 0, limit: int = 60, row: int = 0) -> tuple[int | None, set[int]]:
    """Return when a job may start in minutes after T0, None: never, and on which nodes; the limit is in minutes."""
    words = hand.world.scratch[CANDIDATES]
    words[:] = np.uint64(sum(1 << node for node in ALL))
    time = reserved_nodes.nodes_outside_reservations(hand.world, row, 0, T0 + 60 * start, limit, CANDIDATES)
    nodes = {node for node in ALL if int(words[0]) >> node & 1}
    return (None if time < 0 else (int(time) - T0) // 60), nodes


def reserved(*rows: SiteReservation, jobs: Iterable[Any] = (job(),), **changes: Any) -> Hand:
    return Hand(site(list(jobs), reservations=rows, **changes))


@pytest.mark.parametrize(
    ("start", "limit", "is_kept_off"),
    [(0, 99, False), (0, 100, False), (0, 101, True), (100, 1, True), (199, 1, True), (200, 60, False)],
)
def test_a_job_keeps_off_reservations_that_its_limit_reaches(start: int, limit: int, is_kept_off: bool) -> None:
    hand = reserved(reservation(100, 200, [1, 3]))
    assert answer(hand, start, limit) == (start, ALL - {1, 3} if is_kept_off else ALL)
    end = int(hand.world.count.reservation_end)
    assert end == (T0 + 200 * 60 if is_kept_off else 0)


def test_the_earliest_end_of_what_is_in_the_way_is_noted() -> None:
    hand = reserved(reservation(0, 300, [1], "a"), reservation(10, 200, [2], "b"), reservation(500, 510, [3], "c"))
    assert answer(hand) == (0, ALL - {1, 2})
    assert hand.world.count.reservation_end == T0 + 200 * 60


@pytest.mark.parametrize(
    ("flags", "nodes", "partition", "is_moved"),
    [
        ("MAINT", ALL, "", True),
        ("MAINT", ALL - {0}, "", False),
        ("", ALL, "", False),
        ("ALL_NODES", {0}, "", True),
        ("PART_NODES", {0}, "main", True),
        ("PART_NODES", {0}, "other", False),
    ],
)
def test_a_reservation_of_the_whole_partition_moves_the_start_behind_it(
    flags: str, nodes: set[int], partition: str, is_moved: bool
) -> None:
    hand = reserved(reservation(30, 90, nodes, flags=flags, partition=partition))
    assert answer(hand) == ((90, ALL) if is_moved else (0, ALL - nodes))


def test_a_start_moves_behind_several_reservations() -> None:
    rows = [reservation(30 + 60 * i, 90 + 60 * i, ALL, f"m{i}", flags="MAINT") for i in range(3)]
    assert answer(reserved(*rows)) == (210, ALL)


def test_required_nodes_that_are_reserved_move_the_start() -> None:
    hand = reserved(reservation(30, 90, [2]), jobs=[job(required_nodes=("n2",)), job(id="2", required_nodes=("n3",))])
    assert answer(hand, row=0) == (90, ALL)
    assert answer(hand, row=1) == (0, ALL - {2})


def test_a_job_inside_gets_the_nodes_of_its_reservation_from_its_start_on() -> None:
    hand = reserved(reservation(30, 90, [2, 3]), jobs=[job(reservation="r")])
    assert answer(hand) == (30, {2, 3})
    assert answer(hand, start=50) == (50, {2, 3})  # its limit may reach beyond the end
    assert answer(hand, start=90) == (None, ALL)


@pytest.mark.parametrize(
    ("flags", "other", "nodes"),
    [("", "", {2}), ("OVERLAP", "", {2, 3}), ("OVERLAP", "MAINT", {2}), ("MAINT", "MAINT", {2, 3})],
)
def test_other_reservations_keep_their_nodes_unless_mine_is_maint_or_overlap(
    flags: str, other: str, nodes: set[int]
) -> None:
    rows = [reservation(0, 90, [2, 3], flags=flags), reservation(10, 90, [3, 4], "other", flags=other)]
    assert answer(reserved(*rows, jobs=[job(reservation="r")])) == (0, nodes)


def test_flex_starts_before_its_reservation_and_uses_other_nodes() -> None:
    hand = reserved(reservation(30, 90, [2], flags="FLEX"), jobs=[job(reservation="r")])
    assert answer(hand) == (0, ALL)
    assert reserved_nodes.has_reservation_begun(hand.world, 0, T0)
    assert reserved_nodes.end_in_reservation(hand.world, 0, T0) == -1


def test_a_job_inside_is_eligible_from_the_start_to_the_end() -> None:
    hand = reserved(reservation(30, 90, [2]), jobs=[job(reservation="r"), job(id="2")])
    begun = [bool(reserved_nodes.has_reservation_begun(hand.world, 0, T0 + 60 * time)) for time in (29, 30, 89, 90)]
    assert begun == [False, True, True, False]
    assert reserved_nodes.has_reservation_begun(hand.world, 1, T0)


@pytest.mark.parametrize(("overrun", "end"), [(0, 90), (10, 100), (None, None)])
def test_a_job_is_ended_at_the_end_of_its_reservation(overrun: int | None, end: int | None) -> None:
    place = site([job(reservation="r"), job(id="2")], reservations=(reservation(30, 90, [2]),))
    hand = Hand(replace(place, rules=replace(place.rules, resv_over_run_min=overrun)))
    expected = -1 if end is None else T0 + 60 * end
    assert reserved_nodes.end_in_reservation(hand.world, 0, T0 + 40 * 60) == expected
    assert reserved_nodes.end_in_reservation(hand.world, 1, T0 + 40 * 60) == -1


@pytest.mark.parametrize(
    ("listed", "users"),
    [
        ({}, {"alice", "bob", "carol"}),
        ({"users": frozenset({"bob"})}, {"bob"}),
        ({"users": frozenset({"-bob"})}, {"alice", "carol"}),
        ({"accounts": frozenset({"physics"})}, {"alice", "bob"}),
        ({"accounts": frozenset({"science"})}, {"alice", "bob", "carol"}),
        ({"accounts": frozenset({"-physics"})}, {"carol"}),
        ({"users": frozenset({"alice", "carol"}), "accounts": frozenset({"physics"})}, {"alice"}),
    ],
)
def test_users_and_accounts_decide_who_is_inside(listed: dict[str, frozenset[str]], users: set[str]) -> None:
    names = ["alice", "bob", "carol"]
    hand = reserved(
        reservation(0, 90, [2], **listed), reservation(0, 90, [4], "magnet", flags="MAGNETIC", **listed),
        jobs=[job(name, id=name, reservation="r") for name in names] + [job(name, id=f"{name}2") for name in names],
    )  # fmt: skip
    assert {name for row, name in enumerate(names) if answer(hand, row=row) == (0, {2})} == users
    drawn = {
        name
        for row, name in enumerate(names, len(names))
        if hand.world.jobs[row].magnets and reserved_nodes.magnet_of(hand.world, row, 0, T0) >= 0
    }
    assert drawn == users


def test_a_magnetic_reservation_draws_jobs_only_while_it_is_there() -> None:
    hand = reserved(reservation(30, 90, [2], flags="MAGNETIC"))
    assert [int(reserved_nodes.magnet_of(hand.world, 0, 0, T0 + 60 * time)) for time in (29, 30, 89, 90)] == [
        -1, 0, 0, -1
    ]  # fmt: skip


def test_jobs_do_not_avoid_a_reservation_before_it_is_created() -> None:
    hand = reserved(reservation(30, 90, [2], created=T0 + 60.0))
    assert answer(hand) == (0, ALL)
    hand.world.clock.now = T0 + 60
    assert answer(hand) == (0, ALL - {2})


def test_the_begin_of_a_reservation_asks_for_a_pass_once() -> None:
    hand = reserved(reservation(1, 90, [2], "a"), reservation(2, 3, [3], "b"))
    times = [0, 1, 1, 4, 5]
    begun = [bool(reserved_nodes.begin_and_end_reservations(hand.world, T0 + 60 * time)) for time in times]
    assert begun == [False, True, False, False, False]  # b came and went between two checks


@pytest.mark.parametrize(
    ("flag", "hours"),
    [("DAILY", [0, 24, 48, 72, 96, 120, 144]), ("WEEKLY", [0, 168]), ("HOURLY", [0, 1, 2, 3]), ("", [0])],
)
def test_a_reservation_that_comes_again_has_an_instance_for_each_time(flag: str, hours: list[int]) -> None:
    start = reservation(0, 30, [2], flags=flag)
    last = job(id="9", submit=T0 + 3600.0 * hours[-1] - 86_400.0)
    rows = instances(site([last], reservations=(start,)))
    assert [(row.start - T0) / 3600 for row in rows] == hours
    assert {row.end - row.start for row in rows} == {1800}
    hand = reserved(start, jobs=[replace(last, reservation="r")])
    assert answer(hand, start=int(60 * hours[-1])) == (60 * hours[-1], {2})


@pytest.mark.parametrize(("flag", "days"), [("WEEKDAY", {0, 1, 2, 3, 4}), ("WEEKEND", {5, 6})])
def test_reservations_of_weekdays_and_weekends_come_on_their_days(flag: str, days: set[int]) -> None:
    rows = instances(site([job(submit=T0 + 20 * 86_400.0)], reservations=(reservation(0, 30, [2], flags=flag),)))
    repeated = rows[1:]
    assert {int((row.start // 86_400 + 3) % 7) for row in repeated} == days
    assert len(repeated) == sum(
        int((int(T0) // 86_400 + 3 + day) % 7) in days for day in range(1, 22) if T0 + day * 86_400 <= T0 + 21 * 86_400
    )


def test_flags_that_are_not_followed_are_named() -> None:
    place = site([job()], reservations=(reservation(0, 9, [1], flags="TIME_FLOAT DAILY"),))
    assert unfollowed_reservations(place) == ["reservation r: TIME_FLOAT is not followed: its start does not move"]


ROWS = st.builds(
    lambda start, length, nodes, flags, number: reservation(start, start + length, sorted(nodes), f"r{number}", flags=flags),
    st.integers(0, 300), st.integers(1, 200), st.sets(st.sampled_from(sorted(ALL)), min_size=1),
    st.sampled_from(["", "MAINT", "OVERLAP", "FLEX", "MAINT OVERLAP", "ALL_NODES"]), st.integers(0, 99),
)  # fmt: skip


@given(st.lists(ROWS, max_size=5, unique_by=lambda row: row.name), st.integers(0, 400), st.integers(1, 200))
def test_a_job_outside_gets_every_node_that_no_reservation_needs_and_no_other(
    rows: list[SiteReservation], start: int, limit: int
) -> None:
    time, nodes = answer(reserved(*rows), start, limit)
    assert time is not None and time >= start
    names = {NODES[node].name for node in ALL}
    stopping = [row for row in rows if "ALL_NODES" in row.flags or ("MAINT" in row.flags and set(row.nodes) == names)]
    overlapping = [row for row in rows if row.start < T0 + 60 * (time + limit) and row.end > T0 + 60 * time]
    assert not [row for row in overlapping if row in stopping]
    assert time == start or any(row.end == T0 + 60 * time for row in stopping)
    assert {NODES[node].name for node in nodes} == names.difference(*(row.nodes for row in overlapping))

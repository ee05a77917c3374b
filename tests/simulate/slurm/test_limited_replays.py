"""Replays of small sites in which a limit, a reservation or a licence decides when a job starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotfish.simulate.slurm.site import NodeEvent, SchedulerRules, Site, SiteLimits, SiteQos, SiteReservation
from pilotfish.simulate.slurm.twin import SiteStart, replay_site
from tests.simulate.slurm.small_sites import NODES, PARTITION, RULES, T0, job, site

#: A pass follows a submission or a wish within this time, seconds.
SOON = 70


def starts(place: Site) -> dict[str, SiteStart]:
    """Return the start of each job that starts, by its id, in seconds after T0."""
    return {
        place.jobs[one.job].id: replace(one, start=one.start - T0, end=None if one.end is None else one.end - T0)
        for one in replay_site(place).starts
    }


def reservation(start: int, end: int, nodes: tuple[int, ...], flags: str = "", **changes: Any) -> SiteReservation:
    names = tuple(NODES[node].name for node in nodes)
    return SiteReservation(
        "r", T0 + 60.0 * start, T0 + 60.0 * end, names, flags=frozenset(flags.split()), **changes
    )  # fmt: skip


def test_a_job_waits_for_a_place_among_the_running_ones() -> None:
    jobs = [job(), job(id="2"), job("bob", id="3")]
    begun = starts(site(jobs, associations={"alice": SiteLimits(max_jobs=1)}))
    assert begun["1"].start < SOON and begun["3"].start < SOON
    assert 600 <= begun["2"].start - begun["1"].start < 600 + SOON


def test_with_assoc_limit_stop_a_job_that_a_limit_stopped_before_closes_nothing() -> None:
    """One that comes when its user has a job too many is such a job, too; one whose CPUs are too many closes always."""
    rules = replace(RULES, is_backfilling=False, scheduler=SchedulerRules(goes_past_limits=False))
    jobs = [job(), job(id="2", submit=T0 + 60.0), job("bob", id="3", submit=T0 + 60.0)]
    begun = starts(site(jobs, rules=rules, associations={"alice": SiteLimits(max_jobs=1)}))
    assert begun["3"].start < 60 + SOON and begun["2"].start >= 600
    begun = starts(site(jobs, rules=rules, associations={"alice": SiteLimits(group_tres={"cpu": 6})}))
    assert begun["3"].start >= begun["2"].start >= 600


def test_a_submission_too_many_is_repeated_when_a_job_has_left() -> None:
    jobs = [job(), job(id="2"), job(id="3", submit=T0 + 1.0)]
    begun = starts(site(jobs, associations={"alice": SiteLimits(max_submit=1)}))
    assert [begun[one].start // 600 for one in "123"] == [0, 1, 2]


def test_a_job_that_denyonlimit_rejects_never_starts_and_stops_nobody() -> None:
    deny = SiteQos("high", flags=frozenset({"DenyOnLimit"}), limits=SiteLimits(max_wall_min=30.0))
    begun = starts(site([job(qos="high"), job(id="2"), job(id="3", qos="high", limit_min=30)], qos=[deny]))
    assert begun.keys() == {"2", "3"}


def test_enforcepartlimits_rejects_a_job_that_one_or_no_partition_takes() -> None:
    """Of a job that waits for ever, and of a rejected one, only the first counts as submitted."""
    parts = tuple(replace(PARTITION, name=name, max_time_min=limit) for name, limit in (("brief", 30), ("all", None)))
    jobs = [
        job(id="1", partitions=("brief",), limit_min=60), job(id="2", partitions=("brief", "all"), limit_min=60),
        job(id="3", partitions=("all",)),
    ]  # fmt: skip
    for mode, begun in (("NO", {"2"}), ("ANY", {"2", "3"}), ("ALL", {"3"})):
        place = site(jobs, associations={"alice": SiteLimits(max_submit=2)}, rules=replace(RULES, part_limits=mode))
        first = {name for name, one in starts(replace(place, partitions=parts)).items() if one.start < SOON}
        assert first == begun, mode


def test_a_job_without_its_licence_waits_and_closes_nothing() -> None:
    jobs = [job(licences={"a": 1}), job(id="2", licences={"a": 1}), job(id="3")]
    begun = starts(site(jobs, rules=replace(RULES, licences={"a": 1})))
    assert begun["3"].start < SOON and 600 <= begun["2"].start - begun["1"].start < 600 + SOON


def test_a_job_is_killed_at_the_end_of_its_reservation() -> None:
    inside = job(reservation="r", run_s=3600.0, limit_min=90)
    begun = starts(site([inside], reservations=(reservation(10, 30, (3,)),)))["1"]
    assert begun.nodes == ("n3",) and 600 <= begun.start < 600 + SOON
    assert begun.end is not None and 1800 < begun.end <= 1830 + 1


def test_a_job_whose_limit_reaches_into_a_reservation_waits_for_its_end() -> None:
    jobs = [job(limit_min=60), job("bob", id="2", limit_min=9, run_s=60.0)]
    begun = starts(site(jobs, reservations=(reservation(10, 30, tuple(range(len(NODES)))),)))
    assert begun["2"].start < SOON and 1800 <= begun["1"].start < 1800 + SOON


def test_a_magnetic_reservation_draws_a_job_that_fits_nowhere_else() -> None:
    everything = job("bob", id="0", min_nodes=5, is_exclusive=True)
    jobs = [everything, job("carol", id="1", submit=T0 + 90.0), job("alice", id="2", submit=T0 + 120.0)]
    drawing = reservation(0, 600, (5,), "MAGNETIC", users=frozenset({"alice"}))
    begun = starts(site(jobs, reservations=(drawing,)))
    assert begun["2"].nodes == ("n5",) and begun["2"].start < 120 + SOON
    assert begun["1"].start >= 600 and begun["1"].nodes != ("n5",)


def test_a_job_is_killed_when_its_group_has_used_up_its_minutes() -> None:
    place = site([job(run_s=3600.0)], associations={"physics": SiteLimits(group_tres_minutes={"cpu": 5})})
    start = starts(place)["1"]
    assert start.end is not None and 300 <= start.end - start.start <= 600 + 30  # the next calculation, and a check
    assert not starts(replace(place, rules=replace(RULES, is_safe=True)))  # it would not start, either


def test_jobs_on_a_node_that_fails_start_again_if_they_may() -> None:
    down = NodeEvent("n0", T0 + 300.0, T0 + 400.0, kills=True)
    rows = (("1", "n0", True), ("2", "n0", False), ("3", "n1", True))
    jobs = [job(id=name, max_nodes=1, required_nodes=(node,), is_requeued=may) for name, node, may in rows]
    place = site(jobs, events=(down,))
    times = [(place.jobs[one.job].id, one.start - T0, one.end) for one in replay_site(place).starts]
    first, other, third, *again = sorted(times, key=lambda time: (time[1], time[0]))
    assert [first[0], other[0], third[0]] == ["1", "2", "3"] and [run[0] for run in again] == ["1"]
    assert first[2] == other[2] == T0 + 300 and third[2] == T0 + third[1] + 600
    assert 300 + 121 <= again[0][1] < 300 + 121 + SOON and again[0][2] == T0 + again[0][1] + 600

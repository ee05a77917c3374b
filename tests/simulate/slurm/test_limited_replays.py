"""Replays of small sites in which a limit, a reservation or a licence decides when a job starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotfish.simulate.slurm.site import Site, SiteLimits, SiteQos, SiteReservation
from pilotfish.simulate.slurm.twin import SiteStart, replay_site
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

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


def test_a_submission_too_many_is_repeated_when_a_job_has_left() -> None:
    jobs = [job(), job(id="2"), job(id="3", submit=T0 + 1.0)]
    begun = starts(site(jobs, associations={"alice": SiteLimits(max_submit=1)}))
    assert [begun[one].start // 600 for one in "123"] == [0, 1, 2]


def test_a_job_that_denyonlimit_rejects_never_starts_and_stops_nobody() -> None:
    deny = SiteQos("high", flags=frozenset({"DenyOnLimit"}), limits=SiteLimits(max_wall_min=30.0))
    begun = starts(site([job(qos="high"), job(id="2"), job(id="3", qos="high", limit_min=30)], qos=[deny]))
    assert begun.keys() == {"2", "3"}


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

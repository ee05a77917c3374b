"""Tables of reservations: their nodes, and which jobs they concern.

Rule: a reservation is one row for each time that it comes (`DAILY` and its kin), all of the same name, in the order of
their starts. Who may use it is decided here; a job that names one that it may not use is outside all of them.
Source: scontrol(1) and reservations of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..kernels.slurm.tables import RESERVATION
from .job_columns import Coded, SiteJobs, distinct
from .job_tables import node_words
from .site import Site, SitePartition, SiteReservation

_PERIODS_S = {"HOURLY": 3600, "DAILY": 86_400, "WEEKLY": 604_800}
_DAY_S = 86_400


def reservation_tables(site: Site, jobs: Array) -> dict[str, Array]:
    """Return the tables of `reserved_nodes` by name.

    Args:
        site: the site, with its `instances`.
        jobs: rows of `tables.JOB` in the order of the site's jobs; reservation, magnet0 and magnets are filled.
    """
    reservations = site.reservations
    rows = np.zeros(len(reservations), RESERVATION)
    rows["next"] = -1
    newest = dict[str, int]()
    for place in range(len(reservations) - 1, -1, -1):
        reservation, row, flags = reservations[place], rows[place], _flags(reservations[place])
        row["start"], row["end"], row["created"] = reservation.start, reservation.end, reservation.created or 0
        row["maint"], row["overlap"], row["flex"] = ("MAINT" in flags, "OVERLAP" in flags, "FLEX" in flags)
        row["next"] = newest.get(reservation.name, -1)
        newest[reservation.name] = place
    nodes = {node.name: place for place, node in enumerate(site.nodes)}
    sets = [[nodes[name] for name in reservation.nodes if name in nodes] for reservation in reservations]
    stops = [[_stops(reservation, partition) for partition in site.partitions] for reservation in reservations]
    return {
        "reservations": rows, "reservation_nodes": node_words(sets, -(-len(site.nodes) // 64)),
        "reservation_stops": np.array(stops, np.int64).reshape(len(rows), len(site.partitions)),
        "magnets": _fill_jobs(site, jobs, reservations, newest),
    }  # fmt: skip


def unfollowed_reservations(site: Site) -> list[str]:
    """Return a sentence for each flag of a reservation that the replay does not follow."""
    kinds = {
        "TIME_FLOAT": "its start does not move", "REPLACE": "its nodes are not replaced by idle ones",
        "REPLACE_DOWN": "its nodes are not replaced when they fail", "ANY_NODES": "it has no nodes of its own",
        "PURGE_COMP": "it does not end when it is idle",
    }  # fmt: skip
    return [
        f"reservation {reservation.name}: {flag} is not followed: {effect}"
        for reservation in site.reservations
        for flag, effect in kinds.items()
        if flag in _flags(reservation)
    ]


def _flags(reservation: SiteReservation) -> set[str]:
    return {flag.upper() for flag in reservation.flags}


def instances(site: Site) -> tuple[SiteReservation, ...]:
    """Return the reservations by start; one that comes again and is in the site once is repeated until the last job."""
    names = [reservation.name for reservation in site.reservations]
    until = float(SiteJobs.of(site.jobs).submit.max(initial=0.0)) + _DAY_S
    reservations = list[SiteReservation]()
    for reservation in site.reservations:
        is_alone = names.count(reservation.name) == 1
        reservations += _repeated(reservation, until) if is_alone else [reservation]
    return tuple(sorted(reservations, key=lambda reservation: (reservation.start, reservation.name)))


def _repeated(reservation: SiteReservation, until: float) -> Iterator[SiteReservation]:
    """Yield a reservation each time that it comes, from its first start until a time."""
    yield reservation
    flags = _flags(reservation)
    period = next((period for flag, period in _PERIODS_S.items() if flag in flags), None)
    if flags & {"WEEKDAY", "WEEKEND"}:
        period = _DAY_S
    shift = period
    while shift is not None and period is not None and reservation.start + shift <= until:
        again = replace(reservation, start=reservation.start + shift, end=reservation.end + shift)
        is_weekend = (int(again.start) // _DAY_S + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
        if not flags & {"WEEKDAY", "WEEKEND"} or is_weekend == ("WEEKEND" in flags):
            yield again
        shift += period


def _stops(reservation: SiteReservation, partition: SitePartition) -> bool:
    """Return whether jobs of a partition cannot start until the end of a reservation in their way."""
    flags = _flags(reservation)
    return (
        "ALL_NODES" in flags
        or ("PART_NODES" in flags and reservation.partition == partition.name)
        or ("MAINT" in flags and bool(partition.nodes) and set(partition.nodes) <= set(reservation.nodes))
    )


# --- who may use a reservation ---
def _fill_jobs(site: Site, jobs: Array, reservations: tuple[SiteReservation, ...], first: dict[str, int]) -> Array:
    """Fill the columns of the jobs; return the magnetic reservations of all owners, one list after another."""
    parents = _parent_accounts(site)
    magnetic = [row for row in sorted(first.values()) if "MAGNETIC" in _flags(reservations[row])]
    columns, magnets = SiteJobs.of(site.jobs), list[int]()
    users, accounts = columns.users, columns.accounts
    names = Coded.of(job.reservation.split(",")[0] for job in columns.patterns)
    name_codes = names.codes[columns.pattern]
    first_rows, owner = distinct(users.codes, accounts.codes)
    ranges = np.zeros((len(first_rows), 2), np.int64)
    for row, job in enumerate(first_rows.tolist()):
        usable = [place for place in magnetic if _admits(reservations[place], users[job], accounts[job], parents)]
        ranges[row] = len(magnets), len(usable)
        magnets += usable
    first_rows, request = distinct(name_codes, users.codes, accounts.codes)
    places = np.full(len(first_rows), -1, np.int64)
    for row, job in enumerate(first_rows.tolist()):
        place = first.get(names.values[name_codes[job]], -1)
        if place >= 0 and _admits(reservations[place], users[job], accounts[job], parents):
            places[row] = place
    jobs["reservation"] = places[request]
    is_outside = jobs["reservation"] < 0
    jobs["magnet0"], jobs["magnets"] = (np.where(is_outside, column, 0) for column in ranges[owner].T)
    return np.array(magnets, np.int64)


def _admits(reservation: SiteReservation, user: str, account: str, parents: dict[str, str]) -> bool:
    """Return whether a user may use a reservation with an account; accounts stand for those below them."""
    accounts = {account}
    while account in parents:
        account = parents[account]
        accounts.add(account)
    return _is_listed({user}, reservation.users) and _is_listed(accounts, reservation.accounts)


def _is_listed(names: set[str], listed: frozenset[str]) -> bool:
    """Return whether a list admits one of these names; a list of `-name` admits all others, an empty one everybody."""
    denied = {name[1:] for name in listed if name.startswith("-")}
    return not names & denied and (not listed - {f"-{name}" for name in denied} or bool(names & listed))


def _parent_accounts(site: Site) -> dict[str, str]:
    return {
        row.account: site.associations[row.parent].account
        for row in site.associations
        if not row.user and row.parent >= 0
    }

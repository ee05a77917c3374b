"""What reservations leave to a job, and have for it, in plain Python.

Rule: a reservation keeps its nodes from each job outside it whose time limit reaches into it. Jobs inside have no other
nodes, and start not before it begins; with FLEX they may do both.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotfish.simulate.slurm.site import SitePartition, SiteReservation
from tests.reference.slurm_machine import Job, Machine

#: How often a start moves behind a reservation before Slurm gives up.
MOVES = 10


class Room(NamedTuple):
    """What is left to a job: when it may start at the earliest, on which nodes, and the first end in its way."""

    start: int
    nodes: set[int]
    freed: int  # 0: nothing is in the way


def reservation_of(machine: Machine, job: Job) -> SiteReservation | None:
    """Return the reservation of a job, if it names one of the site."""
    names = (one for one in machine.site.reservations if one.name == job.asked.reservation)
    return next((one for one in names if not one.users or job.asked.user in one.users), None)


def has_begun(machine: Machine, job: Job) -> bool:
    """Return whether the reservation of a job lets it start; also of a job that has none."""
    inside = reservation_of(machine, job)
    return inside is None or (machine.now < inside.end and (inside.start <= machine.now or "FLEX" in inside.flags))


def room_of(machine: Machine, job: Job, part: SitePartition, nodes: set[int], start: int, seconds: int) -> Room | None:
    """Return what reservations leave of nodes to a job that runs from `start` for `seconds`; None: it can never run."""
    inside = reservation_of(machine, job)
    if inside is None:
        for _ in range(MOVES):
            room = _outside(machine, part, nodes, start, seconds)
            if room.start == start:
                break
            start = room.start
        return room
    if inside.end <= start:
        return None
    if "FLEX" not in inside.flags:
        nodes, start = nodes & nodes_of(machine, inside), max(start, int(inside.start))
    freed = 0
    for other in _in_the_way(machine, start, seconds):
        if other != inside and not _gives_way(other, inside) and nodes & nodes_of(machine, other):
            nodes, freed = nodes - nodes_of(machine, other), min(freed or int(other.end), int(other.end))
    return Room(start, nodes, freed)


def _outside(machine: Machine, part: SitePartition, nodes: set[int], start: int, seconds: int) -> Room:
    """Return what all reservations leave to a job that is in none; its start may move to the end of one."""
    freed = 0
    for other in _in_the_way(machine, start, seconds):
        reserved = nodes_of(machine, other)
        freed_now = min(freed or int(other.end), int(other.end))
        if "MAINT" in other.flags and machine.part_nodes(part) <= reserved:
            return Room(int(other.end), nodes, freed_now)
        if nodes & reserved:
            nodes, freed = nodes - reserved, freed_now
    return Room(start, nodes, freed)


def _in_the_way(machine: Machine, start: int, seconds: int) -> list[SiteReservation]:
    """Return the reservations that overlap a time, by their start."""
    rows = sorted(machine.site.reservations, key=lambda one: (one.start, one.name))
    return [one for one in rows if one.start < start + seconds and one.end > start]


def _gives_way(other: SiteReservation, inside: SiteReservation) -> bool:
    """Return whether jobs of a reservation may use the nodes of another one."""
    return "MAINT" in inside.flags or ("OVERLAP" in inside.flags and "MAINT" not in other.flags)


def nodes_of(machine: Machine, reservation: SiteReservation) -> set[int]:
    """Return the nodes of a reservation."""
    return {machine.rank[name] for name in reservation.nodes}

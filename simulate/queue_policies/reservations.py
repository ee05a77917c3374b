"""Reservations of waiting jobs: whether the jobs that run, and those that start at the same time, leave room for them.

Rule: a running job holds what it has until its latest end, a reserved job from its reservation until its walltime is
over. A job that has outlasted its latest end may end at any moment, so it stands in no reservation's way.
Complexity: O(nodes + reservations log reservations + running jobs that end before the last of them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import index

from .interface import QueueView, Reserve
from .queued_job import QueuedJob

#: When a job is to start, seconds, and on which nodes.
Reserved = tuple[float, tuple[int, ...]]


def reserved_until(start: float, job: QueuedJob) -> float:
    """Return until when a job holds its nodes; with zero walltime, until the next representable time."""
    end = start + job.walltime
    return end if end > start else math.nextafter(start, math.inf)


def check_reservations(
    now: QueueView, reservations: Sequence[Reserve], called_at: float, started: float
) -> dict[int, Reserved] | Reserve:
    """Return what each job has reserved, by its number; or the first reservation that cannot be kept.

    Args:
        now: the snapshot, with the jobs that the same call has started.
        reservations: of waiting jobs, each for a time after the call.
        called_at: when the policy was called, seconds.
        started: when these jobs started, seconds: later, if decisions take time.
    """
    reserved: dict[int, Reserved] = {}
    room, running, ended = now.free_nodes(), now.running, 0
    late_s, ends = started - called_at, list[tuple[float, int]]()
    if late_s > 0.0:
        ends = sorted((run.until - late_s * (run.start_time >= started), i) for i, run in enumerate(running))
    held: list[tuple[float, int, QueuedJob, tuple[int, ...]]] = []  # ends of reserved jobs
    for reservation in sorted(reservations, key=lambda it: it.time):
        while ended < len(running):
            until, place = ends[ended] if ends else (running[ended].until, ended)
            if until > reservation.time:
                break
            room.release(running[place])
            ended += 1
        while held and held[0][0] <= reservation.time:
            room.give(*heappop(held)[2:])
        need = room.need(reservation.job)
        if reservation.nodes is None:
            nodes = room.where(reservation.job)
        else:
            nodes, fits = _nodes(reservation, len(room.cores)), need.fits(room.cores, room.memory)
            nodes = nodes if nodes and fits[list(nodes)].all() else None
        if nodes is None:
            return reservation
        room.take(reservation.job, nodes)
        heappush(
            held, (reserved_until(reservation.time, reservation.job), reservation.job.number, reservation.job, nodes)
        )
        reserved[reservation.job.number] = reservation.time, nodes
    return reserved


def _nodes(reservation: Reserve, count: int) -> tuple[int, ...] | None:
    """Return the nodes of a reservation; None if they are not as many different ones as the job needs."""
    try:
        nodes = tuple(index(node) for node in reservation.nodes or ())
    except TypeError:
        return None
    valid = len(set(nodes)) == len(nodes) == reservation.job.nodes and all(0 <= node < count for node in nodes)
    return nodes if valid else None

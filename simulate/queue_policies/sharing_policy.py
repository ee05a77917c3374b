"""Backfilling on nodes that jobs share, with a bound on how much they slow each other down, in Python.

Rule: EASY is that of `kernels.mapping.backfilling`. A job starts on the fastest nodes on which, by a forecast, neither
it nor any job there then progresses more slowly than 1 / bound of its rate alone, nor takes longer than that because of
later phases; where it would be alone, it may always start. The head of the queue has a reservation of nodes without
other jobs. Until a job ends, or outlasts its expected end, the reservation stands and what was refused stays refused.
Under conservative backfilling each waiting job has a reservation of nodes without other jobs. Before that, it may start
next to running jobs, as above, on nodes that are not reserved for others until its latest end; so it delays no
reservation.
A forecast knows nothing of decisions of the same call, so each call starts one job and asks to be called again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from .conservative_policy import Reserving
from .easy_policy import reservation
from .free_nodes import FreeNodes, Need
from .interface import Decision, Snapshot, Start, Wake
from .order import Order
from .queued_job import Job
from .reservations import reserved_until

HAIR = 1.0 + 1e-9


class SharedBackfilling:
    """EASY backfilling with a bound on sharing.

    O(nodes) forecasts for each job that is examined.

    Args:
        queue: order of the queue.
        bound: the largest factor by which jobs may slow each other down; 0: each job has nodes of its own.
        steady: the order of jobs does not change with time.
    """

    def __init__(self, queue: Order, bound: float, *, steady: bool) -> None:
        self._queue, self._bound, self._steady = queue, bound, steady
        self._head: Job | None = None  # who has the reservation
        self._reserved, self._later = math.inf, (np.zeros(0), np.zeros(0))
        self._refused = set[int]()  # numbers of jobs
        self._called = -math.inf

    def decide(self, now: Snapshot) -> Iterator[Decision]:
        """Start the first job that may start, reserving for the head of the queue."""
        queue, free = self._queue.sorted(now), now.free_nodes()
        again, self._called = self._called == now.time and not now.ended, now.time
        empty = _cores_of(now)
        if not queue:
            self._head = None
            return
        stands = queue[0] is self._head and not now.ended and (again or (self._steady and not _is_overdue(now)))
        if not stands:
            self._head = None
            self._refused.clear()
            if nodes := self._where(now, queue[0], free, empty):
                yield from _start(now, queue, queue[0], nodes)
                return
            self._reserve(now, queue[0], empty)
        later = FreeNodes(*self._later, free.need, free.held, free.speeds)
        for job in queue[1:]:
            if job.number in self._refused:
                continue
            self._refused.add(job.number)
            late = now.time + job.walltime > self._reserved
            if nodes := self._where(now, job, free, empty, later if late else None):
                if late:
                    later.take(job, nodes)
                yield from _start(now, queue, job, nodes)
                return

    def _where(
        self, now: Snapshot, job: Job, free: FreeNodes, empty: Array, later: FreeNodes | None = None
    ) -> tuple[int, ...]:
        """Return the nodes on which a job may start and that it should take; () if they are too few."""
        need = free.need(job)
        fits = need.fits(free.cores, free.memory)
        if self._bound == 0.0:
            fits &= free.cores == empty
        if later is not None:
            fits &= need.fits(later.cores, later.memory)
            if self._bound == 0.0:
                fits &= later.cores == empty
        return _first_within(now, job, free, fits, self._bound)

    def _reserve(self, now: Snapshot, head: Job, empty: Array) -> None:
        """Reserve nodes without other jobs for the head of the queue."""
        later = now.free_nodes()

        def where() -> tuple[int, ...] | None:
            whole = later.need(head).fits(later.cores, later.memory) & (later.cores == empty)
            return later.pick(np.flatnonzero(whole), head.nodes)

        self._reserved = reservation(now, later, [], where)
        if (place := where()) is not None:
            later.take(head, place)
            later.cores[list(place)] = 0
        self._head, self._later = head, (later.cores, later.memory)


class SharedReserving(Reserving):
    """Conservative backfilling with a bound on sharing.

    O(nodes) forecasts for each job that is examined: until a job ends, what was refused stays refused.

    Args:
        queue: order of the queue.
        bound: see `SharedBackfilling`.
        arranged: see `Reserving`.
    """

    def __init__(self, queue: Order, bound: float, *, arranged: bool = False) -> None:
        super().__init__(queue, arranged=arranged)
        self._bound, self._refused, self._again = bound, set[int](), False

    def decide(self, now: Snapshot) -> Iterator[Decision]:
        """Move reservations, reserve for new jobs, and start the first job that may start."""
        if not (now.ended or now.submitted or self._again) and now.time < self._due:
            return  # an older wake-up
        queue, kept, self._again = self._queue.sorted(now), self._kept, False
        yield from self._reserve(now, queue, self._free(now))
        if now.ended:
            self._refused.clear()
        for job in queue:
            if job.number in kept and (nodes := self._where(now, job)):
                del kept[job.number]
                self._again = self._loose = True
                yield Start(job, nodes=nodes)
                yield Wake(now.time)
                return
        self._due = min((start for start, _ in kept.values() if start > now.time), default=math.inf)
        if self._due < math.inf:
            yield Wake(self._due)

    def _free(self, now: Snapshot) -> FreeNodes:
        """Return which nodes have no job, as one core each that a job takes whole."""
        room, empty = now.free_nodes(), _cores_of(now)
        alone, memory = np.ones(len(empty), np.int64), room.memory.copy()
        for it in now.running:
            nodes = list(room.held(it))
            alone[nodes] -= 1  # below 0 until the last of several jobs ends
            memory[nodes] += room.need(it.job).memory
        need = room.need
        return FreeNodes(
            alone, np.zeros(len(empty)), lambda job: Need(1, 0.0, need(job).fits(empty, memory)), room.held, room.speeds
        )

    def _where(self, now: Snapshot, job: Job) -> tuple[int, ...]:
        """Return the nodes on which a job may start now; () if it may not."""
        start, nodes = self._kept[job.number]
        if start <= now.time and _is_within(now, job, nodes, self._bound):
            return nodes
        if self._bound == 0.0 or job.number in self._refused:
            return ()
        self._refused.add(job.number)
        free = now.free_nodes()
        fits = free.need(job).fits(free.cores, free.memory)
        for number, (begin, reserved) in self._kept.items():
            if number != job.number and begin < reserved_until(now.time, job):
                fits[list(reserved)] = False
        return _first_within(now, job, free, fits, self._bound)


def _is_overdue(now: Snapshot) -> bool:
    """Return whether a running job has outlasted its expected end."""
    return any(it.until <= now.time and it.start_time < now.time for it in now.running)


def _cores_of(now: Snapshot) -> Array:
    """Return the cores of each node."""
    return np.array([last - first + 1 for first, last in now.machine.nodes])


def _first_within(now: Snapshot, job: Job, free: FreeNodes, fits: Array, bound: float) -> tuple[int, ...]:
    """Return those of the nodes that fit on which a job may start and that it should take; () if they are too few."""
    found = free.pick(np.flatnonzero(fits), job.nodes, lambda node: _is_within(now, job, (node,), bound))
    return found if found and (job.nodes == 1 or _is_within(now, job, found, bound)) else ()


def _is_within(now: Snapshot, job: Job, nodes: tuple[int, ...], bound: float) -> bool:
    """Return whether no job is slowed down beyond the bound, neither at once nor in a later phase."""
    if bound == 0.0:
        return True
    would = now.forecast(job, nodes)
    return would.alone or max(would.crowding, would.slowdown, would.others) <= bound * HAIR


def _start(now: Snapshot, queue: list[Job], job: Job, nodes: tuple[int, ...]) -> Iterator[Decision]:
    yield Start(job, nodes=nodes)
    if len(queue) > 1:
        yield Wake(now.time)

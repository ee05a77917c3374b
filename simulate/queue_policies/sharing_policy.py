"""Backfilling on nodes that jobs share, with a bound on how much they slow each other down, in Python.

Rule: EASY is that of `kernels.mapping.backfilling`. A job starts on the fastest nodes on which, by a forecast, neither
it nor any job there then progresses more slowly than 1 / bound of its rate alone, nor takes longer than that because of
later phases; where it would be alone, it may always start. The head of the queue has a reservation of nodes without
other jobs. Until a job ends, or outlasts its expected end, or nodes that were down are back, the reservation stands and
what was refused stays refused.
Under conservative backfilling each waiting job has a reservation of nodes without other jobs. Before that, it may start
next to running jobs, as above, on nodes that are not reserved for others until its latest end; so it delays no
reservation.
A forecast knows nothing of decisions of the same call, so each call starts one job and asks to be called again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..arrays import Array
from ..model.machine import Machine
from .conservative_policy import ConservativeBackfilling
from .energy.power_limits import NoLimit, Window
from .energy.saving_policy import SavingBackfilling
from .energy.switched_machines import Machines
from .free_nodes import FreeNodes, NodeNeed, Places
from .interface import Decision, QueueView, Start, Wake
from .node_backfill import NodeBackfill
from .order import Order
from .policy_facts import PolicySpec
from .queued_job import QueuedJob
from .reservations import reserved_until

HAIR = 1.0 + 1e-9


class SharedBackfilling(SavingBackfilling):
    """EASY backfilling with a bound on sharing, and with energy-saving parts.

    O(nodes) forecasts for each job that is examined. A node that boots for a job is not shared until it is ready.

    Args:
        policy: EASY with the bound, and the parts.
        queue: order of the queue.
        window, limit: see `SavingBackfilling`.
    """

    _one_by_one = True

    def __init__(self, policy: PolicySpec, queue: Order, window: Window | None, limit: NoLimit | None = None) -> None:
        super().__init__(policy, queue, window, limit)
        self._bound = policy.plain.share.bound
        self._first: QueuedJob | None = None  # who has the reservation

    def _backfill_at(self, now: QueueView, machines: Machines, queue: list[QueuedJob]) -> NodeBackfill:
        """Return what can start at this call; the reservation, and what was refused, may stand."""
        first, before, last = queue[0] if queue else None, self._backfill, self._first
        backfill, self._first = SharedBackfill(now, machines, self._limit, self._bound), first
        if self._stands and first is last and isinstance(before, SharedBackfill) and before.head is not None:
            backfill.stand(before)
        return backfill


class SharedBackfill(NodeBackfill):
    """Backfilling with a bound on sharing."""

    def __init__(self, now: QueueView, machines: Machines, limit: NoLimit, bound: float) -> None:
        super().__init__(now, machines, limit)
        self._bound, self._refused = bound, set[int]()  # numbers of jobs that need not be looked at

    def stand(self, before: SharedBackfill) -> None:
        """Let the reservation of another call stand, and what was refused then."""
        self._head, self._reserved, self._later, self.head = before._head, before._reserved, before._later, before.head
        self._refused, self.waits = before._refused, before.waits

    def reserve(self, job: QueuedJob) -> None:
        """Reserve nodes without other jobs for a waiting job."""
        super().reserve(job)
        self._refused.add(job.number)

    def _fitting(self, job: QueuedJob) -> tuple[Places, float] | None:
        """Return where a job can start now without delaying the reservation, and its latest end."""
        if job.number in self._refused:
            return None
        if self._head is not None:
            self._refused.add(job.number)  # if it starts, it is not seen again
        return super()._fitting(job)

    def _where(self, job: QueuedJob, later: FreeNodes | None) -> Places | None:
        """Return nodes on which a job may start now, and fits later if that is given; None if they are too few."""
        machines, now = self._machines, self._now
        wide = self._head is None and machines.is_wide(job)
        free = machines.opened(wide=True) if wide else machines.room
        fits = machines.ready <= now.time
        for room in (free,) if later is None else (free, later):
            if room.lacks(job):
                return None
            fits &= free.need(job).fits(room.cores, room.memory)
            if self._bound == 0.0:
                fits &= room.cores == machines.cores
        if (ranks := machines.rank()) is None:
            return _first_within(now, job, free, fits, self._bound) or None
        for rank in np.unique(ranks[fits]).tolist():
            if places := _first_within(now, job, free, fits & (ranks <= rank), self._bound, ranks):
                return places
        return None

    def _where_reserved(self, room: FreeNodes, head: QueuedJob) -> Places | None:
        """Return nodes without other jobs that can be reserved; None if there are too few."""
        machines = self._machines
        is_empty = room.need(head).fits(room.cores, room.memory) & (room.cores == machines.cores)
        order = np.flatnonzero(is_empty)
        if (ranks := machines.rank()) is not None:
            order = order[np.argsort(ranks[order], kind="stable")]
        return room.pick(order, head.nodes) if head.size <= room.total else None

    def _find_reservation(self) -> None:
        super()._find_reservation()
        if self._held is not None:  # whole nodes; a power cap counts the cores of the job only
            held, room = [*self._held], self._later
            room.blocked -= int(room.cores[held].sum())
            room.cores[held] = 0


class SharedReserving(ConservativeBackfilling):
    """Conservative backfilling with a bound on sharing.

    O(nodes) forecasts for each job that is examined: until a job ends, what was refused stays refused.

    Args:
        queue: order of the queue.
        bound: see `SharedBackfilling`.
        arranged, limit: see `ConservativeBackfilling`.
    """

    def __init__(
        self, queue: Order, bound: float, *, arranged: bool = False,
        limit: Callable[[Machine], NoLimit] = lambda machine: NoLimit(),
    ) -> None:  # fmt: skip
        super().__init__(queue, arranged=arranged, limit=limit)
        self._bound, self._refused, self._again = bound, set[int](), False

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Move reservations, reserve for new jobs, and start the first job that may start."""
        is_back = self._gets_resources_back(now)
        if not (is_back or now.ended or now.submitted or self._again) and now.time < self._due:
            return  # an older wake-up
        queue, reservations, self._again = self._queue.sorted(now), self._reservations, False
        yield from self._reserve(now, queue, self._free(now))
        if now.ended or is_back:
            self._refused.clear()
        for job in queue:
            if job.number in reservations and (nodes := self._where(now, job)):
                del reservations[job.number]
                self._again = self._loose = True
                yield Start(job, nodes=nodes)
                yield Wake(now.time)
                return
        self._due = min((start for start, _ in reservations.values() if start > now.time), default=math.inf)
        if self._due < math.inf:
            yield Wake(self._due)

    def _free(self, now: QueueView) -> FreeNodes:
        """Return which nodes have no job, as one core each that a job takes whole."""
        room, empty = now.free_nodes(), _cores_of(now)
        alone, memory, needs = np.ones(len(empty), np.int64), room.memory.copy(), dict[int, tuple[NodeNeed, NodeNeed]]()
        nodes = np.array([node for run in now.running for node in room.held(run)], np.int64)
        bytes_of = [room.need(run.job).memory for run in now.running for _ in room.held(run)]
        np.subtract.at(alone, nodes, 1)  # below 0 until the last of several jobs ends
        alone[(alone == 1) & (room.cores < empty)] = 0  # it is down
        np.add.at(memory, nodes, bytes_of)

        def whole_nodes(job: QueuedJob) -> NodeNeed:
            """Return the need of whole nodes; jobs of one shape share it."""
            need = room.need(job)
            if id(need) not in needs:
                needs[id(need)] = need, NodeNeed(1, 0.0, need.fits(empty, memory))  # the first keeps its identity
            return needs[id(need)][1]

        return FreeNodes(alone, np.zeros(len(empty)), whole_nodes, room.held, room.speeds)

    def _where(self, now: QueueView, job: QueuedJob) -> tuple[int, ...]:
        """Return the nodes on which a job may start now; () if it may not."""
        start, nodes = self._reservations[job.number]
        free = now.free_nodes()
        fits = free.need(job).fits(free.cores, free.memory)
        if start <= now.time and fits[list(nodes)].all() and _is_within(now, job, nodes, self._bound):
            return nodes
        if self._bound == 0.0 or job.number in self._refused:
            return ()
        self._refused.add(job.number)
        if not self._profile.may_start(job, start):
            return ()
        for number, (begin, reserved) in self._reservations.items():
            if number != job.number and begin < reserved_until(now.time, job):
                fits[list(reserved)] = False
        return _first_within(now, job, free, fits, self._bound)


def _cores_of(now: QueueView) -> Array:
    """Return the cores of each node."""
    return np.array([last - first + 1 for first, last in now.machine.nodes])


def _first_within(
    now: QueueView, job: QueuedJob, free: FreeNodes, fits: Array, bound: float, ranks: Array | None = None
) -> tuple[int, ...]:
    """Return those of the nodes that fit on which a job may start and that it should take; () if they are too few."""
    order = np.flatnonzero(fits)
    if ranks is not None:
        order = order[np.argsort(ranks[order], kind="stable")]
    places = free.pick(order, job.nodes, lambda node: _is_within(now, job, (node,), bound))
    return places if places and (job.nodes == 1 or _is_within(now, job, places, bound)) else ()


def _is_within(now: QueueView, job: QueuedJob, nodes: tuple[int, ...], bound: float) -> bool:
    """Return whether no job is slowed down beyond the bound, neither at once nor in a later phase."""
    if bound == 0.0:
        return True
    would = now.forecast(job, nodes)
    return would.alone or max(would.crowding, would.slowdown, would.others) <= bound * HAIR

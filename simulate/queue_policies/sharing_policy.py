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
from collections.abc import Callable, Iterator

import numpy as np

from ..arrays import Array
from ..model.machine import Machine
from .conservative_policy import ConservativeBackfilling
from .energy.power_limits import NoLimit, Use, Window
from .energy.saving_policy import SavingBackfilling, Started
from .energy.switched_machines import Machines, Places, Room
from .free_nodes import FreeNodes, NodeNeed
from .interface import Decision, QueueView, Start, Wake
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

    def _begin_pass(self, queue: list[QueuedJob]) -> None:
        """Forget the reservation, and what was refused, unless they stand."""
        first = queue[0] if queue else None
        if self._stands and first is self._first and self._later is not None:
            self._waits = []
            return
        self._first = first
        self._refused.clear()
        super()._begin_pass(queue)

    def _place(self, now: QueueView, machines: Machines, job: QueuedJob, *, wide: bool) -> tuple[Places, float] | None:
        """Return where a job can start now without delaying the head of the queue, and its latest end."""
        if self._later is not None:
            self._refused.add(job.number)  # if it starts, it is not seen again
        if len(machines.off) or len(machines.held):
            return super()._place(now, machines, job, wide=wide)
        until = now.time + job.walltime  # where no node boots, the forecasts of one search are enough
        late = self._head is not None and until > self._head.begin
        places = self._where(now, machines, job, self._later if late else None)
        return None if places is None else (places, until)

    def _where(
        self, now: QueueView, machines: Machines, job: QueuedJob, later: Room | None = None, *, wide: bool = False
    ) -> Places | None:
        """Return nodes on which a job may start now, and fits later if that is given; None if they are too few."""
        room = machines.opened(wide=True) if wide else machines.room
        rooms = (room,) if later is None else (room, later)
        if self._blocked and job.size > min(candidate.total for candidate in rooms):
            return None
        free, fits = room.nodes, machines.ready <= now.time
        for candidate in rooms:
            fits &= free.need(job).fits(candidate.nodes.cores, candidate.nodes.memory)
            if self._bound == 0.0:
                fits &= candidate.nodes.cores == machines.cores
        if not (len(machines.off) or len(machines.held)):
            return _first_within(now, job, free, fits, self._bound) or None
        ranks = machines.rank()
        for rank in np.unique(ranks[fits]).tolist():
            if places := _first_within(now, job, free, fits & (ranks <= rank), self._bound, ranks):
                return places
        return None

    def _where_alone(self, machines: Machines, room: Room, head: QueuedJob) -> Places | None:
        """Return nodes without other jobs that the head of the queue can reserve; None if there are too few."""
        nodes = room.nodes
        is_empty = nodes.need(head).fits(nodes.cores, nodes.memory) & (nodes.cores == machines.cores)
        order = np.flatnonzero(is_empty)
        order = order[np.argsort(machines.rank()[order], kind="stable")]
        return nodes.pick(order, head.nodes) if head.size <= room.total else None

    def _hold(self, room: Room, head: QueuedJob, places: Places) -> None:
        """Take whole nodes for the head of the queue; a power cap counts its cores only."""
        super()._hold(room, head, places)
        rest = room.nodes.cores[list(places)]
        room.nodes.cores[list(places)] = 0
        room.blocked -= int(rest.sum())

    def _reserve(
        self, now: QueueView, machines: Machines, head: QueuedJob, started: list[Started], running: list[Use]
    ) -> None:
        """Reserve nodes without other jobs for the head of the queue."""
        super()._reserve(now, machines, head, started, running)
        self._refused.add(head.number)


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
        if not (now.ended or now.submitted or self._again) and now.time < self._due:
            return  # an older wake-up
        queue, reservations, self._again = self._queue.sorted(now), self._reservations, False
        yield from self._reserve(now, queue, self._free(now))
        if now.ended:
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

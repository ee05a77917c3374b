"""Backfilling on nodes, and on machines that are switched, under a limit of power or energy.

Rule: a reservation is one of nodes, because a job does not move: what is backfilled leaves the nodes of the reservation
free in its time. Where a job starts, and whether machines boot for it, is answered by `switched_machines.Machines`;
whether there is power for it by `power_limits.NoLimit`. Without energy-saving parts these restrict nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from ..arrays import Array
from .backfill import CountedBackfill, latest_end
from .energy.power_limits import NoLimit, Use
from .energy.switched_machines import Machines, machines_at
from .free_nodes import FreeNodes, Places
from .interface import QueueView, Start
from .queued_job import QueuedJob

#: Why a job waits that has free resources.
NO_ENERGY = "it waits for energy: the balance of the budget does not cover its walltime yet"
NO_POWER = "it waits for power: the cap lets no more cores compute now"

_End = tuple[float, Callable[..., None], tuple[Any, ...]]  # time, what frees resources in a room, its other arguments


class NodeBackfill(CountedBackfill):
    """Backfilling in which each job starts on the first nodes on which it fits now, see `Backfill`.

    If it ends later than the reservation begins, the reserved nodes are left out. O(nodes) for each job.

    Args:
        now: the snapshot.
        machines: the machines at this call; None: all are on.
        limit: of power or energy; None: nothing is limited.
        fills: whether jobs may start while another has a reservation.

    Attributes:
        head: use of resources by the job with the reservation, from then on; None: no job has one.
        running: use of resources by jobs that run, and by those that are being started, if there is a limit.
        fills: whether jobs may start while another has a reservation.
        waits: why the limit kept jobs from starting, by number.
    """

    def __init__(
        self, now: QueueView, machines: Machines | None = None, limit: NoLimit | None = None, *, fills: bool = True
    ) -> None:
        super().__init__(now)
        self._machines = machines or machines_at(now)
        self._limit, self.fills = limit, fills
        self._room = self._later = self._machines.room
        self._free = self._room.total
        self._started = list[tuple[float, QueuedJob, Places]]()  # latest end, job, nodes
        self._held, self.head = None, None  # type: Places | None, Use | None
        self.running, self.waits = [] if limit is None else uses(now), dict[int, str]()

    @property
    def nodes(self) -> Places | None:
        """The nodes of the reservation; see `Backfill`."""
        return self._held if self._reserved < math.inf else None

    def reserve(self, job: QueuedJob) -> None:
        """Reserve for a waiting job; see `Backfill`."""
        super().reserve(job)
        self._find_reservation()

    def forget(self) -> None:
        """Give the reservation up."""
        self._head, self._reserved, self.head = None, math.inf, None

    def spare(self, machines: Machines, candidates: Array, until: float) -> Array:
        """Return the first of some machines that can be off until a time without delaying the job that reserves."""
        if self._head is None:
            return candidates[:0]
        return candidates if until <= self._reserved else machines.spared(candidates, self._later)

    def note_unpowered(self, jobs: Iterable[QueuedJob]) -> None:
        """Note why jobs do not start that do not fit because the limit blocks resources."""
        free, blocked = self._free, self._room.blocked
        if blocked:
            self.waits |= {job.number: NO_POWER for job in jobs if free < job.size <= free + blocked}

    # --- how and where a job starts ---
    def start(self, job: QueuedJob) -> Start | None:
        """Take what a waiting job needs, and return the decision that starts it now; see `Backfill`."""
        free, limit, now, placement = self._free, self._limit, self._now.time, None
        if self._head is None or (self.fills and job.size <= free):
            placement = self._fitting(job)
        if placement is None:
            if free < job.size <= free + self._room.blocked:
                self.waits[job.number] = NO_POWER
            return None
        places, until = placement
        if limit is not None:
            use = Use(job.size, now, until)
            if not limit.allows(now, self.running, use, self.head):
                self.waits[job.number] = NO_ENERGY
                return None
            self.running.append(use)
        if job is self._head:
            self.forget()
        elif self._head is not None and until > self._reserved:
            self._later.take(job, places)
        self._started.append((until, job, places))
        self._chosen.append(job)
        opens = len(self._machines.held) > 0
        start = self._machines.start(job, places)
        self._free = self._room.total if opens else free - job.size
        return start

    def _fitting(self, job: QueuedJob) -> tuple[Places, float] | None:
        """Return where a job can start now without delaying the reservation, and its latest end."""
        now, reserved = self._now.time, self._reserved if self._head is not job else math.inf
        later = self._later if now + job.walltime > reserved else None
        while (places := self._where(job, later)) is not None:
            until = now + self._machines.boot_s(job, places) + job.walltime
            if later is not None or until <= reserved:
                return places, until
            later = self._later  # machines boot for it until after the reservation begins
        return None

    def _where(self, job: QueuedJob, later: FreeNodes | None) -> Places | None:
        """Return nodes on which a job can start now, and fits later if that is given; None if it cannot."""
        machines, room = self._machines, self._room
        if self._head is None and len(machines.held) and machines.is_wide(job):
            room = machines.opened(wide=True)
        elif job.size > self._free:
            return None
        return room.where(job, later, rank=machines.rank())

    # --- the reservation ---
    def _find_reservation(self) -> None:
        assert self._head is not None, "a reservation is sought"
        head, now, wide = self._head, self._now.time, self._machines.is_wide(self._head)
        room, ends = self._machines.opened(wide=wide), self._ends(wide=wide)
        ends.reverse()
        may_fit = wide or head.size <= self._free
        time = now if may_fit and self._where_reserved(room, head) is not None else math.inf
        while ends and time == math.inf:
            then, free, arguments = ends.pop()
            free(room, *arguments)
            if self._where_reserved(room, head) is not None:
                time = then
        if self._limit is not None:
            time = self._limit.reserved(now, self.running, head.size, head.walltime, time)
        while now < time and ends and ends[-1][0] <= time:
            _, free, arguments = ends.pop()
            free(room, *arguments)
        self._reserved, self.head = time, Use(head.size, time, time + head.walltime)
        self._later, self._held = room, self._where_reserved(room, head)
        if self._held is not None:
            room.take(head, self._held)

    def _ends(self, *, wide: bool) -> list[_End]:
        """Return when something becomes free, and what frees it in a room, by time; `wide`: see `Machines.back`."""
        now, machines = self._now, self._machines
        ends: list[_End] = [(latest_end(run, now.time), FreeNodes.release, (run,)) for run in now.running]
        ends += [(until, FreeNodes.give, (job, places)) for until, job, places in self._started]
        ends += [(switch.until, machines.give, (switch.resources,)) for switch in machines.back(wide=wide)]
        if self._limit is not None and self._room.blocked:
            ends.append((self._limit.end, FreeNodes.unblock, ()))
        ends.sort(key=itemgetter(0))
        return ends

    def _where_reserved(self, room: FreeNodes, head: QueuedJob) -> Places | None:
        """Return nodes that can be reserved; None if there are too few."""
        return room.where(head, rank=self._machines.rank())


def uses(now: QueueView) -> list[Use]:
    """Return the use of resources by the running jobs, from now on."""
    return [Use(run.job.size, now.time, latest_end(run, now.time)) for run in now.running]

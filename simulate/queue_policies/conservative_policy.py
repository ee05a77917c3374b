"""Conservative backfilling in Python.

Rule: on one node it gives the schedule of its kernel; on several nodes a reservation is one of nodes, and an allocation
chooses among nodes in the order of the cluster. On a machine without nodes, in an allocation other than `basic`, each
resource counts as a node of one core, so that a reservation is one of resources.
A power cap, which is known in advance, limits how many resources all jobs use at each time, reserved ones included.
A job that fits only with resources that are withdrawn now has no reservation until some are given back.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from ..arrays import Array
from ..model.intervals import Interval
from ..model.machine import Machine
from .backfill import latest_end
from .energy.power_limits import NoLimit
from .free_nodes import FreeNodes, NodeNeed
from .interface import Decision, QueueView, Reject, Reserve, Start, Wake
from .order import Order
from .queued_job import QueuedJob, Running
from .reservations import reserved_until


class ConservativeBackfilling:
    """Conservative backfilling: every waiting job has a reservation, which moves to an earlier time when it can.

    Rule: what waits at the first call gets its reservations in the order of the queue if `arranged`, else in that of
    submission, as a kernel has it. `allocation`: of `policy_specs.ALLOCATIONS`. `limit`: returns the power cap.
    """

    def __init__(
        self, queue: Order, *, arranged: bool = False, allocation: str = "basic",
        limit: Callable[[Machine], NoLimit] = lambda machine: NoLimit(),
    ) -> None:  # fmt: skip
        self._queue, self._arranged, self._limit_on = queue, arranged, limit
        self._allocation, self._on_nodes = allocation, True
        self._reservations: dict[int, tuple[float, tuple[int, ...]]] = {}  # start and nodes of each waiting job
        self._loose, self._due = False, math.inf
        self._withdrawn, self._unplaced = 0, list[QueuedJob]()  # resources, and the jobs that wait for them
        self.compared = 0  #: nodes that jobs were compared with, at each time of the profiles so far

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Move reservations, reserve for new jobs, and start what is due."""
        if not (self._gets_resources_back(now) or now.ended or now.submitted) and now.time < self._due:
            return  # an older wake-up
        queue, reservations = self._queue.sorted(now), self._reservations
        self._on_nodes, shows = self._allocation == "basic" or bool(now.machine.nodes), self._arranged
        yield from self._reserve(now, queue, self._free(now))
        self._due = math.inf
        for job in queue:
            if job.number not in reservations:
                continue
            start, nodes = reservations[job.number]
            if start <= now.time:
                del reservations[job.number]
                yield Start(job, nodes=nodes) if self._on_nodes else Start(job, _intervals(nodes))
            else:
                self._due = min(self._due, start)
                if shows:  # later ones are only part of a forecast
                    yield Reserve(job, start, nodes if self._on_nodes else None)
        if self._due < math.inf:
            yield Wake(self._due)

    def _gets_resources_back(self, now: QueueView) -> bool:
        """Return whether some resources that were withdrawn at the last call are there again. O(running jobs)."""
        withdrawn, before = now.withdrawn, self._withdrawn
        self._withdrawn, self._loose = withdrawn, self._loose or withdrawn < before
        return withdrawn < before

    def _free(self, now: QueueView) -> FreeNodes:
        """Return what reservations can have now."""
        return now.free_nodes() if self._on_nodes else _each_resource(now)

    def _reserve(self, now: QueueView, queue: list[QueuedJob], free: FreeNodes) -> Iterator[Decision]:
        """Move reservations, and reserve for new jobs; reject those that fit nowhere."""
        reservations = self._reservations
        new = [*queue] if self._arranged else [*now.submitted]
        self._arranged, self._loose = (
            False,
            self._loose or any(max(run.until, reserved_until(run.start_time, run.job)) > now.time for run in now.ended),
        )
        if self._loose and self._unplaced:
            waiting = {job.number for job in queue}
            new, self._unplaced = [*(job for job in self._unplaced if job.number in waiting), *new], []
        reserved_jobs, lost = [job for job in queue if job.number in reservations], list[QueuedJob]()
        starts = [reservations[job.number][0] for job in reserved_jobs]
        ends = [reserved_until(start, job) for start, job in zip(starts, reserved_jobs, strict=True)]
        limit = self._limit_on(now.machine)
        profile = self._profile = _Profile(
            now, free, (*starts, *ends), self._allocation, limit, on_nodes=self._on_nodes
        )
        for job in reserved_jobs:
            if not profile.take(job, *reservations[job.number]):
                lost.append(job)  # what should have ended by then has not
                del reservations[job.number]
        if self._loose:
            self._loose = False
            for job in reserved_jobs:
                if job.number in reservations and (earlier := profile.moved(job, *reservations[job.number])):
                    reservations[job.number], self._loose = earlier, True
        self._loose |= bool(lost)
        for job in (*lost, *new):
            if (reservation := profile.earliest(job)) is None:
                if self._withdrawn:
                    self._unplaced.append(job)
                else:
                    yield Reject(job)
                continue
            reservations[job.number] = reservation
            profile.take(job, *reservation)
        self.compared += profile.compared


class _Profile:
    """Free resources of each node over time if all jobs run until their walltimes: one row for each time of a change.

    Args:
        now: the snapshot, with the running jobs.
        free: what is free now.
        times: of the changes to come by reservations, seconds.
        allocation: see `ConservativeBackfilling`.
        limit: of the resources that all jobs use.
        on_nodes: a job gets nodes, not single resources.
    """

    def __init__(
        self, now: QueueView, free: FreeNodes, times: Iterable[float], allocation: str, limit: NoLimit, *,
        on_nodes: bool,
    ) -> None:  # fmt: skip
        self._strict, self._blocks = allocation in ("contiguous", "local"), allocation.endswith("contiguous")
        self._groups = _groups(now, on_nodes=on_nodes) if allocation.endswith("local") else []
        self._single, self._need, self._pick = not on_nodes, free.need, free.pick
        soon = math.nextafter(now.time, math.inf)  # the first end of a job that starts now
        ends = [max(latest_end(run, now.time), soon) for run in now.running]
        changes = limit.changes()
        self._times = sorted({now.time, *ends, *(time for time in (*times, *changes) if time > now.time)})
        self._cores = np.repeat(free.cores[None], len(self._times), axis=0)
        self._memory = np.repeat(free.memory[None], len(self._times), axis=0)
        self.compared = 0  #: nodes, at each of these times, with which jobs were compared
        self._headroom: Array | None = None  # resources that jobs may still use, by the limit
        if changes:
            self._headroom = limit.allowed(np.array(self._times)) - sum(run.job.size for run in now.running)
        self._free_at_ends(now.running, ends, [free.held(run) for run in now.running])

    def _free_at_ends(self, running: Sequence[Running], ends: Sequence[float], held: Sequence[tuple[int, ...]]) -> None:
        """Free what running jobs hold, from their ends on; on several nodes the cores of all jobs at once."""
        rows, at_once = np.searchsorted(self._times, ends), self._cores.shape[1] > 1
        if at_once:
            sizes, nodes = np.array([*map(len, held)], np.int64), np.array([*chain.from_iterable(held)], np.int64)
            cores = np.array([self._need(run.job).cores for run in running], np.int64)
            freed = np.zeros_like(self._cores)
            np.add.at(freed, (np.repeat(rows, sizes), nodes), np.repeat(cores, sizes))
            self._cores += np.cumsum(freed, axis=0)
        for run, first, nodes_of in zip(running, rows.tolist(), held, strict=True):
            self._add(first, len(self._times), run.job, nodes_of, 1, cores=not at_once)

    def _add(
        self, first: int, stop: int, job: QueuedJob, nodes: tuple[int, ...], sign: int, *, cores: bool = True
    ) -> None:
        """Add what a job has to these rows; without `cores` only memory and what the limit leaves."""
        need, columns = self._need(job), _columns(nodes)
        if cores:
            self._cores[first:stop, columns] += sign * need.cores
        if self._headroom is not None:
            self._headroom[first:stop] += sign * job.size
        if need.memory:
            self._memory[first:stop, columns] += sign * need.memory

    def _row(self, time: float) -> int:
        """Return the row that begins at this time, made if it is missing. O(rows x nodes) if so."""
        row = bisect_left(self._times, time)
        if row == len(self._times) or self._times[row] != time:
            self._times.insert(row, time)
            self._cores = np.insert(self._cores, row, self._cores[row - 1], axis=0)
            self._memory = np.insert(self._memory, row, self._memory[row - 1], axis=0)
            if self._headroom is not None:
                self._headroom = np.insert(self._headroom, row, self._headroom[row - 1])
        return row

    def take(self, job: QueuedJob, start: float, nodes: tuple[int, ...]) -> bool:
        """Reserve nodes from `start` on; return False if they are not free."""
        if start < self._times[0]:
            return False
        first, stop, need, columns = (
            self._row(start),
            self._row(reserved_until(start, job)),
            self._need(job),
            _columns(nodes),
        )
        if (self._cores[first:stop, columns] < need.cores).any():
            return False
        if need.memory and (self._memory[first:stop, columns] < need.memory).any():
            return False
        if self._headroom is not None and (self._headroom[first:stop] < job.size).any():
            return False
        self._add(first, stop, job, nodes, -1)
        return True

    def may_start(self, job: QueuedJob, start: float) -> bool:
        """Return whether the limit lets a job start now, and not at `start`, which is reserved on any nodes."""
        if self._headroom is None:
            return True
        end, until = reserved_until(start, job), reserved_until(self._times[0], job)
        for time in (start, end, until):
            self._row(time)
        times = np.array(self._times)
        headroom = self._headroom + job.size * ((times >= start) & (times < end))
        return bool((headroom[times < until] >= job.size).all())

    def moved(self, job: QueuedJob, start: float, nodes: tuple[int, ...]) -> tuple[float, tuple[int, ...]] | None:
        """Move a reservation to an earlier time; return it, or None if it stays."""
        first = self._row(start)
        if not self._enough(job, first).any():
            return None  # no earlier time has nodes for it
        self._add(first, self._row(reserved_until(start, job)), job, nodes, 1)
        reservation = self._search(job, start)
        self.take(job, *(reservation or (start, nodes)))
        return reservation

    def earliest(self, job: QueuedJob) -> tuple[float, tuple[int, ...]] | None:
        """Return the earliest start of a job, and its nodes; None if its allocation rejects even the empty machine.

        O(rows x nodes), and more for gaps that are too short.
        """
        return self._search(job, math.inf)

    def _wanted(self, job: QueuedJob) -> int:
        return job.size if self._single else job.nodes

    def _enough(self, job: QueuedJob, rows: int | None = None) -> Array:
        """Return which of the first rows have what a job needs, bool [rows]; None = of all rows."""
        fits = self._need(job).fits(self._cores[:rows], self._memory[:rows])
        self.compared += fits.size
        node_count = self._wanted(job)
        enough: Array = fits[:, 0] if fits.shape[1] == node_count == 1 else fits.sum(axis=1) >= node_count
        return enough if self._headroom is None else enough & (self._headroom[:rows] >= job.size)

    def _search(self, job: QueuedJob, before: float) -> tuple[float, tuple[int, ...]] | None:
        """Return the earliest start of a job before a time, and its nodes; None: there is no such start."""
        enough = self._enough(job)
        gaps, first = np.flatnonzero(~enough).tolist(), 0
        for gap in (*gaps, len(enough)):
            for row in range(first, gap):
                start = self._times[row]
                if start >= before:
                    return None
                stop = bisect_left(self._times, reserved_until(start, job))
                if stop > gap:
                    break
                fits = self._need(job).fits(self._cores[row:stop], self._memory[row:stop])
                self.compared += fits.size
                if (nodes := self._choose(np.asarray(fits.all(axis=0)), self._wanted(job))) is not None:
                    return start, nodes
            first = gap + 1
        return None

    def _choose(self, fits: Array, node_count: int) -> tuple[int, ...] | None:
        """Return so many of the nodes that fit, as the allocation wants them; None if they do not."""
        if self._blocks:
            bounds = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]])))
            for first, stop in bounds.reshape(-1, 2).tolist():
                if stop - first >= node_count:
                    return tuple(range(first, first + node_count))
        for first, last in self._groups:
            nodes = np.flatnonzero(fits[first : last + 1])[:node_count]
            if len(nodes) == node_count:
                return tuple((nodes + first).tolist())
        return None if self._strict else self._pick(np.flatnonzero(fits), node_count)


def _groups(now: QueueView, *, on_nodes: bool) -> list[Interval]:
    """Return the first and the last node, or resource, of each cluster of the machine."""
    groups = [*(now.machine.groups or ((0, now.machine.processors - 1),))]
    if not on_nodes:
        return groups
    firsts = [first for first, _ in now.machine.nodes]
    return [(bisect_left(firsts, first), bisect_right(firsts, last) - 1) for first, last in groups]


def _each_resource(now: QueueView) -> FreeNodes:
    """Return what is free now, with each resource as a node of one core."""
    free = np.zeros(now.machine.processors, np.int64)
    for first, last in now.free_resources:
        free[first : last + 1] = 1

    def held(running: Running) -> tuple[int, ...]:
        return tuple(resource for first, last in running.resources for resource in range(first, last + 1))

    return FreeNodes(free, np.zeros(1), lambda job: NodeNeed(1), held)


def _intervals(resources: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return ascending resources as the first and last of each interval."""
    numbers = np.array(resources)
    cuts = np.flatnonzero(np.diff(numbers) > 1) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(numbers, cuts)]


def _columns(nodes: tuple[int, ...]) -> int | list[int]:
    """Return an index of nodes; that of one is much faster."""
    return nodes[0] if len(nodes) == 1 else list(nodes)

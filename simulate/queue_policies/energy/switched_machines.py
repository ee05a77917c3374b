"""The machines that a Python policy switches, at one call: which are idle, off, or kept off, and which ones jobs get.

Rule: a job gets machines that are on first, then those that are off, and those that are kept off only if it could not
run without them. A machine is a resource, or a node where the machine of the policy has nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...model.intervals import Interval, count_of
from ...model.machine import switching_times
from ..free_nodes import FreeNodes
from ..interface import MachineStates, QueueView, Start
from ..queued_job import QueuedJob

Places = tuple[int, ...]
_NONE, _ONE_RANK = np.zeros(0, np.int64), np.zeros(1, np.int64)


@dataclass(slots=True)
class Room:
    """Resources that jobs may use at some time.

    Args:
        nodes: what is free on each node.
        blocked: how many of the free resources a power cap blocks.
    """

    nodes: FreeNodes
    blocked: int

    @property
    def total(self) -> int:
        """Return the number of resources; below 0 if fewer are free than are blocked."""
        return int(np.maximum(self.nodes.cores, 0).sum()) - self.blocked

    def where(self, job: QueuedJob, also: Room | None = None, rank: Array | None = None) -> Places | None:
        """Return the first nodes on which a job fits; None if it does not.

        Args:
            job: the job.
            also: it must fit here, too.
            rank: see `FreeNodes.where`.
        """
        if job.size > self.total or (also is not None and job.size > also.total):
            return None
        return self.nodes.where(job, also.nodes if also is not None else None, rank=rank)


class Machines:
    """The machines at a call, which are nodes; they change as the policy decides.

    Args:
        now: the snapshot.
        kept: machines that are kept off or will be, bool [machines]; one that a job gets is no longer kept.
        blocked: see `Room`.

    Attributes:
        idle, off, held: numbers of machines, ascending: those that are idle, off, and kept off.
    """

    def __init__(self, now: QueueView, kept: Array, blocked: int) -> None:
        self._now, self.time, self.kept, states = now, now.time, kept, now.states
        self.room, self.idle, off, self.on_s = Room(now.free_nodes(), blocked), _NONE, _NONE, 0.0
        self._locate(now)
        if states is not None:
            self.on_s = switching_times(now.machine.powers)[1]
            self.idle, off = np.flatnonzero(self.idle_since(states) <= now.time), self.numbers(states.off)
        is_kept = kept[off]
        self.off, self.held = off[~is_kept], off[is_kept]
        self._take(self.held)

    @staticmethod
    def count(now: QueueView) -> int:
        """Return the number of machines."""
        return len(now.machine.nodes) or now.machine.processors

    def numbers(self, resources: Iterable[Interval]) -> Array:
        """Return the numbers of the machines of these resources, ascending."""
        firsts = self.bounds[:, 0]
        parts = [np.arange(np.searchsorted(firsts, first), np.searchsorted(firsts, last, "right"))
                 for first, last in resources]  # fmt: skip
        return np.concatenate([_NONE, *parts])

    def resources(self, chosen: Array) -> list[Interval]:
        """Return the resources of these machines."""
        return [(first, last) for first, last in self.bounds[chosen].tolist()]

    def idle_since(self, states: MachineStates) -> Array:
        """Return since when each machine has been idle, seconds [machines]; inf: it is not."""
        since: Array = np.maximum.reduceat(states.idle_since, self.bounds[:, 0])
        return since

    def _locate(self, now: QueueView) -> None:
        """Note the cores of each machine, and when it is ready for a job, seconds [machines]."""
        self.bounds = np.array(now.machine.nodes)
        first, self.cores = self.bounds[:, 0], self.bounds[:, 1] - self.bounds[:, 0] + 1
        self.ready = np.full(len(first), now.time)
        if now.states is not None:
            since = now.states.idle_since
            self.ready = np.maximum.reduceat(np.where(np.isinf(since), -np.inf, since), first)

    # --- what is free ---
    def _take(self, chosen: Array) -> None:
        """Take machines without jobs from what is free now."""
        self.room.nodes.cores[chosen] = 0

    def _add(self, room: Room, chosen: Array) -> None:
        """Add whole machines to a room."""
        room.nodes.cores[chosen] = self.cores[chosen]

    def give(self, room: Room, resources: Iterable[Interval]) -> None:
        """Add the machines of these resources to a room."""
        self._add(room, self.numbers(resources))

    def remove(self, chosen: Array) -> None:
        """Take away machines that are idle or off."""
        self.idle, self.off = np.setdiff1d(self.idle, chosen), np.setdiff1d(self.off, chosen)
        self._take(chosen)

    def opened(self, *, wide: bool) -> Room:
        """Return a copy of what is free now, for a wide job together with the machines that are kept off."""
        room = Room(self.room.nodes.copy(), self.room.blocked)
        if wide:
            self._add(room, self.held)
        return room

    def spared(self, wanted: Array, later: Room) -> Array:
        """Return the first of the wanted machines that are not needed in a room, and take them from it."""
        machines = list[int]()
        for number in wanted.tolist():
            if later.nodes.cores[number] == self.cores[number] <= later.total:
                later.nodes.cores[number] = 0
                machines.append(number)
        return np.array(machines, np.int64)

    # --- jobs ---
    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs machines that are kept off."""
        if not self.kept.any():
            return False
        fits = self.room.nodes.need(job).fits(self.cores, _empty_memory(self._now))
        return bool(np.count_nonzero(fits & ~self.kept) < job.nodes)

    def where(self, job: QueuedJob, also: Room | None = None, *, wide: bool = False) -> Places | None:
        """Return nodes on which a job can start now; None if it cannot.

        Args:
            job: the job.
            also: it must fit here, too.
            wide: it may use machines that are kept off.
        """
        room = self.opened(wide=True) if wide else self.room
        return room.where(job, also, self.rank())

    def rank(self) -> Array:
        """Return the rank of each node, see `FreeNodes.where`: 0 on, 1 off, 2 kept off."""
        ranks = np.zeros(len(self.cores), np.int64)
        ranks[self.off], ranks[self.held] = 1, 2
        return ranks

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin on these nodes."""
        if self.rank()[list(places)].any():
            return self.on_s
        return max(0.0, float(self.ready[list(places)].max()) - self.time)

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its machines on these nodes, and return the decision."""
        chosen = np.array(places)
        boots = chosen[self.rank()[chosen] > 0]
        self.ready[boots] = self.time + self.on_s
        self._add(self.room, boots)
        self.kept[chosen] = False
        self.idle, self.off, self.held = (np.setdiff1d(nodes, chosen) for nodes in (self.idle, self.off, self.held))
        self.room.nodes.take(job, places)
        return Start(job, nodes=places)


class Processors(Machines):
    """Numbered resources, all on one node. Which of them are free does not matter, only how many."""

    def numbers(self, resources: Iterable[Interval]) -> Array:
        """Return the numbers of these resources."""
        return np.concatenate([_NONE, *(np.arange(first, last + 1) for first, last in resources)])

    def resources(self, chosen: Array) -> list[Interval]:
        """Return these numbers as intervals."""
        return pairs(chosen)

    def idle_since(self, states: MachineStates) -> Array:
        """Return since when each of them has been idle, seconds."""
        return states.idle_since

    def _locate(self, now: QueueView) -> None:
        """Do nothing: a resource is ready when it is free."""

    def _take(self, chosen: Array) -> None:
        self.room.nodes.cores[0] -= len(chosen)

    def _add(self, room: Room, chosen: Array) -> None:
        room.nodes.cores[0] += len(chosen)

    def give(self, room: Room, resources: Iterable[Interval]) -> None:
        """Add these resources to a room."""
        room.nodes.cores[0] += count_of(resources)

    def spared(self, wanted: Array, later: Room) -> Array:
        """Return as many of them as a room has, and take them from it."""
        machines = wanted[: max(0, later.total)]
        later.nodes.cores[0] -= len(machines)
        return machines

    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs some that are kept off."""
        return bool(job.size > len(self.kept) - np.count_nonzero(self.kept))

    def rank(self) -> Array:
        """Return the rank of the only node."""
        return _ONE_RANK

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin."""
        return self.on_s if job.size > len(self.idle) else 0.0

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its resources, and return the decision."""
        idle = min(job.size, len(self.idle))
        off = min(job.size - idle, len(self.off))
        chosen = np.concatenate([self.idle[:idle], self.off[:off], self.held[: job.size - idle - off]])
        self.room.nodes.cores[0] -= job.size - min(job.size - idle - off, len(self.held))
        decision = Start(job) if len(chosen) < job.size or idle == job.size else Start(job, pairs(chosen))
        self.idle, self.off, self.held = self.idle[idle:], self.off[off:], self.held[job.size - idle - off :]
        self.kept[chosen] = False
        return decision


def machines_at(now: QueueView, kept: Array, blocked: int) -> Machines:
    """Return the machines at a call, see `Machines`."""
    return (Machines if now.machine.nodes else Processors)(now, kept, blocked)


def pairs(numbers: Array) -> list[Interval]:
    """Return numbers as intervals."""
    ascending = np.sort(numbers)
    ends = np.flatnonzero(np.diff(ascending) != 1)
    first, last = np.append(0, ends + 1), np.append(ends, len(ascending) - 1)
    return list(zip(ascending[first].tolist(), ascending[last].tolist(), strict=True)) if len(ascending) else []


def _empty_memory(now: QueueView) -> Array:
    """Return the memory of each node without its jobs, bytes [nodes]."""
    empty = now.free_nodes()
    for run in now.running:
        empty.release(run)
    return empty.memory

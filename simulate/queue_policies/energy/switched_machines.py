"""The machines that a Python policy switches, at one call: which are idle, off, or kept off, and which ones jobs get.

Rule: a job gets machines that are on first, then those that are off, and those that are kept off only if it could not
run without them. A machine is a resource, or a node where the machine of the policy has nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class Machines(ABC):
    """The machines at a call; they change as the policy decides.

    Args:
        now: the snapshot.
        kept: machines that are kept off or will be, bool [machines]; one that a job gets is no longer kept.
        blocked: see `Room`.
    """

    #: Numbers of machines, ascending: those that are idle, off, and kept off.
    idle: Array
    off: Array
    held: Array

    def __init__(self, now: QueueView, kept: Array, blocked: int) -> None:
        self.time, self.kept = now.time, kept
        self.room = Room(now.free_nodes(), blocked)
        self.on_s = switching_times(now.machine.powers)[1]

    @staticmethod
    def count(now: QueueView) -> int:
        """Return the number of machines."""
        return len(now.machine.nodes) or now.machine.processors

    @abstractmethod
    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs machines that are kept off."""

    @abstractmethod
    def opened(self, *, wide: bool) -> Room:
        """Return a copy of what is free now, for a wide job together with the machines that are kept off."""

    @abstractmethod
    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin on these nodes."""

    @abstractmethod
    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its machines on these nodes, and return the decision."""

    @abstractmethod
    def numbers(self, resources: Iterable[Interval]) -> Array:
        """Return the numbers of the machines of these resources, ascending."""

    @abstractmethod
    def resources(self, chosen: Array) -> list[Interval]:
        """Return the resources of these machines."""

    @abstractmethod
    def idle_since(self, states: MachineStates) -> Array:
        """Return since when each machine has been idle, seconds [machines]; inf: it is not."""

    @abstractmethod
    def give(self, room: Room, resources: Iterable[Interval]) -> None:
        """Add whole machines to a room."""

    @abstractmethod
    def spared(self, wanted: Array, later: Room) -> Array:
        """Return the first of the wanted machines that are not needed in a room, and take them from it."""

    def remove(self, chosen: Array) -> None:
        """Take away machines that are idle or off."""
        self.idle, self.off = np.setdiff1d(self.idle, chosen), np.setdiff1d(self.off, chosen)

    def where(self, job: QueuedJob, also: Room | None = None, *, wide: bool = False) -> Places | None:
        """Return nodes on which a job can start now; None if it cannot.

        Args:
            job: the job.
            also: it must fit here, too.
            wide: it may use machines that are kept off.
        """
        room = self.opened(wide=True) if wide else self.room
        return room.where(job, also, self.rank())

    def rank(self) -> Array | None:
        """Return the rank of each node, see `FreeNodes.where`."""
        return None


class Processors(Machines):
    """Numbered resources. Which of them are free does not matter, only how many."""

    def __init__(self, now: QueueView, kept: Array, blocked: int) -> None:
        super().__init__(now, kept, blocked)
        if now.states is None:
            self.idle, off = np.zeros(0, np.int64), np.zeros(0, np.int64)
            self.on_s = 0.0
        else:
            self.idle, off = np.flatnonzero(now.states.idle_since <= now.time), self.numbers(now.states.off)
        self.off, self.held = off[~kept[off]], off[kept[off]]
        self.room.nodes.cores[0] -= len(self.held)

    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs machines that are kept off."""
        return bool(job.size > len(self.kept) - np.count_nonzero(self.kept))

    def opened(self, *, wide: bool) -> Room:
        """Return a copy of what is free now, for a wide job together with the machines that are kept off."""
        room = Room(self.room.nodes.copy(), self.room.blocked)
        room.nodes.cores[0] += len(self.held) if wide else 0
        return room

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin."""
        return self.on_s if job.size > len(self.idle) else 0.0

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its machines, and return the decision."""
        idle = min(job.size, len(self.idle))
        off = min(job.size - idle, len(self.off))
        chosen = np.concatenate([self.idle[:idle], self.off[:off], self.held[: job.size - idle - off]])
        self.room.nodes.cores[0] -= job.size - min(job.size - idle - off, len(self.held))
        decision = Start(job) if len(chosen) < job.size or idle == job.size else Start(job, pairs(chosen))
        self.idle, self.off, self.held = self.idle[idle:], self.off[off:], self.held[job.size - idle - off :]
        self.kept[chosen] = False
        return decision

    def numbers(self, resources: Iterable[Interval]) -> Array:
        """Return the numbers of these resources."""
        return np.concatenate([np.zeros(0, np.int64), *(np.arange(first, last + 1) for first, last in resources)])

    def give(self, room: Room, resources: Iterable[Interval]) -> None:
        """Add resources to a room."""
        room.nodes.cores[0] += count_of(resources)

    def spared(self, wanted: Array, later: Room) -> Array:
        """Return the first of the wanted machines that are not needed in a room, and take them from it."""
        machines = wanted[: max(0, later.total)]
        later.nodes.cores[0] -= len(machines)
        return machines

    def remove(self, chosen: Array) -> None:
        """Take away machines that are idle or off."""
        super().remove(chosen)
        self.room.nodes.cores[0] -= len(chosen)

    def resources(self, chosen: Array) -> list[Interval]:
        """Return the resources of these machines."""
        return pairs(chosen)

    def idle_since(self, states: MachineStates) -> Array:
        """Return since when each machine has been idle, seconds."""
        return states.idle_since


class SwitchedNodes(Machines):
    """Nodes, which have cores and memory."""

    def __init__(self, now: QueueView, kept: Array, blocked: int) -> None:
        super().__init__(now, kept, blocked)
        self.bounds = np.array(now.machine.nodes)
        first, self.cores = self.bounds[:, 0], self.bounds[:, 1] - self.bounds[:, 0] + 1
        self._now, states, free = now, now.states, self.room.nodes
        is_off, self.ready = np.zeros(len(first), bool), np.full(len(first), now.time)
        self.idle = np.zeros(0, np.int64)
        if states is not None:
            is_off[self.numbers(states.off)] = True
            since = states.idle_since
            self.idle = np.flatnonzero(self.idle_since(states) <= now.time)
            self.ready = np.maximum.reduceat(np.where(np.isinf(since), -np.inf, since), first)
        self.off, self.held = np.flatnonzero(is_off & ~kept), np.flatnonzero(is_off & kept)
        free.cores[self.held] = 0

    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs nodes that are kept off."""
        if not self.kept.any():
            return False
        fits = self.room.nodes.need(job).fits(self.cores, _empty_memory(self._now))
        return bool(np.count_nonzero(fits & ~self.kept) < job.nodes)

    def opened(self, *, wide: bool) -> Room:
        """Return a copy of what is free now, for a wide job together with the nodes that are kept off."""
        room = Room(self.room.nodes.copy(), self.room.blocked)
        if wide:
            room.nodes.cores[self.held] = self.cores[self.held]
        return room

    def rank(self) -> Array:
        """Return the rank of each node: 0 on, 1 off, 2 kept off."""
        ranks = np.zeros(len(self.cores), np.int64)
        ranks[self.off], ranks[self.held] = 1, 2
        return ranks

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin on these nodes."""
        if self.rank()[list(places)].any():
            return self.on_s
        return max(0.0, float(self.ready[list(places)].max()) - self.time)

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its nodes, and return the decision."""
        chosen = np.array(places)
        boots = chosen[self.rank()[chosen] > 0]
        self.ready[boots] = self.time + self.on_s
        self.room.nodes.cores[boots] = self.cores[boots]
        self.kept[chosen] = False
        self.idle, self.off, self.held = (np.setdiff1d(nodes, chosen) for nodes in (self.idle, self.off, self.held))
        self.room.nodes.take(job, places)
        return Start(job, nodes=places)

    def numbers(self, resources: Iterable[Interval]) -> Array:
        """Return the numbers of the nodes of these cores, ascending."""
        firsts = self.bounds[:, 0]
        parts = [np.arange(np.searchsorted(firsts, first), np.searchsorted(firsts, last, "right"))
                 for first, last in resources]  # fmt: skip
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def give(self, room: Room, resources: Iterable[Interval]) -> None:
        """Add whole nodes to a room."""
        chosen = self.numbers(resources)
        room.nodes.cores[chosen] = self.cores[chosen]

    def spared(self, wanted: Array, later: Room) -> Array:
        """Return the first of the wanted nodes that are not needed in a room, and take them from it."""
        nodes = list[int]()
        for node in wanted.tolist():
            if later.nodes.cores[node] == self.cores[node] <= later.total:
                later.nodes.cores[node] = 0
                nodes.append(node)
        return np.array(nodes, np.int64)

    def remove(self, chosen: Array) -> None:
        """Take away nodes that are idle or off."""
        super().remove(chosen)
        self.room.nodes.cores[chosen] = 0

    def resources(self, chosen: Array) -> list[Interval]:
        """Return the cores of these nodes."""
        return [(first, last) for first, last in self.bounds[chosen].tolist()]

    def idle_since(self, states: MachineStates) -> Array:
        """Return since when each node has been idle, seconds."""
        since: Array = np.maximum.reduceat(states.idle_since, self.bounds[:, 0])
        return since


def machines_at(now: QueueView, kept: Array, blocked: int) -> Machines:
    """Return the machines at a call, see `Machines`."""
    return (SwitchedNodes if now.machine.nodes else Processors)(now, kept, blocked)


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

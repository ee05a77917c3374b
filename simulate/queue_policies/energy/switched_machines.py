"""The machines that a Python policy switches, at one call: which are idle, off, or kept off, and which ones jobs get.

Rule: a job gets machines that are on first, then those that are off, and those that are kept off only if it could not
run without them. A machine is a resource, or a node where the machine of the policy has nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from ...arrays import Array
from ...model.intervals import Interval, count_of
from ...model.machine import switching_times
from ..free_nodes import FreeNodes, Places
from ..interface import MachineStates, QueueView, Start, Switching
from ..queued_job import QueuedJob

_NONE, _NONE_KEPT = np.zeros(0, np.int64), np.zeros(0, bool)


class Machines:
    """The machines at a call, which are nodes; they change as the policy decides.

    Args:
        now: the snapshot.
        kept: machines that are kept off or will be, bool [machines]; one that a job gets is no longer kept. None: the
            states of machines do not matter.
        blocked: how many of the free resources a power cap blocks.

    Attributes:
        idle, off, held: numbers of machines, ascending: those that are idle, off, and kept off.
    """

    def __init__(self, now: QueueView, kept: Array | None, blocked: int) -> None:
        self._now, self.time, self._states = now, now.time, now.states if kept is not None else None
        self.kept = _NONE_KEPT if kept is None else kept
        self.room, self.on_s, self.idle, self.off, self.held = now.free_nodes(), 0.0, _NONE, _NONE, _NONE
        self.room.blocked = blocked
        if self._states is not None:
            self.on_s = switching_times(now.machine.powers)[1]
            self.idle, off = np.flatnonzero(self.idle_since(self._states) <= now.time), self.numbers(self._states.off)
            self.off, self.held = off[~self.kept[off]], off[self.kept[off]]
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

    @cached_property
    def bounds(self) -> Array:
        """Return the first and last core of each machine [machines, 2]."""
        return np.array(self._now.machine.nodes)

    @cached_property
    def cores(self) -> Array:
        """Return the cores of each machine [machines]."""
        return np.asarray(self.bounds[:, 1] - self.bounds[:, 0] + 1)

    @cached_property
    def ready(self) -> Array:
        """Return when each machine is ready for a job, seconds [machines]."""
        if self._states is None:
            return np.full(len(self.bounds), self.time)
        since = np.where(np.isinf(self._states.idle_since), -np.inf, self._states.idle_since)
        return np.asarray(np.maximum.reduceat(since, self.bounds[:, 0]))

    def back(self, *, wide: bool = False) -> list[Switching]:
        """Return the switches that end with free machines; what is then kept off is free for a wide job only."""
        switches = self._states.switching if self._states is not None else ()
        return [it for it in switches if wide or it.on or not self.kept[self.numbers(it.resources[:1])[0]]]

    # --- what is free ---
    def _take(self, chosen: Array) -> None:
        """Take machines without jobs from what is free now."""
        self.room.cores[chosen] = 0

    def _add(self, room: FreeNodes, chosen: Array) -> None:
        """Add whole machines to a room."""
        room.cores[chosen] = self.cores[chosen]

    def give(self, room: FreeNodes, resources: Iterable[Interval]) -> None:
        """Add the machines of these resources to a room."""
        self._add(room, self.numbers(resources))

    def remove(self, chosen: Array) -> None:
        """Take away machines that are idle or off."""
        self.idle, self.off = np.setdiff1d(self.idle, chosen), np.setdiff1d(self.off, chosen)
        self._take(chosen)

    def opened(self, *, wide: bool) -> FreeNodes:
        """Return a copy of what is free now, for a wide job together with the machines that are kept off."""
        room = self.room.copy()
        if wide:
            self._add(room, self.held)
        return room

    def spared(self, wanted: Array, later: FreeNodes) -> Array:
        """Return the first of the wanted machines that are not needed in a room, and take them from it."""
        machines = list[int]()
        for number in wanted.tolist():
            if later.cores[number] == self.cores[number] <= later.total:
                later.cores[number] = 0
                machines.append(number)
        return np.array(machines, np.int64)

    # --- jobs ---
    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs machines that are kept off."""
        if not self.kept.any():
            return False
        fits = self.room.need(job).fits(self.cores, _empty_memory(self._now))
        return bool(np.count_nonzero(fits & ~self.kept) < job.nodes)

    def rank(self) -> Array | None:
        """Return the rank of each node, see `FreeNodes.where`: 0 on, 1 off, 2 kept off; None: all are on."""
        if not (len(self.off) or len(self.held)):
            return None
        ranks = np.zeros(len(self.cores), np.int64)
        ranks[self.off], ranks[self.held] = 1, 2
        return ranks

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin on these nodes."""
        if self._states is None:
            return 0.0
        nodes, ranks = list(places), self.rank()
        boots = ranks is not None and ranks[nodes].any()
        return self.on_s if boots else max(0.0, float(self.ready[nodes].max()) - self.time)

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its machines on these nodes, and return the decision."""
        if self._states is not None:
            chosen = np.array(places)
            boots = chosen[np.isin(chosen, self.off) | np.isin(chosen, self.held)]
            self.ready[boots] = self.time + self.on_s
            self._add(self.room, boots)
            self.kept[chosen] = False
            self.idle, self.off, self.held = (np.setdiff1d(nodes, chosen) for nodes in (self.idle, self.off, self.held))
        self.room.take(job, places)
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

    def _take(self, chosen: Array) -> None:
        self.room.cores[0] -= len(chosen)

    def _add(self, room: FreeNodes, chosen: Array) -> None:
        room.cores[0] += len(chosen)

    def give(self, room: FreeNodes, resources: Iterable[Interval]) -> None:
        """Add these resources to a room."""
        room.cores[0] += count_of(resources)

    def spared(self, wanted: Array, later: FreeNodes) -> Array:
        """Return as many of them as a room has, and take them from it."""
        machines = wanted[: max(0, later.total)]
        later.cores[0] -= len(machines)
        return machines

    def is_wide(self, job: QueuedJob) -> bool:
        """Return whether a job needs some that are kept off."""
        return bool(job.size > len(self.kept) - np.count_nonzero(self.kept))

    def rank(self) -> None:
        """Return no rank: there is one node."""

    def boot_s(self, job: QueuedJob, places: Places) -> float:
        """Return the seconds until a job would begin."""
        return self.on_s if job.size > len(self.idle) else 0.0

    def start(self, job: QueuedJob, places: Places) -> Start:
        """Give a job its resources, and return the decision."""
        idle = min(job.size, len(self.idle))
        off = min(job.size - idle, len(self.off))
        chosen = np.concatenate([self.idle[:idle], self.off[:off], self.held[: job.size - idle - off]])
        self.room.cores[0] -= job.size - min(job.size - idle - off, len(self.held))
        decision = Start(job) if len(chosen) < job.size or idle == job.size else Start(job, pairs(chosen))
        self.idle, self.off, self.held = self.idle[idle:], self.off[off:], self.held[job.size - idle - off :]
        self.kept[chosen] = False
        return decision


def machines_at(now: QueueView, kept: Array | None = None, blocked: int = 0) -> Machines:
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

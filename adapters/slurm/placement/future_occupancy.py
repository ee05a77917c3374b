"""Future occupancy of each node: reservations, starts that Slurm has planned, and jobs that come first.

Rule: pure; Slurm's own rule of backfilling. A job may start if, by its time limit, it ends before a reservation begins
and before a job that comes first is to start, unless enough cores stay free for both. If Slurm has not planned yet for
a job that comes first and could use a node, no other job takes the node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ....simulate.model.capacity import shortage
from .partitions import SlurmReservation

#: Longest time from a decision to the start that it causes, seconds.
START_S = 10.0

#: Up to this many nodes are examined one by one; more are examined as whole sets.
FEW = 16

#: Slurm's sort key of the queue, smallest first: tier of the partition, priority (both negated), and job id.
Order = tuple[int, int, int]
Indices = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Occupation:
    """Cores and bytes on nodes that are taken until `end`, epoch seconds."""

    nodes: tuple[str, ...]
    cores: int
    memory: float
    end: float


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """A start that Slurm has planned; `whole`: it needs all of its nodes."""

    job: int
    order: Order
    nodes: tuple[str, ...]
    start: float
    cores: int
    memory: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class QueuedAhead:
    """A job that Slurm may start at any moment on any of these nodes."""

    job: int
    order: Order
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A job that is to start now."""

    order: Order  #: its place in Slurm's queue
    span: float  #: its time limit, seconds; may be inf
    cores: int  #: cores that it takes on each node
    memory: float = 0.0  #: bytes that it takes on each node
    whole: bool = False  #: whether it needs whole nodes


class FutureOccupancy:
    """Decides where a job may start at `now`.

    Args:
        now: Controller's clock, epoch seconds.
        sizes: Node -> its cores and bytes.
        holds: What is taken on nodes.
        planned: Starts that Slurm has planned.
        first: Jobs that Slurm may start at any moment.
        windows: Reservations.
        canonical: Returns the one list among equal ones; see `NodeLists`.
    """

    def __init__(
        self,
        now: float,
        sizes: Mapping[str, tuple[int, float]],
        holds: Iterable[Occupation] = (),
        planned: Iterable[PlannedStart] = (),
        first: Iterable[QueuedAhead] = (),
        windows: Iterable[SlurmReservation] = (),
        canonical: Callable[[frozenset[str]], frozenset[str]] = lambda names: names,
    ) -> None:
        self.now, self._sizes, self._canonical = now, sizes, canonical
        self._planned: dict[str, list[PlannedStart]] = defaultdict(list)
        self._windows: dict[str, list[SlurmReservation]] = defaultdict(list)
        self._full_by_shape: dict[object, frozenset[str]] = {}
        self._answers: dict[object, tuple[frozenset[str], str]] = {}
        self._holds: dict[str, list[Occupation]] = defaultdict(list)
        self._starts, self._reserved, self._queued_first = list(planned), list(windows), list[QueuedAhead]()
        self._queued = sorted(first, key=lambda job: job.order)
        for start in self._starts:
            for name in start.nodes:
                self._planned[name].append(start)
        for window in self._reserved:
            for name in window.nodes:
                self._windows[name].append(window)
        self._rank()
        for hold in holds:
            self._hold(hold)

    def _rank(self) -> None:
        """Find the first of the jobs that could use the same nodes."""
        self._queued_first, node_sets = [], set[frozenset[str]]()
        alike = {id(job.nodes): job for job in reversed(self._queued)}  # equal lists are mostly one object
        for job in sorted(alike.values(), key=lambda job: job.order):
            if job.nodes not in node_sets:
                node_sets.add(job.nodes)
                self._queued_first.append(job)

    def _hold(self, hold: Occupation) -> None:
        for name in hold.nodes:
            if name in self._planned:
                self._holds[name].append(hold)

    def place(self, job: int, hold: Occupation) -> None:
        """Count a job that was placed since: it is no longer queued, and takes its nodes."""
        for start in [start for start in self._starts if start.job == job]:
            self._starts.remove(start)
            for name in start.nodes:
                self._planned[name].remove(start)
        if any(first.job == job for first in self._queued):
            self._queued = [first for first in self._queued if first.job != job]
            self._rank()
        self._hold(hold)
        self._full_by_shape.clear()
        self._answers.clear()

    def open_nodes(self, request: StartRequest, nodes: Collection[str]) -> tuple[frozenset[str], str]:
        """Return those of `nodes` on which it may start, and why not on one of the others ("": on all). O(nodes)."""
        end, names = self.now + START_S + request.span, frozenset(nodes)
        windows = tuple(i for i, w in enumerate(self._reserved) if w.start < end and w.end > self.now)
        firsts = bisect_left(self._queued_first, request.order, key=lambda first: first.order)
        before = tuple(i for i, start in enumerate(self._starts) if start.order < request.order and start.start < end)
        shape = (names, windows, firsts, before, request.cores, request.memory, request.whole)  # equal for many jobs
        if shape not in self._answers:
            open_nodes, closed = self._left(request, names, windows, firsts, before)
            self._answers[shape] = self._canonical(open_nodes), closed
        open_nodes, closed = self._answers[shape]
        return open_nodes, self.obstacle(request, closed) if closed else ""

    def _left(
        self, request: StartRequest, names: frozenset[str], windows: Indices, firsts: int, before: Indices
    ) -> tuple[frozenset[str], str]:
        """Return those of the nodes that are open, given what is relevant, and the first of the others."""
        if len(names) <= FEW:
            closed = frozenset(name for name in names if self.obstacle(request, name))
            return names - closed, min(closed, default="")
        shut = frozenset[str]().union(
            *(self._reserved[i].nodes for i in windows), *(first.nodes for first in self._queued_first[:firsts])
        )
        if before and not names <= shut:
            shut |= self._full(request, before)
        closed = shut & names
        return (names - closed, min(closed)) if closed else (names, "")

    def _full(self, request: StartRequest, before: Indices) -> frozenset[str]:
        """Return the nodes without room for the job besides these planned starts; equal for many jobs."""
        shape = (before, request.cores, request.memory, request.whole)
        if shape not in self._full_by_shape:
            by_node: dict[str, list[PlannedStart]] = defaultdict(list)
            for i in before:
                for name in self._starts[i].nodes:
                    by_node[name].append(self._starts[i])
            self._full_by_shape[shape] = frozenset(
                name for name, starts in by_node.items() if not self._room(request, name, starts)
            )
        return self._full_by_shape[shape]

    def obstacle(self, request: StartRequest, name: str) -> str:
        """Return why the job may not start on a node, or ""."""
        end = self.now + START_S + request.span
        for window in self._windows.get(name, ()):
            if window.start < end and window.end > self.now:
                return f"reservation {window.name} would begin before it ends"
        first = next((job for job in self._queued_first if name in job.nodes), None)
        if first is not None and first.order < request.order:
            return f"job {first.job} comes first, and Slurm may start it there"
        before = [p for p in self._planned.get(name, ()) if p.order < request.order and p.start < end]
        if before and not self._room(request, name, before):
            return f"Slurm plans to start job {before[0].job} there before it ends"
        return ""

    def _room(self, request: StartRequest, name: str, planned: list[PlannedStart]) -> bool:
        """Return whether the node has room for the job and for all that is planned there from the first start on."""
        if request.whole or any(start.whole for start in planned):
            return False
        cores, memory = self._sizes.get(name, (0, 0.0))
        begin = min(start.start for start in planned)
        stay = [hold for hold in self._holds[name] if hold.end > begin]
        cores_used = sum(hold.cores for hold in stay) + sum(start.cores for start in planned) + request.cores
        filled = sum(hold.memory for hold in stay) + sum(start.memory for start in planned) + request.memory
        return shortage(name, cores_used, cores, filled, memory) is None

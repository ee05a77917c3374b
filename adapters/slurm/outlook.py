"""What is to come on each node: reservations, the starts that Slurm has planned, and jobs that come first.

Rule: pure, and Slurm's own rule of backfilling: a job may start where it will have ended, by its time limit, before a
reservation begins and before a job that comes first is to start, unless enough cores stay free for both. Where Slurm
has not planned yet for a job that comes first and could use a node, no other takes it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

#: Seconds from a decision to the start that it brings about, at the most.
START_S = 10.0

#: Nodes that are sooner looked at one by one than in whole sets.
FEW = 16

#: What Slurm sorts its queue by, smallest first: tier of the partition, priority (both negative), and job id.
Order = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Hold:
    """Cores and bytes on nodes that are taken until `end`, epoch seconds."""

    nodes: tuple[str, ...]
    cores: int
    memory: float
    end: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A start that Slurm has planned. `whole`: it needs all of its nodes."""

    job: int
    order: Order
    nodes: tuple[str, ...]
    start: float
    cores: int
    memory: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class First:
    """A job that Slurm may start at any moment on any of these nodes."""

    job: int
    order: Order
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes that are reserved from `start` to `end`, epoch seconds."""

    name: str
    nodes: frozenset[str]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that is to start now: where it is in Slurm's queue, and what it takes on each node for how long (seconds,
    may be inf)."""

    order: Order
    span: float
    cores: int
    memory: float = 0.0
    whole: bool = False


class Outlook:
    """Tells where a job may start at `now`.

    Args:
        sizes: node -> its cores and bytes.
        one: the one list among equal ones, see `Lists`.
    """

    def __init__(
        self,
        now: float,
        sizes: Mapping[str, tuple[int, float]],
        holds: Iterable[Hold] = (),
        planned: Iterable[Planned] = (),
        first: Iterable[First] = (),
        windows: Iterable[Window] = (),
        one: Callable[[frozenset[str]], frozenset[str]] = lambda names: names,
    ) -> None:
        self._now, self._sizes, self._one = now, sizes, one
        self._planned: dict[str, list[Planned]] = defaultdict(list)
        self._windows: dict[str, list[Window]] = defaultdict(list)
        self._first: dict[str, First] = {}
        self._cache: dict[object, frozenset[str]] = {}
        self._answers: dict[object, tuple[frozenset[str], str]] = {}
        self._holds: dict[str, list[Hold]] = defaultdict(list)
        self._starts, self._all_windows, self._firsts = list(planned), list(windows), list[First]()
        self._could = sorted(first, key=lambda job: job.order)
        for start in self._starts:
            for name in start.nodes:
                self._planned[name].append(start)
        for window in self._all_windows:
            for name in window.nodes:
                self._windows[name].append(window)
        self._rank()
        for hold in holds:
            self._hold(hold)

    def _rank(self) -> None:
        """Of the jobs that could use the same nodes the first decides."""
        self._firsts, self._first, seen = [], {}, set[frozenset[str]]()
        alike = {id(job.nodes): job for job in reversed(self._could)}  # equal lists are mostly one
        for job in sorted(alike.values(), key=lambda job: job.order):
            if job.nodes not in seen:
                seen.add(job.nodes)
                self._firsts.append(job)
                for name in job.nodes:
                    self._first.setdefault(name, job)

    def _hold(self, hold: Hold) -> None:
        for name in hold.nodes:
            if name in self._planned:
                self._holds[name].append(hold)

    def place(self, job: int, hold: Hold) -> None:
        """A job was placed since: it comes first no more, and holds its nodes."""
        for start in [start for start in self._starts if start.job == job]:
            self._starts.remove(start)
            for name in start.nodes:
                self._planned[name].remove(start)
        if any(first.job == job for first in self._could):
            self._could = [first for first in self._could if first.job != job]
            self._rank()
        self._hold(hold)
        self._cache.clear()
        self._answers.clear()

    def open(self, ask: Ask, nodes: Collection[str]) -> tuple[frozenset[str], str]:
        """Those of `nodes` on which it may start, and why not on one of the others ("" = on all). O(nodes)."""
        end, names = self._now + START_S + ask.span, frozenset(nodes)
        windows = tuple(i for i, w in enumerate(self._all_windows) if w.start < end and w.end > self._now)
        firsts = bisect_left(self._firsts, ask.order, key=lambda first: first.order)
        before = tuple(i for i, start in enumerate(self._starts) if start.order < ask.order and start.start < end)
        shape = (names, windows, firsts, before, ask.cores, ask.memory, ask.whole)  # the same for many jobs
        if shape not in self._answers:
            left, closed = self._left(ask, names, windows, firsts, before)
            self._answers[shape] = self._one(left), closed
        left, closed = self._answers[shape]
        return left, self.obstacle(ask, closed) if closed else ""

    def _left(
        self, ask: Ask, names: frozenset[str], windows: tuple[int, ...], firsts: int, before: tuple[int, ...]
    ) -> tuple[frozenset[str], str]:
        """Those of the nodes that are open beside what of all that counts, and the first of those that are not."""
        if len(names) <= FEW:
            closed = frozenset(name for name in names if self.obstacle(ask, name))
            return names - closed, min(closed, default="")
        shut = frozenset[str]().union(*(self._all_windows[i].nodes for i in windows))
        shut = shut.union(*(first.nodes for first in self._firsts[:firsts]))
        if before and not names <= shut:
            shut |= self._full(ask, before)
        closed = shut & names
        return (names - closed, min(closed)) if closed else (names, "")

    def _full(self, ask: Ask, before: tuple[int, ...]) -> frozenset[str]:
        """The nodes that have no room beside these starts that are planned there; the same for many jobs."""
        shape = (before, ask.cores, ask.memory, ask.whole)
        if shape not in self._cache:
            there: dict[str, list[Planned]] = defaultdict(list)
            for i in before:
                for name in self._starts[i].nodes:
                    there[name].append(self._starts[i])
            self._cache[shape] = frozenset(name for name, starts in there.items() if not self._room(ask, name, starts))
        return self._cache[shape]

    def obstacle(self, ask: Ask, name: str) -> str:
        """Why it may not start on a node, or ""."""
        end = self._now + START_S + ask.span
        for window in self._windows.get(name, ()):
            if window.start < end and window.end > self._now:
                return f"reservation {window.name} would begin before it ends"
        first = self._first.get(name)
        if first is not None and first.order < ask.order:
            return f"job {first.job} comes first, and Slurm may start it there"
        before = [p for p in self._planned.get(name, ()) if p.order < ask.order and p.start < end]
        if before and not self._room(ask, name, before):
            return f"Slurm is to start job {before[0].job} there before it ends"
        return ""

    def _room(self, ask: Ask, name: str, planned: list[Planned]) -> bool:
        """Whether the node has room for it beside all that is planned there, from the first start on."""
        if ask.whole or any(start.whole for start in planned):
            return False
        cores, memory = self._sizes.get(name, (0, 0.0))
        begin = min(start.start for start in planned)
        stay = [hold for hold in self._holds[name] if hold.end > begin]
        taken = sum(hold.cores for hold in stay) + sum(start.cores for start in planned) + ask.cores
        filled = sum(hold.memory for hold in stay) + sum(start.memory for start in planned) + ask.memory
        return taken <= cores and filled <= memory * (1 + 1e-9)

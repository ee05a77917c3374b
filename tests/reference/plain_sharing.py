"""Conservative backfilling with a bound on sharing, worked out from lists of occupied times at each call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pilotfish.simulate.queue_policies.interface import Decision, QueueView, Reject, Start, Wake
from pilotfish.simulate.queue_policies.queued_job import QueuedJob, Running
from tests.reference.plain_node_choice import chosen

Occupied = list[tuple[float, float, int]]  # first and last time, and the node


class PlainSharing:
    """Each waiting job has a reservation of nodes of its own; it starts earlier where it hurts none beyond the bound.

    `cap`: begin and end of a power cap, and how many cores jobs may then hold.
    """

    def __init__(
        self, order: str, bound: float, speeds: Sequence[float], cap: tuple[float, float, int] = (0.0, 0.0, 0)
    ) -> None:
        self.order, self.bound, self.speeds, self.cap = order, bound, speeds, cap
        self.reserved: dict[int, tuple[float, tuple[int, ...]]] = {}
        self.first: dict[int, float] = {}  # the first reservation of each job
        self.refused = set[int]()

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Try to move each reservation to an earlier time, reserve for new jobs, and start one job."""
        keys: Any = {"fcfs": lambda job: 0, "sjf": lambda job: job.walltime, "largest": lambda job: -job.size}
        queue = sorted(now.waiting, key=keys[self.order])
        if now.ended:
            self.refused.clear()
        kept, lost = list[QueuedJob](), list[QueuedJob]()
        for job in [job for job in queue if job.number in self.reserved]:
            begin, nodes = self.reserved.pop(job.number)
            free = self.free(now, begin, _end(begin, job))
            if begin >= now.time and set(nodes) <= free and self.is_below_cap(now, begin, job):
                self.reserved[job.number] = begin, nodes
                kept.append(job)
            else:
                lost.append(job)
        for job in kept:
            old = self.reserved.pop(job.number)
            new = self.earliest(now, job)
            self.reserved[job.number] = new if new is not None and new[0] < old[0] else old
        for job in (*lost, *now.submitted):
            if (found := self.earliest(now, job)) is None:
                yield Reject(job)
            else:
                self.reserved[job.number] = found
                self.first.setdefault(job.number, found[0])
        for job in queue:
            if job.number in self.reserved and (start := self.where(now, job)):
                del self.reserved[job.number]
                yield Start(job, nodes=start)
                yield Wake(now.time)
                return
        later = [begin for begin, _ in self.reserved.values() if begin > now.time]
        if later:
            yield Wake(min(later))

    def occupied(self, now: QueueView) -> Occupied:
        """Return when nodes are not free for a reservation."""
        held, found = now.free_nodes().held, list[tuple[float, float, int]]()
        for it in now.running:
            found += [(now.time, _latest(now, it), node) for node in held(it)]
        waiting = {job.number: job for job in now.waiting}
        for number, (begin, nodes) in self.reserved.items():
            found += [(begin, _end(begin, waiting[number]), node) for node in nodes]
        return found

    def free(self, now: QueueView, begin: float, end: float) -> set[int]:
        """Return the nodes that are free from one time to another."""
        taken = {node for first, last, node in self.occupied(now) if first < end and last > begin}
        return set(range(len(now.machine.nodes))) - taken

    def is_below_cap(self, now: QueueView, begin: float, job: QueuedJob) -> bool:
        """Return whether a job stays below the cap with all others, from its start to its end."""
        waiting, end = {each.number: each for each in now.waiting}, _end(begin, job)
        held = [(now.time, _latest(now, it), it.job.size) for it in now.running]
        others = [(at, waiting[number]) for number, (at, _) in self.reserved.items() if number != job.number]
        held += [(at, _end(at, other), other.size) for at, other in others]
        moments = {begin, *(time for time in (self.cap[0], *(first for first, *_ in held)) if begin < time < end)}
        used = {time: sum(size for first, last, size in held if first <= time < last) for time in moments}
        return all(used[t] + job.size <= self.cap[2] for t in moments if self.cap[0] <= t < self.cap[1])

    def earliest(self, now: QueueView, job: QueuedJob) -> tuple[float, tuple[int, ...]] | None:
        """Return the earliest start of a job on nodes of its own; None if it fits on too few empty nodes."""
        free = now.free_nodes()
        need, cores, memory = free.need(job), free.cores.copy(), free.memory.copy()
        for it in now.running:
            for node in free.held(it):
                cores[node] += free.need(it.job).cores
                memory[node] += free.need(it.job).memory
        fits = {node for node in range(len(cores)) if cores[node] >= need.cores and memory[node] >= need.memory}
        held = [last for _, last, _ in self.occupied(now)]
        for begin in sorted({now.time, *held, *(time for time in self.cap[:2] if now.time < time < math.inf)}):
            if not self.is_below_cap(now, begin, job):
                continue
            found = chosen(fits & self.free(now, begin, _end(begin, job)), self.speeds, job.nodes)
            if found is not None:
                return begin, found
        return None

    def where(self, now: QueueView, job: QueuedJob) -> tuple[int, ...]:
        """Return the nodes on which a job starts now; () if it does not."""
        begin, nodes = self.reserved[job.number]
        if begin <= now.time and self.is_within(now, job, nodes):
            return nodes
        if self.bound == 0.0 or job.number in self.refused:
            return ()
        self.refused.add(job.number)
        if not self.is_below_cap(now, now.time, job):
            return ()
        may, free = list[int](), now.free_nodes()
        need = free.need(job)
        for node in range(len(free.cores)):
            others = [at for number, (at, on) in self.reserved.items() if number != job.number and node in on]
            late = any(at < _end(now.time, job) for at in others)
            fits = free.cores[node] >= need.cores and free.memory[node] >= need.memory
            if fits and not late and self.is_within(now, job, (node,)):
                may.append(node)
        found = chosen(may, self.speeds, job.nodes)
        return found if found is not None and self.is_within(now, job, found) else ()

    def is_within(self, now: QueueView, job: QueuedJob, nodes: tuple[int, ...]) -> bool:
        """Return whether no job is slowed down beyond the bound."""
        if self.bound == 0.0:
            return True
        would = now.forecast(job, nodes)
        return would.alone or max(would.crowding, would.slowdown, would.others) <= self.bound * (1.0 + 1e-9)


def _latest(now: QueueView, it: Running) -> float:
    """Return when a running job is expected to have ended."""
    end = it.until if it.until > now.time or it.start_time == now.time else now.time + max(now.time - it.until, 1.0)
    return max(end, math.nextafter(now.time, math.inf))


def _end(begin: float, job: QueuedJob) -> float:
    return max(begin + job.walltime, math.nextafter(begin, math.inf))

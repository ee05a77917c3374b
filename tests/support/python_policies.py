"""Policies as users write them, for comparison with the compiled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from typing import Any

from pilotfish.simulate.queue_policies.interface import Decision, QueueView, Start, Wake


class Easy:
    """EASY backfilling: what does not delay the first waiting job may start before it."""

    only_starts = True

    def decide(self, now: QueueView) -> Iterator[Decision]:
        fill = now.backfill()
        for job in now.waiting:
            start = fill.start(job)
            if start is None:
                fill.reserve(job)
                break
            yield start
        yield from fill.start_all()


class Patient:
    """Starts a job when it has waited for some seconds; while it looks ahead, when nothing runs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def decide(self, now: QueueView) -> Iterator[Decision]:
        for job in now.waiting:
            left = job.submit_time + self.seconds - now.time
            if (left <= 1e-6 and now.time <= 0.0) or (now.time > 0.0 and not now.running):
                yield Start(job)
            elif now.time <= 0.0:
                yield Wake(now.time + left)


class FromScratch:
    """EASY backfilling without `backfill`, worked out at each call."""

    def decide(self, now: QueueView) -> Iterator[Decision]:
        free, reserved, spare, started = now.free, None, 0, []
        for job in now.waiting if free else ():
            if job.size <= free:
                until = now.time + job.walltime
                late = reserved is not None and until > reserved
                if not late or job.size <= spare:
                    yield Start(job)
                    free -= job.size
                    spare -= job.size if late else 0
                    started.append((until, job.size))
            elif reserved is None:
                spare = free - job.size
                for time, size in merge(sorted(started), ((it.until, it.job.size) for it in now.running)):
                    if spare >= 0 and time > reserved:
                        break
                    reserved, spare = time, spare + size


class Strict:
    """The first job that does not fit holds up all behind it."""

    def decide(self, now: QueueView) -> Iterator[Decision]:
        free = now.free
        for job in now.waiting:
            if job.size > free:
                return
            free -= job.size
            yield Start(job)


class Says:
    """Decide as a function does, and record the snapshot of each call."""

    def __init__(self, decide: Callable[[QueueView], Any]) -> None:
        self.does, self.seen = decide, list[Any]()

    def decide(self, now: QueueView) -> Any:
        self.seen.append(shown(now))
        return self.does(now)


def shown(now: QueueView) -> tuple[Any, ...]:
    """Return everything that a snapshot shows, as values."""
    return (
        *(now.time, now.free, tuple(now.free_resources)),
        tuple((job.number, job.id, job.size, job.walltime, job.submit_time) for job in now.waiting),
        tuple((it.job.number, it.start_time, it.until, it.resources) for it in now.running),
        tuple(job.number for job in now.submitted),
        tuple(it.job.number for it in now.ended),
    )

"""A part of a simulated world, written as a user would: resources that fail and come back.

Rule: a failure takes effect after the ends and the submissions of its instant. Jobs on resources that fail wait again,
with all of their work. A job whose machines are booting fails when they have booted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotfish.simulate.model.intervals import Interval
from pilotfish.simulate.queue_policies.queued_job import Running
from pilotfish.simulate.world.world_parts import Part


@dataclass(frozen=True)
class Outage:
    """Resources that are down.

    Args:
        begin, end: seconds.
        resources: first and last one; those of whole nodes where there are nodes.
    """

    begin: float
    end: float
    resources: Interval


@dataclass
class FailingNodes(Part):
    """Outages of disjoint resources.

    Args:
        outages: all of them.
        requeued: filled with the time and the number of each job that was taken off its resources.
    """

    outages: Sequence[Outage]
    requeued: list[tuple[float, int]] = field(default_factory=list)

    def join(self, world: Any) -> None:
        """Become a part of a world."""
        self.world = world
        self.coming = sorted(self.outages, key=lambda outage: outage.begin)
        self.down: list[tuple[Outage, list[Interval]]] = []

    def next_time(self, before: float) -> float:
        """Return when the next outage begins or ends, or when a job begins on resources that are down."""
        times = [self.coming[0].begin] if self.coming else []
        times += [outage.end for outage, _ in self.down]
        times += [running.start_time for running in self.hit() if running.start_time > self.world.now]
        return min(times, default=math.inf)

    def hit(self) -> list[Running]:
        """Return the running jobs on resources that are down."""
        return self.world.running_on(sorted(outage.resources for outage, _ in self.down)) if self.down else []

    def settle(self, now: float) -> None:
        """Begin and end the outages of this instant."""
        for outage, resources in [entry for entry in self.down if entry[0].end <= now]:
            self.down.remove((outage, resources))
            self.world.give_back(resources, now)
        while self.coming and self.coming[0].begin <= now:
            self.down.append((self.coming.pop(0), []))
        for running in self.hit():
            if running.start_time <= now:
                self.requeued.append((now, running.job.number))
                self.world.requeue(running, now)
        for outage, resources in self.down:
            free = self.world.free_within([outage.resources])
            if free:
                resources += free
                self.world.withdraw(free)

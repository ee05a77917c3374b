"""The neighbourhood that `lookahead` searches: whole solutions and small changes of them.

Rule: a change never alters the solution it starts from. A changed solution may be impossible (a cycle of waits); the
engine reports that. `chain`, and changes around it, use the run that the tables hold.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from .admission import fitting
from .simulation import Simulation

THROTTLES = (1.0, 0.5, 0.7, 1.25, 0.35, 1.6, 2.0)
#: Other nodes to try when looking for the next best node of a job.
MOST_OTHERS = 8


@dataclass(slots=True)
class Candidate:
    """A whole solution: see `Simulation.follow`."""

    places: Array
    keys: Array
    wait_for: Array
    caps: Array

    @classmethod
    def of(cls, simulation: Simulation, caps: Array | None = None) -> Candidate:
        """Return the run in the tables of a simulation as a candidate: its mapping, ordered by start times."""
        world = simulation.world
        caps = np.full(len(world.nodes), math.inf) if caps is None else caps.copy()
        return cls(world.placed.copy(), world.jobs["start"].copy(), np.full(len(world.jobs), -1), caps)

    def copy(self) -> Candidate:
        """An independent copy."""
        return Candidate(self.places.copy(), self.keys.copy(), self.wait_for.copy(), self.caps.copy())

    def follow(
        self, simulation: Simulation, cutoff: float = math.inf, scale: Array | None = None
    ) -> tuple[float, float]:
        """Run the solution from the beginning; see `Simulation.follow`."""
        return simulation.follow(self.places, self.keys, self.wait_for, self.caps, cutoff, scale)


class Moves:
    """Changes of solutions of one simulation, drawn from `random`. O(classes * nodes + jobs) to set up.

    A change costs one copy of a solution and O(jobs), or O(nodes of two jobs) for a swap.
    """

    def __init__(self, simulation: Simulation, random: random.Random) -> None:
        self.simulation, self.random = simulation, random
        world = simulation.world
        self.movable = np.flatnonzero(world.jobs["state"] == layout.WAITING)
        #: Whether each class of jobs may ever run on each node, and the class of each job.
        self._fits, self._class = [fitting(world, shape) for shape in world.classes], world.jobs["cls"].tolist()
        per_class, movable = [np.flatnonzero(fits) for fits in self._fits], {*self.movable.tolist()}
        #: The nodes on which each job may ever run; None for jobs that cannot be moved.
        self.fitting = [per_class[c] if i in movable else None for i, c in enumerate(self._class)]
        first, sizes = world.jobs["place0"], world.classes["nodes"][world.jobs["cls"]]
        #: Where a solution's `places` has the nodes of each job, and the first of these; no run changes that.
        self._slots = [*map(slice, first.tolist(), (first + sizes).tolist())]
        self._first = first.copy()
        single = (sizes == 1).tolist()
        #: The one-node jobs that may run on several nodes, with these nodes.
        self.relocatable = {
            i: nodes for i, nodes in enumerate(self.fitting) if nodes is not None and single[i] and len(nodes) > 1
        }

    def chain(self) -> list[int]:
        """Return the critical path of the last run: back from the last end through what each job waited for."""
        jobs = self.simulation.world.jobs
        start, finish = jobs["start"], jobs["finish"]
        at = int(np.nanargmax(finish))
        chain = [at]
        while start[at] > 1e-9 and len(chain) < 200:
            before = np.flatnonzero(np.abs(finish - start[at]) <= 1e-9 * (1.0 + start[at]))
            before = before[before != at]
            if len(before) == 0:
                break
            at = int(before[0])
            chain.append(at)
        return [j for j in chain if self.fitting[j] is not None]

    def neighbour(self, current: Candidate, chain: list[int]) -> Candidate:
        """Return a copy with one small change."""
        pick, trial = self.random, current.copy()
        if chain and pick.random() < 0.25:
            self._relieve(trial, pick.choice(chain))
            return trial
        job = pick.choice(chain) if chain and pick.random() < 0.5 else self._any_of(self.movable)
        kind = pick.random()
        moves = (
            (0.35, self._move_node),
            (0.5, self._swap),
            (0.75, self._reorder),
            (0.92, self._wait),
            (1, self._throttle),
        )
        next(move for below, move in moves if kind < below)(trial, job)
        return trial

    def others(self, candidate: Candidate, job: int) -> list[int]:
        """Return the nodes among the next MOST_OTHERS on which a relocatable job may run."""
        fitting = self.relocatable[job]
        current_node, count = int(candidate.places[self._slots[job].start]), len(self.simulation.world.nodes)
        behind = [(current_node + step) % count for step in range(1, min(count, MOST_OTHERS + 1))]
        at = np.minimum(np.searchsorted(fitting, behind), len(fitting) - 1)
        return [node for node, near in zip(behind, fitting[at].tolist(), strict=True) if node == near]

    def moved(self, candidate: Candidate, job: int, node: int) -> Candidate:
        """Return a copy in which a relocatable job runs on `node`."""
        trial = candidate.copy()
        trial.places[self._slots[job].start] = node
        return trial

    def first_on(self, candidate: Candidate, job: int, node: int) -> Candidate:
        """Return a copy in which a relocatable job is the first that starts on `node`, and waits for no other."""
        trial = self.moved(candidate, job, node)
        trial.keys[job], trial.wait_for[job] = float(np.nanmin(trial.keys)) - 1.0, -1
        return trial

    def idle_nodes(self) -> Array:
        """Return the nodes on which no job runs or starts at time 0 in the last run."""
        world = self.simulation.world
        now = np.flatnonzero(world.jobs["start"] <= 0.0).tolist()
        busy_nodes = [world.placed[self._slots[job]] for job in now]
        return np.setdiff1d(np.arange(len(world.nodes)), np.concatenate(busy_nodes) if busy_nodes else [])

    def _any_of(self, items: Array) -> int:
        return int(items[self.random.randrange(len(items))])

    def _move_node(self, trial: Candidate, job: int) -> None:
        slots, fitting = self._slots[job], self.fitting[job]
        if fitting is None or len(fitting) <= slots.stop - slots.start:
            return
        slot = self.random.randrange(slots.start, slots.stop)
        other = self._any_of(fitting)
        if other not in trial.places[slots]:
            trial.places[slot] = other

    def _swap(self, trial: Candidate, job: int) -> None:
        """Exchange the nodes of two jobs that may each take the other's, and half the time their order too."""
        other = self._any_of(self.movable)
        a, b = self._slots[job], self._slots[other]
        if self.fitting[job] is None or self.fitting[other] is None:
            return
        one, two = trial.places[a].copy(), trial.places[b].copy()
        if len(one) != len(two):
            return
        fits, other_fits = self._fits[self._class[job]], self._fits[self._class[other]]
        if fits[two].all() and other_fits[one].all():
            trial.places[a], trial.places[b] = two, one
            if self.random.random() < 0.5:
                trial.keys[job], trial.keys[other] = trial.keys[other], trial.keys[job]

    def _reorder(self, trial: Candidate, job: int) -> None:
        other = self._any_of(self.movable)
        nudge = 1e-6 * (1.0 + abs(trial.keys[other]))
        trial.keys[job] = trial.keys[other] + (nudge if self.random.random() < 0.4 else -nudge)

    def _wait(self, trial: Candidate, job: int) -> None:
        """Wait for another job, or stop waiting.

        The other job starts no later in the present order, so it cannot be a descendant. Mostly it runs on the same
        node when this one starts.
        """
        if trial.wait_for[job] >= 0 and self.random.random() < 0.5:
            trial.wait_for[job] = -1
            return
        jobs = self.simulation.world.jobs
        start = jobs["start"]
        other = self._any_of(self.movable)
        if self.random.random() < 0.7:
            same_node = trial.places[self._first] == trial.places[self._slots[job].start]
            together = np.flatnonzero(same_node & (start <= start[job]) & (jobs["finish"] > start[job]))
            other = self._any_of(together) if len(together) else other
        if other != job and start[other] <= start[job]:
            trial.wait_for[job] = other

    def _relieve(self, trial: Candidate, job: int) -> None:
        """Send away a job that runs together with a critical one: let it wait for that one's end, or move it."""
        jobs = self.simulation.world.jobs
        same_node = trial.places[self._first] == trial.places[self._slots[job].start]
        together = np.flatnonzero(
            same_node & (jobs["finish"] > jobs["start"][job]) & (jobs["start"] < jobs["finish"][job])
        )
        if len(together) == 0:
            return
        other = self._any_of(together)
        if other == job or self.fitting[other] is None:
            return
        if self.random.random() < 0.6:
            trial.wait_for[other] = job
        else:
            self._move_node(trial, other)

    def _throttle(self, trial: Candidate, job: int) -> None:
        node = int(trial.places[self._slots[job].start])
        cores = float(self.simulation.world.types["cores"][self.simulation.world.nodes["type"][node]])
        factor = self.random.choice((math.inf, *THROTTLES))
        trial.caps[node] = max(1.0, cores * factor)

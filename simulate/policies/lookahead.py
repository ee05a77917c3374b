"""`lookahead`: search over whole-DAG simulations. Never worse in simulation than the best policy of the paper.

Rule: everything is judged by running the whole workflow in the engine; a candidate is a mapping, an order on each
node, a throttle per node and at most one extra wait per job, so it can make a job wait on purpose.
1. Rollouts: the paper's four policies; then `let`, `mom` and `slf` with critical-path priorities (bottom level) and
   with throttled nodes, because stacking jobs on a node wastes it.
2. Local search from the best few (late-acceptance hill climbing, Burke & Bykov 2017): move, swap, reorder, wait,
   throttle; half of the moves start from the chain of jobs that decides the makespan.
One evaluation is one run of the workflow; the budget counts them, so a seed gives one plan on any machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..bounds import bottom_levels
from ..engine import Simulation
from ..objective import Objective

Array = npt.NDArray[Any]
PAPER = ("loadavg", "slf", "let", "mom")
THROTTLES = (1.0, 0.5, 0.7, 1.25, 0.35, 1.6, 2.0)
HISTORY = 40


@dataclass(slots=True)
class Candidate:
    """A whole solution: see `Simulation.follow`."""

    places: Array
    keys: Array
    wait_for: Array
    caps: Array

    def copy(self) -> Candidate:
        """An independent copy."""
        return Candidate(self.places.copy(), self.keys.copy(), self.wait_for.copy(), self.caps.copy())


@dataclass(frozen=True, slots=True)
class Found:
    """Result of the search. `source` names where the best came from; its tables are in the simulation."""

    makespan: float
    energy_j: float
    evaluations: int
    truncated: bool
    source: str
    candidate: Candidate | None


def default_budget(jobs: int) -> int:
    """Evaluations when none are asked for: many for small workflows, a handful of rollouts for huge ones."""
    return max(24, min(3000, 400_000 // max(jobs, 1)))


class Search:
    """One search over one simulation. `stop` may cut it (then the result says `truncated`); a makespan of `optimal`
    seconds, which none can beat, ends it."""

    def __init__(
        self,
        simulation: Simulation,
        objective: Objective,
        seed: int,
        budget: int,
        stop: Callable[[], bool] | None,
        *,
        optimal: float = 0.0,
    ) -> None:
        self.simulation, self.objective, self.budget = simulation, objective, budget
        self.random, self.stop = random.Random(seed), stop
        self.used, self.truncated = 0, False
        self.enough = optimal * (1.0 + 1e-12) if objective.kind == "makespan" else -math.inf
        self.reference = (1.0, 1.0)
        self.best_value, self.best = math.inf, (math.inf, math.nan)
        self.source = ""
        self.best_run: tuple[str, Array | None, Array | None] = ("mom", None, None)
        self.starts: list[tuple[float, Candidate]] = []
        world = simulation.world
        self.movable = np.flatnonzero(world.jobs["state"] == 0)
        self.fitting = self._fitting_nodes()

    def run(self) -> Found:
        """Search until the budget is used or `stop` says so, and leave the best run's tables in the simulation."""
        self._rollouts()
        best: Candidate | None = None
        starts = sorted(self.starts, key=lambda pair: pair[0])[:3]
        for turn, (_, start) in enumerate(starts):
            share = (self.budget - self.used) // (len(starts) - turn)
            if share < 1 or self._cut():
                break
            found = self._climb(start, share)
            best = found if found is not None else best
        if best is None:
            policy, keys, caps = self.best_run
            self.simulation.run(policy, keys=keys, caps=caps)
        else:
            self.simulation.follow(best.places, best.keys, best.wait_for, best.caps)
        return Found(*self.best, self.used, self.truncated, self.source, best)

    # --- rollouts ---
    def _rollouts(self) -> None:
        simulation = self.simulation
        if self.objective.kind == "mix":
            outcome = simulation.run("mom")
            self.reference = (outcome.makespan or 1.0, outcome.energy_j or 1.0)
        for policy in PAPER:
            self._rollout(policy, None, None)
        cores = simulation.world.types["cores"][simulation.world.nodes["type"]]
        levels = -bottom_levels(simulation)
        for throttle in (math.inf, *THROTTLES):
            caps = None if math.isinf(throttle) else np.maximum(1.0, cores * throttle)
            for policy in ("mom", "let", "slf"):
                for keys in (levels, None):
                    if keys is None and caps is None:
                        continue
                    if self.used * 2 >= self.budget or self._cut():
                        return
                    self._rollout(policy, keys, caps)

    def _rollout(self, policy: str, keys: Array | None, caps: Array | None) -> None:
        outcome = self.simulation.run(policy, keys=keys, caps=caps)
        self.used += 1
        value = self.objective.value(outcome.makespan, outcome.energy_j, self.reference)
        self.starts.append((value, self._candidate(caps)))
        if value < self.best_value:
            self.best_value, self.best = value, (outcome.makespan, outcome.energy_j)
            self.source = (
                policy + ("" if keys is None else " by critical path") + ("" if caps is None else ", throttled")
            )
            self.best_run = (policy, keys, caps)

    def _candidate(self, caps: Array | None) -> Candidate:
        """The run that the tables hold, as a candidate: its mapping, its starts as order."""
        world = self.simulation.world
        keys = world.jobs["start"].copy()
        return Candidate(
            world.placed.copy(),
            keys,
            np.full(len(keys), -1),
            np.full(len(world.nodes), math.inf) if caps is None else caps.copy(),
        )

    # --- local search ---
    def _climb(self, start: Candidate, budget: int) -> Candidate | None:
        """Late-acceptance hill climbing; returns a candidate better than all before, or None."""
        current, value = start, self._value(start, math.inf)
        best: Candidate | None = None
        if value < self.best_value * (1.0 - 1e-12):
            best = self._keep(current, value)
        if len(self.movable) == 0 or math.isinf(value):
            return best
        history = [value] * HISTORY
        chain = self._chain()
        for step in range(budget - 1):
            if self._cut():
                break
            trial = self._move(current, chain)
            threshold = max(history[step % HISTORY], value)
            trial_value = self._value(trial, threshold)
            if trial_value <= threshold:
                better = trial_value < value
                current, value = trial, trial_value
                if better:
                    chain = self._chain()
                if value < self.best_value * (1.0 - 1e-12):
                    best = self._keep(current, value)
            history[step % HISTORY] = min(history[step % HISTORY], value)
        return best

    def _keep(self, candidate: Candidate, value: float) -> Candidate:
        self.best_value, self.source = value, "local search"
        self.best = self._last
        return candidate.copy()

    def _value(self, candidate: Candidate, threshold: float) -> float:
        cutoff = threshold * (1.0 + 1e-12) if self.objective.kind == "makespan" else math.inf
        self._last = self.simulation.follow(
            candidate.places, candidate.keys, candidate.wait_for, candidate.caps, cutoff
        )
        self.used += 1
        if math.isinf(self._last[0]):
            return math.inf
        return self.objective.value(*self._last, self.reference)

    def _cut(self) -> bool:
        if self.used >= self.budget or self.best_value <= self.enough:
            return True
        if self.stop is not None and self.stop():
            self.truncated = True
        return self.truncated

    def _chain(self) -> list[int]:
        """Jobs that decide the makespan of the run just made: from the last end back through what each waited for."""
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

    def _move(self, current: Candidate, chain: list[int]) -> Candidate:
        """A neighbour: one small change of a copy."""
        pick, trial = self.random, current.copy()
        if chain and pick.random() < 0.25:
            self._relieve(trial, pick.choice(chain))
            return trial
        job = (
            pick.choice(chain)
            if chain and pick.random() < 0.5
            else int(self.movable[pick.randrange(len(self.movable))])
        )
        kind = pick.random()
        if kind < 0.35:
            self._move_node(trial, job)
        elif kind < 0.5:
            self._swap(trial, job)
        elif kind < 0.75:
            self._reorder(trial, job)
        elif kind < 0.92:
            self._wait(trial, job)
        else:
            self._throttle(trial, job)
        return trial

    def _fitting_nodes(self) -> list[Array | None]:
        """For each job the nodes that it may ever run on; None for jobs that cannot be moved."""
        world = self.simulation.world
        per_class = [
            np.flatnonzero((world.nodes["limit"] >= c["threads"]) & (world.nodes["memory"] >= c["memory"]))
            for c in world.classes
        ]
        movable = set(self.movable.tolist())
        return [per_class[c] if i in movable else None for i, c in enumerate(world.jobs["cls"].tolist())]

    def _slots(self, job: int) -> tuple[int, int]:
        row = self.simulation.world.jobs[job]
        first = int(row["place0"])
        return first, first + int(self.simulation.world.classes[row["cls"]]["nodes"])

    def _move_node(self, trial: Candidate, job: int) -> None:
        first, last = self._slots(job)
        fitting = self.fitting[job]
        if fitting is None or len(fitting) <= last - first:
            return
        slot = self.random.randrange(first, last)
        other = int(fitting[self.random.randrange(len(fitting))])
        if other not in trial.places[first:last]:
            trial.places[slot] = other

    def _swap(self, trial: Candidate, job: int) -> None:
        """Exchange the nodes of two jobs that may each take the other's, and half the time their order too."""
        other = int(self.movable[self.random.randrange(len(self.movable))])
        (a, a_end), (b, b_end) = self._slots(job), self._slots(other)
        mine, theirs = self.fitting[job], self.fitting[other]
        if mine is None or theirs is None or a_end - a != b_end - b:
            return
        one, two = trial.places[a:a_end].copy(), trial.places[b:b_end].copy()
        if np.isin(two, mine).all() and np.isin(one, theirs).all():
            trial.places[a:a_end], trial.places[b:b_end] = two, one
            if self.random.random() < 0.5:
                trial.keys[job], trial.keys[other] = trial.keys[other], trial.keys[job]

    def _reorder(self, trial: Candidate, job: int) -> None:
        other = int(self.movable[self.random.randrange(len(self.movable))])
        nudge = 1e-6 * (1.0 + abs(trial.keys[other]))
        trial.keys[job] = trial.keys[other] + (nudge if self.random.random() < 0.4 else -nudge)

    def _wait(self, trial: Candidate, job: int) -> None:
        """Wait for a job that starts no later in the present order (so it cannot be a descendant), mostly for one
        that runs on the same node when this one starts; or stop waiting."""
        if trial.wait_for[job] >= 0 and self.random.random() < 0.5:
            trial.wait_for[job] = -1
            return
        jobs = self.simulation.world.jobs
        start = jobs["start"]
        other = int(self.movable[self.random.randrange(len(self.movable))])
        if self.random.random() < 0.7:
            here = trial.places[jobs["place0"]] == trial.places[self._slots(job)[0]]
            beside = np.flatnonzero(here & (start <= start[job]) & (jobs["finish"] > start[job]))
            other = int(beside[self.random.randrange(len(beside))]) if len(beside) else other
        if other != job and start[other] <= start[job]:
            trial.wait_for[job] = other

    def _relieve(self, trial: Candidate, job: int) -> None:
        """Send away a job that runs beside a deciding one: to wait for its end, or to another node."""
        jobs = self.simulation.world.jobs
        here = trial.places[jobs["place0"]] == trial.places[self._slots(job)[0]]
        beside = np.flatnonzero(here & (jobs["finish"] > jobs["start"][job]) & (jobs["start"] < jobs["finish"][job]))
        if len(beside) == 0:
            return
        other = int(beside[self.random.randrange(len(beside))])
        if other == job or self.fitting[other] is None:
            return
        if self.random.random() < 0.6:
            trial.wait_for[other] = job
        else:
            self._move_node(trial, other)

    def _throttle(self, trial: Candidate, job: int) -> None:
        node = int(trial.places[self._slots(job)[0]])
        cores = float(self.simulation.world.types["cores"][self.simulation.world.nodes["type"][node]])
        factor = self.random.choice((math.inf, *THROTTLES))
        trial.caps[node] = max(1.0, cores * factor)

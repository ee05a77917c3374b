"""The `lookahead` policy: search over simulations of the whole workflow.

It is never worse than the best policy of the DESiDE paper.

Rule: every candidate is judged by running the whole workflow in the engine. A candidate is a mapping, an order on each
node, a throttle per node and at most one extra wait per job, so a job can also wait deliberately.
1. Rollouts: the paper's four policies; then `let`, `mom` and `slf` with critical-path priorities (bottom level) and
  with throttled nodes, because stacking jobs on a node wastes it. For a queue that goes on, also EASY backfilling,
  which keeps nodes free for wide jobs.
2. Local search from the best few (late-acceptance hill climbing, Burke & Bykov 2017): move, swap, reorder, wait,
  throttle; most moves start from the chain of jobs that determines the makespan.
   For a queue that goes on, also the shortest first, because then fewer wait for it.
3. Polishing: each job in turn moves to its best other node if the whole plan gains, until a round over all jobs gains
  nothing. That round also finds each job's runner-up.
4. Filling: a job with the default profile never waits deliberately, because a guess is no reason to leave a node idle;
  but no job of several nodes may end later for it, because idle nodes are how such a job gets its nodes.
One evaluation is one run of the workflow. The budget counts evaluations, so a seed gives one plan on any machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from ..arrays import Array
from ..model.objective import Objective
from .bounds import bottom_levels
from .compiled_queue import cores_of
from .open_queue import STARTS, OpenQueue
from .search_moves import MOST_OTHERS, THROTTLES, Candidate, Moves
from .simulation import Simulation

PAPER = ("loadavg", "slf", "let", "mom")
HISTORY = 40
#: Rounds of polishing to reserve evaluations for, and the largest share of the budget reserved.
ROUNDS, SHARE = 2, 0.25
#: Evaluations for each waiting job, and each other one or node, in a queue that goes on (12 waiting jobs get all).
CHOICE = 32
#: Evaluations there for each second that the waiting jobs take in all: of a plan for seconds, more cost more than they
#: gain.
FOR_A_SECOND = 25
#: A value must be smaller by this factor to count as a gain over rounding.
LESS = 1.0 - 1e-9


#: Value of the plan with a job on another node, that node, and its (makespan, energy).
NextBest = tuple[float, int, tuple[float, float]]


def default_budget(jobs: int) -> int:
    """Return the default number of evaluations: many for small workflows, a few rollouts for huge ones."""
    return max(24, min(3000, 400_000 // max(jobs, 1)))


def queue_budget(places: int, waiting: int, nodes: int, work_s: float) -> int:
    """Return the default for a queue that goes on: less where little waits, since its plan is needed now.

    An evaluation takes O(places), so a plan takes about as long whatever the jobs.

    Args:
        places: nodes of each job in the plan, in all.
        waiting: jobs that wait.
        nodes: of the cluster.
        work_s: isolated run times of those that wait, seconds in all.
    """
    most = min(CHOICE * waiting * max(waiting, nodes), FOR_A_SECOND * work_s)
    return max(24, int(min(default_budget(places), most)))


class Search:
    """One search over one simulation.

    Args:
        simulation: the workflow on the cluster.
        objective: what to minimise.
        seed: of the random moves.
        budget: evaluations.
        stop: asked before each evaluation; True cuts the search, and the result is `truncated`.
        optimal: makespan in seconds that no plan can beat; reaching it ends the search.
        queue: judges each run instead of the objective; None: the objective does.
    """

    def __init__(
        self,
        simulation: Simulation,
        objective: Objective,
        seed: int,
        budget: int,
        stop: Callable[[], bool] | None,
        *,
        optimal: float = 0.0,
        queue: OpenQueue | None = None,
    ) -> None:
        self.queue, self.by_makespan = queue, queue is None and not objective.needs_energy
        self.simulation, self.objective, self.budget = simulation, objective, budget
        self.moves, self.stop = Moves(simulation, random.Random(seed)), stop
        self.used, self.truncated = 0, False
        self.enough = optimal * (1.0 + 1e-12) if self.by_makespan else -math.inf
        self.reference = (1.0, 1.0)
        self.starts: list[tuple[float, Candidate]] = []
        self.best: Candidate
        self.best_value, self.best_end = math.inf, (math.inf, math.nan)
        self.best_run: Callable[[], object] | None = None  # runs the best once more, if it is a rollout
        self.next_best: dict[int, NextBest | None] = {}

    def run(self) -> None:
        """Search until the budget is used or `stop` is True; leave the tables of the best run in the simulation.

        The result is in `best`, `best_end` (makespan in s, energy in J), `used` (evaluations) and `truncated`.
        """
        self._rollouts()
        starts = sorted(self.starts, key=lambda pair: pair[0])[:3]
        reserved = self._reserved_for_polishing()
        for turn, (_, start) in enumerate(starts):
            share = (self.budget - reserved - self.used) // (len(starts) - turn)
            if share < 1 or self._cut():
                break
            self._climb(start, share)
        self._polish()
        self._show_best()
        if not self.objective.needs_energy:
            self._fill()

    def _show_best(self) -> None:
        """Leave the tables of the best run in the simulation."""
        if self.best_run is not None:
            self.best_run()
        else:
            self.best.follow(self.simulation)

    def alternatives(self, runs: int) -> dict[int, tuple[int, float]]:
        """Return each job's next best node and the makespan with the job there. Call after `run`.

        No alternative beats the plan if the budget sufficed for polishing. Jobs that the search left open are evaluated
        now, beyond the budget, in about `runs` runs, early jobs first; the tables stay.
        """
        tables = self.simulation.world.buffer
        keep, before = tables.copy(), self.used
        for job in self._order():
            if job not in self.next_best and self.used - before < runs:
                self.next_best[job] = self._next_best(job, self.moves.others(self.best, job))
        np.copyto(tables, keep)
        return {job: (trial[1], trial[2][0]) for job, trial in self.next_best.items() if trial is not None}

    # --- rollouts ---
    def _rollouts(self) -> None:
        simulation = self.simulation
        if self.objective.kind == "mix":
            outcome = simulation.run("mom")
            self.reference = (outcome.makespan or 1.0, outcome.energy_j or 1.0)
        for policy in PAPER:
            self._rollout(policy, None, None)
        if self.queue is not None:
            self._backfilled(self.queue)
        cores = simulation.world.types["cores"][simulation.world.nodes["type"]]
        levels = -bottom_levels(simulation)
        throttled = [None, *(np.maximum(1.0, cores * throttle) for throttle in THROTTLES)]
        orders = (levels, None) if self.queue is None else (-levels, None, levels)
        for caps, policy, keys in product(throttled, ("mom", "let", "slf"), orders):
            if keys is None and caps is None:
                continue
            if self.used * 2 >= self.budget or self._cut():
                return
            self._rollout(policy, keys, caps)

    def _backfilled(self, queue: OpenQueue) -> None:
        """Add the plans of EASY backfilling; they hold as they are, because a candidate reserves no nodes."""
        simulation = self.simulation
        for order in STARTS:
            run = partial(queue.backfill, simulation, order)
            if not run():
                return
            caps, jobs = np.maximum(cores_of(simulation), 1.0), simulation.world.jobs
            energy = float(simulation.world.nodes["energy"].sum()) if simulation.world.count["powered"] else math.nan
            end = float(np.nanmax(jobs["finish"], initial=0.0)), energy
            self._add_start(run, Candidate.of(simulation, caps), end)

    def _rollout(self, policy: str, keys: Array | None, caps: Array | None) -> None:
        run = partial(self.simulation.run, policy, keys=keys, caps=caps)
        outcome = run()
        self._add_start(run, Candidate.of(self.simulation, caps), (outcome.makespan, outcome.energy_j))

    def _add_start(self, run: Callable[[], object], start: Candidate, end: tuple[float, float]) -> None:
        """Add a rollout, whose run the tables hold, to those that the search starts from."""
        self.used += 1
        value = self._judged(*end)
        self.starts.append((value, start))
        if value < self.best_value:
            self.best, self.best_value, self.best_end, self.best_run = start, value, end, run

    # --- local search ---
    def _climb(self, start: Candidate, budget: int) -> None:
        """Run late-acceptance hill climbing from `start`."""
        current, value = start, self._value(start, math.inf)
        self._keep(current, value, self._last)
        if len(self.moves.movable) == 0 or math.isinf(value):
            return
        history = [value] * HISTORY
        chain = self.moves.chain()
        for step in range(budget - 1):
            if self._cut():
                break
            trial = self.moves.neighbour(current, chain)
            threshold = max(history[step % HISTORY], value)
            trial_value = self._value(trial, threshold)
            if trial_value <= threshold:
                if trial_value < value:
                    chain = self.moves.chain()
                current, value = trial, trial_value
                self._keep(current, value, self._last)
            history[step % HISTORY] = min(history[step % HISTORY], value)

    def _keep(self, candidate: Candidate, value: float, end: tuple[float, float]) -> bool:
        """Keep a candidate as the best if it is better than the best so far; return whether it is."""
        if value >= self.best_value * LESS:
            return False
        self.best, self.best_value, self.best_end, self.best_run = candidate, value, end, None
        return True

    # --- polishing ---
    def _order(self) -> list[int]:
        """Return the jobs that could run on another node, early ones first."""
        jobs = np.argsort(self.best.keys, kind="stable").tolist()
        return [job for job in jobs if job in self.moves.relocatable]

    def _reserved_for_polishing(self) -> int:
        """Return the evaluations reserved for polishing: ROUNDS of it, at most SHARE of the budget."""
        moves_per_round = sum(min(len(nodes) - 1, MOST_OTHERS) for nodes in self.moves.relocatable.values())
        return min(ROUNDS * moves_per_round, int(SHARE * self.budget))

    def _polish(self) -> None:
        order, at, quiet = self._order(), 0, 0
        while quiet < len(order) and not self._cut():
            job = order[at % len(order)]
            others, room = self.moves.others(self.best, job), self.budget - self.used
            trial = self._next_best(job, others[:room])
            if trial is not None and self._keep(self.moves.moved(self.best, job, trial[1]), trial[0], trial[2]):
                self.next_best.clear()
                quiet = 0
            elif len(others) <= room:
                self.next_best[job] = trial
                quiet += 1
            at += 1

    # --- filling ---
    def _fill(self) -> None:
        """Start jobs with the default profile on nodes that would be idle now; one evaluation for each job and node.

        Beyond the budget, because it is not a matter of more or less.
        """
        workflow, jobs = self.simulation.workflow.jobs, self.simulation.world.jobs
        ready = [
            job
            for job in self._order()
            if jobs["start"][job] > 0.0
            and not workflow[job].after
            and workflow[job].profile.provenance.source == "default"
        ]
        idle = set(self.moves.idle_nodes().tolist()) if ready else set()
        wide = self.simulation.world.classes["nodes"][jobs["cls"]] > 1
        latest = jobs["finish"][wide] * (1.0 + 1e-9)
        for job in ready:
            for node in sorted(idle.intersection(self.moves.relocatable[job].tolist()))[:MOST_OTHERS]:
                trial = self.moves.first_on(self.best, job, node)
                end = trial.follow(self.simulation)
                self.used += 1
                if math.isfinite(end[0]) and jobs["start"][job] <= 0.0 and (jobs["finish"][wide] <= latest).all():
                    self.best, self.best_end, self.best_run = trial, end, None
                    self.best_value = self._judged(*end)
                    self.next_best.clear()
                    idle.discard(node)
                    break
                self._show_best()

    def _next_best(self, job: int, others: list[int]) -> NextBest | None:
        """Return the best evaluation with this job on one of the other nodes; None if it can run on none."""
        trials = [(self._value(self.moves.moved(self.best, job, node), math.inf), node, self._last) for node in others]
        best = min(trials, default=None)
        return None if best is None or math.isinf(best[0]) else best

    def _value(self, candidate: Candidate, threshold: float) -> float:
        cutoff = threshold * (1.0 + 1e-12) if self.by_makespan else math.inf
        self._last = candidate.follow(self.simulation, cutoff)
        self.used += 1
        if math.isinf(self._last[0]):
            return math.inf
        return self._judged(*self._last)

    def _judged(self, makespan: float, energy_j: float) -> float:
        """Return the value of the run that the tables hold."""
        if self.queue is not None:
            return self.queue.value(self.simulation.world.jobs["finish"])
        return self.objective.value(makespan, energy_j, self.reference)

    def _cut(self) -> bool:
        if self.used >= self.budget or self.best_value <= self.enough:
            return True
        if self.stop is not None and self.stop():
            self.truncated = True
        return self.truncated

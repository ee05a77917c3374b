"""Reference of environment B in plain Python: the plain replay with contention, asked for a pair of rules.

Rule: what is seen is computed again at each decision, from the tasks on their cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from pilotfish.simulate.arrays import Array
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Pairs
from pilotfish.simulate.world.rule_options import RuleOptions
from pilotfish.simulate.world.rule_worlds import LARGEST_VOLUME, LONGEST_S
from tests.reference.plain_contended import Chip, Plain, Task


class PlainChoices(Plain):
    """One episode; `ask` is called at each decision, and returns a pair of rules, or None to start nothing.

    Args:
        jobs: the workload.
        cluster: the nodes.
        options: of the environment.
        seed: of random rules.
        ask: takes this object; `queue` and `now` are of that moment.
    """

    def __init__(
        self, jobs: Workload, cluster: Cluster, options: RuleOptions, seed: int,
        ask: Callable[[PlainChoices], tuple[str, str] | None],
    ) -> None:  # fmt: skip
        self.options, self.ask = options, ask
        self.queue, self.now, self.before, self.ended, self.length = list[int](), 0.0, 0, 0, 0
        self.asked_s = np.asarray(jobs.more.get("asked", jobs.walltime), np.float64).tolist()
        super().__init__(jobs, cluster, Pairs(), seed)

    def _pass(self, queue: list[int], now: float) -> list[int]:
        ended = sum(math.isfinite(end) for end in self.finish)
        news, self.ended = ended > self.ended, ended
        due = news or self.before == 0 or not self.running or self.options.always
        self.queue, self.now, started = queue, now, list[int]()
        while queue and any(chip.free for chip in self.chips) and due:
            if (choice := self.ask(self)) is not None:
                self.policy = Pairs(*choice)
                started = self._apply(queue, now)
            due = self.options.one and choice is not None and bool(started)
        self.before = len(queue)
        return []

    def _apply(self, queue: list[int], now: float) -> list[int]:
        if not self.options.one:
            return super()._pass(queue, now)
        at = self._choose(queue)
        if not self._place(job := queue[at], now):
            return []
        queue[at] = queue[-1] if self.policy.job == "random" else job
        del queue[-1 if self.policy.job == "random" else at]
        return [job]

    @property
    def running(self) -> bool:
        """Whether a job runs."""
        return any(chip.free < len(chip.cores) for chip in self.chips)

    @property
    def spent(self) -> float:
        """Joules from the first submission until now."""
        log = [*self.log, (self.now, 0.0)]
        return math.fsum(watts * (later[0] - time) for (time, watts), later in pairwise(log))

    def state(self) -> Array:
        """Return what is seen at this decision; it may be asked for once."""
        parts, options = [self._queue_state()], self.options
        if options.observation == "normal":
            parts.insert(0, np.concatenate([self._core_state(chip) for chip in self.chips]))
        if options.observation != "minimal":
            nodes = [free / int(kind.memory) for free, kind in zip(self.memory, self.kinds, strict=True)]
            chips = [
                1.0 - sum(task.demand for task in chip.tasks) / (chip.kind.memory_bandwidth / chip.kind.sockets)
                for chip in self.chips
            ]
            parts.insert(0, np.maximum(np.array(nodes + chips), 0.0))
        return np.concatenate(parts)

    def _core_state(self, chip: Chip) -> Array:
        power, rows = chip.kind.power, list[float]()
        assert power is not None
        cores = len(chip.cores)
        peak = power.per_core + power.per_socket / cores
        idle = power.per_socket / cores * (1.0 if chip.tasks else power.idle_uncore)
        for task in chip.cores:
            if not isinstance(task, Task):
                rows += [1.0, idle / peak, 0.0]
                continue
            limit = self.asked_s[task.job]
            rest = max(0.0, 1.0 - (self.now - self.start[task.job]) / limit) if limit > 0.0 else 0.0
            rows += [task.rate, 1.0, rest]
        return np.array(rows)

    def _queue_state(self) -> Array:
        jobs, cores = self.jobs, sum(len(chip.cores) for chip in self.chips)
        requests = (
            np.log1p(self.asked_s) / np.log1p(LONGEST_S), jobs.size / cores,
            np.array(self.jobs.more["memory"]) / max(int(kind.memory) for kind in self.kinds),
            np.log1p(jobs.more["volume"]) / np.log1p(LARGEST_VOLUME),
        )  # fmt: skip
        points = [np.percentile(np.minimum(one, 1.0)[self.queue], (0, 25, 50, 75, 100)) for one in requests]
        old, new, width = self.length, len(self.queue), self.options.sensitivity
        change = 1.0 if old == 0 else min(1.0, max(0.0, ((new - old) / min(old, new) + width) / (2 * width)))
        self.length = new
        return np.array([*np.concatenate(points), change])

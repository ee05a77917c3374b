"""Reference of the replay with contention, in plain Python, by definition.

Rule: a processor stores only its tasks; the values of resource rules are recomputed at each choice. Sums and remaining
work are computed in the order of the starts, as the kernel does, so that the results are equal to the last bit.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pilotfish.simulate.model.cluster import Cluster, Contention, NodeType
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Contending, Nodes
from tests.reference.plain_dependents import Upcoming


@dataclass(eq=False)
class Task:
    job: int
    left: float
    demand: float
    until: float
    number: int
    rate: float = 0.0
    since: float = 0.0
    end: float = math.inf
    natural: float = math.inf


@dataclass(eq=False)
class Chip:
    """A processor: for each core its running task, "held" if the task has ended but not its job, or None."""

    kind: NodeType
    node: int
    first: int
    speed: float
    cores: list[Any] = field(default_factory=list)

    @property
    def tasks(self) -> list[Task]:
        return sorted((task for task in self.cores if isinstance(task, Task)), key=lambda task: task.number)

    @property
    def free(self) -> int:
        return self.cores.count(None)

    @property
    def watts(self) -> float:
        power, n = self.kind.power, len(self.tasks)
        assert power is not None
        return power.per_core * n + power.per_socket * (1.0 if n else power.idle_uncore)


def shares(kind: NodeType, demands: list[float]) -> list[float]:
    """Return the share of its full speed of each task under contention."""
    if not demands:
        return []
    total, traffic, bandwidth, count = 0.0, 0.0, kind.memory_bandwidth / kind.sockets, len(demands)
    for demand in demands:
        total += demand
        traffic += demand * 1e-6
    if kind.contention is Contention.PIECEWISE_LINEAR:
        k = kind.piecewise
        assert k is not None
        n = min(count - 1.0, k.n_max)
        found = []
        for demand in demands:
            x = min(max((demand * 1e-6 - (k.da - n) * k.db) / (k.dc - n * k.dd), 0.0), 1.0)
            smooth = 1.0 - x * x * x * (x * (6.0 * x - 15.0) + 10.0)
            w = n * k.d_weight
            least = (smooth * w + 1.0) / (w + 1.0)
            over = traffic - k.c
            found.append(rounded(1.0 / (1.0 if over < 0 else max(least, 1.0 + k.b * over))))
        return found
    level = math.inf
    if kind.contention is Contention.EQUAL_SHARE:
        level = bandwidth / count
    elif kind.contention is Contention.MAX_MIN and total > bandwidth * (1.0 - 1e-9):
        level, higher = bandwidth / count, math.inf
        while True:  # demands below the level are met, the others share the rest
            used, more = 0.0, [demand for demand in demands if demand > level]
            for demand in demands:
                used += demand if demand <= level else 0.0
            if not more:
                level = math.inf
                break
            higher = (bandwidth - used) / len(more)
            if higher <= level * (1.0 + 1e-15):
                break
            level = higher
    remote = 0.75 + 0.25 * kind.remote_access_penalty
    return [rounded(1.0 + max(0.0, demand / level - 1.0) * remote) for demand in demands]


def rounded(dilation: float) -> float:
    """Return the share of its full speed of a task that is so many times slower, with the kernel's rounding."""
    return 1.0 / (dilation + 1.0 - 1.0)


def least(values: list[float]) -> int:
    """Return the position of the smallest value; of those that differ by rounding only, the first."""
    best = 0
    for i, value in enumerate(values):
        if value < values[best] - 1e-9 * abs(values[best]):
            best = i
    return best


class Draws:
    """Random numbers: splitmix64 (Steele, Lea and Flood 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, many: int) -> int:
        mask = 2**64 - 1
        self._state = (self._state + 0x9E3779B97F4A7C15) & mask
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return int(float((z ^ (z >> 31)) >> 11) * 2.0**-53 * many)


class Plain:
    """The replay. `log`: power of the machine from each instant on, if known.

    `takes`: seconds from a decision until its jobs start; `predictor`: of run times, or "actual"; `cap`: begin and end
    of a power cap, and the most cores that jobs may then hold.
    """

    def __init__(
        self, jobs: Workload, cluster: Cluster, policy: Contending, seed: int = 0, takes: float = 0.0,
        predictor: Any = None, cap: tuple[float, float, int] = (0.0, 0.0, 0),
    ) -> None:  # fmt: skip
        self.cap = cap
        self.takes, self.predictor, self.learned = takes, predictor, set[int]()
        self.told: list[float] = np.asarray(jobs.more.get("asked", jobs.walltime)).tolist()
        if predictor == "actual":
            self.told, self.predictor = np.minimum(jobs.run_time, jobs.walltime).tolist(), None
        self.jobs, self.policy, self.draws = jobs, policy, Draws(seed)
        self.kinds = [node.type for node in cluster.nodes]
        self.memory = [int(kind.memory) for kind in self.kinds]
        slowest, first = min(kind.relative_speed for kind in self.kinds), 0
        self.chips = list[Chip]()
        for n, kind in enumerate(self.kinds):
            for s in range(kind.sockets):
                wide = kind.cores // kind.sockets + (s < kind.cores % kind.sockets)
                self.chips.append(Chip(kind, n, first, kind.relative_speed / slowest, [None] * wide))
                first += wide
        count = len(jobs)
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.places, self.overran = [list[int]() for _ in range(count)], [False] * count
        self.need = [int(np.ceil(each)) for each in jobs.more.get("memory", np.zeros(count))]
        volume, run = jobs.more.get("volume", np.zeros(count)).tolist(), jobs.run_time.tolist()
        self.demand = [moved / work if work > 0 else 0.0 for moved, work in zip(volume, run, strict=True)]
        self.log, self.upcoming = list[tuple[float, float]](), Upcoming(jobs)
        self.turn, self.begun = dict[int, int](), 0
        self._go()

    def _go(self) -> None:
        queue, decided, due, news, seen = list[int](), list[int](), math.inf, False, -math.inf
        while True:
            ends = [task.end for chip in self.chips for task in chip.tasks]
            if not ends and not self.upcoming and due == math.inf and not queue:
                return
            now = min(
                *ends, self.upcoming.time, due, *(time for time in self.cap[:2] if time > seen and queue), math.inf
            )
            happened = now == due or (now in self.cap[:2] and bool(queue))
            seen, news = now, news or now in self.cap[:2]
            if self.predictor and self.upcoming.time == now:
                self._predict(now)
            ran = sum(math.isfinite(end) for end in self.finish)
            until = now + 1e-9 + 1e-15 * now
            while chip := next((c for c in self.chips if any(t.end <= until for t in c.tasks)), None):
                self._end(chip, now)
                happened = True
            first = self.upcoming.next
            came = sorted(i for i in self.upcoming.now(now) if self._could(i))
            self.turn |= {i: len(self.turn) + k for k, i in enumerate(came)}
            queue += came
            if not (happened or came or any(map(self._could, range(first, self.upcoming.next)))):
                self._note_power(now)
                continue  # only jobs that never fit were submitted
            news |= bool(came) or sum(math.isfinite(end) for end in self.finish) > ran
            applies = due == now
            if applies:
                self._put(decided, now)
                due = math.inf
            if due == math.inf and (news or not applies):
                chips, memory, news = copy.deepcopy(self.chips), [*self.memory], False
                decided = self._pass(queue, now)
                if now + self.takes > now:
                    if getattr(self.policy, "resource", "") == "high_gflops":  # the kernel has rated what it chose
                        for chip, other in zip(chips, self.chips, strict=True):
                            if len(chip.tasks) < len(other.tasks):
                                self._rate(chip, now)
                    self.chips, self.memory, due = chips, memory, now + self.takes
            self._note_power(now)

    def _note_power(self, now: float) -> None:
        if all(kind.power for kind in self.kinds):
            base = sum(kind.power.idle for kind in self.kinds)
            self.log.append((now, base + sum(chip.watts for chip in self.chips)))

    def _pass(self, queue: list[int], now: float) -> list[int]:
        """Start the next job until one does not fit; return those that started."""
        found = list[int]()
        while queue:
            at = self._choose(queue)
            held = sum(len(chip.cores) - chip.free for chip in self.chips) + int(self.jobs.size[queue[at]])
            if self.cap[0] <= now < self.cap[1] and held > self.cap[2]:
                break
            if not self._place(queue[at], now):
                break
            found.append(queue[at])
            if self.policy.job == "random":
                queue[at] = queue[-1]
                queue.pop()
            else:
                del queue[at]
        return found

    def _put(self, decided: list[int], now: float) -> None:
        """Start jobs on the cores that were chosen for them."""
        for i in decided:
            self.start[i] = now
            for number in self.places[i]:
                chip = next(c for c in self.chips if c.first <= number < c.first + len(c.cores))
                self._begin(i, chip, number - chip.first, now)

    def _predict(self, now: float) -> None:
        """Predict the jobs that are submitted now, from those that ended before."""
        over = [i for i, end in enumerate(self.finish) if math.isfinite(end) and i not in self.learned]
        for i in sorted(over, key=lambda i: (self.finish[i], i)):
            self.learned.add(i)
            self.predictor.ended(i)
        for i, time in enumerate(self.jobs.submit_time.tolist()):
            if time == now:
                self.told[i] = min(self.predictor.expected(i), float(self.jobs.walltime[i]))

    def _could(self, i: int) -> bool:
        need, size = self.need[i], int(self.jobs.size[i])
        rooms = [min(kind.cores, int(kind.memory) // need) if need else kind.cores for kind in self.kinds]
        if self.cap[1] == math.inf and size > self.cap[2]:
            return False
        return size <= (max(rooms) if isinstance(self.policy, Nodes) else sum(rooms))

    def _choose(self, queue: list[int]) -> int:
        jobs = self.jobs
        if self.policy.job == "random":
            return self.draws.below(len(queue))
        keys: dict[str, Any] = {
            "first": [0] * len(jobs), "shortest": self.told, "smallest": jobs.size,
            "low_mem": self.need, "low_mem_bw": self.demand,
        }  # fmt: skip
        return min(range(len(queue)), key=lambda at: (keys[self.policy.job][queue[at]], self.turn[queue[at]]))

    def _room(self, node: int, need: int) -> int:
        free = sum(chip.free for chip in self.chips if chip.node == node)
        return min(free, self.memory[node] // need) if need else free

    def _place(self, i: int, now: float) -> bool:
        need, size = self.need[i], int(self.jobs.size[i])
        rooms = [self._room(n, need) for n in range(len(self.kinds))]
        allowed = range(len(self.kinds))
        if isinstance(self.policy, Nodes):
            fitting = [n for n in allowed if rooms[n] >= size]
            if not fitting:
                return False
            by = {"biggest": lambda n: -self.kinds[n].cores, "fastest": lambda n: -self.kinds[n].relative_speed}
            drawn = self.policy.rule == "random"
            node = fitting[self.draws.below(len(fitting))] if drawn else min(fitting, key=by[self.policy.rule])
            allowed = range(node, node + 1)
        elif sum(rooms) < size:
            return False
        self.start[i] = now
        for _ in range(size):
            chip, core = self._core(need, allowed)
            self.places[i].append(chip.first + core)
            self._begin(i, chip, core, now)
        return True

    def _begin(self, i: int, chip: Chip, core: int, now: float) -> None:
        run, wall = float(self.jobs.run_time[i]), float(self.jobs.walltime[i])
        self.begun += 1
        chip.cores[core] = Task(i, run / chip.speed, self.demand[i] * chip.speed, now + wall, self.begun, since=now)
        self.memory[chip.node] -= self.need[i]
        self._rate(chip, now)

    def _core(self, need: int, nodes: range) -> tuple[Chip, int]:
        chips = [c for c in self.chips if c.node in nodes and c.free and self.memory[c.node] >= need]
        if isinstance(self.policy, Nodes):
            return chips[0], chips[0].cores.index(None)
        if self.policy.resource == "random":
            free = [(chip, k) for chip in chips for k, task in enumerate(chip.cores) if task is None]
            return free[self.draws.below(len(free))]
        scores: dict[str, Any] = {
            "high_gflops": lambda c: (
                -c.speed * (sum((t.rate for t in c.tasks), 0.0) / len(c.tasks) if c.tasks else 1.0)
            ),
            "high_core": lambda c: -c.free,
            "high_mem": lambda c: -self.memory[c.node],
            "high_mem_bw": lambda c: sum((t.demand for t in c.tasks), 0.0) - c.kind.memory_bandwidth / c.kind.sockets,
            "low_power": lambda c: c.watts,
        }
        chip = chips[least(list(map(scores[self.policy.resource], chips)))]
        return chip, chip.cores.index(None)

    def _rate(self, chip: Chip, now: float) -> None:
        tasks = chip.tasks
        for task, share in zip(tasks, shares(chip.kind, [task.demand for task in tasks]), strict=True):
            task.left = max(task.left - task.rate * (now - task.since), 0.0)
            task.rate, task.since, task.natural = share, now, now + task.left / share
            task.end = min(task.natural, task.until)

    def _end(self, chip: Chip, now: float) -> None:
        until = now + 1e-9 + 1e-15 * now
        for k, task in enumerate(chip.cores):
            if isinstance(task, Task) and task.end <= until:
                self.overran[task.job] |= task.natural > until
                chip.cores[k] = ("held", task.job)
                self._let_go(task.job, now)
        self._rate(chip, now)

    def _let_go(self, i: int, now: float) -> None:
        if any(task.job == i for chip in self.chips for task in chip.tasks):
            return
        self.finish[i] = now
        self.upcoming.ended(i, not self.overran[i])
        for chip in self.chips:
            mine = chip.cores.count(("held", i))
            self.memory[chip.node] += mine * self.need[i]
            chip.cores = [None if task == ("held", i) else task for task in chip.cores]

    @property
    def joules(self) -> float:
        """Return the energy from the first submission to the last end."""
        last = max((end for end in self.finish if not math.isnan(end)), default=-math.inf)
        steps = zip(self.log, self.log[1:], strict=False)
        return math.fsum(watts * (min(b, last) - a) for (a, watts), (b, _) in steps if a < last)

"""Forecast of the starts and ends of the jobs of a resource manager that decides by itself.

Rule: its queue is replayed under EASY backfilling: it decides by walltimes, and jobs end when they are expected to.
Nodes that jobs share are one pool of cores; where jobs may use some of its nodes only, it has classes of nodes, see
`node_classes`. The tasks of an array are jobs; its start is that of the first that waits, its end that of the last.
Times are the medians of several replays, whose run times are drawn from their predictions with a fixed seed; intervals
are of probability LEVEL. Jobs of one group are drawn together, so that intervals are rather too wide. A job
without an expected run time ends at its walltime. An interval that rests on such a job, or on a guess, reaches
from where they end at once to where they end at their walltimes. No start is before now, and no run is longer than its
walltime.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

import numpy as np

from ..arrays import Array
from ..model.observed_queue import ObservedJob, ObservedQueue
from ..model.plan import LEVEL
from ..model.workload import LONGEST, Dependencies, Workload, in_order
from ..queue_policies.policy_specs import Easy
from .node_classes import node_classes

#: Replays of each pool, at least and at most, and jobs that are replayed in all of them together.
FEWEST_DRAWS, DRAWS, REPLAYED = 5, 15, 15_000
#: Jobs that are looked at in one step.
STEP = 2000
#: Most waiting jobs of a pool that are replayed.
MOST_JOBS = 5000
#: Most jobs that the tasks of an array wait for, times the number of tasks.
MOST_DEPENDENCIES = 100_000
#: A job that outlasts what is expected of it is expected to take this many times as long as it has taken.
LONGER = 1.5
#: Starts that differ by less are the same, seconds.
SAME_S = 1.0
#: Most classes of nodes of a pool, and most lists of nodes from which they are made.
MOST_CLASSES, MOST_LISTS = 64, 256
#: Walltime of a job without one, seconds.
UNLIMITED_S = 365 * 86400.0


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """The expected run time of a job, seconds; it is below `low` and above `high` with probability (1 - LEVEL) / 2.

    Jobs of one `group` have the same error. A `guess` rests on too few jobs for an interval: the job may as well end at
    once or at its walltime.
    """

    median: float
    low: float
    high: float
    group: Hashable = None
    guess: bool = False


@dataclass(frozen=True, slots=True)
class QueueForecast:
    """The forecast of a job that waits; times are epoch seconds, None: not known, because of `unknown`.

    Args:
        guessed: the start rests on run times that are not known, or guesses.
    """

    start_time: float | None = None
    finish_time: float | None = None
    start_within: tuple[float, float] | None = None
    finish_within: tuple[float, float] | None = None
    unknown: str = ""
    guessed: bool = False


def forecast_queue(
    queue: ObservedQueue,
    expected: Callable[[ObservedJob], ExpectedRun | None] = lambda job: None,
    gaps_s: Sequence[float] = (),
    draws: int = DRAWS,
    breathe: Callable[[], None] = lambda: None,
) -> dict[str, QueueForecast]:
    """Return the forecast of each job that waits, by key. O(draws x jobs x log jobs + nodes x lists of nodes).

    Args:
        queue: at this moment.
        expected: returns the expected run time of a job; None: nothing is known but its walltime.
        gaps_s: measured times from an end to the next start on the same cores, seconds; none: no time passes.
        draws: number of replays of each pool, >= 1; long queues have fewer.
        breathe: called between two steps, so that the caller can do other work; changes no forecast.
    """
    forecasts, active_jobs = dict[str, QueueForecast](), list[ObservedJob]()
    unknown = {job.key: job.unknown for job in queue.jobs if job.waiting}
    usable = {where: len(where & queue.nodes.keys()) for where in {job.where for job in queue.jobs if job.waiting}}
    for number, job in enumerate(queue.jobs):
        if number % STEP == 0:
            breathe()
        if not job.waiting:
            active_jobs += [job] * (not job.state.ended and job.start_time is not None)
            continue
        why = job.unknown or _obstacle(job, usable[job.where], unknown)
        unknown[job.key] = why
        if why:
            forecasts[job.key] = QueueForecast(unknown=why)
        else:
            active_jobs.append(job)
    for names, jobs in _pools(active_jobs):
        breathe()
        forecasts |= _Pool(queue, names, jobs, expected, breathe).forecast(gaps_s, draws)
    return forecasts


def _obstacle(job: ObservedJob, usable: int, unknown: Mapping[str, str]) -> str:
    """Return why the start of a waiting job cannot be known, or ""; `usable` of its nodes take jobs."""
    if usable < job.nodes:
        return f"{usable} of the nodes that it may use take jobs, it needs {job.nodes}"
    if len(job.after) * job.tasks > MOST_DEPENDENCIES:
        return "it waits for too many jobs"
    before = next((key for key in job.after if unknown.get(key)), None)
    return f"it waits for {before}, whose start is not known" if before else ""


def _pools(jobs: Iterable[ObservedJob]) -> list[tuple[frozenset[str], list[ObservedJob]]]:
    """Return the waiting and running jobs by the nodes that they share, directly or through others."""
    parent = dict[str, str]()

    def root(name: str) -> str:
        while (up := parent.setdefault(name, name)) != name:
            parent[name] = name = parent[up]
        return name

    jobs = [job for job in jobs if job.where]
    for names in {job.where for job in jobs}:
        first, *others = map(root, names)
        for other in others:
            parent[root(other)] = root(first)
    pools = defaultdict[str, list[ObservedJob]](list)
    for job in jobs:
        pools[root(next(iter(job.where)))].append(job)
    members = defaultdict[str, set[str]](set)
    for name in parent:
        members[root(name)].add(name)
    return [(frozenset(members[name]), pool) for name, pool in pools.items() if any(job.waiting for job in pool)]


class _Pool:
    """The replays of one pool; times are seconds from the moment of the queue.

    Args:
        queue: at this moment.
        names: of the nodes.
        jobs: that run or wait there, in the order of the queue.
        expected: see `forecast_queue`; `breathe` too.
    """

    def __init__(
        self, queue: ObservedQueue, names: frozenset[str], jobs: Sequence[ObservedJob],
        expected: Callable[[ObservedJob], ExpectedRun | None], breathe: Callable[[], None],
    ) -> None:  # fmt: skip
        self._breathe = breathe
        self._now, self._nodes = queue.time, names.intersection(queue.nodes)
        nodes = [queue.nodes[name] for name in names if name in queue.nodes]
        self._cores = sum(cores for cores, _ in nodes)
        self._node = max((cores for cores, _ in nodes), default=1)
        self._core_memory = min((memory / cores for cores, memory in nodes if memory and cores), default=math.inf)
        running = [job for job in jobs if not job.waiting and not queue.nodes.keys().isdisjoint(job.where)]
        waiting = [job for job in jobs if job.waiting]
        tasks = list(islice(chain.from_iterable(repeat(job, job.tasks) for job in waiting), MOST_JOBS))
        self._jobs = [*running, *tasks]
        self._classes = node_classes(
            {name: queue.nodes[name][0] for name in names if name in queue.nodes},
            [(job.where, self._size(job) // job.nodes) for job in running],
            [job.where for job in tasks] if len({job.where for job in waiting}) <= MOST_LISTS else [],
        )
        #: First and last row of each job, by its key.
        self._rows = {job.key: (i, i) for i, job in enumerate(running)}
        next_row = self._running = len(running)
        for job in waiting:
            self._rows[job.key] = next_row, next_row + job.tasks - 1
            next_row += job.tasks
        self._waiting = waiting
        self._before, self._after = self._dependencies()
        breathe()
        runs = {job.key: expected(job) for job in jobs}
        breathe()
        self._runs = [runs[job.key] for job in self._jobs]
        self._limit = np.array([min(job.walltime or UNLIMITED_S, UNLIMITED_S) for job in self._jobs])
        began = [self._now if job.waiting or job.start_time is None else job.start_time for job in self._jobs]
        self._elapsed = np.maximum(0.0, self._now - np.array(began))
        quantiles = [(run.low, run.median, run.high) if run else (math.nan,) * 3 for run in self._runs]
        self._low, self._median, self._high = np.array(quantiles).reshape(-1, 3).T
        self._guessed = np.array([run is None or run.guess for run in self._runs], np.bool_)
        groups = dict[Hashable, int]()
        self._group = [groups.setdefault(run.group if run else None, len(groups)) for run in self._runs]

    def forecast(self, gaps_s: Sequence[float], draws: int) -> dict[str, QueueForecast]:
        """Return the forecasts of the jobs that wait."""
        sizes = [self._size(job) for job in self._jobs]
        # jobs that already run fit, whatever the sizes of their nodes are
        machine = max(self._cores, sum(sizes[: self._running]), 1)
        starts, finishes = list[Array](), list[Array]()
        draw = np.random.default_rng(0)
        for number in range(min(draws, max(FEWEST_DRAWS, REPLAYED // max(len(self._jobs), 1)))):
            share = draw.random(len(self._jobs))[self._group] if number else np.full(len(self._jobs), 0.5)
            gap = draw.choice(np.asarray(gaps_s), len(self._jobs)) if len(gaps_s) else np.zeros(len(self._jobs))
            start, run = self._replay(sizes, machine, share, gap)
            starts.append(start)
            finishes.append(start + run)
        shares = 0.5, (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0
        start, finish = (np.quantile(np.array(times), shares, axis=0) for times in (starts, finishes))
        guessed = self._widen_by_walltimes(
            sizes, machine, float(np.median(gaps_s)) if len(gaps_s) else 0.0, start, finish
        )
        start, finish = start + self._now, finish + self._now
        forecasts = dict[str, QueueForecast]()
        beyond = {job.key for job in self._waiting if self._rows[job.key][1] >= len(self._jobs)}
        for job in self._waiting:
            i, j = self._rows[job.key]
            if job.key in beyond or not beyond.isdisjoint(job.after):
                subject = "it" if job.tasks == 1 else "its last task"
                forecasts[job.key] = QueueForecast(unknown=f"more than {MOST_JOBS:,} jobs wait before {subject}")
            elif sizes[i] > (machine if self._plain else self._classes.room(i)):
                forecasts[job.key] = QueueForecast(unknown="it needs more cores than all nodes that take jobs have")
            elif math.isnan(finish[0, j]):
                forecasts[job.key] = QueueForecast(unknown="it waits for a job that never ends")
            elif self._plain and not self._nodes <= job.where:
                forecasts[job.key] = QueueForecast(unknown="it may run only on some of the nodes that other jobs use")
            else:
                begin, *begins = start[:, i].tolist()
                end, *ends = finish[:, j].tolist()
                forecasts[job.key] = QueueForecast(
                    begin, end, (begins[0], begins[1]), (ends[0], ends[1]), "", bool(guessed[i])
                )
        return forecasts

    def _widen_by_walltimes(
        self, sizes: Sequence[int], machine: int, gap_s: float, start: Array, finish: Array
    ) -> Array:
        """Let intervals reach to the times if guessed jobs end at once, and at their walltimes; return whose starts do.

        Args:
            sizes: cores of each job.
            machine: cores of the pool.
            gap_s: time from an end to the next start on the same cores, seconds.
            start: median, low and high start of each job; changed.
            finish: the same of its end; changed.
        """
        moved = np.zeros(len(self._jobs), np.bool_)
        half, gap = np.full(len(self._jobs), 0.5), np.full(len(self._jobs), gap_s)
        for walltimes in (0.0, 1.0) if self._guessed.any() else ():
            begin, run = self._replay(sizes, machine, half, gap, walltimes)
            moved |= np.abs(begin - start[0]) > SAME_S
            for times, bound in ((start, begin), (finish, begin + run)):
                times[1], times[2] = np.fmin(times[1], bound), np.fmax(times[2], bound)
        # where those before it end decides how soon a job starts, and it may end at once in any case
        finish[1] = np.where(self._guessed, np.fmin(finish[1], start[1]), finish[1])
        return moved

    @property
    def _plain(self) -> bool:
        """True if all nodes are replayed as one class."""
        return not 1 < len(self._classes) <= MOST_CLASSES

    def _dependencies(self) -> tuple[Array, Array]:
        """Return rows, and rows that start after their ends.

        Tasks of an array are alike, so that its last one ends last. Where at most K of them run at once, each starts
        after the end of the one K places before it.
        """
        pairs, members = list[tuple[int, int]](), defaultdict[str, list[int]](list)
        for i, job in enumerate(self._jobs):
            pairs += [(self._rows[key][1], i) for key in job.after if key in self._rows]
            if job.array and job.tasks_at_once is not None:
                members[job.array].append(i)
                if len(members[job.array]) > job.tasks_at_once and job.waiting:
                    pairs.append((members[job.array][-1 - job.tasks_at_once], i))
        pairs = [(before, after) for before, after in pairs if before < len(self._jobs)]
        before, after = np.array(pairs, np.int64).reshape(-1, 2).T
        return before, after

    def _size(self, job: ObservedJob) -> int:
        """Return how many cores a job keeps from others: all of its nodes, or those whose memory it takes."""
        if job.alone:
            return job.nodes * self._node
        by_memory = math.ceil(job.memory / self._core_memory * (1 - 1e-9)) if job.memory else 0
        return job.nodes * min(max(job.cores, by_memory), self._node)

    def _drawn(self, share: Array, walltimes: float | None) -> Array:
        """Return a run time for each job, from the start of those that wait and from now of those that run.

        Args:
            share: quantile of the run time of each job.
            walltimes: share of their walltimes that guessed jobs take from now on; None: as expected.
        """
        lower, upper = np.clip((share - 0.1) / 0.4, 0.0, 1.0), np.clip((share - 0.5) / 0.4, 0.0, 1.0)
        run = self._low + lower * (self._median - self._low) + upper * (self._high - self._median)
        late = (run <= self._elapsed) & (self._elapsed > 0.0)
        run = np.where(late, np.where(self._high > self._elapsed, self._high, LONGER * self._elapsed), run)
        run = np.fmin(run, self._limit)  # also where nothing is known
        remaining = np.maximum(run - self._elapsed, 0.0)
        if walltimes is None:
            return np.asarray(remaining)
        return np.asarray(np.where(self._guessed, walltimes * np.maximum(self._limit - self._elapsed, 0.0), remaining))

    def _replay(
        self, sizes: Sequence[int], machine: int, share: Array, gap: Array, walltimes: float | None = None
    ) -> tuple[Array, Array]:
        """Return start and run time of each job; nan: it never starts.

        Args:
            sizes: cores of each job.
            machine: cores of the pool.
            share: quantile of the run time of each job.
            gap: time that each job leaves its cores idle after its end, seconds.
            walltimes: see `_drawn`.
        """
        from .replay import replay  # a daemon whose adapter has no such queue never needs it

        self._breathe()
        run = self._drawn(share, walltimes)
        limit = np.maximum(self._limit - self._elapsed, run)
        begin = [max(0.0, (job.begin or 0.0) - self._now) if job.waiting else 0.0 for job in self._jobs]
        links, durations = Dependencies(self._before, self._after), np.minimum(run + gap, LONGEST)
        if not self._plain:
            return self._classes.start_times(sizes, np.array(begin), durations, limit + gap, links, self._breathe), run
        numbers, size = np.arange(len(run)), np.asarray(sizes, np.int64)
        work = Workload("queue", numbers, np.array(begin), durations, limit + gap, size, dependencies=links)
        replayed = replay(in_order(work), machine, Easy(), progress=lambda now: self._breathe())
        start = np.full(len(run), math.nan)
        start[replayed.workload.id] = replayed.start_time
        return start, run

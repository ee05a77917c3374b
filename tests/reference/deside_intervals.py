"""DESiDE's interval simulation in plain Python, to compare the fluid engine with the model that it is the limit of.

A given mapping runs in intervals of 0.1 s with jitter (Chahal et al., "DESiDE", ICPE 2019, sections 4.3-4.4). A thread is
busy for u*T core-seconds (dilated by memory contention), then idle for (1-u)*T seconds, both jittered by its group's
utilisation_std; it ends with the busy part that completes its service demand. Threads that start together with
utilisation_std 0 stay in step, as in the paper's model. There are no time steps: the threads of a job have one virtual
clock, the core-seconds that each busy one has had. Jobs on several nodes, shared memories, the piecewise-linear model
and measured pairs have no interval form.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, CpuSharing, Node
from pilotfish.simulate.model.job import Job, Workflow
from pilotfish.simulate.model.plan import RunningJob
from tests.reference.fluid_oracle import memory_of, origin_of, phases_on, watts

#: Length T of an interval, seconds.
INTERVAL_S = 0.1
#: Jobs that end within this time of each other end together, seconds.
INSTANT = 1e-9


@dataclass(slots=True)
class Thread:
    """One thread. `phases`: (core-seconds, utilisation, bandwidth); `rest`: core-seconds left in the present one."""

    number: int
    phases: list[tuple[float, float, float]]
    phase: int
    rest: float
    jitter: float
    stream: random.Random
    busy: float = 0.0  # of the present interval: core-seconds, seconds, the job's clock at its begin, and its dilation
    idle: float = 0.0
    begin: float = 0.0
    dilation: float = 1.0

    def begin_interval(self, clock: float) -> None:
        """Draw the parts of the next interval (eq. 6-9)."""
        u, draw, jitter = self.phases[self.phase][1], self.stream.random, self.jitter
        busy = u * INTERVAL_S * (1.0 + jitter * (2.0 * draw() - 1.0))
        idle = (1.0 - u) * INTERVAL_S * (1.0 + jitter * (2.0 * draw() - 1.0))
        if busy * (1.0 + 1e-9) >= self.rest:
            busy, idle = self.rest, idle * self.rest / busy
        self.busy, self.idle, self.begin = busy, idle, clock


@dataclass(slots=True, eq=False)
class Running:
    """A running job. Its threads are in `busy` by the clock at which their busy part ends, or in `asleep` by time."""

    index: int
    job: Job
    alive: dict[float, int] = field(default_factory=dict)  # threads that have not ended, by bandwidth
    on_cores: dict[float, int] = field(default_factory=dict)  # busy threads, by bandwidth
    busy: list[tuple[float, int, Thread]] = field(default_factory=list)
    asleep: list[tuple[float, int, Thread]] = field(default_factory=list)
    fresh: list[Thread] = field(default_factory=list)  # busy threads whose interval begins at this instant
    clock: float = 0.0  # core-seconds
    rate: float = 1.0  # cores of a busy thread

    @property
    def wanted(self) -> int:
        """Threads that need a core."""
        return len(self.busy) + len(self.fresh)

    def wake(self, thread: Thread, clock: float) -> None:
        """Begin a busy part."""
        thread.begin_interval(clock)
        self.fresh.append(thread)
        count(self.on_cores, thread, 1)

    def end_busy_part(self, thread: Thread) -> str:
        """End a busy part; say whether the thread goes on, is in another phase, or has ended."""
        count(self.on_cores, thread, -1)
        thread.rest -= thread.busy
        if thread.rest > 0.0:
            return "goes on"
        count(self.alive, thread, -1)
        if thread.phase + 1 == len(thread.phases):
            return "ended"
        thread.phase += 1
        thread.rest = thread.phases[thread.phase][0]
        count(self.alive, thread, 1)
        return "next phase"


def count(threads: dict[float, int], thread: Thread, change: int) -> None:
    bandwidth = thread.phases[thread.phase][2]
    threads[bandwidth] = threads.get(bandwidth, 0) + change


def water_level(capacity: float, wanted: Iterable[tuple[float, float]]) -> float:
    """Return the max-min share of a capacity; `wanted`: (how many, what each wants at most)."""
    left, rest = capacity, [(weight, most) for weight, most in sorted(wanted, key=lambda pair: pair[1]) if weight > 0]
    total = math.fsum(weight for weight, _ in rest)
    for weight, most in rest:
        if left <= most * total:
            return left / total
        left -= weight * most
        total -= weight
    return math.inf


class Server:
    """One node: its running jobs, clock and energy."""

    def __init__(self, node: Node) -> None:
        self.node, self.kind = node, node.type
        self.jobs: list[Running] = []
        self.now = self.cores_used = self.energy = 0.0
        self.next = math.inf
        self.remote = 0.75 + 0.25 * self.kind.remote_access_penalty

    def advance(self, now: float, job_energy: list[float]) -> None:
        """Advance the jobs' clocks, and account energy."""
        span, self.now, busy = now - self.now, now, self.cores_used
        whole, slope = watts(self.node, busy)
        self.energy += whole * span
        for running in self.jobs:
            running.clock += running.rate * span
            if held := running.wanted * running.rate:
                job_energy[running.index] += (slope * held + (whole - slope * busy) * held / busy) * span

    def share_cores(self) -> None:
        """Share the cores between all busy threads, or between jobs first and then between each job's threads."""
        total, cores = sum(running.wanted for running in self.jobs), self.kind.cores
        if total <= cores:
            rates = [1.0] * len(self.jobs)
        elif self.kind.cpu_sharing is CpuSharing.PER_THREAD:
            rates = [cores / total] * len(self.jobs)
        else:
            level = water_level(cores, ((1, running.wanted) for running in self.jobs))
            rates = [min(1.0, level / max(running.wanted, 1)) for running in self.jobs]
        self.cores_used = 0.0
        for running, rate in zip(self.jobs, rates, strict=True):
            running.rate = rate
            self.cores_used += running.wanted * rate

    def memory_level(self) -> float:
        """Return the bandwidth that a contending thread gets: BW/n (eq. 11), or the max-min level."""
        if self.kind.contention is Contention.NONE:
            return math.inf
        everyone = self.kind.contending_threads is ContendingThreads.ALL
        weights = [(threads if everyone else threads * running.rate, bandwidth) for running in self.jobs
                   for bandwidth, threads in (running.alive if everyone else running.on_cores).items()]  # fmt: skip
        if self.kind.contention is Contention.MAX_MIN:
            return water_level(self.kind.memory_bandwidth, weights)
        contending = sum(weight for weight, _ in weights)
        return self.kind.memory_bandwidth / contending if contending > 0.0 else math.inf

    def dilation(self, thread: Thread, level: float) -> float:
        """Return m = 1 + sigma_bw * (0.75 + 0.25 * delta_rl) (eq. 10, 12, 14)."""
        return 1.0 + max(0.0, thread.phases[thread.phase][2] / level - 1.0) * self.remote

    def update(self, everyone: bool) -> None:
        """Set rates and dilations (of threads whose interval begins, or of everyone), and find the next event."""
        self.share_cores()
        level, soonest = self.memory_level(), math.inf
        for running in self.jobs:
            if everyone and self.kind.contention is not Contention.NONE:
                for i, (end, number, thread) in enumerate(running.busy):
                    before, thread.dilation = thread.dilation, self.dilation(thread, level)
                    longer = thread.dilation / before
                    running.busy[i] = (running.clock + (end - running.clock) * longer, number, thread)
                heapify(running.busy)
            for thread in running.fresh:
                thread.dilation = self.dilation(thread, level)
                heappush(running.busy, (thread.begin + thread.busy * thread.dilation, thread.number, thread))
            running.fresh.clear()
            if running.busy:
                soonest = min(soonest, self.now + max(0.0, running.busy[0][0] - running.clock) / running.rate)
            if running.asleep:
                soonest = min(soonest, max(self.now, running.asleep[0][0]))
        self.next = soonest

    def step(self) -> list[Running]:
        """Carry out what is due; return the jobs that ended."""
        slack, ended, everyone = 1e-12 + 1e-14 * self.now, [], False
        for running in self.jobs:
            while running.busy and running.busy[0][0] <= running.clock + slack:
                end, number, thread = heappop(running.busy)
                outcome = running.end_busy_part(thread)
                everyone = everyone or outcome != "goes on"
                if outcome == "ended":
                    continue
                if thread.idle > 0.0:
                    heappush(running.asleep, (self.now + thread.idle, number, thread))
                else:
                    running.wake(thread, end)
            while running.asleep and running.asleep[0][0] <= self.now + slack:
                running.wake(heappop(running.asleep)[2], running.clock)
            if not any(running.alive.values()):
                ended.append(running)
        self.jobs = [running for running in self.jobs if running not in ended]
        self.update(everyone)
        return ended


class Intervals:
    """One run of a mapping. Ready jobs start in a given order as soon as they fit; on each node the first that does not
    fit holds back those behind it. Afterwards `start`, `finish` and `job_energy` hold a value for each job.

    Args:
        workflow, cluster: as in a simulation.
        nodes: job id -> the name of its node, for all jobs that are neither running nor done.
        order: ids of the jobs; None = that of the workflow.
        seed: of the jitter; every thread draws from a stream of its own.
        underway, done: as in a simulation.
    """

    def __init__(
        self, workflow: Workflow, cluster: Cluster, nodes: Mapping[str, str], *, order: Sequence[str] | None = None,
        seed: int = 0, underway: Sequence[RunningJob] = (), done: Collection[str] = (),
    ) -> None:  # fmt: skip
        assert all(job.nodes == 1 for job in workflow.jobs)
        assert cluster.shared_memory is None
        assert all(k.contention is not Contention.PIECEWISE_LINEAR and not k.co_run_inflation for k in cluster.types)
        self.cluster, self.jobs, self.seed, self.threads = cluster, workflow.jobs, seed, 0
        self.servers = {node.name: Server(node) for node in cluster.nodes}
        self.node_of = dict(nodes) | {running.id: running.nodes[0] for running in underway}
        self.start, self.finish = ([math.nan] * len(self.jobs) for _ in range(2))
        self.job_energy, self.done, now = [0.0] * len(self.jobs), set(done), 0.0
        for running in underway:
            self._start(workflow.index[running.id], now, running.progress)
        known = self.done | {running.id for running in underway}
        waiting = [i for i in map(workflow.index.__getitem__, order or workflow.index) if self.jobs[i].id not in known]
        while True:
            waiting = self._offer(waiting, now)
            if not any(server.jobs for server in self.servers.values()):
                break
            now = self._run_until_a_job_ends()
        assert not waiting, f"never started: {[self.jobs[i].id for i in waiting]}"
        self.makespan = now
        for server in self.servers.values():
            server.advance(now, self.job_energy)
        self.energy_j = sum(server.energy for server in self.servers.values())

    def _run_until_a_job_ends(self) -> float:
        """Carry out events until a job ends, and all of that instant; return its time."""
        now, until = 0.0, math.inf
        while (server := min(self.servers.values(), key=lambda one: one.next)).next <= until:
            now = max(now, server.next)
            server.advance(now, self.job_energy)
            for running in server.step():
                self.finish[running.index] = now
                self.done.add(running.job.id)
                until = min(until, now + INSTANT)
        return now

    def _offer(self, waiting: list[int], now: float) -> list[int]:
        blocked, left = set[str](), []
        for i in waiting:
            job, node = self.jobs[i], self.node_of[self.jobs[i].id]
            if self.done.issuperset(job.after) and node not in blocked and self._fits(job, self.servers[node]):
                self._start(i, now)
                continue
            left.append(i)
            if self.done.issuperset(job.after):
                blocked.add(node)
        return left

    def _fits(self, job: Job, server: Server) -> bool:
        on = [*(running.job for running in server.jobs), job]
        threads, memory = sum(one.profile.threads for one in on), sum(map(memory_of, on))
        return threads <= self.cluster.thread_limit(server.node) + 1e-9 and memory <= server.kind.memory * (1 + 1e-12)

    def _start(self, index: int, now: float, progress: float = 0.0) -> None:
        """Start a job on its node, with every thread at the beginning of a busy part."""
        job, server = self.jobs[index], self.servers[self.node_of[self.jobs[index].id]]
        server.advance(now, self.job_energy)
        running = Running(index, job)
        server.jobs.append(running)
        self.start[index] = now
        origin = origin_of(job.profile, self.cluster, server.kind)
        for group in job.profile.groups:
            rows = phases_on(group, server.kind, origin)
            phases = [(work * u, u, bandwidth) for work, u, bandwidth in rows]
            phase, done = 0, progress * sum(work for work, _, _ in rows)
            while done >= rows[phase][0] and phase + 1 < len(rows):
                done -= rows[phase][0]
                phase += 1
            rest = max(rows[phase][0] - done, 0.0) * rows[phase][1]
            for _ in range(group.count):
                stream = random.Random(f"{self.seed} {self.threads}")
                self.threads += 1
                thread = Thread(self.threads, phases, phase, rest, min(1.0, group.utilisation_std), stream)
                count(running.alive, thread, 1)
                running.wake(thread, 0.0)
        server.update(everyone=True)

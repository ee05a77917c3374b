"""Jobs that communicate on nodes that they share, in plain Python on the oracles of both: slow, and by definition.

Rule: everything is recomputed at every event. A job does a share of its phase in a second: the smaller of what its nodes
let its ranks compute and of what its links let them send.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Job as RigidJob
from pilotfish.simulate.model.job import Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.network import Network
from pilotfish.simulate.model.programs import Even, Matrix, Part, Phase, Stage, Store, Wait
from pilotfish.simulate.model.workload import Workload
from tests.reference.fluid_oracle import State, Strand
from tests.reference.plain_network import Job, Plain, unrolled

INSTANT = 1e-9


class SharedPorts(Plain):
    """A network whose hosts are nodes. The hosts of a job are those of its ranks; what stays on a node takes no time."""

    def flows(self, phase: Phase, hosts: list[int]) -> list[tuple[int, int, int, int, float]]:
        """Return the messages that leave a node."""
        return [each for each in super().flows(phase, hosts) if each[0] < 0 or each[0] != each[2]]


class PlainNodes:
    """Starts that another schedule has, so that the progress of the jobs is compared.

    Args:
        jobs: the workload.
        parts: what each job does; None: it computes for its run time.
        cluster: the nodes.
        network: between them.
        threads: of each job, on each of its nodes.
    """

    def __init__(
        self, jobs: Workload, parts: Sequence[Part | None], cluster: Cluster, network: Network, threads: Sequence[int]
    ) -> None:
        self.jobs, self.parts, self.cluster, self.threads = jobs, parts, cluster, threads
        self.links, self.now = SharedPorts(network), 0.0
        self.running = dict[int, Job]()
        self.nodes = dict[int, tuple[int, ...]]()
        self.whole = dict[int, float]()  # seconds of the phase of each job alone
        self.finish, self.killed = dict[int, float](), set[int]()
        stands_in = Profile((ThreadGroup(1, 1.0),))
        self.flow = Workflow("w", tuple(RigidJob(f"j{row}", stands_in) for row in range(len(jobs))))

    def follow(self, starts: Mapping[int, float], nodes: Mapping[int, tuple[int, ...]]) -> None:
        """Run all jobs, each from its start on, on its nodes."""
        left = dict(starts)
        while left or self.running:
            rates = self.rates()
            ends = {row: self.end(job, rates[row]) for row, job in self.running.items()}
            then = min([*left.values(), *ends.values(), *(job.until for job in self.running.values())])
            for row, job in list(self.running.items()):
                self.pass_on(row, job, ends[row], rates[row], then)
            self.now = then
            for row in [row for row, start in left.items() if start <= then + INSTANT]:
                del left[row]
                self.start(row, nodes[row])

    def start(self, row: int, nodes: tuple[int, ...]) -> None:
        ranks = [node for node in sorted(nodes) for _ in range(self.threads[row])][: int(self.jobs.size[row])]
        part = self.parts[row]
        todo = [Wait(max(float(self.jobs.run_time[row]), 1e-6))] if part is None else unrolled(part)
        job = Job(row, ranks, self.now + float(self.jobs.walltime[row]), todo)
        self.running[row], self.nodes[row] = job, nodes
        self.enter(row, job)

    def enter(self, row: int, job: Job) -> None:
        """Begin the next phase that takes time; without one, the job ends."""
        self.links.enter(job)
        self.whole[row] = job.left
        if job.lag == job.left == 0.0:
            self.finish[row] = self.now
            del self.running[row]

    def end(self, job: Job, rate: float) -> float:
        return self.now + (job.lag if job.lag > 0 else job.left / rate)

    def pass_on(self, row: int, job: Job, end: float, rate: float, then: float) -> None:
        ends, before, self.now = end <= then + INSTANT, self.now, then
        if job.lag > 0:
            job.lag = 0.0 if ends else job.lag - (then - before)
        else:
            waited = job.waits and self.parts[row] is not None
            job.left = 0.0 if ends else job.left - rate * (then - before)
            if ends and waited and job.until <= then + INSTANT:
                ends = False  # a delay that ends just at the walltime
        if not ends and job.until <= then + INSTANT:
            self.killed.add(row)
            self.finish[row] = then
            del self.running[row]
        elif ends:
            self.enter(row, job)
        self.now = before

    def demands(self, row: int, job: Job) -> dict[str, tuple[float, float, float]]:
        """Return the seconds that its ranks compute on each node type, their utilisation, and bytes/s of memory."""
        slowest, part = min(self.cluster.types, key=lambda kind: kind.relative_speed), self.parts[row]
        if part is None:
            run = max(float(self.jobs.run_time[row]), 1e-6)
            flops, moved = run * slowest.relative_speed, 0.0
            if self.jobs.run_time[row] > 0 and "volume" in self.jobs.more:
                moved = float(self.jobs.more["volume"][row])
        else:
            phases = unrolled(part)
            phase = phases[len(phases) - len(job.todo) - 1]
            if job.lag > 0 or isinstance(phase, Wait | Store | Stage) or not self.links.alone(phase, job.hosts):
                return {kind.name: (1.0, 0.0, 0.0) for kind in self.cluster.types}
            assert isinstance(phase, Even | Matrix)
            least = min(self.cluster.nodes[node].type.relative_speed for node in self.nodes[row])
            flops, moved = self.links.alone(phase, job.hosts) * least, phase.moved
        found = {}
        for kind in self.cluster.types:
            seconds = flops / kind.relative_speed
            rate = moved / seconds
            if kind.relative_speed != slowest.relative_speed:
                rate = min(rate, kind.memory_bandwidth)
            found[kind.name] = seconds, 1.0, rate
        return found

    def rates(self) -> dict[int, float]:
        """Return how much of its phase each job does in a second, in seconds of the phase alone."""
        self.links.speeds(list(self.running.values()))
        state = State(self.cluster, self.flow)
        demanded = {row: self.demands(row, job) for row, job in self.running.items()}
        for row in self.running:
            state.strands.append(Strand(row, 0, [(node, 0, self.threads[row]) for node in sorted(self.nodes[row])]))
            for kind, demand in demanded[row].items():
                state.known[row, 0, kind] = [demand]
        computed = dict(zip(self.running, state.rates()[0] if state.strands else [], strict=True))
        found = {}
        for row, job in self.running.items():
            computes = any(u > 0 for _, u, _ in demanded[row].values())
            limit = self.whole[row] * computed[row] if computes else math.inf
            speed = math.inf if self.parts[row] is None else job.speed
            found[row] = 1.0 if job.lag > 0 else min(limit, speed)
        return found

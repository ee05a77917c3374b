"""An event-driven simulation of a workflow in plain Python that shares no line with the engine, to check it.

Everything is recomputed at every event from values and names; only rates of equal situations are cached.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.job import Job, PeerWait, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import RunningJob
from tests.reference.oracle_rates import Demand, domain_rates

INSTANT, LESS = 1e-9, 1.0 - 1e-9


def memory_of(job: Job) -> float:
    return max(job.memory, job.profile.memory)


def phases_on(group: ThreadGroup, kind: NodeType, origin: NodeType) -> list[tuple[float, float, float]]:
    """Return (isolated seconds, utilisation, bandwidth) of each phase on `kind`; measured on `origin`."""
    parts = [(p.share, p.utilisation, p.bandwidth) for p in group.phases] or [(1.0, group.utilisation, group.bandwidth)]
    whole = group.demand / sum(share * u for share, u, _ in parts)
    result = []
    for share, u, bandwidth in parts:
        work = share * whole
        if kind != origin:
            faster = kind.relative_speed / origin.relative_speed
            busy, idle = work * u / faster, work * (1 - u)
            work, u = busy + idle, busy / (busy + idle)
            bandwidth = min(bandwidth * faster, kind.memory_bandwidth)
        result.append((work, u, bandwidth))
    return result


def origin_of(profile: Profile, cluster: Cluster, kind: NodeType) -> NodeType:
    """Return the node type that a profile counts as measured on when it runs on `kind`."""
    if profile.measured_on is None:
        return cluster.nodes[0].type
    return next((known for known in cluster.types if known.name == profile.measured_on), kind)


@dataclass
class Strand:
    """Threads that progress together. `places`: (node index, socket, threads); `left`: share of the phase, 1 to 0."""

    job: int
    group: int
    places: list[tuple[int, int, float]]
    phase: int = 0
    left: float = 1.0


@dataclass
class State:
    """The state at time `t`."""

    cluster: Cluster
    workflow: Workflow
    t: float = 0.0
    strands: list[Strand] = field(default_factory=list)
    threads: dict[int, float] = field(default_factory=dict)  # allocated on each node, until the job ends
    memory: dict[int, float] = field(default_factory=dict)
    load_average: dict[int, float] = field(default_factory=dict)
    where: dict[int, tuple[int, ...]] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    finish: dict[int, float] = field(default_factory=dict)
    node_energy: dict[int, float] = field(default_factory=dict)
    job_energy: dict[int, float] = field(default_factory=dict)
    cores_used: dict[int, float] = field(default_factory=dict)  # core-seconds of each job
    ahead: bool = False  # a what-if keeps no accounts
    known: dict[tuple[int, int, str], list[tuple[float, float, float]]] = field(default_factory=dict)

    def fork(self, keep: Collection[int] | None = None) -> State:
        """A copy for a what-if; with `keep` only strands of these jobs live on."""
        twin = State(self.cluster, self.workflow, self.t, ahead=True, known=self.known)
        twin.strands = [replace(s) for s in self.strands if keep is None or s.job in keep]
        return twin

    def live(self, node: int) -> float:
        """Threads not yet ended on a node."""
        return sum(k for s in self.strands for n, _, k in s.places if n == node)

    def phases(self, strand: Strand, node: int) -> list[tuple[float, float, float]]:
        kind = self.cluster.nodes[node].type
        key = (strand.job, strand.group, kind.name)
        if key not in self.known:
            profile = self.workflow.jobs[strand.job].profile
            self.known[key] = phases_on(profile.groups[strand.group], kind, origin_of(profile, self.cluster, kind))
        return self.known[key]

    # --- placing ---
    def place(self, job: int, nodes: Sequence[int], progress: float = 0.0) -> None:
        """Start a job on nodes now."""
        value = self.workflow.jobs[job]
        self.where[job], self.start[job] = tuple(nodes), self.t
        dealt = {n: self._deal(value, n) for n in nodes}
        for g in range(len(value.profile.groups)):
            places = [(n, socket, k) for n in nodes for socket, k in sorted(dealt[n][g].items())]
            # Alone on a node, the threads of each socket run at their own pace; on several, all at the slowest.
            together = [places] if value.nodes > 1 else [[place] for place in places]
            for chosen in together:
                strand = Strand(job, g, chosen)
                self._advance_share(strand, progress)
                self.strands.append(strand)
        for n in nodes:
            self.threads[n] = self.threads.get(n, 0.0) + value.profile.threads
            self.memory[n] = self.memory.get(n, 0.0) + memory_of(value)

    def _deal(self, job: Job, node: int) -> list[dict[int, float]]:
        """Threads one by one to the socket that has fewest: for each group, socket -> threads."""
        kind = self.cluster.nodes[node].type
        sockets = kind.sockets if kind.contention is Contention.PIECEWISE_LINEAR else 1
        fill = [sum(k for s in self.strands for n, at, k in s.places if (n, at) == (node, i)) for i in range(sockets)]
        result = []
        for group in job.profile.groups:
            got: dict[int, float] = {}
            for _ in range(group.count):
                socket = fill.index(min(fill))
                fill[socket] += 1
                got[socket] = got.get(socket, 0.0) + 1
            result.append(got)
        return result

    def _advance_share(self, strand: Strand, progress: float) -> None:
        phases = self.phases(strand, strand.places[0][0])
        done = progress * sum(work for work, _, _ in phases)
        for i, (work, _, _) in enumerate(phases):
            if done < work or i + 1 == len(phases):
                strand.phase, strand.left = i, max(1.0 - done / work, 0.0)
                return
            done -= work

    # --- rates ---
    def rates(self) -> tuple[list[float], list[list[float]]]:
        """Of each strand: its speed (shares of its phase a second), and the cores held by one thread on each place."""
        domains: dict[object, list[int]] = {}
        for i, node in enumerate(self.cluster.nodes):
            domains.setdefault(i if node.memory_domain is None else "domain " + node.memory_domain, []).append(i)
        caps = [[math.inf] * len(s.places) for s in self.strands]
        speeds = [[math.inf] * len(s.places) for s in self.strands]
        cores = [[0.0] * len(s.places) for s in self.strands]
        tied = any(len(s.places) > 1 for s in self.strands)
        for turn in range(3000):
            change = 0.0
            for members in domains.values():
                change = max(change, self._rate_domain(members, caps, speeds, cores, damp=turn > 40))
            if change <= 1e-13 or not tied:
                break
        return [min(row) for row in speeds], cores

    def _rate_domain(self, members: list[int], caps: list[list[float]], speeds: list[list[float]],
                     cores: list[list[float]], damp: bool) -> float:  # fmt: skip
        """Solve one memory domain under the present caps, then renew the caps of all; returns the largest change."""
        inputs, back = [], []
        for n in members:
            demands = []
            for i, s in enumerate(self.strands):
                for p, (node, socket, k) in enumerate(s.places):
                    if node == n:
                        _, u, b = self.phases(s, n)[s.phase]
                        job = self.workflow.jobs[s.job]
                        spin = job.wait is PeerWait.SPIN
                        demands.append(Demand(s.job, k, u, b, caps[i][p], spin, socket, job.profile.name))
                        back.append((i, p, self.phases(s, n)[s.phase][0]))
            inputs.append((self.cluster.nodes[n].type, tuple(demands)))
        change, flat = 0.0, [pair for rows in domain_rates(tuple(inputs)) for pair in rows]
        for (i, p, work), (offer, core) in zip(back, flat, strict=True):
            old, speeds[i][p], cores[i][p] = speeds[i][p], offer / work, core
            change = max(change, abs(old - speeds[i][p]) / speeds[i][p] if math.isfinite(old) else 1.0)
        for i in {i for i, _, _ in back}:
            if math.isinf(max(speeds[i])):
                continue  # one of its nodes is not processed yet
            for p, (node, _, _) in enumerate(self.strands[i].places):
                others = min((v for q, v in enumerate(speeds[i]) if q != p), default=math.inf)
                # Equals do not wait for each other.
                if others >= speeds[i][p] * LESS:
                    caps[i][p] = math.inf
                    continue
                cap = others * self.phases(self.strands[i], node)[self.strands[i].phase][0]
                caps[i][p] = 0.5 * (cap + caps[i][p]) if damp and caps[i][p] < math.inf else cap
        return change

    # --- time ---
    def step(self) -> list[int]:
        """Go to the next end of a phase or strand; returns the jobs that ended."""
        speeds, cores = self.rates()
        times = [s.left / v for s, v in zip(self.strands, speeds, strict=True)]
        span = min(times)
        if not self.ahead:
            self._charge(span, cores)
        before = {s.job for s in self.strands}
        self.t += span
        going = []
        for s, v, time in zip(self.strands, speeds, times, strict=True):
            if time > span + INSTANT:
                s.left -= v * span
            elif s.phase + 1 < len(self.phases(s, s.places[0][0])):
                s.phase, s.left = s.phase + 1, 1.0
            else:
                continue
            going.append(s)
        self.strands = going
        ended = sorted(before - {s.job for s in going})
        for job in ended:
            self.finish[job] = self.t
            for n in self.where.get(job, ()):
                self.threads[n] -= self.workflow.jobs[job].profile.threads
                self.memory[n] -= memory_of(self.workflow.jobs[job])
        return ended

    def _charge(self, span: float, cores: list[list[float]]) -> None:
        for n, node in enumerate(self.cluster.nodes):
            rows = [(s.job, k * core) for s, row in zip(self.strands, cores, strict=True)
                    for (at, _, k), core in zip(s.places, row, strict=True) if at == n]  # fmt: skip
            busy = sum(h for _, h in rows)
            fade = math.exp(-span / 60.0)
            self.load_average[n] = self.load_average.get(n, 0.0) * fade + self.live(n) * (1.0 - fade)
            whole, slope = watts(node, busy)
            self.node_energy[n] = self.node_energy.get(n, 0.0) + whole * span
            for job, h in rows:
                self.cores_used[job] = self.cores_used.get(job, 0.0) + h * span
                share = slope * h + (whole - slope * busy) * h / busy
                self.job_energy[job] = self.job_energy.get(job, 0.0) + share * span


def watts(node: Node, busy: float) -> tuple[float, float]:
    """Return (power of the node, its slope per busy core)."""
    power = node.type.power
    if power is None:
        return 0.0, 0.0
    if power.computing is not None:
        slope = (power.computing - power.idle) / node.type.cores
        return power.idle + slope * busy, slope
    uncore = power.per_socket * node.type.sockets * (1.0 if busy > 0 else power.idle_uncore)
    return power.idle + uncore + power.per_core * busy, power.per_core


class Oracle:
    """One workflow on one cluster, run under one policy from its beginning to its end."""

    def __init__(self, workflow: Workflow, cluster: Cluster, *, underway: Sequence[RunningJob] = (),
                 done: Collection[str] = (), available: Collection[str] | None = None) -> None:  # fmt: skip
        self.workflow, self.cluster = workflow, cluster
        self.jobs, self.nodes = workflow.jobs, cluster.nodes
        self.usable = [i for i, n in enumerate(self.nodes) if available is None or n.name in available]
        self.done = {job.id for job in self.jobs if job.id in done}
        self.state = State(cluster, workflow)
        for u in underway:
            self.state.place(workflow.index[u.id], [cluster.index[n] for n in u.nodes], u.progress)
        self.waiting = {i for i, j in enumerate(self.jobs) if j.id not in self.done and i not in self.state.start}
        self.scores: dict[int, float] = {}

    def never_fits(self) -> str | None:
        """Id of the first job that could not even start on an empty cluster."""
        for i in sorted(self.waiting):
            job = self.jobs[i]
            fits = [n for n in self.usable
                    if job.profile.threads <= self.cluster.thread_limit(self.nodes[n]) + 1e-9
                    and memory_of(job) <= self.nodes[n].type.memory * (1 + 1e-12)]  # fmt: skip
            if len(fits) < job.nodes:
                return job.id
        return None

    def run(self, policy: str, follow: dict[int, tuple[int, ...]] | None = None, tolerance: float = 0.0) -> State:
        """Run to the end. `follow`: mapping of the engine; where its choice scores within `tolerance` (relative) of the
        best it is taken, so that a tie which two roundings broke differently does not end the comparison."""
        state, ready = self.state, {}
        turn = 0
        while True:
            ended = {self.jobs[i].id for i in state.finish} | self.done
            for i in self.waiting - ready.keys():
                if all(name in ended for name in self.jobs[i].after):
                    ready[i] = (turn, i)
            for i in sorted(ready, key=lambda i: ready[i]):
                nodes = self.choose(i, policy)
                if nodes is not None and follow is not None and nodes != follow[i]:
                    nodes = self._other(i, nodes, follow[i], tolerance)
                if nodes is not None:
                    state.place(i, nodes)
                    del ready[i]
                    self.waiting.discard(i)
            if not state.strands:
                assert not self.waiting, f"never started: {self.waiting}"
                return state
            state.step()
            turn += 1

    def _other(self, job: int, mine: tuple[int, ...], theirs: tuple[int, ...], tolerance: float) -> tuple[int, ...]:
        worst = max(self.scores.get(n, math.inf) for n in theirs)
        best = max(self.scores[n] for n in mine)
        close = abs(worst - best) <= tolerance * (1.0 + abs(best))
        assert close, f"job {self.jobs[job].id}: engine chose {theirs}, oracle {mine}; scores {self.scores}"
        return theirs

    def choose(self, job: int, policy: str) -> tuple[int, ...] | None:
        """Nodes on which the policy starts the job now."""
        value, state = self.jobs[job], self.state
        fits = [n for n in self.usable
                if state.threads.get(n, 0.0) + value.profile.threads <= self.cluster.thread_limit(self.nodes[n]) + 1e-9
                and state.memory.get(n, 0.0) + memory_of(value) <= self.nodes[n].type.memory * (1 + 1e-12)]  # fmt: skip
        if len(fits) < value.nodes:
            return None
        self.scores = {n: self.score(job, (n,), policy) for n in fits}
        order: list[int] = []
        if policy in ("slf", "loadavg"):  # of equal scores the fastest
            fits.sort(key=lambda n: -self.nodes[n].type.relative_speed)
        while len(order) < len(fits):
            rest = [n for n in fits if n not in order]
            best = rest[0]
            for n in rest[1:]:
                if self.scores[n] < self.scores[best] * LESS:
                    best = n
            order.append(best)
        chosen, next_best = order[: value.nodes], order[value.nodes :]
        if value.nodes > 1 and policy in ("let", "mom"):
            joint = self.score(job, tuple(chosen), policy)
            for other in next_best[:8]:
                trial = [*chosen[:-1], other]
                value_of_trial = self.score(job, tuple(trial), policy)
                if value_of_trial >= joint * LESS:
                    break
                chosen, joint = trial, value_of_trial
        return tuple(sorted(chosen))

    def score(self, job: int, nodes: tuple[int, ...], policy: str) -> float:
        """Seconds from now, or load: smaller is better."""
        state, kind = self.state, self.nodes[nodes[0]].type
        if policy == "slf":
            return state.live(nodes[0]) / kind.cores
        if policy == "loadavg":
            return state.load_average.get(nodes[0], 0.0) / kind.cores
        component = self.component(nodes)
        ahead = state.fork([j for j in component if j != job])
        ahead.t = 0.0
        ahead.place(job, nodes)
        awaited = {job} if policy == "let" else component | {job}
        while awaited & {s.job for s in ahead.strands}:
            ahead.step()
        return ahead.t

    def component(self, nodes: tuple[int, ...]) -> set[int]:
        """Jobs that have threads on the nodes, or on nodes tied to them by a memory domain or a job's live threads."""
        reach, jobs = set(nodes), set()
        while True:
            before = len(reach)
            names = {self.nodes[n].memory_domain for n in reach} - {None}
            reach |= {i for i, node in enumerate(self.nodes) if node.memory_domain in names}
            for s in self.state.strands:
                at = {n for n, _, _ in s.places}
                if at & reach:
                    reach |= at
                    jobs.add(s.job)
            if len(reach) == before:
                return jobs

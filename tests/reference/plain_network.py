"""Reference of EASY backfilling on a network, in plain Python, by definition.

Rule: ports are ordinary links; the speeds of all jobs are recomputed at each instant and checked: no link exceeds its
bandwidth, and each slowed job uses a full link at least as much as any other job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pilotfish.simulate.model.machine import Powers
from pilotfish.simulate.model.network import Network
from pilotfish.simulate.model.programs import Even, Matrix, Part, Phase, Stage, Steps, Store, Wait
from pilotfish.simulate.model.workload import Workload

NEAR = 1e-9


def unrolled(part: Part) -> list[Phase]:
    """Return the phases of a program."""
    if not isinstance(part, Steps):
        return [part]
    return [phase for each in part.parts for phase in unrolled(each)] * part.repeat


@dataclass
class Job:
    """A running job: its phase has `lag` seconds of latency left, then `left` seconds at full speed."""

    number: int
    hosts: list[int]
    until: float
    todo: list[Phase]
    lag: float = 0.0
    left: float = 0.0
    asks: dict[str, float] = field(default_factory=dict)
    speed: float = 1.0
    waits: bool = False  # in its phase
    lift: float = 0.0  # watts of its phase above idle, at any speed
    rise: float = 0.0  # further watts at full speed
    latent: float = 0.0  # seconds of latency that are over, and whose energy counts when the phase progresses

    def over(self, now: float) -> float:
        """Return the end of the present step."""
        return now + (self.lag if self.lag > 0 else self.left / self.speed)

    def pass_on(self, now: float, then: float) -> None:
        """Advance by some seconds."""
        done = self.over(now) <= then
        if self.lag > 0:
            self.lag, self.latent = 0.0 if done else self.lag - (then - now), self.latent + then - now
        else:
            self.left = 0.0 if done else self.left - self.speed * (then - now)


class Plain:
    """The machine and its network."""

    def __init__(self, network: Network, powers: list[Powers] | None = None) -> None:
        self.network, self.powers = network, powers
        self.drawn: list[tuple[float, float, float]] = []  # from, to, watts of a job above idle
        self.capacity: dict[str, float] = {}
        for i, link in enumerate(network.links):
            self.capacity[f"l{i}"] = link.bandwidth
        for host, place in enumerate(network.place_of):
            for name in (f"up{host}", f"down{host}"):
                self.capacity[name] = network.places[place].port
            self.capacity[f"limit{host}"] = network.places[place].limit

    def flows(self, phase: Phase, hosts: list[int]) -> list[tuple[int, int, int, int, float]]:
        """Return the messages: host (-1: a storage), place, host, place, bytes."""
        places, found = self.network.place_of, []
        if isinstance(phase, Stage):
            ends = self.network.storage(phase.source), self.network.storage(phase.target)
            found.append((-1, ends[0], -1, ends[1], phase.bytes))
        if isinstance(phase, Store):
            at = self.network.storage(phase.storage)
            for host in hosts:
                found.append((-1, at, host, places[host], phase.read))
                found.append((host, places[host], -1, at, phase.write))
        for i, a in enumerate(hosts):
            for k, b in enumerate(hosts):
                amount = 0.0
                if isinstance(phase, Even):
                    amount = phase.bytes
                elif isinstance(phase, Matrix) and phase.bytes:
                    amount = phase.bytes[i * len(hosts) + k]
                if i != k and amount > 0:
                    found.append((a, places[a], b, places[b], amount))
        return [each for each in found if each[4] > 0]

    def enter(self, job: Job) -> None:
        """Begin the next phase of non-zero duration, if any."""
        while job.todo and job.lag == job.left == 0:
            phase, sent = job.todo.pop(0), dict[str, float]()
            job.waits = isinstance(phase, Wait)
            seconds = self.alone(phase, job.hosts)
            for a, at, b, to, amount in self.flows(phase, job.hosts):
                way = self.network.ways[at * len(self.network.places) + to]
                job.lag = max(job.lag, way.latency)
                names = [f"l{i}" for i in way.links]
                names += [f"up{a}"] if a >= 0 else []
                names += [f"down{b}" if self.network.places[to].duplex else f"up{b}"] if b >= 0 else []
                names += [f"limit{host}" for host in (a, b) if host >= 0]
                seconds = max(seconds, amount / way.flow)
                for name in names:
                    sent[name] = sent.get(name, 0.0) + amount
            job.left = max([seconds, *(amount / self.capacity[name] for name, amount in sent.items())])
            job.asks = {name: amount / job.left for name, amount in sent.items() if job.left}
            job.lift, job.rise, job.latent = *self.heat(phase, job), 0.0

    def heat(self, phase: Phase, job: Job) -> tuple[float, float]:
        """Return the watts of a phase above idle, at any speed and further ones at full speed."""
        if self.powers is None or not isinstance(phase, Even | Matrix):
            return 0.0, 0.0
        each = [phase.flops] * len(job.hosts) if isinstance(phase, Even) else [*phase.flops] or [0.0] * len(job.hosts)
        lift = joules = 0.0
        for host, flops in zip(job.hosts, each, strict=True):
            power = self.powers[host]
            lift += (power.least - power.idle) * (flops > 0)
            joules += flops / self.network.speeds[host] * (power.computing - power.least)
        return lift, joules / job.left if job.left else 0.0

    def draw(self, job: Job, now: float, then: float) -> None:
        """Note the energy of a job until `then`; that of a latency counts when it is over."""
        if job.lag == 0 and then > now:
            self.drawn.append((now - job.latent, then, job.lift + job.rise * job.speed))
            job.latent = 0.0

    def alone(self, phase: Phase, hosts: list[int]) -> float:
        """Return the seconds of waiting or computing."""
        speeds = [self.network.speeds[host] for host in hosts]
        if isinstance(phase, Wait):
            return phase.seconds
        if isinstance(phase, Even):
            return float(max(phase.flops / speed for speed in speeds))
        if isinstance(phase, Matrix) and phase.flops:
            return float(max(x / speed for x, speed in zip(phase.flops, speeds, strict=True)))
        return 0.0

    def speeds(self, running: list[Job]) -> None:
        """Compute the speeds of all jobs, and check them."""
        active = [job for job in running if job.lag == 0]
        if self.network.increments:
            self.raise_all(active)
            return
        levels = dict.fromkeys(self.capacity, math.inf)

        def limit(job: Job, but: str = "") -> float:
            return min([1.0, *(levels[name] / ask for name, ask in job.asks.items() if name != but)])

        for _ in range(2000):
            before = dict(levels)
            for name in levels:
                wants = sorted(job.asks[name] * limit(job, name) for job in active if name in job.asks)
                levels[name], rest = math.inf, self.capacity[name]
                if sum(wants) > rest:
                    for i, want in enumerate(wants):
                        if want * (len(wants) - i) > rest:
                            levels[name] = rest / (len(wants) - i)
                            break
                        rest -= want
            if levels == before:
                break
        for job in running:
            job.speed = limit(job) if job in active else 1.0
        self.check(active)

    def raise_all(self, active: list[Job]) -> None:
        """Compute the speeds as SimGrid's fair-bottleneck solver does. A job alone has a speed of 1."""
        rest = {name: self.capacity[name] for job in active for name in job.asks}
        users = {name: [job for job in active if name in job.asks] for name in rest}
        speeds, steps, getting = {job.number: 0.0 for job in active}, dict[int, float](), {job.number for job in active}
        while getting:
            shares = {
                name: left / max(sum(job.number in getting for job in users[name]), 1) for name, left in rest.items()
            }
            for job in active:
                if job.number in getting:
                    limits = [shares[name] / job.asks[name] for name in job.asks if name in shares]
                    steps[job.number] = min([1.0 - speeds[job.number], *limits])
                    speeds[job.number] += steps[job.number]
            getting -= {number for number in getting if speeds[number] == 1.0}
            for name in list(rest):
                for job in users[name]:
                    rest[name] -= steps[job.number] * job.asks[name]
                    rest[name] = 0.0 if rest[name] < 1e-5 else rest[name]
                if rest[name] == 0.0:
                    getting -= {job.number for job in users[name]}
                if not any(job.number in getting for job in users[name]):
                    del rest[name]
        for job in active:
            job.speed = speeds[job.number]

    def check(self, active: list[Job]) -> None:
        """Check that no link is overloaded, and each slowed job has a full link on which no job sends more."""
        for job in active:
            held = job.speed >= 1 - NEAR
            for name in job.asks:
                used = [other.speed * other.asks[name] for other in active if name in other.asks]
                assert sum(used) <= self.capacity[name] * (1 + NEAR)
                full = sum(used) >= self.capacity[name] * (1 - NEAR)
                held |= full and job.speed * job.asks[name] >= max(used) * (1 - NEAR)
            assert held


def plain_network(
    jobs: Workload,
    parts: list[Part],
    network: Network,
    *,
    fills: bool = True,
    given: list[list[int]] | None = None,
    plain: Plain | None = None,
) -> tuple[list[float], list[float], list[bool]]:
    """Return start and finish of each job (nan: rejected), and whether it was killed.

    Args:
        given: the hosts of each job, on which it starts when it is submitted.
        plain: the machine, which notes the energy; None: a machine whose power is not known.
    """
    machine, plain, count = len(network.speeds), plain or Plain(network), len(jobs)
    submit, wall, size = jobs.submit_time.tolist(), jobs.walltime.tolist(), jobs.size.tolist()
    start, finish, killed = [math.nan] * count, [math.nan] * count, [False] * count
    running, queue, free, upcoming, now = list[Job](), list[int](), list(range(machine)), 0, -math.inf
    while upcoming < count or running:
        plain.speeds(running)
        soonest = min((min(job.over(now), job.until) for job in running), default=math.inf)
        then, ended, came = min(soonest, submit[upcoming] if upcoming < count else math.inf), False, False
        for job in list(running):
            late = job.waits and job.over(now) == job.until == then
            plain.draw(job, now, then)
            job.pass_on(now, then)
            plain.enter(job)
            if job.lag == job.left == 0 or job.until <= then:
                killed[job.number], finish[job.number], ended = late or job.lag + job.left > 0, then, True
                running.remove(job)
                free = sorted(free + job.hosts)
        now = then
        while upcoming < count and submit[upcoming] == now:
            if size[upcoming] <= machine:
                queue.append(upcoming)
                came = True
            upcoming += 1
        if not (ended or came):
            continue
        left, reservation, spare = list[int](), math.inf, 0
        for i in queue:
            fits = size[i] <= len(free)
            if left and fits:
                fits = fills and (now + wall[i] <= reservation or size[i] <= spare)
                if fits and now + wall[i] > reservation:
                    spare -= size[i]
            if fits or given:
                hosts = given[i] if given else free[: size[i]]
                job = Job(i, hosts, now + wall[i], unrolled(parts[i]))
                start[i], free = now, [host for host in free if host not in hosts]
                plain.enter(job)
                running.append(job)
                continue
            if not left:
                reservation, spare = _reserve(size[i], len(free), [(job.until, size[job.number]) for job in running])
            left.append(i)
        queue = left
    return start, finish, killed


def _reserve(wanted: int, free: int, ends: list[tuple[float, int]]) -> tuple[float, int]:
    for time in sorted({time for time, _ in ends}):
        then = free + sum(size for end, size in ends if end <= time)
        if then >= wanted:
            return time, then - wanted
    raise AssertionError("it never fits")

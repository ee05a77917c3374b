"""The platform: node types, nodes and the cluster, as frozen values.

Rule: the static description of the machines; their current state is in `snapshot`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .job import Profile, ThreadGroup
    from .network import Network


class Contention(StrEnum):
    """Memory-bandwidth contention models (models: DESiDE 2019 section 4.3; IRMaSim 2021 section IV)."""

    NONE = "none"
    EQUAL_SHARE = "equal-share"
    MAX_MIN = "max-min"
    PIECEWISE_LINEAR = "piecewise-linear"


class ContendingThreads(StrEnum):
    """The threads that take part in memory contention: those on a core at the moment, or all that have not ended."""

    RUNNING = "running"
    ALL = "all"


class CpuSharing(StrEnum):
    """Sharing of cores: between jobs first (cgroups), or equally between threads (DESiDE)."""

    PER_JOB = "per-job"
    PER_THREAD = "per-thread"


@dataclass(frozen=True, slots=True)
class PiecewiseLinear:
    """Constants of the piecewise-linear model (IRMaSim, CCGrid 2021); rates in MB/s (1e6 bytes/s)."""

    b: float
    c: float
    da: float
    db: float
    dc: float
    dd: float
    n_max: int = 3
    d_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class CoRun:
    """A measured co-run factor, in addition to bandwidth contention.

    A job of profile `job` next to one of profile `neighbour` takes `factor` >= 1 times as long on its cores (caches,
    latency; models, section 8).
    """

    job: str
    neighbour: str
    factor: float


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of machine state: its power (W) and its duration (s)."""

    watts: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PowerState:
    """A further machine state: a sleep state, or a DVFS state with watts at load 0 and at full load."""

    name: str
    watts: float
    full_watts: float | None = None
    frequency: float | None = None
    enter: Transition | None = None
    leave: Transition | None = None


@dataclass(frozen=True, slots=True)
class Power:
    """Power of a node, watts.

    By cores: P = idle + per_socket * sockets + per_core * (busy cores); at zero busy cores the socket term is scaled by
    `idle_uncore`. By state (`computing` given): P = idle + (computing - idle) * load; with `epsilon`, P = epsilon +
    (computing - epsilon) * load above load 0 in replays of jobs that are given in flops.
    """

    idle: float
    per_core: float = 0.0
    per_socket: float = 0.0
    computing: float | None = None
    idle_uncore: float = 1.0
    budget_idle: float | None = None
    budget_computing: float | None = None
    off: float | None = None
    switch_on: Transition | None = None
    switch_off: Transition | None = None
    states: tuple[PowerState, ...] = ()
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class NodeType:
    """The capabilities of a kind of node.

    Args:
        name: key in the cluster file.
        cores: cores of the whole node, >= 1.
        memory: bytes, > 0.
        memory_bandwidth: bytes/s of the whole node, > 0.
        sockets: processors, >= 1; the piecewise-linear model works per socket.
        frequency: Hz; only ratios between types matter.
        speed: flop/s of a core, for jobs that are given in flops; replaces frequency in scaling between types.
        contention: memory-bandwidth contention model.
        contending_threads: which threads take part in it.
        cpu_sharing: how threads share cores.
        remote_access_penalty: delta_rl >= 1; 1 = threads are bound to their memory (DESiDE eq. 13-14).
        queueing: how long sleeping threads wait for a core when they wake under per-job sharing (0 = not at all); the
            default 0.58 was fitted to one core shared by a u=0.5 and a CPU-bound job.
        power: None = unknown (energies are then None, never 0).
        piecewise: constants of the piecewise-linear model.
        co_run_inflation: measured pairs, each once; any other pair has factor 1.
        variant_of: name of the type that this one is a variant of, for nodes that differ from others of their type; ""
            if it is no variant.
        pace: speed of a variant as a factor on that of its type, > 0.
        loop_speed: steps/s of the reference loop of `calibrate` on one core, > 0; where all types have it, it replaces
            speed and frequency in scaling between types.
    """

    name: str
    cores: int
    memory: float
    memory_bandwidth: float
    sockets: int = 1
    frequency: float = 1e9
    speed: float | None = None
    contention: Contention = Contention.MAX_MIN
    contending_threads: ContendingThreads = ContendingThreads.RUNNING
    cpu_sharing: CpuSharing = CpuSharing.PER_JOB
    remote_access_penalty: float = 1.0
    queueing: float = 0.58
    power: Power | None = None
    piecewise: PiecewiseLinear | None = None
    co_run_inflation: tuple[CoRun, ...] = ()
    variant_of: str = ""
    pace: float = 1.0
    loop_speed: float | None = None

    @property
    def relative_speed(self) -> float:
        """Speed of a core: `speed` if given, else `frequency`; by the pace. See `comparable_speeds`."""
        return (self.frequency if self.speed is None else self.speed) * self.pace

    @property
    def nominal(self) -> NodeType:
        """The type that this one is a variant of; the type itself if it is not a variant."""
        return replace(self, name=self.variant_of, variant_of="", pace=1.0) if self.variant_of else self

    def at_pace(self, pace: float) -> NodeType:
        """Return the variant of this type that is faster or slower by a factor; the type itself for 1."""
        return self if pace == 1.0 else replace(self, name=f"{self.name}@{pace:g}", variant_of=self.name, pace=pace)


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `memory_domain` names a memory shared with other nodes; `cpus` are CPU ids (local adapter)."""

    name: str
    type: NodeType
    memory_domain: str | None = None
    cpus: tuple[int, ...] = ()


class Wiring(Protocol):
    """The network of a cluster, built only if jobs send something."""

    @property
    def storages(self) -> Collection[str]:
        """Names of the storages that nodes reach."""

    @property
    def ignored(self) -> Collection[str]:
        """Settings of the file that no replay uses."""

    def network(self) -> Network:
        """Return the network of the nodes, in their order. Raises ConfigError if it cannot be simulated."""


@dataclass(frozen=True)
class Cluster:
    """The nodes in file order (ties between nodes go to the lowest index).

    Args:
        name: name of the cluster.
        nodes: in file order.
        oversubscription: threads per core that may be placed on a node; math.inf = unlimited.
        groups: named groups of nodes (clusters of hosts), name -> node names.
        source: the file it was read from, for messages.
        wiring: the network of the nodes; None = unknown.
    """

    name: str
    nodes: tuple[Node, ...]
    oversubscription: float = 1.0
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""
    wiring: Wiring | None = field(default=None, compare=False)

    @cached_property
    def index(self) -> dict[str, int]:
        """Node name -> position in `nodes`."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def types(self) -> tuple[NodeType, ...]:
        """Distinct node types in order of first use."""
        by_identity = {id(node.type): node.type for node in self.nodes}  # few are hashed: that takes long
        return tuple(dict.fromkeys(by_identity.values()))

    @property
    def shared_memory(self) -> str | None:
        """The first memory domain with several nodes, or None."""
        domains = Counter(node.memory_domain for node in self.nodes if node.memory_domain is not None)
        return next((domain for domain, nodes in domains.items() if nodes > 1), None)

    @cached_property
    def thread_limits(self) -> tuple[float, ...]:
        """The `thread_limit` of each node."""
        of_type = {id(node.type): node for node in self.nodes}
        limits = {identity: self.thread_limit(node) for identity, node in of_type.items()}
        return tuple([limits[id(node.type)] for node in self.nodes])

    def thread_limit(self, node: Node) -> float:
        """Return the threads that may be placed on `node`: a whole number, or math.inf."""
        if math.isinf(self.oversubscription):
            return math.inf
        # 0.29 per core on 100 cores is 29 threads, although 0.29 * 100 is slightly less in binary.
        return math.floor(self.oversubscription * node.type.cores * (1 + 1e-9))


def comparable_speeds(kinds: Iterable[NodeType]) -> list[float]:
    """Return the speed of each type, in a unit that all of them have: only ratios matter."""
    types = list(kinds)
    measured = [kind.loop_speed * kind.pace for kind in types if kind.loop_speed is not None]
    return measured if len(measured) == len(types) else [kind.relative_speed for kind in types]


def measured_type(profile: Profile, cluster: Cluster) -> NodeType | None:
    """Return the node type of the profile's measurement (default: the first node's); None if it is not here."""
    if profile.measured_on is None:
        return cluster.types[0].nominal
    types = (*cluster.types, *(kind.nominal for kind in cluster.types))
    return next((kind for kind in types if kind.name == profile.measured_on), None)


def group_phases(group: ThreadGroup, origin: NodeType | None, kind: NodeType) -> list[tuple[float, float, float]]:
    """Return (isolated seconds, utilisation, bytes/s) of each phase of a thread group on node type `kind`."""
    time = group.isolated_time
    phases = [(p.share * time, p.utilisation, p.bandwidth) for p in group.phases] or [
        (time, group.utilisation, group.bandwidth)
    ]
    if origin is None or origin is kind or origin == kind:
        return phases
    origin_speed, speed = comparable_speeds((origin, kind))
    ratio = origin_speed / speed
    scaled = []
    for work, utilisation, bandwidth in phases:
        busy, idle = work * utilisation * ratio, work * (1.0 - utilisation)
        scaled.append((busy + idle, busy / (busy + idle), min(bandwidth / ratio, kind.memory_bandwidth)))
    return scaled

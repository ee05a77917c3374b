"""Jobs, their profiles and workflows, as frozen values.

Rule: a profile says what a job needs when it is alone on one node; the models say what company does to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from .errors import InvalidJobError

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True)
class Distribution:
    """A stochastic service demand, seconds: lognormal(mean, cv), normal(mean, cv), uniform(low, high), or
    empirical(values)."""

    dist: str
    mean: float = 0.0
    cv: float = 0.0
    low: float = 0.0
    high: float = 0.0
    values: tuple[float, ...] = ()

    @property
    def expected(self) -> float:
        """The mean in seconds, which planning without replicates uses."""
        if self.dist == "uniform":
            return (self.low + self.high) / 2
        if self.dist == "empirical":
            return sum(self.values) / len(self.values)
        return self.mean


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a thread's run: its share of the work (0..1], utilisation (0..1], bandwidth (bytes/s)."""

    share: float
    utilisation: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """`count` threads that are alike.

    Args:
        count: threads on each node of the job, >= 1.
        service_demand: CPU seconds of one thread, > 0, or a distribution of them.
        utilisation: share of isolated wall time that a thread wants a core, (0, 1].
        utilisation_std: as seen over short intervals (DESiDE section 4.3.1).
        bandwidth: bytes/s that one running thread moves to and from memory, >= 0.
        phases: if given, they replace utilisation and bandwidth along the run; shares add up to 1.
    """

    count: int
    service_demand: float | Distribution
    utilisation: float = 1.0
    utilisation_std: float = 0.0
    bandwidth: float = 0.0
    phases: tuple[Phase, ...] = ()

    @property
    def demand(self) -> float:
        """Service demand in seconds, the mean where it is a distribution."""
        sd = self.service_demand
        return sd.expected if isinstance(sd, Distribution) else sd

    @property
    def isolated_time(self) -> float:
        """Wall seconds of a thread in isolation, before any contention with itself."""
        return self.demand / self.mean_utilisation

    @property
    def mean_utilisation(self) -> float:
        """Utilisation over the whole run, the mean over its phases where it has some."""
        return sum(p.share * p.utilisation for p in self.phases) if self.phases else self.utilisation

    @property
    def mean_bandwidth(self) -> float:
        """Bandwidth over the whole run, bytes/s, the mean over its phases where it has some."""
        return sum(p.share * p.bandwidth for p in self.phases) if self.phases else self.bandwidth


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a profile's numbers come from: source is measured, given, predicted or default.

    Args:
        interval: between which times what is given here the service demand in isolation is, low <= 1 <= high: two
            standard deviations either way. It holds for all runs alike. None = not known.
        spread: standard deviation of the isolated time from one run to the next, as a share of it; None = not known.
        strain: what held the runs up that were measured, fact by fact; no model uses it.
    """

    source: str = "given"
    date: str | None = None
    runs: int = 0
    node_type: str | None = None
    note: str = ""
    interval: tuple[float, float] | None = None
    spread: float | None = None
    strain: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job needs in isolation on one node type (`measured_on`; None = the cluster's first node's type)."""

    groups: tuple[ThreadGroup, ...]
    name: str = ""
    measured_on: str | None = None
    memory: float = 0.0
    instructions: float | None = None
    ipc: float | None = None
    io_bytes: float | None = None
    power_watts: float | None = None
    provenance: Provenance = Provenance()

    @property
    def threads(self) -> int:
        """Threads on each node."""
        groups = self.groups  # mostly one, and asked for of each job, again and again
        return groups[0].count if len(groups) == 1 else sum(group.count for group in groups)

    @property
    def isolated_time(self) -> float:
        """Seconds that the slowest thread runs when it is alone."""
        groups = self.groups
        return groups[0].isolated_time if len(groups) == 1 else max(group.isolated_time for group in groups)


#: What is assumed of a job of which nothing is known: one CPU-bound thread for a minute. Always announced.
DEFAULT_PROFILE = Profile(
    (ThreadGroup(1, 60.0),), name="default", provenance=Provenance("default", note="nothing known: 1 thread, 60 s")
)


class Wait(StrEnum):
    """What the waiting parts of a multi-node job do with their cores: give them back, or spin on them."""

    YIELD = "yield"
    SPIN = "spin"


@dataclass(frozen=True, slots=True)
class Job:
    """One job: `nodes` nodes x its profile's threads, bulk-synchronous when nodes > 1.

    Args:
        id: unique in its workflow.
        after: ids of the jobs that must have ended well before this one may start.
        memory: bytes per node, a hard limit in placement; the larger of this and the profile's counts.
        walltime: the user's limit, seconds; None = none.
        command: argv (or None: only simulated). A shell line is ("/bin/sh", "-c", line).
        environment: variables added to the environment.
        directory: working directory; None = where the workflow was submitted.
        allowed: names of the nodes that may run it; None = all that it fits.
        apart: jobs that differ in this share no node, unless one has "" (a resource manager's rule; see `fits`).
        known_as: what tells jobs of this kind where there is no command: its name and whose it is, as the resource
            manager has them; "" = nothing does.
    """

    id: str
    profile: Profile
    after: tuple[str, ...] = ()
    nodes: int = 1
    memory: float = 0.0
    walltime: float | None = None
    command: tuple[str, ...] | None = None
    environment: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    wait: Wait = Wait.YIELD
    allowed: frozenset[str] | None = None
    apart: str = ""
    known_as: str = ""


@dataclass(frozen=True)
class Workflow:
    """Jobs in file order with their dependencies.

    Raises (on use of `dag`): InvalidJobError naming a duplicate, an unknown dependency or a cycle's jobs.
    """

    name: str
    jobs: tuple[Job, ...]
    source: str = ""
    warnings: tuple[str, ...] = field(default=())

    @cached_property
    def index(self) -> dict[str, int]:
        """Job id -> position in `jobs`; raises InvalidJobError on a duplicate id."""
        index = {job.id: i for i, job in enumerate(self.jobs)}
        if len(index) != len(self.jobs):
            seen: set[str] = set()
            for job in self.jobs:
                if job.id in seen:
                    raise InvalidJobError(f"{self.source or self.name}: job {job.id!r} is defined twice")
                seen.add(job.id)
        return index

    @cached_property
    def dag(self) -> networkx.DiGraph:
        """The dependency graph, checked. O(jobs + edges)."""
        from .dag import build_dag

        return build_dag(self)

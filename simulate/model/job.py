"""Jobs, their profiles and workflows, as frozen values.

Rule: a profile is what a job needs alone on one node; the models add the effect of other jobs. The graph of a workflow
is checked once, with one error for each way to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from ..errors import InvalidJobError, did_you_mean

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True)
class Distribution:
    """A stochastic service demand, seconds.

    One of lognormal(mean, cv), normal(mean, cv), uniform(low, high), or empirical(values).
    """

    dist: str
    mean: float = 0.0
    cv: float = 0.0
    low: float = 0.0
    high: float = 0.0
    values: tuple[float, ...] = ()

    @property
    def expected(self) -> float:
        """The mean in seconds; planning without replicates uses it."""
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
    """`count` equal threads.

    Args:
        count: threads on each node of the job, >= 1.
        service_demand: CPU seconds of one thread, > 0, or a distribution of them.
        utilisation: share of isolated wall time in which a thread needs a core, (0, 1].
        utilisation_std: its standard deviation over short intervals (DESiDE section 4.3.1).
        bandwidth: bytes/s that one running thread moves to and from memory, >= 0.
        phases: replace utilisation and bandwidth along the run; shares add up to 1.
    """

    count: int
    service_demand: float | Distribution
    utilisation: float = 1.0
    utilisation_std: float = 0.0
    bandwidth: float = 0.0
    phases: tuple[Phase, ...] = ()

    @property
    def demand(self) -> float:
        """Service demand in seconds, the mean of a distribution."""
        sd = self.service_demand
        return sd.expected if isinstance(sd, Distribution) else sd

    @property
    def isolated_time(self) -> float:
        """Wall seconds of a thread in isolation, before any contention with itself."""
        return self.demand / self.mean_utilisation

    @property
    def mean_utilisation(self) -> float:
        """Utilisation over the whole run: the mean over the phases, if any."""
        return sum(p.share * p.utilisation for p in self.phases) if self.phases else self.utilisation

    @property
    def mean_bandwidth(self) -> float:
        """Bandwidth over the whole run, bytes/s: the mean over the phases, if any."""
        return sum(p.share * p.bandwidth for p in self.phases) if self.phases else self.bandwidth


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a profile's numbers; `source` is measured, given, predicted or default."""

    source: str = "given"
    date: str | None = None  # when it was measured, ISO 8601
    runs: int = 0  # number of measured runs
    node_type: str | None = None  # node type of the measurement
    note: str = ""  # a remark for people
    #: (low, high) relative bounds of the service demand, low <= 1 <= high: two standard deviations of its logarithm
    #: either way. The error is the same for all runs. None = unknown.
    interval: tuple[float, float] | None = None
    spread: float | None = None  # standard deviation of the isolated time between runs, relative to it; None = unknown
    strain: tuple[tuple[str, float], ...] = ()  # what slowed the measured runs, as (fact, value); no model uses it
    inputs: tuple[tuple[str, float], ...] = ()  # bytes of the input files of the measured runs, see `Job.inputs`


@dataclass(frozen=True, slots=True)
class Profile:
    """The need of a job in isolation on one node type (`measured_on`; None = the type of the cluster's first node)."""

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
        groups = self.groups  # mostly one; this is called very often
        return groups[0].count if len(groups) == 1 else sum(group.count for group in groups)

    @property
    def isolated_time(self) -> float:
        """Seconds that the slowest thread runs alone."""
        groups = self.groups
        return groups[0].isolated_time if len(groups) == 1 else max(group.isolated_time for group in groups)


#: Profile of an unknown job: one CPU-bound thread for a minute. Its use is always reported.
DEFAULT_PROFILE = Profile(
    (ThreadGroup(1, 60.0),), name="default", provenance=Provenance("default", note="nothing known: 1 thread, 60 s")
)


def default_profile(walltime: float | None) -> Profile:
    """Return the profile of an unknown job, which does not last longer than its walltime, seconds; None = no limit."""
    (group,) = DEFAULT_PROFILE.groups
    if walltime is None or walltime >= group.demand:
        return DEFAULT_PROFILE
    return replace(DEFAULT_PROFILE, groups=(replace(group, service_demand=walltime),))


class PeerWait(StrEnum):
    """Use of the cores by the parts of a multi-node job while they wait for each other: yield them, or spin."""

    YIELD = "yield"
    SPIN = "spin"


@dataclass(frozen=True, slots=True)
class Job:
    """One job: `nodes` nodes x the threads of its profile, bulk-synchronous when nodes > 1.

    Args:
        id: unique in its workflow.
        profile: what it needs.
        after: ids of the jobs that must have ended successfully before this one starts.
        nodes: number of nodes, >= 1.
        memory: bytes per node, a hard limit in placement; the larger of this and the profile's counts.
        walltime: the user's limit, seconds; None = none.
        command: argv (None: simulated only). A shell line is ("/bin/sh", "-c", line).
        environment: variables added to the environment.
        directory: working directory; None = where the workflow was submitted.
        wait: see `PeerWait`.
        allowed: names of the nodes that may run it; None = every node that it fits.
        apart: jobs with different values share no node, unless one is "" (a rule of the resource manager; see
            `capacity`).
        known_as: identifies the kind of job if there is no command: its name and owner in the resource manager; "" =
            unknown.
        traits: further values that show which jobs are alike there: `user`, `group` (its account or project),
            `executable` (its name), `queue` (its partition) and `script` (a checksum of what it runs), as far as they
            are known.
        owner: uid of its user in the resource manager; None = the user that runs pilotfish.
        inputs: bytes of the files that its command names, by the position of the word, at its submission.
        base_environment: variables that it has before `environment` is added; None = those of the process that starts
            it.
        umask: its file mode creation mask, as umask(2) has it; None = that of the process that starts it.
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
    wait: PeerWait = PeerWait.YIELD
    allowed: frozenset[str] | None = None
    apart: str = ""
    known_as: str = ""
    traits: tuple[tuple[str, str], ...] = ()
    owner: int | None = None
    inputs: tuple[tuple[str, float], ...] = ()
    base_environment: tuple[tuple[str, str], ...] | None = None
    umask: int | None = None


@dataclass(frozen=True)
class Workflow:
    """Jobs in file order with their dependencies.

    Args:
        base_environment: variables of the submitting user, for all its jobs; see `Job`.
        umask: of the submitting user, for all its jobs.

    Raises:
        InvalidJobError: on use of `index` or `dag`: a duplicate job, an unknown dependency or a cycle.
    """

    name: str
    jobs: tuple[Job, ...]
    source: str = ""
    warnings: tuple[str, ...] = ()
    base_environment: tuple[tuple[str, str], ...] | None = None
    umask: int | None = None

    @cached_property
    def index(self) -> dict[str, int]:
        """Job id -> position in `jobs`. Raises InvalidJobError for a duplicate id."""
        index: dict[str, int] = {}
        for i, job in enumerate(self.jobs):
            if index.setdefault(job.id, i) != i:
                raise InvalidJobError(f"{self.source or self.name}: job {job.id!r} is defined twice")
        return index

    @cached_property
    def dag(self) -> networkx.DiGraph:
        """The graph with edges from each job to the jobs that wait for it; raises as above. O(jobs + edges)."""
        return _checked_graph(self)


#: Jobs that an error names of a cycle.
_SHOWN_OF_CYCLE = 10


def check_graph(workflow: Workflow) -> None:
    """Raise InvalidJobError for a workflow without jobs, a duplicate job, an unknown dependency or a cycle.

    O(jobs + dependencies), and a hint is made for one job only.
    """
    where = workflow.source or workflow.name
    if not workflow.jobs:
        raise InvalidJobError(f"{where}: jobs: the workflow has no jobs (allowed: at least one)")
    index = workflow.index
    for job in workflow.jobs:
        for before in job.after:
            if before not in index:
                why = f"which is not a job of this workflow{did_you_mean(before, index)}"
                raise InvalidJobError(f"{where}: job {job.id!r} waits for {before!r}, {why}")
    try:
        TopologicalSorter({job.id: job.after for job in workflow.jobs}).prepare()
    except CycleError as error:
        cycle = error.args[1]
        names = cycle if len(cycle) <= _SHOWN_OF_CYCLE else [*cycle[: _SHOWN_OF_CYCLE - 1], "...", cycle[0]]
        raise InvalidJobError(f"{where}: jobs wait for each other in a cycle: {' -> '.join(names)}") from None


def _checked_graph(workflow: Workflow) -> networkx.DiGraph:
    import networkx as nx

    check_graph(workflow)
    graph = nx.DiGraph()
    graph.add_nodes_from(workflow.index)
    graph.add_edges_from((before, job.id) for job in workflow.jobs for before in job.after)
    return graph

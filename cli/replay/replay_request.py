"""A replay as the command line requests it, and the files that it needs.

Rule: a wrong option is a usage error and is found before any file is read. A wrong machine is found before
the traces are read, and wrong jobs before the kernels of the replay are compiled or loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...formats.batsim.runs import MappedLater
from ...formats.batsim.workload import as_submitted
from ...formats.entry_points import spelled_out
from ...formats.replays.workloads import Format, format_of
from ...formats.text import counted
from ...formats.user_policy import NamedPolicy, load_policy
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import Machine, machine_of, speeds_of, storages_of
from ...simulate.model.network import SOLVERS
from ...simulate.model.workload import LONGEST, Workload, joined
from ...simulate.queue_policies.policy_specs import (
    OnNodes,
    base_of,
    is_python_policy,
    needs_nodes,
    parse,
    parse_python_policy,
    text_of,
)
from ...simulate.replay.replay import LARGEST, assumed_powers, is_asked, refuse_jobs, refuse_machine, takes_time
from ...simulate.replay.select import Select
from ...simulate.replay.worlds.any_policy import refuse_times
from ...simulate.world.known_run_times import ACTUAL, PREDICTED, WALLTIME, with_actual_walltimes
from ..inputs import Profiles, check_files, read_machine
from ..kernel_loading import load_kernels, load_replay, load_simulator
from ..streams import print_policy_traceback, warn
from ..usage_errors import bad, check_period, not_among
from .daemon_policy import DaemonPolicy, NamedDaemon
from .edc_replay import ComponentPolicy

RESOURCES = ("core", "node")


@dataclass(slots=True)
class ReplayRequest:
    """A replay; the options are checked as it is made.

    Args:
        workloads: files, whose jobs are joined; at least one.
        spec: SPEC of a queue policy, or the daemon, or a decision component of Batsim.
        select: which jobs, and how much faster they arrive.
        seed: of random choices.
        procs: processors, at least 1; None = those of `cluster`, or as the workloads say.
        cluster: file of the machine; None = no cluster. Excludes `procs`.
        resource: what jobs request of a cluster, `core` or `node`.
        deciding: simulated time of each decision: `ignore`, `measured`, or seconds.
        skip_invalid: leave out jobs that cannot be replayed.
        contention: jobs on one node slow each other down.
        runtimes: what the policy knows of run times, one of `known_run_times.RUNTIMES`.
        network_solver: how jobs share links, one of SOLVERS; None = as by default.
        natural: jobs that a Batsim workload submits at one instant come in the natural order of their ids.
        store: the profile store, for workflows; None = the user's own.

    `policy` and `decision_time` (seconds; None = as long as it really takes) are what `spec` and `deciding` mean.

    Raises:
        typer.BadParameter: an option has a wrong value.
        ConfigError, PolicyError, OSError: a user's own policy cannot be loaded.
    """

    workloads: list[Path]
    spec: str | DaemonPolicy | ComponentPolicy
    select: Select
    seed: int
    procs: int | None
    cluster: Path | None
    resource: str
    deciding: str
    skip_invalid: bool
    contention: bool = False
    runtimes: str = WALLTIME
    network_solver: str | None = None
    natural: bool = False
    store: Path | None = None
    policy: NamedPolicy | NamedDaemon | ComponentPolicy = field(init=False)
    decision_time: float | None = field(init=False)

    def __post_init__(self) -> None:
        if not self.workloads:
            raise bad("TRACE", "missing: the trace to replay (a file, or several with -w)")
        self.decision_time, self.policy = _decision_seconds(self.deciding), _policy(self.spec, self.seed)
        if self.contention and (self.cluster is None or self.resource == "node"):
            raise bad("--contention", "jobs contend on the nodes of a cluster (needed: --cluster, resource core)")
        on_nodes = self.contention or needs_nodes(self.policy.policy)  # then any decision time will do
        if self.policy.compiled and not on_nodes and not takes_time(self.policy.policy, self.decision_time):
            allowed = "ignore or seconds; measured with ./mine.py:Class and --contention"
            problem = f"{self.deciding}, with {self.policy.text}: it decides at once"
            raise bad("--decision-time", f"{problem} (allowed: {allowed})")
        if self.procs is not None and self.cluster is not None:
            raise bad("--procs", "not together with --cluster")
        if self.procs is not None and not 1 <= self.procs <= LARGEST:
            raise bad("--procs", f"{self.procs} (allowed: 1 to {LARGEST})")
        if self.resource not in RESOURCES:
            raise not_among("--resource", self.resource, "a kind of resource", RESOURCES)
        if self.network_solver is not None and self.network_solver not in SOLVERS:
            raise not_among("--network-solver", self.network_solver, "a way to share links", SOLVERS)
        if self.network_solver is not None and self.cluster is None:
            raise bad("--network-solver", "a number of processors has no network (needed: --cluster)")
        select = self.select
        if not 0.0 < select.load < math.inf:
            raise bad("--load", f"{select.load:g} (allowed: a number above 0)")
        check_period(select.begin, select.end, lambda seconds: not math.isnan(seconds))
        if select.least is not None and select.most is not None and select.least > select.most:
            raise bad("--max-size", f"{select.most} (allowed: --min-size, {select.least}, or more)")
        if needs_nodes(self.policy.policy) and (self.cluster is None or self.resource == "node"):
            raise bad("--policy", f"{self.spec} chooses among nodes (needed: --cluster, resource core)")


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """The input of a replay.

    Args:
        jobs: the selected jobs.
        machine: where they run.
        cluster: the nodes of the machine; None = it is only a number of processors.
        size_from: what states the size of the machine, for people.
    """

    jobs: Workload
    machine: Machine
    cluster: Cluster | None
    size_from: str


def _decision_seconds(text: str) -> float | None:
    """Return simulated seconds of each decision; None = as measured. Raises typer.BadParameter."""
    if text in ("ignore", "measured"):
        return 0.0 if text == "ignore" else None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= LONGEST:
        raise bad("--decision-time", f"{text!r} (allowed: ignore, measured, or seconds from 0 to {LONGEST:g})")
    return seconds


def _policy(text: str | DaemonPolicy | ComponentPolicy, seed: int) -> NamedPolicy | NamedDaemon | ComponentPolicy:
    if isinstance(text, ComponentPolicy):
        return text
    if isinstance(text, DaemonPolicy):
        return NamedDaemon(text)
    text = spelled_out(text)
    try:
        if is_python_policy(text):
            with print_policy_traceback():
                return load_policy(parse_python_policy(text), seed)
        policy = parse(text)
        return NamedPolicy(policy, text_of(policy))
    except ConfigError as error:
        if error.source != "policy":
            raise
        problem = f"{error.key}: {error.problem} (allowed: {error.allowed})".removeprefix(": ")
        raise bad("--policy", problem) from None


def read_replay(request: ReplayRequest) -> ReplayInput:
    """Read all files of a replay and load its kernels. Raises ConfigError, OSError."""
    check_files(*request.workloads, request.cluster)
    kinds = [format_of(path) for path in request.workloads]
    cluster, policy = read_machine(request.cluster), request.policy.policy
    stated = _given_machine(request, cluster)
    if stated is not None:
        _refuse_machine(request, stated[0], cluster)
    load_kernels(*sorted({kernel for kind in kinds for kernel in kind.kernels}))
    storages = storages_of(cluster)
    component = isinstance(request.policy, ComponentPolicy)
    if storages and component:
        storages = MappedLater(storages)
    of_machine = {"speeds": speeds_of(cluster), "storages": storages}
    options = of_machine | {"skip_invalid": request.skip_invalid, "profiles": Profiles(request.store)}
    recorded = [kind.read(path, **options) for path, kind in zip(request.workloads, kinds, strict=True)]
    warn(*(doubt for workload in recorded for doubt in workload.doubts))
    recorded = [as_submitted(workload, natural=request.natural) for workload in recorded]
    jobs = request.select.of(joined(recorded))
    machine, size_from = stated or _stated_machine(recorded, request, kinds)
    if stated is None:
        _refuse_machine(request, machine, cluster)
    if not len(jobs):
        losses = f"; left out: {counted(jobs.left_out)}" if jobs.left_out else ""
        raise ConfigError(_names(request.workloads), "", f"no jobs to replay{losses}")
    _refuse_jobs(request, jobs, machine, cluster)
    predicted = request.runtimes == PREDICTED
    rich = predicted or request.decision_time != 0.0 or jobs.dependencies is not None
    if isinstance(policy, DaemonPolicy):
        load_simulator()
    else:
        networked, contention = jobs.programs is not None, request.contention
        calls_python = is_asked(policy, request.decision_time, predicted=predicted, networked=networked)
        compiled = None if calls_python else policy
        load_replay([compiled], networked=networked, rich=rich, contention=contention)
    return ReplayInput(jobs, machine, cluster, size_from)


def _refuse_machine(request: ReplayRequest, machine: Machine, cluster: Cluster | None) -> None:
    """Refuse a policy that cannot be replayed on this machine. Raises ConfigError."""
    if isinstance(policy := request.policy.policy, DaemonPolicy):
        from .daemon_replay import refuse_nodes

        assert cluster is not None
        refuse_nodes(policy, cluster)
    elif not isinstance(policy, ComponentPolicy):
        refuse_machine(policy, machine, cluster, contention=request.contention)


def _refuse_jobs(request: ReplayRequest, jobs: Workload, machine: Machine, cluster: Cluster | None) -> None:
    """Refuse jobs that cannot be replayed under this policy on this machine. Raises ConfigError."""
    policy, runtimes = request.policy.policy, request.runtimes
    if isinstance(policy, DaemonPolicy):
        from .daemon_replay import refuse_trace

        assert cluster is not None
        refuse_trace(policy, jobs, cluster)
    elif not isinstance(policy, ComponentPolicy):
        refuse_times(policy, jobs, runtimes, request.decision_time, contention=request.contention)
        known_jobs = with_actual_walltimes(jobs) if runtimes == ACTUAL else jobs
        shared = cluster if request.contention or needs_nodes(policy) else None
        refuse_jobs(policy, known_jobs, machine, shared)


def _given_machine(request: ReplayRequest, cluster: Cluster | None) -> tuple[Machine, str] | None:
    """Return the machine of the options, and what states its size; None = the traces state it."""
    if request.procs is not None:
        return Machine(request.procs, powers=assumed_powers(request.policy.policy)), "--procs"
    if cluster is not None:
        if isinstance(base_of(request.policy.policy), DaemonPolicy | OnNodes) and cluster.oversubscription != 1.0:
            named_machine = Machine(int(min(sum(cluster.thread_limits), LARGEST)), powers=None)
            return named_machine, f"the threads that the nodes of {Path(cluster.source).name} take"
        solver = request.network_solver or SOLVERS[0]
        named_machine = machine_of(cluster, whole_nodes=request.resource == "node", solver=solver)
        unit = "nodes" if named_machine.processors == len(cluster.nodes) else "cores"
        return named_machine, f"the {unit} of {Path(cluster.source).name}"
    return None


def _stated_machine(every: list[Workload], request: ReplayRequest, kinds: list[Format]) -> tuple[Machine, str]:
    """Return the machine that the traces state, and what states its size. Raises ConfigError."""
    rows = list(zip(every, kinds, request.workloads, strict=True))
    sizes = [(workload.machine, kind.size, path.name) for workload, kind, path in rows if workload.machine is not None]
    if not sizes:
        key = next(
            (kind.size for workload, kind, _ in rows if workload.dependencies is None or "preceding" in workload.more),
            "",
        )
        problem, allowed = "missing: the size of the machine", "--procs, or --cluster"
        raise ConfigError(_names(request.workloads), key, problem, f"that, or {allowed}" if key else allowed)
    bare = Machine(max(sizes)[0], powers=assumed_powers(request.policy.policy))
    return bare, f"{sizes[0][1]} of {_names(name for *_, name in sizes)}"


def _names(paths: Iterable[object]) -> str:
    return ", ".join(map(str, paths))

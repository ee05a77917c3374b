"""A replay as the command line requests it, and the files that it needs.

Rule: a wrong option is a usage error and is found before any file is read. A wrong machine is found before
the traces are read, and wrong jobs before the kernels of the replay are compiled or loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formats.replays.workloads import Format, as_submitted, format_of
from ...formats.text import counted
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import Machine, machine_of, speeds_of, storages_of
from ...simulate.model.network import SOLVERS
from ...simulate.model.workload import Workload, joined
from ...simulate.queue_policies.policy_facts import spec_of
from ...simulate.replay.replay import LARGEST, assumed_powers
from ...simulate.world.known_run_times import WALLTIME
from ..inputs import Profiles, check_files, read_machine
from ..kernel_loading import load_kernels
from ..streams import warn
from .replay_options import JobOptions, MachineOptions

if TYPE_CHECKING:
    from ...daemon.trace_run import DaemonReplay
    from ...profiles.prediction.online_run_times import OnlineRunTimes
    from ...simulate.replay.replay import Replayed


class Decider(ABC):
    """The part of a replay that decides: a queue policy, the service, or a decision component of Batsim."""

    #: The queue policy; None = another kind of decider.
    policy: Any = None
    #: Where the decider was read from, if from a file.
    file: Path | None = None
    #: What it knows of run times, one of `known_run_times.RUNTIMES`.
    runtimes: str = WALLTIME
    #: Simulated seconds of each decision; None = as long as it really takes.
    decision_time: float | None = 0.0
    seed: int = 0
    #: The summary also states a decision time of 0.
    is_timed: bool = True
    #: Nodes take as many threads as their oversubscription says.
    oversubscribes: bool = False

    @property
    @abstractmethod
    def text(self) -> str:
        """The name in summaries."""

    def check_options(self, machine: MachineOptions) -> None:  # noqa: B027
        """Refuse options that do not go together. Raises typer.BadParameter."""

    def check_machine(self, machine: Machine) -> None:  # noqa: B027
        """Refuse a machine on which it cannot decide. Raises ConfigError."""

    def prepare(self, jobs: Workload, machine: Machine) -> None:  # noqa: B027
        """Refuse jobs about which it cannot decide, and load the kernels of the replay. Raises ConfigError."""

    def unknown(self, jobs: Workload, machine: Machine) -> tuple[str, ...]:
        """Return sentences about what a site of Slurm and these jobs do not say of each other."""
        return ()

    def storages(self, names: Any) -> Any:
        """Return the storages to which the jobs of a Batsim workload may refer."""
        return names

    @abstractmethod
    def replay(
        self, request: ReplayRequest, replay_input: ReplayInput, predictor: OnlineRunTimes | None,
        progress: Callable[[float], None], *, log_power: bool,
    ) -> tuple[Replayed, DaemonReplay | None]:  # fmt: skip
        """Replay the jobs; also return what the daemon did. Raises ConfigError, PolicyError.

        Args:
            request: the replay.
            replay_input: what was read for it.
            predictor: predicts run times, if `runtimes` says so.
            progress: called with the simulated time.
            log_power: keep each change of power.
        """


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A replay: which jobs, on which machine, and what decides. Raises typer.BadParameter."""

    jobs: JobOptions
    machine: MachineOptions
    decider: Decider

    def __post_init__(self) -> None:
        self.decider.check_options(self.machine)


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """The input of a replay.

    Args:
        jobs: the selected jobs.
        machine: where they run.
        size_from: what states the size of the machine, for people.
    """

    jobs: Workload
    machine: Machine
    size_from: str


def read_replay(request: ReplayRequest) -> ReplayInput:
    """Read all files of a replay and load its kernels. Raises ConfigError, OSError."""
    files, decider = request.jobs.traces, request.decider
    check_files(*files, request.machine.cluster)
    kinds = [format_of(path) for path in files]
    cluster = read_machine(request.machine.cluster)
    stated = _given_machine(request, cluster)
    if stated is not None:
        decider.check_machine(stated[0])
    load_kernels(*sorted({kernel for kind in kinds for kernel in kind.kernels}))
    of_machine = {"speeds": speeds_of(cluster), "storages": decider.storages(storages_of(cluster))}
    settings = of_machine | {"skip_invalid": request.jobs.skip_invalid, "profiles": Profiles(request.jobs.store)}
    recorded = [kind.read(path, **settings) for path, kind in zip(files, kinds, strict=True)]
    warn(*(doubt for workload in recorded for doubt in workload.doubts))
    recorded = [as_submitted(workload, natural=request.jobs.natural) for workload in recorded]
    jobs = request.jobs.selection.of(joined(recorded))
    machine, size_from = stated or _stated_machine(recorded, request, kinds)
    if stated is None:
        decider.check_machine(machine)
    if not len(jobs):
        losses = f"; left out: {counted(jobs.left_out)}" if jobs.left_out else ""
        raise ConfigError(_names(files), "", f"no jobs to replay{losses}")
    decider.prepare(jobs, machine)
    return ReplayInput(jobs, machine, size_from)


def _given_machine(request: ReplayRequest, cluster: Cluster | None) -> tuple[Machine, str] | None:
    """Return the machine of the options, and what states its size; None = the traces state it."""
    choice = request.machine
    if choice.procs is not None:
        return Machine(choice.procs, powers=assumed_powers(request.decider.policy)), "--procs"
    if cluster is not None:
        if request.decider.oversubscribes and cluster.oversubscription != 1.0:
            threads = int(min(sum(cluster.thread_limits), LARGEST))
            named_machine = Machine(threads, powers=None, cluster=cluster)
            return named_machine, f"the threads that the nodes of {Path(cluster.source).name} take"
        solver = choice.network_solver or SOLVERS[0]
        named_machine = machine_of(cluster, whole_nodes=choice.resource == "node", solver=solver)
        unit = "nodes" if named_machine.processors == len(cluster.nodes) else "cores"
        return named_machine, f"the {unit} of {Path(cluster.source).name}"
    site_machine = spec_of(request.decider.policy).machine
    return None if site_machine is None else (site_machine, f"the CPUs of {request.decider.text}")


def _stated_machine(every: list[Workload], request: ReplayRequest, kinds: list[Format]) -> tuple[Machine, str]:
    """Return the machine that the traces state, and what states its size. Raises ConfigError."""
    rows = list(zip(every, kinds, request.jobs.traces, strict=True))
    sizes = [(workload.machine, kind.size, path.name) for workload, kind, path in rows if workload.machine is not None]
    if not sizes:
        key = next(
            (kind.size for workload, kind, _ in rows if workload.dependencies is None or "preceding" in workload.more),
            "",
        )
        problem, allowed = "missing: the size of the machine", "--procs, or --cluster"
        raise ConfigError(_names(request.jobs.traces), key, problem, f"that, or {allowed}" if key else allowed)
    bare = Machine(max(sizes)[0], powers=assumed_powers(request.decider.policy))
    return bare, f"{sizes[0][1]} of {_names(name for *_, name in sizes)}"


def _names(paths: Iterable[object]) -> str:
    return ", ".join(map(str, paths))

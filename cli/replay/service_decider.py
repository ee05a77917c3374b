"""The service as the decider of a replay: its control loop decides.

Rule: only those keys of the configuration that influence decisions are used. The guide on replays lists them.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...adapters.simulated import SimulatedAdapter
from ...daemon.assembly import guard_of, options_of
from ...daemon.config import DaemonConfig, check_objective, load_config, load_policy_of, with_policy
from ...daemon.report.delays import Delays, read_delays
from ...daemon.trace_run import DaemonReplay, DrawnDelays, TraceJobs, TraceRun
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import Machine, powers_of
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.policy_specs import COMPONENT, parts_of
from ...simulate.replay.replay import Replayed
from ...simulate.world.known_run_times import WALLTIME, RunTimePredictor
from ...simulate.world.node_allocation import refuse_any_threads
from ..kernel_loading import load_simulator
from ..streams import note, print_diagnostic
from ..usage_errors import bad
from .replay_options import MachineOptions, check_run_times
from .replay_request import Decider, ReplayInput, ReplayRequest

#: Errors of the daemon that are shown when they happen; the summary counts all of them.
SHOWN_ERRORS = 3


class ServiceDecider(Decider):
    """The service.

    Args:
        config: the configuration.
        file: of the configuration; None: it is the default, with one mapping policy.
        runtimes: what its planner may know of run times, one of `known_run_times.RUNTIMES`.
        decision_time: simulated seconds that each plan takes; None: as long as it really takes.

    Raises:
        typer.BadParameter: `runtimes` is wrong.
    """

    oversubscribes = True

    def __init__(
        self, config: DaemonConfig, file: Path | None = None, runtimes: str = WALLTIME,
        decision_time: float | None = 0.0,
    ) -> None:  # fmt: skip
        check_run_times(runtimes)
        self.config, self.file, self.runtimes, self.decision_time = config, file, runtimes, decision_time
        self.seed = config.seed

    @classmethod
    def configured(
        cls, file: Path, runtimes: str = WALLTIME, decision_time: float | None = 0.0, policy: str | None = None
    ) -> ServiceDecider:
        """Return the service with the configuration in a file, or with another policy; for the others, see the class.

        Raises:
            ConfigError: the configuration is wrong, or its policy cannot be loaded.
        """
        config = with_policy(load_config(file), policy)
        if config.policy.startswith(COMPONENT):
            problem = f"{config.policy} decides about real jobs, in real time"
            raise ConfigError(str(file), "policy", problem, "another policy; or the component in `pilotfish batsim`")
        if (limit := parts_of(config.policy).limit) is not None:
            limit.refuse_dates()
        load_policy_of(config, file)
        return cls(config, file, runtimes, decision_time)

    @classmethod
    def mapping(
        cls, policy: str, cluster: Path, seed: int, runtimes: str = WALLTIME, decision_time: float | None = 0.0
    ) -> ServiceDecider:
        """Return the service with its defaults and a mapping policy, which plans the whole queue at a time.

        Args:
            policy: name of the mapping policy.
            cluster: file of the nodes.
            seed: of random choices.
            runtimes: see the class.
            decision_time: see the class.

        Raises:
            ConfigError: the policy cannot be loaded.
        """
        config = DaemonConfig(cluster=str(cluster.absolute()), policy=policy, seed=seed)
        load_policy_of(config, cluster)
        return cls(config, None, runtimes, decision_time)

    @property
    def text(self) -> str:
        """The name in summaries."""
        return f"daemon:{self.config.policy}" if self.file else self.config.policy

    def check_options(self, machine: MachineOptions) -> None:
        """See Decider."""
        if not machine.has_cores:
            raise bad("--policy", f"{self.text} chooses among nodes (needed: --cluster, resource core)")

    def check_machine(self, machine: Machine) -> None:
        """See Decider."""
        self._check_nodes(_nodes_of(machine))

    def prepare(self, jobs: Workload, machine: Machine) -> None:
        """See Decider."""
        self._check_jobs(jobs, _nodes_of(machine))
        load_simulator()

    def _check_nodes(self, cluster: Cluster) -> None:
        """Refuse nodes on which it cannot be replayed. Raises ConfigError."""
        refuse_any_threads(cluster)
        if parts_of(self.config.policy).switches:
            _check_switching(self.config.policy, cluster)

    def _check_jobs(self, jobs: Workload, cluster: Cluster) -> None:
        """Refuse jobs that it cannot plan, and an objective that these nodes do not allow. Raises ConfigError."""
        begin = float(jobs.submit_time[0]) if len(jobs) else 0.0
        check_objective(self.config, self.file or cluster.source, cluster, begin)
        TraceJobs.refuse(jobs, self.runtimes)

    def replay(
        self, request: ReplayRequest, replay_input: ReplayInput, predictor: RunTimePredictor | None,
        progress: Callable[[float], None], *, log_power: bool,
    ) -> tuple[Replayed, DaemonReplay]:  # fmt: skip
        """See Decider."""
        outcome = self.run(replay_input.jobs, _nodes_of(replay_input.machine), progress, predictor)
        return outcome.replayed, outcome

    def run(
        self, jobs: Workload, cluster: Cluster, progress: Callable[[float], None] = lambda now: None,
        predictor: RunTimePredictor | None = None,
    ) -> DaemonReplay:  # fmt: skip
        """Replay a workload under the control loop. Raises ConfigError.

        Args:
            jobs: the workload.
            cluster: the nodes.
            progress: called with the simulated time.
            predictor: predicts the run times, if the planner knows predictions.
        """
        self._check_nodes(cluster)
        self._check_jobs(jobs, cluster)
        trace_jobs = TraceJobs(jobs, cluster, self.runtimes, predictor)
        measured = read_delays(self.config.delays) if self.file else Delays()
        delays = DrawnDelays(measured, self.seed) if measured.complete else None
        adapter = SimulatedAdapter(cluster, truth=trace_jobs.truth, delays=delays.of_run if delays else None)
        run = TraceRun(
            trace_jobs, adapter, options_of(self.config), guard_of(self.config),
            recheck_s=max(1.0, self.config.cycle_seconds), decision_time=self.decision_time, delays=delays,
            switched=adapter.power.switched,
        )  # fmt: skip
        with _errors_shown():
            return run.run(progress=progress, clock=time.perf_counter)


def _nodes_of(machine: Machine) -> Cluster:
    assert machine.cluster is not None, "the service plans on nodes"
    return machine.cluster


def _check_switching(policy: str, cluster: Cluster) -> None:
    """Check that the nodes can be switched, and are equal, so that their energy is known. Raises ConfigError."""
    problem = f"{policy} switches nodes, and "
    if len(kinds := {powers_of(kind, kind.cores) for kind in cluster.types}) > 1:
        raise ConfigError(cluster.source, "node_types", f"{problem}these differ in power", "nodes of equal power")
    (powers,) = kinds
    if powers is None or powers.off is None:
        where, allowed = f"node_types.{cluster.types[0].name}.power", "off, switch_off and switch_on"
        raise ConfigError(cluster.source, where, f"{problem}their power off or being switched is not known", allowed)


class _FirstErrors(logging.Handler):
    """Prints the first errors of the daemon, with their tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._error_budget = SHOWN_ERRORS

    def emit(self, record: logging.LogRecord) -> None:
        if self._error_budget > 0:
            self._error_budget -= 1
            note(record.getMessage())
            if record.exc_info:
                print_diagnostic(*"".join(traceback.format_exception(record.exc_info[1])).splitlines())


@contextmanager
def _errors_shown() -> Iterator[None]:
    """Print the first errors in the daemon's log, and nothing else of it."""
    log, handler = logging.getLogger("pilotfish"), _FirstErrors()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)

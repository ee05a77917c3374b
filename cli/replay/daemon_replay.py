"""A replay under the control loop of the service, whose configuration takes the place of a queue policy.

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
from ...daemon.config import DaemonConfig, check_objective, load_config, load_policy_of
from ...daemon.report.delays import Delays, read_delays
from ...daemon.trace_run import DaemonReplay, DrawnDelays, TraceJobs, TraceRun
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import powers_of
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.policy_specs import COMPONENT, limit_of, switches_nodes
from ...simulate.world.known_run_times import RunTimePredictor
from ...simulate.world.node_allocation import refuse_any_threads
from ..streams import note, print_diagnostic
from .daemon_policy import DaemonPolicy

#: Errors of the daemon that are shown when they happen; the summary counts all of them.
SHOWN_ERRORS = 3


def read_daemon(file: Path, runtimes: str) -> DaemonPolicy:
    """Read the configuration of a replay.

    Args:
        file: of the configuration.
        runtimes: what the planner may know of run times, one of `known_run_times.RUNTIMES`.

    Raises:
        ConfigError: the configuration is wrong, or its policy cannot be loaded.
    """
    config = load_config(file)
    if config.policy.startswith(COMPONENT):
        problem = f"{config.policy} decides about real jobs, in real time"
        raise ConfigError(str(file), "policy", problem, "another policy; or --edc with the component, without --daemon")
    if (limit := limit_of(config.policy)) is not None:
        limit.refuse_dates()
    load_policy_of(config, file)
    return DaemonPolicy(file, config, runtimes)


def with_policy(policy: str, cluster: Path, seed: int, runtimes: str) -> DaemonPolicy:
    """Return the service with its defaults and a mapping policy, which plans the whole queue at a time.

    Args:
        policy: name of the mapping policy.
        cluster: file of the nodes.
        seed: of random choices.
        runtimes: what the planner may know of run times, one of `known_run_times.RUNTIMES`.

    Raises:
        ConfigError: the policy cannot be loaded.
    """
    config = DaemonConfig(cluster=str(cluster.absolute()), policy=policy, seed=seed)
    load_policy_of(config, cluster)
    return DaemonPolicy(None, config, runtimes)


def replay_daemon(
    policy: DaemonPolicy, workload: Workload, cluster: Cluster, progress: Callable[[float], None],
    predictor: RunTimePredictor | None = None, decision_time: float | None = 0.0,
) -> DaemonReplay:  # fmt: skip
    """Replay a workload under the daemon. Raises ConfigError.

    Args:
        policy: the daemon.
        workload: the jobs.
        cluster: the nodes.
        progress: called with the simulated time.
        predictor: predicts the run times, if the policy says that they are predicted.
        decision_time: simulated seconds that each plan takes; None: as long as it really takes.
    """
    config = policy.config
    refuse_nodes(policy, cluster)
    refuse_trace(policy, workload, cluster)
    jobs = TraceJobs(workload, cluster, policy.runtimes, predictor)
    measured = read_delays(config.delays) if policy.file else Delays()
    delays = DrawnDelays(measured, config.seed) if measured.complete else None
    adapter = SimulatedAdapter(cluster, truth=jobs.truth, delays=delays.of_run if delays else None)
    run = TraceRun(
        jobs, adapter, options_of(config), guard_of(config), recheck_s=max(1.0, config.cycle_seconds),
        decision_time=decision_time, delays=delays, switched=adapter.power.switched,
    )  # fmt: skip
    with _errors_shown():
        return run.run(progress=progress, clock=time.perf_counter)


def refuse_nodes(policy: DaemonPolicy, cluster: Cluster) -> None:
    """Refuse nodes on which the daemon cannot be replayed. Raises ConfigError."""
    refuse_any_threads(cluster)
    if switches_nodes(policy.config.policy):
        _check_switching(policy.config.policy, cluster)


def refuse_trace(policy: DaemonPolicy, workload: Workload, cluster: Cluster) -> None:
    """Refuse jobs that the daemon cannot plan, and an objective that these nodes do not allow. Raises ConfigError.

    Args:
        policy: the daemon.
        workload: the jobs.
        cluster: the nodes.
    """
    begin = float(workload.submit_time[0]) if len(workload) else 0.0
    check_objective(policy.config, policy.file or cluster.source, cluster, begin)
    TraceJobs.refuse(workload, policy.runtimes)


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

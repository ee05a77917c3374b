"""`pilotfish replay`: replay a trace under the control loop of the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...simulate.world.known_run_times import WALLTIME
from .. import options
from ..inputs import config_file
from ..option_groups import grouped
from .replay_options import JobOptions, MachineOptions, OutputOptions, check_run_times, decision_seconds
from .replay_report import run_replay
from .replay_request import ReplayRequest


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The service that decides, its nodes, and what it knows."""

    HEADING: ClassVar = "Service"
    config: options.ConfigFile = None
    cluster: options.ClusterFile = None
    runtimes: options.RunTimes = WALLTIME
    decision_time: options.DecisionTime = "ignore"

    def __post_init__(self) -> None:
        check_run_times(self.runtimes)
        decision_seconds(self.decision_time)


@grouped
def replay(service: ServiceOptions, jobs: JobOptions, output: OutputOptions) -> None:
    """Replay traces of jobs under the control loop of the service: what would the service have done?

    The configuration says what decides: policy, objective, budget, guard, seed. The nodes are those of its cluster
    file, unless --cluster names another one. A virtual clock takes the place of the real one.

    \b
    Examples:
      pilotfish replay trace.swf
      pilotfish replay trace.swf --config service.yaml --out live
      pilotfish replay trace.swf --config service.yaml --runtimes predicted
    """
    from .service_decider import ServiceDecider

    seconds = decision_seconds(service.decision_time)
    decider = ServiceDecider.configured(config_file(service.config), service.runtimes, seconds)
    machine = MachineOptions(service.cluster or Path(decider.config.cluster))
    run_replay(ReplayRequest(jobs, machine, decider), output)

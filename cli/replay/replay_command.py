"""`pilotfish replay`: replay a trace under the control loop of the service."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from ...simulate.world.known_run_times import WALLTIME
from .. import options
from ..inputs import config_file
from ..option_groups import grouped
from ..options import option
from ..usage_errors import bad
from .replay_options import JobOptions, MachineOptions, OutputOptions, check_run_times, decision_seconds
from .replay_report import run_replay
from .replay_request import ReplayRequest


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The service that decides, its nodes, and what it knows."""

    HEADING: ClassVar = "Service"
    config: options.ConfigFile = None
    policy: Annotated[
        str | None, option("POLICY", "Decides instead of the configured one; `pilotfish policies` lists them.")
    ] = None
    cluster: options.ClusterFile = None
    runtimes: options.RunTimes = WALLTIME
    decision_time: options.DecisionTime = "ignore"

    def __post_init__(self) -> None:
        check_run_times(self.runtimes)
        decision_seconds(self.decision_time)


@grouped
def replay(service: ServiceOptions, jobs: JobOptions, output: OutputOptions) -> int:
    """Replay traces, or the record of a service, under the service's control loop: what does it decide?

    The configuration says what decides: policy, objective, budget, guard, seed. The nodes are those of its cluster
    file, unless --cluster names another one. A virtual clock takes the place of the real one.

    A record is the folder in which a service kept what it saw (`record` in its configuration). Without --config it is
    played as it was, and the exit code is 1 if something else is decided now. With --policy, another policy decides.

    \b
    Examples:
      pilotfish replay trace.swf
      pilotfish replay trace.swf --config service.yaml --out live
      pilotfish replay /var/lib/pilotfish/record
      pilotfish replay /var/lib/pilotfish/record --policy easy:order=sjf
    """
    if len(jobs.traces) == 1 and jobs.traces[0].is_dir():
        return _replay_record(service, jobs, output)
    from .service_decider import ServiceDecider

    seconds = decision_seconds(service.decision_time)
    decider = ServiceDecider.configured(config_file(service.config), service.runtimes, seconds, service.policy)
    machine = MachineOptions(service.cluster or Path(decider.config.cluster))
    run_replay(ReplayRequest(jobs, machine, decider), output)
    return 0


def _replay_record(service: ServiceOptions, jobs: JobOptions, output: OutputOptions) -> int:
    """Play a record. Raises typer.BadParameter for options that are of no use for it."""
    from ...daemon.config import load_config
    from .record_replay import replay_record

    allowed = asdict(JobOptions(jobs.traces)) | asdict(OutputOptions(as_json=output.as_json))
    allowed |= asdict(ServiceOptions(service.config, service.policy))
    for name, value in (asdict(jobs) | asdict(output) | asdict(service)).items():
        if value != allowed[name]:
            problem = (
                "of no use for a record, which has its jobs, nodes and times (allowed: --config, --policy, --json)"
            )
            raise bad(f"--{name.replace('_', '-')}", problem)
    config = None if service.config is None else load_config(config_file(service.config))
    return replay_record(jobs.traces[0], config, service.policy, as_json=output.as_json)

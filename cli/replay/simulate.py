"""`pilotfish simulate`: replay a trace under a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...formats.entry_points import spelled_out
from ...simulate.queue_policies.policy_specs import ON_NODES, is_queue_policy
from ...simulate.world.known_run_times import WALLTIME
from .. import options
from ..option_groups import grouped
from ..options import flag
from ..usage_errors import bad
from .queue_decider import QueueDecider
from .replay_options import JobOptions, MachineOptions, OutputOptions, decision_seconds
from .replay_report import run_replay
from .replay_request import Decider, ReplayRequest


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The policy that decides, and what it knows."""

    HEADING: ClassVar = "Policy"
    policy: options.QueuePolicy = "easy"
    runtimes: options.RunTimes = WALLTIME
    decision_time: options.DecisionTime = "ignore"
    seed: options.Seed = 0
    explain_engine: Annotated[
        bool, flag("--explain-engine", "Print which engine replays the traces, and why not a compiled one.")
    ] = False

    def decider(self, machine: MachineOptions) -> Decider:
        """Return what decides on a machine. Raises typer.BadParameter, ConfigError, PolicyError, OSError."""
        if self._is_queue_policy() or self.policy not in options.mapping_policy_names():
            return QueueDecider(
                self.policy, self.runtimes, self.decision_time, self.seed, contention=machine.contention,
                explains=self.explain_engine,
            )  # fmt: skip
        if self.explain_engine:
            raise bad("--explain-engine", f"{self.policy} plans the queue of a service, which has no other engine")
        if machine.cluster is None:
            raise bad("--policy", f"{self.policy} chooses among nodes (needed: --cluster, resource core)")
        from .service_decider import ServiceDecider

        seconds = decision_seconds(self.decision_time)
        return ServiceDecider.mapping(self.policy, machine.cluster, self.seed, self.runtimes, seconds)

    def _is_queue_policy(self) -> bool:
        """Return whether the policy replays traces by itself; the names of others take long to import."""
        return self.policy in ON_NODES or is_queue_policy(spelled_out(self.policy))


@grouped
def simulate(policy: PolicyOptions, jobs: JobOptions, machine: MachineOptions, output: OutputOptions) -> None:
    """Replay traces of jobs under a policy, and print waiting time, slowdown, utilisation and energy.

    The replay is exact: at each instant all ends come first, then all submissions, then one pass of the policy. Jobs
    get the processors with the lowest numbers. Several traces are joined. A job of a workflow without a
    profile has that of its past runs, from the profile store. `pilotfish replay` lets the service decide, `pilotfish
    batsim` a decision component of Batsim.

    \b
    Examples:
      pilotfish simulate trace.swf.gz
      pilotfish simulate trace.swf --procs 1024 -p easy:order=sjf --out run
      pilotfish simulate trace.swf -c lab.yaml -p easy:share=1.1
      pilotfish simulate trace.swf --select from=86400,until=172800,load=1.2
    """
    run_replay(ReplayRequest(jobs, machine, policy.decider(machine)), output)

"""A queue policy as the decider of a replay: one of pilotfish, or of a user."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...formats.entry_points import spelled_out
from ...formats.user_policy import NamedPolicy, load_policy
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import Machine
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.policy_specs import (
    OnNodes,
    base_of,
    is_python_policy,
    needs_nodes,
    parse,
    parse_python_policy,
    text_of,
)
from ...simulate.replay.replay import Replayed, is_asked, refuse_jobs, refuse_machine, takes_time
from ...simulate.replay.worlds.any_policy import refuse_times, replay_under
from ...simulate.world.known_run_times import ACTUAL, PREDICTED, with_actual_walltimes
from ..kernel_loading import load_replay
from ..streams import print_policy_traceback
from ..usage_errors import bad
from .replay_options import MachineOptions, check_run_times, decision_seconds
from .replay_request import Decider, ReplayInput, ReplayRequest

if TYPE_CHECKING:
    from ...profiles.prediction.online_run_times import OnlineRunTimes


def named_policy(text: str, seed: int) -> NamedPolicy:
    """Return the queue policy that the value of --policy names.

    Args:
        text: its SPEC, or ./mine.py:Class.
        seed: of a user's policy.

    Raises:
        typer.BadParameter: the value is wrong.
        ConfigError, PolicyError, OSError: a user's own policy cannot be loaded.
    """
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


class QueueDecider(Decider):
    """A queue policy.

    Args:
        spec: its SPEC, or ./mine.py:Class.
        runtimes: what it knows of run times, one of `known_run_times.RUNTIMES`.
        deciding: simulated time of each decision: `ignore`, `measured`, or seconds.
        seed: of random choices.

    Raises:
        typer.BadParameter: an option has a wrong value.
        ConfigError, PolicyError, OSError: a user's own policy cannot be loaded.
    """

    def __init__(self, spec: str, runtimes: str, deciding: str, seed: int) -> None:
        check_run_times(runtimes)
        self._spec, self._deciding = spec, deciding
        self.runtimes, self.seed, self.decision_time = runtimes, seed, decision_seconds(deciding)
        self._named = named_policy(spec, seed)
        self.policy, self.file, self.is_timed = self._named.policy, self._named.file, not self._named.compiled
        self.oversubscribes = isinstance(base_of(self.policy), OnNodes)

    @property
    def text(self) -> str:
        """The name in summaries."""
        return self._named.text

    def check_options(self, machine: MachineOptions) -> None:
        """See Decider."""
        on_nodes = machine.contention or needs_nodes(self.policy)  # then any decision time will do
        if self._named.compiled and not on_nodes and not takes_time(self.policy, self.decision_time):
            allowed = "ignore or seconds; measured with ./mine.py:Class and --contention"
            problem = f"{self._deciding}, with {self.text}: it decides at once"
            raise bad("--decision-time", f"{problem} (allowed: {allowed})")
        if needs_nodes(self.policy) and not machine.has_cores:
            raise bad("--policy", f"{self._spec} chooses among nodes (needed: --cluster, resource core)")

    def refuse_machine(self, machine: Machine, cluster: Cluster | None, *, contention: bool) -> None:
        """See Decider."""
        refuse_machine(self.policy, machine, cluster, contention=contention)

    def refuse_jobs(self, jobs: Workload, machine: Machine, cluster: Cluster | None, *, contention: bool) -> None:
        """See Decider."""
        refuse_times(self.policy, jobs, self.runtimes, self.decision_time, contention=contention)
        known_jobs = with_actual_walltimes(jobs) if self.runtimes == ACTUAL else jobs
        refuse_jobs(self.policy, known_jobs, machine, cluster if contention or needs_nodes(self.policy) else None)

    def load_kernels(self, jobs: Workload, *, contention: bool) -> None:
        """See Decider."""
        predicted, networked = self.runtimes == PREDICTED, jobs.programs is not None
        rich = predicted or self.decision_time != 0.0 or jobs.dependencies is not None
        calls_python = is_asked(self.policy, self.decision_time, predicted=predicted, networked=networked)
        load_replay([None if calls_python else self.policy], networked=networked, rich=rich, contention=contention)

    def replay(
        self, request: ReplayRequest, replay_input: ReplayInput, predictor: OnlineRunTimes | None,
        progress: Callable[[float], None], *, log_power: bool,
    ) -> tuple[Replayed, None]:  # fmt: skip
        """See Decider."""
        return replay_under(
            self.policy, replay_input.jobs, replay_input.machine, replay_input.cluster, seed=self.seed,
            decision_time=self.decision_time, contention=request.machine.contention,
            run_times=predictor or self.runtimes, log_power=log_power, progress=progress, clock=time.perf_counter,
        ), None  # fmt: skip

"""A queue policy as the decider of a replay: one of pilotfish, or of a user."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...formats.entry_points import spelled_out
from ...formats.model_file import with_models
from ...formats.user_policy import NamedPolicy, load_policy
from ...simulate.errors import ConfigError
from ...simulate.model.machine import Machine
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.loaded_policies import SITE, is_python_policy, parse_python_policy
from ...simulate.queue_policies.policy_facts import is_built_in, spec_of
from ...simulate.queue_policies.policy_specs import parse, text_of
from ...simulate.replay.engines import Feature, engine_for, explain, features_of
from ...simulate.replay.replay import Replayed, check_machine, replay
from ...simulate.replay.replay_case import ReplayCase, ReplayOptions
from ...simulate.replay.requirements import check_jobs, check_times
from ...simulate.world.known_run_times import PREDICTED
from ..kernel_loading import load_kernels
from ..streams import note, print_policy_traceback
from ..usage_errors import bad, bad_value
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
        if text.startswith(SITE):
            from ...formats.site.site_policy_folder import policy_folder, read_slurm_policy

            configuration = policy_folder(text)[0] / "slurm.conf"
            return NamedPolicy(read_slurm_policy(text), text, configuration if configuration.is_file() else None)
        policy = with_models(parse(text))
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
        contention: jobs on one node slow each other down.
        explains: print which engine replays the traces.

    Raises:
        typer.BadParameter: an option has a wrong value.
        ConfigError, PolicyError, OSError: a user's own policy cannot be loaded.
    """

    def __init__(
        self, spec: str, runtimes: str, deciding: str, seed: int, *, contention: bool = False, explains: bool = False
    ) -> None:
        check_run_times(runtimes)
        self._spec, self._deciding, self._explains = spec, deciding, explains
        self.runtimes, self.seed, self.decision_time = runtimes, seed, decision_seconds(deciding)
        self._named = named_policy(spec, seed)
        self._options = ReplayOptions(seed, self.decision_time, contention, runtimes)
        self.policy, self.file = self._named.policy, self._named.file
        self.is_timed = not is_built_in(self.policy)
        self.oversubscribes = spec_of(self.policy).plain.family == "mapping"

    @property
    def text(self) -> str:
        """The name in summaries."""
        return self._named.text

    def check_options(self, machine: MachineOptions) -> None:
        """See Decider."""
        needs_nodes = spec_of(self.policy).needs_nodes
        on_nodes = machine.contention or needs_nodes  # then any decision time will do
        if not self.is_timed and not on_nodes and self.decision_time is None:
            allowed = "ignore or seconds; measured with ./mine.py:Class and --contention"
            problem = f"{self._deciding}, with {self.text}: it decides at once"
            raise bad("--decision-time", f"{problem} (allowed: {allowed})")
        if needs_nodes and not machine.has_cores:
            raise bad("--policy", f"{self._spec} chooses among nodes (needed: --cluster, resource core)")
        try:
            engine_for(self.policy, self._features())
        except ConfigError as error:
            raise bad_value("--policy", error) from None

    def _features(self) -> set[Feature]:
        """Return the features of the replay that follow from the options."""
        facts = {
            Feature.SHARED: self._options.contention,
            Feature.TAKES_TIME: self.decision_time != 0.0,
            Feature.PREDICTED: self.runtimes == PREDICTED,
        }
        return {feature for feature, holds in facts.items() if holds}

    def check_machine(self, machine: Machine) -> None:
        """See Decider."""
        check_machine(self.policy, machine, contention=self._options.contention)

    def prepare(self, jobs: Workload, machine: Machine) -> None:
        """See Decider."""
        case = ReplayCase(jobs, machine, self.policy, self._options)
        check_times(case)
        check_jobs(case)
        if self._explains:
            note(explain(case))
        note(*self.unknown(jobs, machine))
        load_kernels(*engine_for(self.policy, features_of(case)).kernels)

    def unknown(self, jobs: Workload, machine: Machine) -> tuple[str, ...]:
        """See Decider."""
        if spec_of(self.policy).machine is None:
            return ()
        from ...simulate.slurm.trace_jobs import site_of_trace

        return site_of_trace(self.policy, jobs, machine).unknown

    def replay(
        self, request: ReplayRequest, replay_input: ReplayInput, predictor: OnlineRunTimes | None,
        progress: Callable[[float], None], *, log_power: bool,
    ) -> tuple[Replayed, None]:  # fmt: skip
        """See Decider."""
        options = replace(
            self._options, run_times=predictor or self.runtimes, log_power=log_power, progress=progress,
            clock=time.perf_counter,
        )  # fmt: skip
        return replay(replay_input.jobs, replay_input.machine, self.policy, options), None

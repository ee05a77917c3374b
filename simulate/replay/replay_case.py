"""The options of a replay, and the case that an engine gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from ..errors import ConfigError
from ..model.cluster import Cluster
from ..model.intervals import Interval
from ..model.machine import Machine, MixedPowers, Powers
from ..model.network import Network
from ..model.workload import Workload
from ..queue_policies.policy_facts import spec_of
from ..wording import count
from ..world.known_run_times import PREDICTED, WALLTIME, Predictions, RunTimePredictor

if TYPE_CHECKING:
    from ..world.world_parts import Part


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a replay.

    Args:
        seed: seed of random choices.
        decision_time: simulated seconds that each decision takes, see `world.drive`. None: as long as the call took by
            `clock`; not for a built-in policy on numbered resources.
        contention: jobs on one node slow each other down, also under a queue policy; the machine must have nodes.
        run_times: what the policy may know of them: `walltime`, `actual`, or a predictor.
        log_power: keep the power over time of jobs with programs, for `energy.track`; without, they draw their mean.
        parts: further parts of the world, see `world_parts`; with them, a built-in policy decides in Python.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.
    """

    seed: int = 0
    decision_time: float | None = 0.0
    contention: bool = False
    run_times: str | RunTimePredictor = WALLTIME
    log_power: bool = False
    parts: Sequence[Part] = ()
    progress: Callable[[float], None] = field(default=lambda now: None)
    clock: Callable[[], float] = field(default=lambda: 0.0)

    @property
    def knows(self) -> str:
        """Return what the policy knows of run times, one of `known_run_times.RUNTIMES`."""
        return self.run_times if isinstance(self.run_times, str) else PREDICTED


class ReplaySettings(TypedDict, total=False):
    """Arguments of a replay by name: the fields of `ReplayOptions`, and of a `Machine` where that is only a number."""

    seed: int
    decision_time: float | None
    contention: bool
    run_times: str | RunTimePredictor
    log_power: bool
    parts: Sequence[Part]
    progress: Callable[[float], None]
    clock: Callable[[], float]
    groups: Sequence[Interval]
    powers: Powers | MixedPowers | None
    network: Callable[[], Network] | None


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """Jobs, a machine, a policy and options: what an engine replays."""

    jobs: Workload
    machine: Machine
    policy: Any  # a `PolicySpec`, or a `QueuePolicy`
    options: ReplayOptions = ReplayOptions()

    @property
    def shared(self) -> bool:
        """Return whether jobs share nodes."""
        return self.options.contention or spec_of(self.policy).needs_nodes

    @property
    def cluster(self) -> Cluster:
        """Return the nodes of the machine. Raises ConfigError if it has none."""
        if self.machine.cluster is None:
            raise ConfigError("machine", "", f"{count(self.machine.processors, 'resource')}", "the nodes of a cluster")
        return self.machine.cluster

    def predictions(self) -> Predictions | None:
        """Return new predictions of the run times; None if the policy knows walltimes or run times."""
        run_times = self.options.run_times
        return None if isinstance(run_times, str) else Predictions(run_times, self.jobs)

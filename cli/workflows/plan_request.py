"""A plan as the command line requests it: options that are checked together, and the calls that they lead to.

Rule: a wrong option is a usage error and is found before any file is read. A plan that is impossible is refused
before the simulator is compiled or loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan
from ..kernel_loading import load_simulator
from ..streams import print_policy_traceback
from ..usage_errors import bad, check_positive, not_among, value_of

if TYPE_CHECKING:
    from ...daemon.planning.problem import Options
    from ...simulate.model.objective import Objective
    from ...simulate.planning.stochastic import Replicated


@dataclass
class PlanRequest:
    """Options of a plan, checked as the request is made.

    Args:
        policy: name of a mapping policy, or SPEC of a queue policy.
        goal: what the search minimises, as it was written.
        seed: of all random choices.
        budget: simulations of the search; None = by the size of the workflow.
        time_limit: seconds of the search, above 0; None = no limit.
        replicates: draws of stochastic demands; None = one plan of the means.

    Raises:
        typer.BadParameter: an option has a wrong value.
        ConfigError, PolicyError, OSError: a policy of the user's own cannot be loaded.
    """

    policy: str
    goal: str
    seed: int
    budget: int | None
    time_limit: float | None
    replicates: int | None = None
    objective: Objective = field(init=False)

    def __post_init__(self) -> None:
        from ...formats.entry_points import register_mapping_policy
        from ...simulate.model.objective import Objective
        from ...simulate.planning.planner import POLICIES
        from ..options import planning_policy_names

        try:
            with print_policy_traceback():
                register_mapping_policy(self.policy, renew=True)
        except ConfigError as error:
            if error.source != "policy":
                raise
            problem = f"{error.key}: {error.problem} (allowed: {error.allowed})".removeprefix(": ")
            raise bad("--policy", problem) from None
        if self.policy not in POLICIES:
            raise not_among("--policy", self.policy, "a policy", (*planning_policy_names(), "./mine.py:Class"))
        check_positive("--time-limit", self.time_limit)
        with value_of("--objective"):
            self.objective = Objective.parse(self.goal)

    @property
    def service_options(self) -> Options:
        """The same options for the planner of the service."""
        from ...daemon.planning.problem import WINDOW, Options

        return Options(self.policy, self.goal, self.seed, self.budget, self.time_limit, window=WINDOW)

    def scores(self, plans: Sequence[Plan]) -> list[float]:
        """Return the objective's value of each plan, lower is better; a mix is relative to the best of each part."""
        energies = [0.0 if plan.energy_j is None else plan.energy_j for plan in plans]
        reference = (min(plan.makespan for plan in plans) or 1.0, min(energies) or 1.0)
        return [
            self.objective.value(plan.makespan, energy, reference) for plan, energy in zip(plans, energies, strict=True)
        ]

    def plan(self, workflow: Workflow, cluster: Cluster, policy: str | None = None) -> Plan:
        """Plan as requested, or with another policy; the time limit starts once the simulator is loaded."""
        from ...simulate.planning.planner import plan

        self.check(workflow, cluster, policy)
        load_simulator()
        began = time.perf_counter()
        with print_policy_traceback():
            planned = plan(workflow, cluster, seed=self.seed, **self._options(policy))
        return replace(planned, simulated_in=time.perf_counter() - began)

    def replicated(self, workflow: Workflow, cluster: Cluster) -> Replicated:
        """Plan the requested number of draws of the workflow; the time limit starts once the simulator is loaded."""
        from ...simulate.planning.stochastic import replicate

        self.check(workflow, cluster)
        load_simulator()
        began = time.perf_counter()
        with print_policy_traceback():
            drawn = replicate(workflow, cluster, self.replicates or 1, self.seed, **self._options(None))
        return replace(drawn, plan=replace(drawn.plan, simulated_in=time.perf_counter() - began))

    def check(self, workflow: Workflow, cluster: Cluster, policy: str | None = None) -> None:
        """Refuse what cannot be planned; nothing is compiled for that.

        Args:
            workflow: to be planned.
            cluster: where it is to run.
            policy: instead of the requested one.

        Raises:
            typer.BadParameter: a limit of power or energy is impossible on these nodes.
            ConfigError, InvalidJobError: see `check_plan`.
        """
        from ...simulate.planning.planner import check_plan
        from ...simulate.queue_policies.energy.kept_limit import refuse_limit

        with value_of("--policy"):
            refuse_limit(policy or self.policy, cluster, time.time())
        check_plan(workflow, cluster, policy or self.policy, self.objective)

    def _options(self, policy: str | None) -> dict[str, Any]:
        return {
            "policy": policy or self.policy,
            "objective": self.objective,
            "budget": self.budget,
            "should_stop": _deadline(self.time_limit),
            "now": time.time(),
        }


def _deadline(limit: float | None) -> Callable[[], bool] | None:
    if limit is None:
        return None
    end = time.monotonic() + limit
    return lambda: time.monotonic() >= end

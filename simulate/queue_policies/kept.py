"""The state that a queue policy of a service keeps from one plan to the next.

Rule: each plan has a policy of its own, because a plan runs ahead of what really happens. One object makes these
policies and keeps what was really observed; its state goes to the journal, so that a restart does not lose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..model.cluster import Cluster
from ..model.snapshot import Snapshot
from .interface import QueuePolicy
from .model_use import Doubt


@dataclass(frozen=True, slots=True)
class LimitNow:
    """A limit of power or energy at a moment.

    Args:
        begin: seconds of the service's clock; -inf: it has always held.
        end: seconds; inf: it has none.
        holds: whether the moment is between them.
        watts: a power cap, or what a budget gives out on average.
        balance_j: what has accrued of a budget less what was consumed by estimates, joules; None: it is a power cap.
        consumed_j: the latter since the begin; None: it is a power cap.
    """

    begin: float
    end: float
    holds: bool
    watts: float
    balance_j: float | None = None
    consumed_j: float | None = None


class Kept(Protocol):
    """Makes the policy of each plan; all times are seconds of the service's clock, the resource manager's.

    Derive from it to inherit the default.
    """

    def policy(self, seed: int, now: float, cluster: Cluster) -> QueuePolicy:
        """Return the policy of a plan, which sees times since `now`. Raises ConfigError.

        Args:
            seed: of random choices.
            now: when the plan begins, seconds.
            cluster: the nodes.
        """
        ...

    def observe(self, snapshot: Snapshot) -> None:
        """Take in a snapshot of the service; called once for each snapshot, before a plan is made from it."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what must survive a restart, as a JSON object."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the state that another object had, maybe of another policy; ignore what does not fit."""
        ...

    def decided(self) -> object:
        """Return decisions that are written to the journal as soon as they change. Default: None, nothing is."""
        return None

    def overruled(self) -> tuple[str, str] | None:
        """Return the SPEC of the policy that decides in place of it, and why. Default: None, it decides itself."""
        return None

    def doubt(self) -> Doubt:
        """Return why its baseline decided in the last plan. Default: it did not."""
        return Doubt()

    def limit(self) -> LimitNow | None:
        """Return the limit of power or energy at the last snapshot. Default: None, it has none."""
        return None

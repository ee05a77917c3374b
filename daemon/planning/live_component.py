"""The policy of the service, which may be a decision component of Batsim in a process of its own.

Rule: at most one session with a component goes on, that of the configured policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...formats.entry_points import register_mapping_policy
from ...simulate.model.snapshot import Snapshot
from ...simulate.queue_policies.policy_specs import COMPONENT
from ..report.cycle_report import Observer
from ..state.queue import JobEvent


def use_policy(name: str) -> bool:
    """Make the policy of the service known to the planner; read a user's file again. Return whether it is unproven.

    A session with another component ends; one with this component goes on.

    Args:
        name: name of a mapping policy, SPEC of a queue policy, or `batsim:` or `batsim5:` and the endpoint of a
            component.

    Raises:
        ConfigError, PolicyError, OSError: it cannot be loaded, or is not trusted.
    """
    from ...simulate.planning.mapping_policies import POLICIES

    end_components(but=name)
    if not name.startswith(COMPONENT):
        register_mapping_policy(name, service=True, renew=True)
    elif name not in _components():
        from ...adapters.batsim.live_policy import LivePolicy

        POLICIES[name] = LivePolicy.at(name)
    return getattr(POLICIES.get(name), "unproven", False)


def end_components(but: str = "") -> None:
    """End the sessions with all components, but that of one policy."""
    from ...simulate.planning.mapping_policies import POLICIES

    for name, component in _components().items():
        if name != but:
            component.close()
            del POLICIES[name]


def _components() -> dict[str, Any]:
    from ...simulate.planning.mapping_policies import POLICIES

    return {name: policy for name, policy in POLICIES.items() if name.startswith(COMPONENT)}


class ComponentEvents(Observer):
    """Lets a component know how jobs ended."""

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Note the jobs that have ended."""
        for component in _components().values():
            for event in events:
                if event.entry.state.ended:
                    component.note_end(event.entry.key, event.entry.state, event.entry.exit_code)

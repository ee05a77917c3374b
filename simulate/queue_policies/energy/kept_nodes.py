"""The nodes that a policy keeps switched off, in a service: the set outlives each plan, and a restart.

Rule: they are the nodes that the policy decided to keep off; one that another part of it, or the resource manager,
switched off is not. Without a state from before, `inertial` regards all nodes that are off as kept off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..policy_facts import PolicySpec
from .kept_limit import KeptLimit


class KeptNodes(KeptLimit):
    """Keeps them, and the limit of the policy, if it has one.

    Args:
        policy: the policy, which switches nodes.
    """

    def __init__(self, policy: PolicySpec) -> None:
        super().__init__(policy)
        self._off: frozenset[str] | None = None  # None: not known

    def off(self, asleep: Collection[str]) -> Collection[str]:
        """Return the names of the nodes that are kept off; `asleep`: those that are off now."""
        if self._off is None:
            keeper = self._policy.keeper
            self._off = frozenset(asleep if keeper is not None and keeper.by_load else ())
        return self._off

    def keep_off(self, names: Collection[str], among: Collection[str]) -> None:
        """Note which nodes are kept off from now on.

        Args:
            names: of these nodes.
            among: the nodes that the policy decided about; others stay as they were.
        """
        self._off = ((self._off or frozenset()) - {*among}) | {*names}

    def decided(self) -> object:
        """Return which nodes are kept off."""
        return self._off

    def state(self) -> dict[str, Any]:
        """Return these nodes by their names, and the state of the limit."""
        return super().state() | ({} if self._off is None else {"off": sorted(self._off)})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with these nodes, and with the limit."""
        super().restore({key: value for key, value in state.items() if key != "off"})
        self._off = frozenset(state["off"]) if "off" in state else None

"""Carrying out: live through the adapter, or written down only (dry run); the daemon above cannot tell which.

Rule: an action that failed is a value with the reason. Whether it happened all the same, the next snapshot
tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ..adapters.base import NOT_SENT, Adapter, AdapterError
from ..simulate.formats.hostlist import fold
from ..simulate.plan import Action, Cancel, PowerOff, Release, Start


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of an action: no error, or one and whether asking again may help; `sent`: somebody was asked."""

    action: Action
    error: str = ""
    transient: bool = False
    sent: bool = True


class Applier(Protocol):
    """Who carries actions out; `dry` says that nothing has really happened."""

    dry: bool

    def apply(self, action: Action) -> None:
        """Carry out one action. Raises AdapterError."""
        ...


@dataclass(slots=True)
class Live:
    """Through the resource manager."""

    adapter: Adapter
    dry: bool = False

    def apply(self, action: Action) -> None:
        """Hand the action to the adapter. Raises AdapterError."""
        self.adapter.apply(action)


@dataclass(slots=True)
class Recording:
    """A dry run: every action is printed as one line, and nothing else happens.

    As nothing starts, the same is decided again and again; it is printed when it changes, followed by the commands that
    `preview` names.
    """

    show: Callable[[str], None]
    preview: Callable[[Action], Iterable[str]] = lambda action: ()
    dry: bool = True
    shown: dict[str, str] = field(default_factory=dict)

    def apply(self, action: Action) -> None:
        """Print the action, unless it is what was printed last of its job."""
        line = describe(action)
        if self.shown.get(action.key) != line:
            self.shown[action.key] = line
            self.show(line)
            for command in self.preview(action):
                self.show(f"  {command}")


def describe(action: Action) -> str:
    """An action in a line: `start KEY on NODES`, `power off NODES`, `cancel KEY`, `release KEY`, `let go KEY: WHY`."""
    if isinstance(action, Start):
        return f"start {action.key} on {fold(action.nodes)}"
    if isinstance(action, PowerOff):
        return f"power off {fold(action.nodes)}"
    if isinstance(action, Release) and action.why:
        return f"let go {action.key}: {action.why}"
    return f"{'cancel' if isinstance(action, Cancel) else 'release'} {action.key}"


def carry_out(actions: Iterable[Action], applier: Applier) -> list[Applied]:
    """Apply each action in turn; one that fails does not keep the others back."""
    results = []
    for action in actions:
        try:
            applier.apply(action)
            results.append(Applied(action))
        except AdapterError as error:
            results.append(Applied(action, str(error) or error.kind, error.transient, error.kind not in NOT_SENT))
    return results

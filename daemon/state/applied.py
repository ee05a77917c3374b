"""An action of a cycle as one line, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from ...formats.hostlist import fold
from ...simulate.model.plan import Action, Cancel, PowerSwitch, Release, Start, SubmitAhead


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of an action: its error, if any; `transient`: a retry may help; `sent`: a request was sent.

    `began` and `ended` are seconds of the daemon's clock.
    """

    action: Action
    error: str = ""
    transient: bool = False
    sent: bool = True
    began: float = 0.0
    ended: float = 0.0


_PAST = {"start": "started", "submit": "submitted", "power": "powered", "release": "released", "cancel": "cancelled"}


def would_have(action: Action) -> str:
    """Return an action that is not carried out as one line, such as `would have started KEY on NODES`."""
    verb, _, rest = describe(action).partition(" ")
    return f"would have {_PAST[verb]} {rest}"


def describe(action: Action) -> str:
    """Return the action as one line, such as `start KEY on NODES`, `power off NODES`, or `release KEY[: WHY]`."""
    if isinstance(action, Start):
        return f"start {action.key} on {fold(action.nodes)}"
    if isinstance(action, SubmitAhead):
        return f"submit {action.key} ahead"
    if isinstance(action, PowerSwitch):
        return f"{action.key} {fold(action.nodes)}"
    if isinstance(action, Release) and action.why:
        return f"release {action.key}: {action.why}"
    return f"{'cancel' if isinstance(action, Cancel) else 'release'} {action.key}"

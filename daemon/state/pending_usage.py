"""Jobs whose usage is still to be read from the resource manager's accounting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingUsage:
    """A job whose usage is still to be read from the resource manager's accounting.

    Args:
        key: of the job in the resource manager.
        name: under which its run will be stored.
        since: a time before which it cannot have been started, epoch seconds.
        ended: when it ended, epoch seconds.
        due: when to ask for it next, epoch seconds.
        tries: how often accounting did not have it.
        traits: what is kept with the run, JSON; "" = nothing.
    """

    key: str
    name: str
    since: float
    ended: float
    due: float
    tries: int = 0
    traits: str = ""

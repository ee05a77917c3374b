"""Releases that are due: of pins without a start, of jobs that were held too long, and of jobs that a pause gives back.

Rule: they follow from a snapshot alone, so that a restart, or the reaper, gives back what the daemon before it held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from ..simulate.model.bounded import in_turns
from ..simulate.model.job import Job
from ..simulate.model.plan import Release
from ..simulate.model.snapshot import Snapshot
from .state.pauses import Pause

#: The pause that the configuration sets.
CONFIGURED = Pause()


def overdue(snapshot: Snapshot, older_s: float) -> list[Release]:
    """Return releases for the pins set longer ago than `older_s` seconds, by the resource manager's clock."""
    before = snapshot.time - older_s
    pinned = (view for view in snapshot.jobs.offered if view.pinned_since is not None)
    return [Release(view.key) for view in pinned if view.pinned_since is not None and view.pinned_since < before]


def lapsed(snapshot: Snapshot, older_s: float = 0.0, starting: Collection[str] = ()) -> list[Release]:
    """Return releases for the jobs held beyond their deadline, those of all users in turn.

    Args:
        snapshot: the jobs, with their deadlines.
        older_s: least time since the deadline, seconds.
        starting: keys of jobs that are about to start, and are left out.
    """
    before = snapshot.time - older_s
    due = (one for one in snapshot.jobs.held if one.due is not None and one.due <= before and one.key not in starting)
    views = in_turns(due, lambda view: view.job.owner)
    return [Release(view.key, view.due_why or "it was held long enough") for view in views]


def handed_back(snapshot: Snapshot, pause_of: Callable[[Job], Pause | None] = lambda job: CONFIGURED) -> list[Release]:
    """Return releases for the jobs that we pin or may hold, the pinned ones first.

    Args:
        snapshot: the jobs.
        pause_of: returns the pause for which a job is given back; None: it is not.
    """
    pinned = overdue(snapshot, -math.inf)
    held = lapsed(snapshot, -math.inf, {one.key for one in pinned})
    pauses = ((one.key, pause_of(snapshot.jobs.by_key[one.key].job)) for one in (*pinned, *held))
    return [Release(key, pause.reason) for key, pause in pauses if pause is not None]

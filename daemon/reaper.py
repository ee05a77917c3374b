"""The reaper: takes back pins that have not become a start, and lets go what was kept too long, whether or not there
is a daemon.

Rule: it needs no journal and keeps no state; what is ours is written on the job itself. It reads once, and changes
only what is both ours and overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..adapters.base import Adapter, AdapterError
from ..simulate.plan import Release
from ..simulate.snapshot import Snapshot
from .apply import describe


def overdue(snapshot: Snapshot, older_s: float) -> list[Release]:
    """The pins that were set longer ago than `older_s` seconds, by the resource manager's clock."""
    before = snapshot.time - older_s
    return [
        Release(view.key)
        for view in snapshot.jobs
        if view.pinned_since is not None and view.pinned_since < before
    ]


def lapsed(snapshot: Snapshot, older_s: float = 0.0, starting: Collection[str] = ()) -> list[Release]:
    """The jobs that were to be let go at least `older_s` seconds ago, but for those (keys) that are about to start."""
    before = snapshot.time - older_s
    return [
        Release(view.key, view.due_why or "it was kept long enough")
        for view in snapshot.jobs
        if view.offered and view.due is not None and view.due <= before and view.key not in starting
    ]


def reap(adapter: Adapter, older_s: float, tell: Callable[[str], None], *, dry: bool = False) -> int:
    """Take back what is overdue; returns how many could not be. Raises AdapterError where nothing can be seen."""
    failed = 0
    snapshot = adapter.snapshot()
    for release in overdue(snapshot, older_s) + lapsed(snapshot, older_s):
        try:
            if not dry:
                adapter.apply(release)
            tell(describe(release))
        except AdapterError as error:
            failed += 1
            tell(f"{describe(release)}: {error}")
    return failed

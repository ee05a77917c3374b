"""The reaper: takes back pins that have not become a start, whether or not there is a daemon.

Rule: it needs no journal and keeps no state; what is ours is written on the job itself. It reads once, and changes
only what is both ours and overdue.
"""

from __future__ import annotations

from collections.abc import Callable

from ..adapters.base import Adapter, AdapterError
from ..simulate.plan import Release
from ..simulate.snapshot import Snapshot


def overdue(snapshot: Snapshot, older_s: float) -> list[Release]:
    """The pins that were set longer ago than `older_s` seconds, by the resource manager's clock."""
    before = snapshot.time - older_s
    return [
        Release(view.key)
        for view in snapshot.jobs
        if view.pinned_since is not None and view.pinned_since < before
    ]


def reap(adapter: Adapter, older_s: float, tell: Callable[[str], None], *, dry: bool = False) -> int:
    """Take back what is overdue; returns how many could not be. Raises AdapterError where nothing can be seen."""
    failed = 0
    for release in overdue(adapter.snapshot(), older_s):
        try:
            if not dry:
                adapter.apply(release)
            tell(f"release {release.key}")
        except AdapterError as error:
            failed += 1
            tell(f"release {release.key}: {error}")
    return failed

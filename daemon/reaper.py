"""The reaper: releases pins that have not become a start and jobs held too long, with or without a daemon.

Rule: it needs no daemon and no journal, and changes only what is both ours and overdue. An adapter may have a reaper of
its own, which shares no parser with the daemon (`reap` in its module); for the others a snapshot says what is overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..adapters.base import Adapter, AdapterError
from ..simulate.model.plan import Release
from ..simulate.model.snapshot import Snapshot
from .apply import describe


def overdue(snapshot: Snapshot, older_s: float) -> list[Release]:
    """Return releases for the pins set longer ago than `older_s` seconds, by the resource manager's clock."""
    before = snapshot.time - older_s
    return [Release(view.key) for view in snapshot.jobs if view.pinned_since is not None and view.pinned_since < before]


def lapsed(snapshot: Snapshot, older_s: float = 0.0, starting: Collection[str] = ()) -> list[Release]:
    """Return releases for the jobs held beyond their deadline.

    Args:
        snapshot: the jobs, with their deadlines.
        older_s: least time since the deadline, seconds.
        starting: keys of jobs that are about to start, and are left out.
    """
    before = snapshot.time - older_s
    return [
        Release(view.key, view.due_why or "it was held long enough")
        for view in snapshot.jobs
        if view.offered and view.due is not None and view.due <= before and view.key not in starting
    ]


def reap(adapter: Adapter, older_s: float, show: Callable[[str], None], *, dry: bool = False) -> int:
    """Release what is overdue; return how many releases failed. Raises AdapterError if the cluster cannot be read.

    Args:
        adapter: reads the cluster and releases jobs.
        older_s: least age of a pin, and least time since a deadline, seconds.
        show: called with one line for each release.
        dry: only show.
    """
    failed = 0
    snapshot = adapter.snapshot()
    for release in overdue(snapshot, older_s) + lapsed(snapshot, older_s):
        try:
            if not dry:
                adapter.apply(release)
            show(describe(release))
        except AdapterError as error:
            failed += 1
            show(f"{describe(release)}: {error}")
    return failed

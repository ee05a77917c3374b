"""The adapter as a canary sees it: jobs that it leaves to the resource manager are not offered, and only released.

Rule: what the daemon decides and does rests on snapshots, so that a job that these do not offer is never written to.
One that is held for us waits for nothing, so that its hold is due at once; its release is the only action on a job of
the control group that passes. All else is the adapter's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from ...adapters.base import Adapter, AdapterError
from ...simulate.model.plan import Action, Release
from ...simulate.model.snapshot import JobView, JobViews, Snapshot
from .groups import Groups


def grouped(inner: Adapter, groups: Groups) -> Adapter:
    """Return an adapter that offers only the jobs that are handed over.

    Args:
        inner: the resource manager.
        groups: of its jobs; new ones get theirs at the first snapshot that has them.
    """
    return cast(Adapter, _GroupAdapter(inner, groups))


class _GroupAdapter:
    def __init__(self, inner: Adapter, groups: Groups) -> None:
        self._inner, self._groups = inner, groups
        self._settings = groups.settings
        self._all, self._shown = JobViews(), JobViews()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def snapshot(self) -> Snapshot:
        return self._without_control(self._inner.snapshot())

    def refresh(self, keys: Collection[str]) -> Snapshot:
        return self._without_control(self._inner.refresh(keys))

    def apply(self, action: Action) -> None:
        if self._groups.is_control(action.key) and not self._ends_hold(action):
            raise AdapterError(f"{action.key}: it is in the control group, which is only released", kind="refused")
        self._inner.apply(action)

    def _ends_hold(self, action: Action) -> bool:
        view = self._shown.by_key.get(action.key)
        return isinstance(action, Release) and view is not None and view.due is not None

    def _without_control(self, snapshot: Snapshot) -> Snapshot:
        groups = self._groups
        if not groups:
            return snapshot
        if snapshot.jobs is not self._all or groups.settings is not self._settings:
            reasons = {view.key: why for view in snapshot.jobs.offered if (why := groups.why_left(view, snapshot.time))}
            shown = snapshot.jobs
            if reasons:
                shown = JobViews(
                    _left(view, reasons[view.key], snapshot.time) if view.key in reasons else view
                    for view in snapshot.jobs
                )
            self._all, self._shown, self._settings = snapshot.jobs, shown, groups.settings
        return replace(snapshot, jobs=self._shown)


def _left(view: JobView, why: str, now: float) -> JobView:
    """Return a job that is left to the resource manager: its hold, if it has one, is due."""
    due = None if view.due is None else min(view.due, now)
    return replace(view, offered=False, pinned_since=None, due=due, due_why=why)

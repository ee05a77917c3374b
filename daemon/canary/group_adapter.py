"""The adapter as a canary sees it: jobs of the control group are not offered, and no action on them passes.

Rule: what the daemon decides and does rests on snapshots, so that a job that these do not offer is never written to.
An action on one is refused nevertheless. All else is the adapter's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from ...adapters.base import Adapter, AdapterError
from ...simulate.model.plan import Action
from ...simulate.model.snapshot import JobViews, Snapshot
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
        if self._groups.is_control(action.key):
            raise AdapterError(f"{action.key}: it is in the control group, which is never changed", kind="refused")
        self._inner.apply(action)

    def _without_control(self, snapshot: Snapshot) -> Snapshot:
        groups = self._groups
        if not groups:
            return snapshot
        if snapshot.jobs is not self._all or groups.settings is not self._settings:
            reasons = {view.key: why for view in snapshot.jobs.offered if (why := groups.why_left(view, snapshot.time))}
            shown = snapshot.jobs
            if reasons:
                shown = JobViews(
                    view
                    if view.key not in reasons
                    else replace(view, offered=False, pinned_since=None, due=None, due_why=reasons[view.key])
                    for view in snapshot.jobs
                )
            self._all, self._shown, self._settings = snapshot.jobs, shown, groups.settings
        return replace(snapshot, jobs=self._shown)

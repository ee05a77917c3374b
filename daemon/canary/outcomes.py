"""The outcomes of the jobs of both groups: when they began and ended, as the resource manager says.

Rule: both groups are followed in the same way: a start from the queue, an end from the records of ended jobs, which are
asked once in EVERY_S at most, for MOST jobs. A job that no record knows for GIVEN_UP_S counts as ended in an unknown
way, and is not compared.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace

from ...adapters.base import Adapter, AdapterError
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from .groups import Groups, ended_member

log = logging.getLogger("pilotfish.canary")
EVERY_S, MOST, GIVEN_UP_S = 60.0, 200, 86_400.0


class Outcomes:
    """Follows the members of the groups.

    Args:
        adapter: has the records of ended jobs.
        groups: whose members are followed.
    """

    def __init__(self, adapter: Adapter, groups: Groups) -> None:
        self._adapter, self._groups = adapter, groups
        self._missing_since = dict[str, float]()
        self._asked_at, self._last = dict[str, float](), -math.inf

    def follow(self, snapshot: Snapshot) -> None:
        """Note what a snapshot, and the records, show. O(members + jobs)."""
        views, missing = snapshot.jobs.by_key, dict[str, float]()
        for key in list(self._groups.members):
            view = views.get(key)
            if view is None:
                missing[key] = self._missing_since.get(key, snapshot.time)
            else:
                self._note(view)
        self._missing_since = missing
        self._asked_at = {key: at for key, at in self._asked_at.items() if key in missing}
        if missing and not 0.0 <= snapshot.time - self._last < EVERY_S:
            self._ask(snapshot.time)

    def _note(self, view: JobView) -> None:
        member = self._groups.members[view.key]
        if view.state.ended and view.finish_time is not None:
            start = view.start_time if view.start_time is not None else member.start_time
            self._groups.keep(ended_member(member, view.state, start, view.finish_time))
        elif member.start_time is None and view.start_time is not None and view.state.takes_nodes:
            self._groups.keep(replace(member, start_time=view.start_time))

    def _ask(self, now: float) -> None:
        keys = sorted(self._missing_since, key=lambda key: self._asked_at.get(key, -math.inf))[:MOST]
        self._last = now
        self._asked_at |= dict.fromkeys(keys, now)
        try:
            records = self._adapter.recall({key: self._groups.members[key].submit_time for key in keys}) or {}
        except AdapterError as error:
            log.warning("the records of jobs that are compared cannot be read; they are asked again: %s", error)
            return
        for key in keys:
            if (view := records.get(key)) is not None:
                self._note(view)
            if key in self._groups.members and now - self._missing_since[key] > GIVEN_UP_S:
                member = self._groups.members[key]
                self._groups.keep(ended_member(member, JobState.UNKNOWN, member.start_time, now))

"""The watch over a canary: it follows both groups, and steps back to shadow when it does harm.

Rule: a step back is on disk, and in the audit, before anything follows from it, so that a restart stays in shadow; only
a person steps up again. It steps back if the guard rails trip, or if the interval of the gain lies below zero. It looks
when the number of jobs, or the time, has grown by LOOK since the last look, at least every LONGEST_S. The intervals of
95 % hold at all looks at once, so that looking often makes no false alarm.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...formats.text import times
from ...simulate.model.snapshot import Snapshot
from ..deciders import CANARY, administrator
from ..report.cycle_report import CycleReport, Observer
from ..run_modes import RunMode
from ..state.members import Member
from .comparison import GroupComparison, compare
from .groups import KEPT, CanaryState, Group, Groups
from .outcomes import Outcomes

if TYPE_CHECKING:
    from ...adapters.base import Adapter
    from ..config_sections import HandoverConfig
    from ..learning.forecast_errors import ForecastErrors
    from ..loop import Cycle
    from ..report.metrics import Metrics
    from ..state.journal import Journal
    from ..tracker import JobTracker

log = logging.getLogger("pilotfish.canary")
#: What decides a step back next to the canary, as the audit names it.
GUARD_RAIL = "guard rail"
LOOK, LONGEST_S = 1.1, 6 * 3600.0


class CanaryWatch(Observer):
    """The canary of one daemon.

    Args:
        settings: `handover` of the configuration; None: all jobs are handed over.
        journal: has the groups.
        metrics: show the groups and their difference.
        mode: of the daemon; only a live one draws groups and steps back, the others follow what was drawn.
        breathe: called about every 10 ms of a comparison.
    """

    def __init__(
        self, settings: HandoverConfig | None, journal: Journal, metrics: Metrics, mode: RunMode,
        breathe: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._journal, self._metrics, self._mode, self._breathe = journal, metrics, mode, breathe
        record = journal.kept(KEPT)
        self.state, self._is_new = CanaryState.of(record), not record
        self._unsaved = dict[str, Member]()
        self.groups = Groups(
            settings if mode.acts else None, self.state.key, journal.members(open_only=True), self._note
        )
        self._news, self._drawn = list[Member](), 0
        self._last_look = (0.0, 0)  # when, and at how many jobs
        #: The last comparison; None: there was none yet.
        self.comparison: GroupComparison | None = None
        self._tracker: JobTracker | None = None
        self._forecasts: ForecastErrors
        self._outcomes: Outcomes | None = None
        self._step_back: Callable[[], None] = lambda: None
        metrics.show_handover(settings.share if settings else 1.0, is_stepped_back=self.is_stepped_back)

    @property
    def is_stepped_back(self) -> bool:
        """True if the daemon has stepped back, and no person has stepped up since."""
        return self.state.stepped_back is not None

    def attach(self, adapter: Adapter, cycle: Cycle, step_back: Callable[[], None]) -> None:
        """Watch a daemon.

        Args:
            adapter: has the records of ended jobs.
            cycle: of the daemon.
            step_back: lets the daemon go to shadow; called once the step back is in the journal.
        """
        self._tracker, self._forecasts, self._step_back = cycle.tracker, cycle.planner.forecasts, step_back
        self._outcomes = Outcomes(adapter, self.groups)
        if self._mode.acts and self._is_new and self._journal.last_mode()[1] in ("live", "fallback"):
            self._keep_before(cycle.tracker)

    def use(self, settings: HandoverConfig | None) -> None:
        """Use other settings for the jobs that come from now on."""
        if self._mode.acts:
            if self.groups.settings is None and self._tracker is not None:
                self._keep_before(self._tracker)
            self.groups.settings = settings
        self._metrics.show_handover(settings.share if settings else 1.0, is_stepped_back=self.is_stepped_back)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Follow both groups; all is in the journal before anything is decided."""
        if self._outcomes is None or self._tracker is None or not self._mode.keeps:
            return
        if self.groups.members:
            self._outcomes.follow(snapshot)
        if (self._is_new or not self.state.since) and self.groups.settings is not None:
            self.state = replace(self.state, since=self.state.since or snapshot.time)
            self._keep_state()
        for member in self._news:
            self._metrics.handover_jobs.labels(member.side).inc()
            self._tracker.note_change("handover", CANARY, member.key, member.owner, after=member.side, why=member.why)
        self._news.clear()
        self._tracker.unsaved.members |= self._unsaved
        self._unsaved.clear()

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Look whether the canary does harm, if it is time to."""
        if self._tracker is None or self.groups.settings is None or not self._mode.acts or self.is_stepped_back:
            return
        guard = self._forecasts.guard
        if guard.enabled and guard.tripped and not self.state.trip_accepted:
            worst = guard.worst
            median = guard.median(worst)
            off = "" if median is None else f": forecasts of {worst} are off by {times(1.0 + median)}"
            self._back(snapshot.time, GUARD_RAIL, f"the guard rails have tripped{off}")
        elif not guard.tripped and self.state.trip_accepted:
            self.state = replace(self.state, trip_accepted=0)
            self._keep_state()
        if self.groups.settings.control and not self.is_stepped_back and self._is_time(snapshot.time):
            self.comparison = self.compared(snapshot.time)
            self._metrics.show_comparison(self.comparison.measures)
            if harm := self.comparison.harm:
                self._back(snapshot.time, CANARY, harm)

    def compared(self, now: float) -> GroupComparison:
        """Compare the groups as they are now; `now` in epoch seconds of the resource manager."""
        return compare(self._journal.members(since=self.state.since), now, self._breathe)

    def step_up(self, by: str, now: float, why: str = "") -> None:
        """Forget the step back: the comparison begins again.

        Args:
            by: the administrator.
            now: epoch seconds of the resource manager.
            why: their words.
        """
        tracker = self._tracker
        assert tracker is not None, "it is attached"
        self.state = replace(
            self.state, stepped_back=None, why="", since=now, trip_accepted=int(self._forecasts.guard.tripped)
        )  # fmt: skip
        self._keep_state()
        tracker.note_change("mode", administrator(by), before=str(RunMode.SHADOW), after=str(RunMode.LIVE), why=why)
        tracker.save()

    def words(self, key: str) -> str:
        """Return to which group a job belongs and why, "" if it has none."""
        member = self.member(key)
        return "" if member is None else f"{group_words(member.side)}: {member.why}"

    def member(self, key: str) -> Member | None:
        """Return a job that has a group, also one that has ended; None: it has none."""
        member = self.groups.members.get(key) or self._unsaved.get(key)
        return member or next(iter(self._journal.members(key=key, most=1)), None)

    def control(self, key: str) -> Member | None:
        """Return a job of the control group, also one that has ended; None: it is not in it."""
        member = self.member(key)
        return member if member is not None and member.side == Group.CONTROL else None

    def document(self) -> dict[str, Any]:
        """Return what `status` shows of the canary."""
        settings, state = self.groups.settings, self.state
        counts = Counter(member.side for member in self.groups.members.values())
        return {
            "share": None if settings is None else settings.share,
            "partitions": [] if settings is None else settings.partitions,
            "control": settings is not None and settings.control,
            "jobs": {str(group): counts[group] for group in Group},
            "stepped_back": state.stepped_back,
            "why": state.why,
        }

    def _keep_before(self, tracker: JobTracker) -> None:
        """Let the jobs that are handed over now stay so."""
        self.groups.before = {entry.key for entry in tracker.queue.active() if entry.offered}

    def _note(self, member: Member) -> None:
        if member.start_time is None and member.finish_time is None:
            self._news.append(member)
            self._drawn += 1
        self._unsaved[member.key] = member

    def _is_time(self, now: float) -> bool:
        """Return whether the jobs or the time have grown enough for another look."""
        when, number = self._last_look
        jobs = self._drawn
        passed, since = now - when, max(0.0, when - self.state.since)
        is_due = jobs > number * LOOK or passed > max((LOOK - 1.0) * since, 1.0) or passed > LONGEST_S
        if is_due and (not when or passed >= 1.0):
            self._last_look = now, jobs
            return True
        return False

    def _back(self, now: float, by: str, why: str) -> None:
        tracker = self._tracker
        assert tracker is not None, "it is attached"
        self.state = replace(self.state, stepped_back=now, why=why)
        self._keep_state()
        tracker.note_change("mode", by, before=str(RunMode.LIVE), after=str(RunMode.SHADOW), why=why)
        tracker.save()
        log.error("it steps back to shadow: %s; `pilotfish step-up` ends this", why)
        settings = self.groups.settings
        self._metrics.show_handover(settings.share if settings else 1.0, is_stepped_back=True)
        self._step_back()

    def _keep_state(self) -> None:
        assert self._tracker is not None, "it is attached"
        self._tracker.unsaved.kept[KEPT], self._is_new = self.state.kept(), False


def group_words(side: str) -> str:
    """Return a group in words."""
    return "canary, handed over" if side == Group.CANARY else "control group, left to the resource manager"


def allowed_mode(mode: RunMode, journal: Journal) -> RunMode:
    """Return the mode in which a daemon may run: shadow in place of live if it has stepped back.

    Args:
        mode: as configured.
        journal: knows whether it has stepped back.
    """
    if mode is not RunMode.LIVE or CanaryState.of(journal.kept(KEPT)).stepped_back is None:
        return mode
    log.warning("it stays in shadow, to which it has stepped back: `pilotfish step-up` ends this")
    return RunMode.SHADOW

"""The changes of the daemon's mode, for the audit: each with its reason, and the start of the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..built_from import full_version
from ..formats.text import times
from ..simulate.model.snapshot import Snapshot
from .deciders import CONFIGURATION, administrator
from .report.cycle_report import CycleReport, Observer

if TYPE_CHECKING:
    from .learning.forecast_errors import ForecastErrors
    from .tracker import JobTracker

#: The part of the daemon that decided a mode.
GUARD_RAIL, JOURNAL = "guard rail", "journal"
_CUT_OFF = "the daemon before this one ended without a stop"


class ModeLog(Observer):
    """Notes the mode in which the daemon starts, and each one that follows.

    Args:
        tracker: receives the changes, and writes them to the journal.
        forecasts: their guard overrules the policy in the mode `fallback`.
        last: kind of the last change of mode before this start, and the mode after it; "": there was no change.
    """

    def __init__(self, tracker: JobTracker, forecasts: ForecastErrors, last: tuple[str, str]) -> None:
        self._tracker, self._forecasts, self._last_kind, self._mode = tracker, forecasts, *last
        self._is_start = True
        self._of_model = False  # whether the mode `fallback` was in place of a learned policy

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Note the mode of the cycle, if it is another one."""
        if self._is_start:
            why = _CUT_OFF if self._last_kind not in ("", "stop") else ""
            text = f"pilotfish {full_version()}{'; ' if why else ''}{why}"
            self._tracker.note_change("start", "service", before=self._mode, after=report.mode, why=text)
        elif report.mode != self._mode:
            by, why = self._reason(self._mode, report.mode)
            self._tracker.note_change("mode", by, before=self._mode, after=report.mode, why=why)
        else:
            return
        self._is_start, self._mode = False, report.mode
        self._tracker.save()

    def _reason(self, before: str, after: str) -> tuple[str, str]:
        """Return what decided a change, and why."""
        if "blocked" in (before, after):
            return JOURNAL, self._tracker.blocked or "it can be written again"
        if after == "paused":
            pause = self._tracker.pause_of_all
            return administrator(pause.by if pause else ""), pause.why if pause else ""
        if before == "paused":
            return "end of the pause", ""
        if "fallback" in (before, after):
            guard = self._forecasts.guard
            if guard.overruled_model is not None:
                self._of_model = True
                return GUARD_RAIL, guard.overruled_model[1]
            if self._of_model and after != "fallback":
                self._of_model = False
                return GUARD_RAIL, "the learned policy decides again"
            worst = guard.worst
            median = guard.median(worst)
            return GUARD_RAIL, "" if median is None else f"forecasts of {worst} are off by {times(1.0 + median)}"
        return CONFIGURATION, ""

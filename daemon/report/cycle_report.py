"""The report of a cycle that observers receive, and the sentence and the metrics made from it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...formats.text import count
from ...simulate.model.plan import Plan, PowerSwitch, Rejection
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from ..run_modes import RunMode
from ..state.applied import Applied, describe
from ..state.queue import JobEvent, Queue
from .metrics import Metrics

log = logging.getLogger("pilotfish.cycle")


@dataclass(slots=True)
class CycleReport:
    """The report of a cycle.

    Args:
        number: of the cycle since the start, from 1.
        began: when it began, seconds of the daemon's clock.
        run_mode: of the daemon; `dry`: nothing is really done.
        policy: the one that made the plan, "" without a plan.
        gain_of_holding_s: what holding gains each job that the plan is for, seconds; None: not known.
        more: once its starts have happened there is more to plan.
        mode: of the daemon at the end of the cycle, one of `metrics.MODES`.
        trouble: what keeps jobs from being planned, or "".
        set_aside: workflows that are not planned, because planning fails with them.
        failures: policies that could not make a plan, each with its error.
        questions: how often searches for a plan asked whether to end.
        cut_at: the question at which a limit in seconds, or the end of the daemon, ended a search; 0: none did.
    """

    number: int
    began: float
    run_mode: RunMode = RunMode.LIVE
    events: list[JobEvent] = field(default_factory=list)
    plan: Plan | None = None
    policy: str = ""
    gain_of_holding_s: float | None = None
    applied: list[Applied] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    more: bool = False
    mode: str = ""
    trouble: str = ""
    set_aside: int = 0
    failures: list[str] = field(default_factory=list)
    questions: int = 0
    cut_at: int = 0

    @property
    def dry(self) -> bool:
        """True if nothing is really done."""
        return not self.run_mode.acts

    @property
    def why_not_ready(self) -> str:
        """The reason why jobs cannot be planned or started, or ""; it names no path, because anyone may read it."""
        blocked = "blocked: the journal cannot be written, so nothing is started; see the log"
        return blocked if self.mode == "blocked" else self.trouble


class Observer:
    """Watches cycles; each method does nothing by default."""

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """React to a new snapshot, before it is folded in."""

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """React to what happened to our jobs, before the journal is written."""

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """React to the end of a cycle."""


def completed_views(events: Sequence[JobEvent], snapshot: Snapshot) -> list[JobView]:
    """Return the views of the jobs that have just completed. O(events)."""
    completed = {event.entry.key for event in events if event.entry.state is JobState.COMPLETED}
    return [view for key in sorted(completed) if (view := snapshot.jobs.by_key.get(key))]


class CycleReporter(Observer):
    """Logs one sentence and updates the metrics after each cycle.

    Args:
        queue: whose jobs are counted by state.
        clock: the one that `CycleReport.began` was read from.
        paused: returns the names of the paused partitions; "": all jobs are paused.
    """

    def __init__(
        self,
        metrics: Metrics,
        queue: Queue,
        clock: Callable[[], float],
        paused: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self._metrics, self._queue, self._clock, self._paused = metrics, queue, clock, paused

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Count the decisions and their outcomes, show the snapshot, and log the sentence if anything happened."""
        metrics = self._metrics
        for applied in report.applied:
            metrics.count_action(applied.action, "would" if report.dry else "failed" if applied.error else "applied")
        for rejection in report.rejected:
            metrics.count_action(rejection.action, "rejected")
        states = Counter[JobState](entry.state for entry in self._queue.entries())
        metrics.show_snapshot(snapshot, states)
        metrics.set_mode(report.mode)
        metrics.show_pauses(self._paused())
        metrics.set_aside.set(report.set_aside)
        metrics.cycle_duration.observe(self._clock() - report.began)
        if text := sentence(report, states, self._clock() - report.began):
            log.info("cycle %d: %s", report.number, text, extra={"cycle": report.number})


def sentence(report: CycleReport, states: Counter[JobState], seconds: float) -> str:
    """Return one sentence about a cycle, or "" if nothing happened in it.

    Args:
        report: what the cycle did.
        states: how many jobs are in each state after the cycle.
        seconds: that the cycle took.
    """
    kinds = Counter(event.kind for event in report.events)
    failed = sum(bool(applied.error) for applied in report.applied)
    parts = [f"{number} {kind}" for kind, number in sorted(kinds.items()) if kind != "started"]
    applied = [one.action for one in report.applied if not one.error]
    verbs = Counter(describe(action).partition(" ")[0] for action in applied if not isinstance(action, PowerSwitch))
    parts += [f"{verb} {count(number, 'job')}" for verb, number in sorted(verbs.items())]
    parts += [describe(action) for action in applied if isinstance(action, PowerSwitch)]
    if failed:
        parts.append(f"{failed} not applied")
    if report.rejected:
        parts.append(f"{len(report.rejected)} rejected by the check")
    if not parts:
        return ""
    if report.plan is not None:
        parts.append(f"planned {count(len(report.plan.jobs), 'job')} by {report.policy}")
    remainder = f"{states[JobState.RUNNING]} running, {states[JobState.PENDING]} waiting"
    return f"{'; '.join(parts)}; {remainder} ({seconds * 1e3:.0f} ms)"

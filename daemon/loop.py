"""The control loop: observe -> snapshot -> decide -> forecast -> check -> apply -> report.

Rule: one thread, every step once. An intent that cannot be journalled is not carried out; observing goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..adapters.base import Adapter
from .apply import Applier, carry_out
from .check import check
from .planning.guarded_planner import GuardedPlanner
from .planning.trigger import Trigger
from .report.cycle_report import CycleReport, Observer
from .report.queue_forecasts import QueueForecasts
from .tracker import JobTracker


@contextmanager
def _uninterrupted(trigger: Trigger) -> Iterator[None]:
    """Collect garbage after a cycle only: it makes many objects, none in a ring. Plan again after one that fails."""
    gc.disable()
    try:
        yield
    except Exception:
        trigger.renew()  # what was decided is lost, and the news on which it was decided
        raise
    finally:
        gc.enable()


@dataclass(slots=True)
class Cycle:
    """One pass of the loop after another; the state between two passes is the tracker's, which the journal rebuilds.

    Args:
        tracker: the state of all jobs; `trigger` says when to plan, and `planner` makes the plan.
        observers: called in this order at the three moments of a cycle, see `Observer`; `queue_forecasts` is the last.
        clock: seconds, monotonic, for durations only; all times of jobs are the resource manager's.
    """

    adapter: Adapter
    applier: Applier
    tracker: JobTracker
    trigger: Trigger
    planner: GuardedPlanner
    observers: Sequence[Observer]
    queue_forecasts: QueueForecasts
    clock: Callable[[], float]
    number: int = 0

    def run(self) -> CycleReport:
        """Go through one cycle. Raises AdapterError if the cluster cannot be read; nothing is carried out then."""
        self.number += 1
        with _uninterrupted(self.trigger):
            return self._steps()

    def _steps(self) -> CycleReport:
        report = CycleReport(self.number, self.clock(), self.applier.mode)
        # 1. Observe: one snapshot is the only picture of the cluster that this cycle decides on.
        snapshot = self.adapter.snapshot()
        for observer in self.observers:
            observer.on_snapshot(snapshot)
        # 2. Fold it in: what started, ended or failed, and which intents came true.
        snapshot = self.tracker.with_interference(snapshot)
        report.events = self.tracker.fold(snapshot, self.number)
        for observer in self.observers:
            observer.on_events(report.events, snapshot)
        self.planner.breathe()
        self.tracker.save()
        # 3. Decide, if anything has changed since the last plan, and a job waits or the policy switches nodes.
        due = self.trigger.due(snapshot, report.events, blocked=bool(self.tracker.blocked))
        problem = self.tracker.problem(snapshot, self.planner.window(snapshot), self.planner.returning) if due else None
        plan = self.planner.decide(problem, snapshot, report, self.tracker.retry_in(snapshot.time)) if problem else None
        # 4. Forecast: note when the plan expects each job to end; what starts now, or gains nothing, becomes an action.
        starts = self.tracker.note_forecasts(plan, problem, snapshot, self.planner.released) if plan and problem else []
        actions = self.applier.new(self.tracker.actions(snapshot, starts))
        # 5. Check the actions against a fresh snapshot, and drop those that no longer fit.
        if actions:
            report.rejected = check(actions, self.adapter.refresh([action.key for action in actions]))
            actions = self.tracker.without_rejected(actions, report.rejected)
        # 6. Journal the intents, so that a restart knows what may have happened. 7. Apply, and journal the outcome.
        report.applied = carry_out(self.tracker.intend(actions), self.applier, self.clock)
        self.tracker.conclude(report.applied)
        self.trigger.note_applied(report.applied, more=report.more, dry=report.dry)
        # 8. Report.
        report.mode, report.trouble, report.set_aside = self.mode, self.planner.trouble, self.planner.set_aside
        for observer in self.observers:
            observer.on_cycle(report, snapshot)
        return report

    @property
    def mode(self) -> str:
        """The daemon's mode, one of `metrics.MODES`."""
        return self.tracker.halted or self.planner.mode(self.tracker.queue, self.applier.mode)

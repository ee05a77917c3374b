"""Run one workflow by one plan, from the first start to the last end: what `pilotfish run` does.

Rule: it is the daemon's own cycle with a planner that keeps to the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from ..adapters.base import Adapter, AdapterError
from ..simulate.model.job import Workflow
from ..simulate.model.plan import Plan
from .apply import Live
from .assembly import assemble
from .planning.guard import Guard
from .planning.plan_cache import FixedPlan
from .planning.problem import Options
from .report.cycle_report import CycleReport
from .report.metrics import Metrics, metered
from .state.journal import Journal
from .state.queue import Submission

STEP_S = 0.25
#: The cluster is read at least this often, even if the adapter reports no change.
READ_EVERY_S = 1.0


class WorkflowRun:
    """A workflow that runs by a plan.

    Args:
        run: its id, unique in the adapter, without '/'.
        plan: of the whole workflow.
        metrics: of the run.
        clock: seconds, monotonic, for durations; epoch times are the adapter's.
    """

    def __init__(
        self, run: str, workflow: Workflow, plan: Plan, adapter: Adapter, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self._adapter = adapter = metered(adapter, metrics)
        self._clock = clock
        self._journal = journal = Journal(Path(":memory:"), in_memory=True)
        guard = Guard(bound=math.inf, window=1, fallback=plan.policy, enabled=False)
        planner = FixedPlan(f"{run}/", plan, workflow, clock)
        options = Options(policy=plan.policy, seed=plan.seed)
        self._cycle = assemble(adapter, Live(adapter), journal, metrics, guard, options, clock, planner=planner)
        self.submission = Submission(run, workflow, adapter.snapshot().time)
        journal.submit(self.submission, None)
        self._cycle.tracker.add(self.submission)

    def until_ended(self, show: Callable[[CycleReport | None], None], cancelled: Callable[[], bool]) -> Submission:
        """Run the workflow to its end.

        Args:
            show: called with the report of each cycle, and with None every STEP_S in between.
            cancelled: called as often; once it returns True, waiting jobs are cancelled and running ones ended.

        Raises:
            AdapterError: the resource manager cannot be reached, and trying again will not help; running jobs go on.
        """
        asked = False
        while not self.submission.state.ended:
            if not asked and cancelled():
                asked = True
                self._cycle.tracker.cancel([e for e in self.submission.entries.values() if not e.state.ended])
            try:
                show(self._cycle.run())
            except AdapterError as error:
                if not error.transient:
                    raise
            if not self.submission.state.ended and not self._cycle.trigger.changed:
                self._pause(show, (lambda: False) if asked else cancelled)
        return self.submission

    def _pause(self, show: Callable[[CycleReport | None], None], cancelled: Callable[[], bool]) -> None:
        due = self._clock() + READ_EVERY_S
        while not self._adapter.wait(STEP_S) and not cancelled() and self._clock() < due:
            show(None)

    def close(self) -> None:
        """Drop the journal; the adapter stays open."""
        self._journal.close()

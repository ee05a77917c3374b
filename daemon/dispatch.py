"""One workflow, one plan, from the first start to the last end: what `pilotfish run` does.

Rule: it is the daemon's own cycle with a planner that holds to the plan; what is decided, checked and carried
out is decided, checked and carried out there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from ..adapters.base import Adapter, AdapterError
from ..simulate.job import Workflow
from ..simulate.plan import Plan
from .apply import Live
from .counted import Counted
from .cycle import Cycle, Report
from .exporter import Metrics
from .fixed import FixedPlan
from .guard import Guard
from .journal import Journal
from .planning import Options
from .queue import Submission

STEP_S = 0.25
#: The world is looked at this often even when nobody says that it has changed.
LOOK_S = 1.0


class Dispatch:
    """A workflow on its way through an adapter, following a plan.

    Args:
        run: its id, unique in the adapter, without '/'.
        clock: seconds, for durations; epoch times are the adapter's.
    """

    def __init__(
        self,
        run: str,
        workflow: Workflow,
        plan: Plan,
        adapter: Adapter,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._adapter = Counted(adapter, metrics)
        self._clock = clock
        self._journal = Journal(Path(":memory:"), in_memory=True)
        guard = Guard(bound=math.inf, window=1, fallback=plan.policy, enabled=False)
        planner = FixedPlan(f"{run}/", plan, workflow, clock)
        options = Options(policy=plan.policy, seed=plan.seed)
        applier = Live(self._adapter)
        self.cycle = Cycle(
            self._adapter, applier, self._journal, metrics, guard, options, clock, planner=planner
        )
        self.submission = Submission(run, workflow, self._adapter.snapshot().time)
        self._journal.submit(self.submission, None)
        self.cycle.take(self.submission)

    def until_ended(self, show: Callable[[Report | None], None], cancelled: Callable[[], bool]) -> Submission:
        """Run the workflow to its end.

        Args:
            show: called after each cycle with what it did, and with None every STEP_S in between.
            cancelled: asked as often; once true, what waits is cancelled and what runs is ended.

        Raises:
            AdapterError: the resource manager cannot be reached, and trying again will not help; what runs
            goes on.
        """
        asked = False
        while not self.submission.state.ended:
            if not asked and cancelled():
                asked = True
                self.cycle.cancel(
                    [entry for entry in self.submission.entries.values() if not entry.state.ended]
                )
            try:
                show(self.cycle.run())
            except AdapterError as error:
                if not error.transient:
                    raise
            if not self.submission.state.ended and not self.cycle.changed:
                self._pause(show, (lambda: False) if asked else cancelled)
        return self.submission

    def _pause(self, show: Callable[[Report | None], None], woken: Callable[[], bool]) -> None:
        due = self._clock() + LOOK_S
        while not self._adapter.wait(STEP_S) and not woken() and self._clock() < due:
            show(None)

    def close(self) -> None:
        """Forget the journal; the adapter stays open."""
        self._journal.close()

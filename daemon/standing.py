"""The last plan, held to until there is a better one: a freed node gets its next job before the search begins anew.

Rule: when jobs ended well, as foreseen, the next jobs of the last plan start at once, on its nodes and in its order
(`fixed`), where they still fit; the search follows. News ends a search only after such a start, and a search that
news has ended is thrown away whole, so no plan depends on when news came: same snapshot and seed, same plan. Any
other news (a submission, a failure, a node) makes the last plan void. Where few jobs are left, or nothing was
searched for, there is no need of this: the plan is simply made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..adapters.base import Adapter
from ..simulate.plan import Plan
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobState
from .fixed import FixedPlan
from .planning import Options, Problem, starts
from .queue import Event

#: Jobs up to which a plan is simply made anew: that takes tens of milliseconds.
FEW = 16


class Standing:
    """What is left of the last plan; `interrupted`: news has ended the search.

    Args:
        clock: seconds, of which differences count.
    """

    def __init__(self, adapter: Adapter, clock: Callable[[], float]) -> None:
        self._adapter, self._clock = adapter, clock
        self._plan: FixedPlan | None = None
        self._served = self.interrupted = False

    def keep(self, plan: Plan, problem: Problem) -> None:
        """Hold to this plan, the result of a whole search."""
        self.drop()
        if plan.evaluations > 1 and len(plan.jobs) > FEW:
            self._plan = FixedPlan("", plan, problem.workflow, self._clock, began=self._clock())

    def drop(self) -> None:
        """Hold to nothing."""
        self._plan, self._served, self.interrupted = None, False, False

    def next(self, problem: Problem, cluster: Cluster, options: Options, events: Sequence[Event]) -> Plan | None:
        """The plan with what it starts now; None where it starts nothing, or `events` say that it is void."""
        self.interrupted = False
        if self._plan is None or not events:
            return None
        foreseen = all(event.entry.state in (JobState.RUNNING, JobState.COMPLETED) for event in events)
        if not foreseen or self._plan.plan.policy != options.policy:
            self.drop()
            return None
        plan = self._plan(problem, cluster, options)
        self._served = bool(starts(plan, problem))
        return plan if self._served else None

    def news(self) -> bool:
        """Whether to end the search for news; asked by the search. It is ended once after each start."""
        if self._served and not self.interrupted and self._adapter.fileno() is not None:
            self.interrupted = self._adapter.wait(0.0)
            self._served = not self.interrupted
        return self.interrupted

"""Reasons to plan: something changed, the last plan has drifted, or the policy wants to decide again.

Rule: the gap between two plans that nothing but drift asked for doubles, up to LONGEST_RECHECK_S.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...simulate.model.snapshot import JobView, NodeState, Snapshot
from ..state.applied import Applied
from ..state.queue import JobEvent
from .plan_cache import PlanCache

LONGEST_RECHECK_S = 60.0


class Trigger:
    """Says when to plan.

    Args:
        cache: the last plan, dropped when what it was made for has changed.
        recheck_s: seconds until a plan that has drifted is made again; doubles while nothing else happens.

    Attributes:
        changed: something that the last plan does not know has happened.
        unfinished: jobs were handed over that wait for a later cycle to be taken in: the next one follows at once.
        recheck_at: when to plan again if nothing happens, epoch seconds.
    """

    def __init__(self, cache: PlanCache, recheck_s: float = 1.0) -> None:
        self.cache, self.recheck_s, self._gap_s, self._least_s = cache, recheck_s, recheck_s, 0.0
        self.changed, self.unfinished = True, False
        self.recheck_at = math.inf
        self._policy_asks = False  # `recheck_at` is the time at which the policy wants to decide
        self._node_states: tuple[NodeState, ...] = ()
        self._holding: Mapping[str, JobView] = {}

    def renew(self) -> None:
        """Note that what the last plan was made for has changed: plan, and not from that plan."""
        self.changed = True
        self.cache.drop()

    def due(self, snapshot: Snapshot, events: Sequence[JobEvent], *, blocked: bool) -> bool:
        """Return whether to plan now. O(jobs + nodes).

        Args:
            snapshot: of this cycle.
            events: what happened to our jobs since the snapshot before.
            blocked: the journal cannot be written; the reason to plan is kept until it can.
        """
        if snapshot.node_states != self._node_states:
            self.renew()
        self._node_states = snapshot.node_states
        before, self._holding = self._holding, snapshot.jobs.holding
        freed = before is not self._holding and not before.keys() <= self._holding.keys()  # also by a neighbour
        news = self.changed or bool(events) or freed
        if blocked or not (news or snapshot.time >= self.recheck_at):
            self.changed = news or blocked or self.unfinished
            return False
        self.changed = self.unfinished
        self._least_s = self.recheck_s if self._policy_asks and not news else 0.0
        self._gap_s = self.recheck_s if news else min(2 * self._gap_s, LONGEST_RECHECK_S)
        self.recheck_at, self._policy_asks = math.inf, False
        return True

    def recheck(self, now: float, after_s: float) -> None:
        """Plan again `after_s` seconds after `now` (epoch seconds), but not before the present gap has passed."""
        self.recheck_at, self._policy_asks = now + max(after_s, self._gap_s), False

    def wake(self, now: float, after_s: float) -> None:
        """Plan at the latest `after_s` seconds after `now` (epoch seconds), because the policy wants to decide then.

        If the last plan was made for nothing but such a wish, not before `recheck_s` have passed: a policy cannot keep
        the service busy.
        """
        wish = now + max(after_s, self._least_s)
        if wish < self.recheck_at:
            self.recheck_at, self._policy_asks = wish, True

    def replan(self, now: float) -> None:
        """Plan again as soon as the present gap allows, and not from the last plan."""
        self.cache.drop()
        self.recheck(now, 0.0)

    def note_applied(self, applied: Sequence[Applied], *, more: bool, dry: bool) -> None:
        """Plan again in the next cycle if an action was not sent, or if actions took effect and there is more to plan.

        Args:
            applied: the outcome of each action of this cycle.
            more: the plan left out jobs that can be planned once its starts have happened.
            dry: nothing was really done.
        """
        self.changed = self.changed or (more and not dry and any(not outcome.error for outcome in applied))
        if any(not outcome.sent for outcome in applied):
            self.renew()

"""Time of the next reading of the resource manager, from what a cycle still waits for and the counters of events.

Rule: the daemon wakes in time for everything that it must do at a certain time (let a job go, clear a pin, repeat a
start, plan again); it notices what others do by counters and events. See `cadence`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...adapters.base import Adapter, AdapterError
from ...simulate.model.snapshot import JobState, Snapshot
from ..planning.trigger import Trigger
from ..report.cycle_report import CycleReport, Observer
from ..state.job_stages import JobStage
from ..state.queue import JobEvent
from ..state.queue_entry import Entry
from ..systemd import notify
from ..tracker import PIN_S, JobTracker
from .cadence import NEAR_S, Cadence, Need

log = logging.getLogger("pilotfish.service")
#: Seconds for which the daemon stays attentive after its last job: more are likely to follow.
LINGER_S = 120.0
#: Seconds for which a job that has left the queue is looked for at the cadence.
MISSING_S = 60.0
#: Seconds until counts that could not be read are read again.
COUNT_AGAIN_S = 60.0


class NextLook(Observer):
    """Keeps `need`, what the last cycle leaves to look for, and `look_s`, how long it looked, seconds.

    Args:
        adapter: whose counts, pins and begin times matter.
        tracker: whose jobs matter.
        cadence: decides.
        clock: seconds, monotonic.
        confirm: called when the counts show that nothing has happened since the last cycle, as systemd's watchdog is.
        idle_nodes: whether nodes are switched, so that it is never idle.
    """

    def __init__(
        self,
        adapter: Adapter,
        tracker: JobTracker,
        cadence: Cadence,
        clock: Callable[[], float],
        confirm: Callable[[], None] = lambda: None,
        *,
        idle_nodes: Callable[[], bool] = lambda: False,
    ) -> None:
        self._adapter, self._tracker, self._cadence, self._clock = adapter, tracker, cadence, clock
        self._confirm, self._idle_nodes = confirm, idle_nodes
        self._began = self._looked_at = self._needed_at = self._count_again_at = -math.inf
        self._completed = False
        self.need, self.look_s = Need(), 0.0

    def begin(self) -> float:
        """Note the start of a cycle, with counts of just before; return when it is, monotonic seconds."""
        if not self._cadence.counts_serve(self._clock()):
            self._count()
        self._began = self._clock()
        self._cadence.begin(self._began)
        return self._began

    def end(self, trigger: Trigger, *, completed: bool, again_s: float = 0.0) -> None:
        """Note the end of the cycle.

        Args:
            trigger: says when to plan again.
            completed: whether it was completed.
            again_s: seconds until another attempt makes sense, if it was not.
        """
        now, need, look_s = self._clock(), Need(unsettled=True), self._clock() - self._began
        self._completed = completed
        if completed:
            need, look_s = self.need, self.look_s
            plan_s = trigger.recheck_at - self._tracker.now - (now - self._began)
            matters = self._tracker.any_waiting or self._idle_nodes()
            need = replace(need, change_s=min(need.change_s, plan_s if matters else math.inf))
        self._cadence.end(now, need, look_s)
        if not completed:
            self._cadence.fail(now, again_s)

    def left_s(self, *, changed: bool) -> float:
        """Return for how many seconds nothing is to be done, at most 0 if a cycle is due; read the counts if they are.

        Args:
            changed: the daemon itself has something new to plan.
        """
        now = self._clock()
        if self._cadence.due(changed=changed) > now and self._cadence.count_due() <= now:
            self._count()
            if self._cadence.due(changed=False) > now:
                self._confirm()
                notify("WATCHDOG=1")
        return min(self._cadence.due(changed=changed), self._cadence.count_due()) - self._clock()

    def outdated(self) -> bool:
        """Return whether a question is to be answered after another cycle only; read the counts if they are old.

        Questions cause no more readings than jobs that are handed over do, however many users ask. Where the last cycle
        failed, another one would let users wait.
        """
        if not self._completed or self._adapter.capabilities.events:
            return False
        if self._cadence.question_counts_due() <= self._clock():
            self._count()
        return self._cadence.question_due() <= self._clock()

    def _count(self) -> None:
        now, activity = self._clock(), None
        if now >= self._count_again_at:
            try:
                activity = self._adapter.activity()
            except AdapterError as error:
                self._count_again_at = now + COUNT_AGAIN_S
                log.debug("the counters of the resource manager cannot be read: %s", error)
        self._cadence.count(self._clock(), activity)

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Note that the look is over."""
        self._looked_at = self._clock()

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Find out what is left. O(jobs)."""
        if self._adapter.capabilities.events:
            return  # it says itself when something happens
        now, active = self._clock(), self._tracker.queue.active()
        self.look_s = self._looked_at - report.began
        if active or self._idle_nodes():
            self._needed_at = now
        elapsed_s = now - self._looked_at
        ends = [e.expected - snapshot.time - elapsed_s for e in active if e.expected and e.state is JobState.RUNNING]
        self.need = Need(
            idle=now - self._needed_at > LINGER_S,
            unsettled=bool(self._tracker.blocked) or any(_unsettled(e, snapshot.time) for e in active),
            change_s=self._next_change(snapshot, dry=report.dry) - snapshot.time - elapsed_s,
            end_s=min((end for end in ends if end > -NEAR_S), default=math.inf),
        )

    def _next_change(self, snapshot: Snapshot, *, dry: bool) -> float:
        """Return when the next thing is to be done or seen, epoch seconds; a dry run does nothing about what is due."""
        patience_s = max(PIN_S, self._adapter.capabilities.begins_within_s)
        pinned = (view.pinned_since + patience_s for view in snapshot.jobs if view.pinned_since is not None)
        due = (view.due for view in snapshot.jobs if view.offered and view.due is not None)
        own_times = [at for at in (*pinned, *due) if at > snapshot.time or not dry]
        retry_at = snapshot.time + self._tracker.retry_in(snapshot.time)
        return min([self._adapter.next_change(snapshot.time), retry_at, self._tracker.pauses.next_end, *own_times])


def _unsettled(entry: Entry, now: float) -> bool:
    missing = entry.missed > 0 and now - entry.missed_since < MISSING_S
    return entry.stage is JobStage.UNSETTLED or entry.cancel_wanted or missing

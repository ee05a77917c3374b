"""The write-ahead step between memory and the journal: intents before actions, outcomes after.

Rule: a journal that cannot be written stops starts, not observing. This is logged once, and ends by itself. A daemon
that carries nothing out makes no intents: what it would have done changes no job, whenever it is killed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...simulate.model.plan import Action, Cancel, Release, Start, SubmitAhead
from ...simulate.model.snapshot import JobState
from .applied import Applied
from .audit import DONE, Decision, kind_of, outcome_of
from .job_stages import JobStage
from .journal import Journal, JournalError
from .queue import RETRY_S, Queue
from .queue_entry import Entry
from .unsaved import Unsaved

log = logging.getLogger("pilotfish.cycle")


class WriteAhead:
    """Writes the queue's changes and `unsaved`; `blocked` is why it cannot, or "".

    Args:
        journal: where to.
        queue: whose dirty entries are written.
        unsaved: all else that is written.
        dry: nothing is carried out.
    """

    def __init__(self, journal: Journal, queue: Queue, unsaved: Unsaved, *, dry: bool = False) -> None:
        self._journal, self._queue, self._unsaved, self._dry = journal, queue, unsaved, dry
        self._intents: dict[str, int] = {}
        self._before: dict[str, JobStage] = {}  # the stage of each job of an intent before that
        self.blocked = ""

    def save(self) -> bool:
        """Write what is new and drop workflows that have ended. Return False if the journal cannot be written."""
        self._unsaved.outcomes |= self._queue.settled
        self._queue.settled.clear()
        ended = [s for s in self._queue.submissions.values() if s.ended]
        if not (self._queue.dirty or ended or self._unsaved or self.blocked):
            return True
        try:
            if self.blocked:
                self._journal.probe()
            self._journal.save(self._queue.dirty.values(), ended=ended, unsaved=self._unsaved)
        except JournalError as error:
            self._block(error)
            return False
        self._queue.dirty.clear()
        self._unsaved.clear()
        for submission in ended:
            del self._queue.submissions[submission.id]
        for submission in self._queue.submissions.values():
            submission.drop_ended()
        if self.blocked:
            log.warning("the journal can be written again; jobs are started again")
            self.blocked = ""
        return True

    def intend(self, decisions: Sequence[Decision], *, cycle: int, now: float) -> Sequence[Action]:
        """Write the intents to disk. Return the actions that may be carried out: all of them, or none.

        Args:
            decisions: to be carried out next.
            cycle: number of the cycle.
            now: time of its snapshot, epoch seconds.
        """
        actions = [decision.action for decision in decisions]
        if self._dry:
            keys = ((action.key, kind_of(action)) for action in actions)
            self._unsaved.would_be |= zip(keys, ((now, decision) for decision in decisions), strict=True)
        if self._dry or not actions:
            return actions
        try:
            self._intents = self._journal.intend(decisions, self._queue.dirty.values(), cycle=cycle, time=now)
        except JournalError as error:
            self._block(error)
            return ()
        self._queue.dirty.clear()
        self._before.clear()
        for action in actions:
            entry = self._queue.find(action.key)
            if entry and isinstance(action, Start | SubmitAhead):
                self._before[entry.key] = entry.stage
                entry.move(JobStage.UNSETTLED)
                entry.intent = self._intents[action.key]
                entry.nodes = action.nodes if isinstance(action, Start) else ()
        return actions

    def conclude(self, applied: Applied, entry: Entry | None, *, now: float) -> None:
        """Note the outcome of an action. The intent of a submission that failed is open until a snapshot shows it.

        Args:
            applied: an action that was intended.
            entry: its job; None: a job that was released before it was taken in.
            now: time of the cycle's snapshot, epoch seconds.
        """
        if self._dry:
            return
        intent, outcomes = self._intents[applied.action.key], self._unsaved.outcomes
        outcome = outcome_of(applied.error, transient=applied.transient, sent=applied.sent)
        if entry is None:
            outcomes[intent] = outcome
            return
        self._queue.dirty[entry.key] = entry
        if not isinstance(applied.action, Start | SubmitAhead):
            if isinstance(applied.action, Cancel):
                entry.not_before = now + (RETRY_S[0] if applied.transient else RETRY_S[1])
            if isinstance(applied.action, Release) and not applied.error:
                entry.released = applied.action.why
            outcomes[intent] = outcome
        elif not applied.sent:  # the job certainly did not start, and may be tried again
            entry.move(self._before[entry.key])
            entry.nodes, entry.not_before = (), now + RETRY_S[0]
            outcomes[intent] = outcome
        elif applied.error:
            entry.refused = "" if applied.transient else applied.error
        elif isinstance(applied.action, SubmitAhead):
            entry.move(JobStage.AHEAD)
            outcomes[intent] = DONE
        else:
            entry.released = ""
            entry.move(JobStage.RUNNING, JobState.RUNNING)
            entry.start_time = now
            outcomes[intent] = DONE

    def _block(self, error: JournalError) -> None:
        if not self.blocked:
            log.error("%s; jobs go on, but none is started until it can be written", error)
        self.blocked = str(error)

"""Between memory and the journal: what is not on the disk yet, and what to do while the disk takes nothing.

Rule: a journal that cannot be written stops starts, not observing; it is said once, and it heals by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..simulate.plan import Action, Start
from .apply import Applied
from .journal import Journal, JournalError
from .queue import Queue
from .story import Story

log = logging.getLogger("pilotfish.cycle")


class Ledger:
    """Writes the queue's changes and the story's records; `blocked` says why it cannot, or is empty."""

    def __init__(self, journal: Journal, queue: Queue, story: Story) -> None:
        self._journal, self._queue, self._story = journal, queue, story
        self._intents: dict[str, int] = {}
        self.blocked = ""

    def save(self) -> bool:
        """Write what is new, and let go of workflows that have ended; False while that cannot be done."""
        ended = [s for s in self._queue.submissions.values() if s.state.ended]
        if not (self._queue.dirty or ended or self._story.pending or self.blocked):
            return True
        try:
            if self.blocked:
                self._journal.probe()
            self._journal.save(
                self._queue.dirty.values(),
                ended=ended,
                outcomes=self._story.outcomes.items(),
                story=self._story.records,
                errors=self._story.errors,
                wanted=self._story.wanted,
            )
        except JournalError as error:
            self._block(error)
            return False
        self._queue.dirty.clear()
        self._story.told()
        for submission in ended:
            del self._queue.submissions[submission.id]
        for submission in self._queue.submissions.values():
            submission.let_go()
        if self.blocked:
            log.warning("the journal can be written again; jobs are started again")
            self.blocked = ""
        return True

    def intend(self, actions: Sequence[Action]) -> Sequence[Action]:
        """Put the intents on the disk; returns the actions that may be carried out: all of them, or none."""
        if not actions:
            return ()
        try:
            self._intents = self._journal.intend(
                actions, self._queue.dirty.values(), cycle=self._story.cycle, time=self._story.now
            )
        except JournalError as error:
            self._block(error)
            return ()
        self._queue.dirty.clear()
        for action in actions:
            entry = self._queue.find(action.key)
            if entry and isinstance(action, Start):
                entry.intent, entry.nodes = self._intents[action.key], action.nodes
        return actions

    def conclude(self, results: Sequence[Applied], *, dry: bool) -> None:
        """Note what came of the actions, and write it."""
        for applied in results:
            entry = self._queue.find(applied.action.key)
            if entry:
                self._story.applied(applied, entry, intent=self._intents[applied.action.key], dry=dry)
        if results:
            self.save()

    def _block(self, error: JournalError) -> None:
        if not self.blocked:
            log.error("%s; jobs go on, but none is started until it can be written", error)
        self.blocked = str(error)

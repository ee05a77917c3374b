"""Asking the resource manager's records what became of jobs that it does not show any more.

Rule: all that are missing are asked for at once, at most MOST of them, again and again with growing gaps; while no
answer comes nothing is known, and that is said once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

from ..adapters.base import Adapter, AdapterError
from ..simulate.snapshot import JobView
from .queue import Answers
from .render.text import count

log = logging.getLogger("pilotfish.cycle")
#: Jobs in one request; those that were not asked for yet, or longest ago, come first.
MOST = 200
#: Seconds between two requests: the first is doubled up to the last while nothing new is missed or known.
GAP_S = (1.0, 60.0)


class Recall:
    """Follows the jobs that are missing.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, adapter: Adapter, clock: Callable[[], float]) -> None:
        self._adapter, self._clock = adapter, clock
        self._answers: dict[str, JobView | None] = {}
        self._asked: dict[str, float] = {}
        self._gap, self._last = GAP_S[0], -math.inf
        self._kept = self._answered = True

    def look(self, missing: Mapping[str, float]) -> Answers | None:
        """What is on record of the jobs that are missing now; None where no record is kept.

        Args:
            missing: by key, a time before which the job cannot have been started, epoch seconds.
        """
        self._answers = {key: view for key, view in self._answers.items() if key in missing}
        self._asked = {key: at for key, at in self._asked.items() if key in missing}
        if missing.keys() - self._asked.keys():
            self._gap = GAP_S[0]
        if missing and self._clock() - self._last >= self._gap:
            self._ask(missing)
        return self._answers if self._kept else None

    def _ask(self, missing: Mapping[str, float]) -> None:
        keys = sorted(missing, key=lambda key: self._asked.get(key, -math.inf))[:MOST]
        self._last, self._gap = self._clock(), min(2 * self._gap, GAP_S[1])
        self._asked |= dict.fromkeys(keys, self._last)
        try:
            found = self._adapter.recall({key: missing[key] for key in keys})
        except AdapterError as error:
            self._unanswered(error, len(missing))
            return
        if not self._answered:
            log.warning("the records of ended jobs can be read again")
        self._answered = True
        if found is None:
            self._unrecorded()
            return
        self._kept = True
        self._answers |= {key: found.get(key) for key in keys}
        if found:
            self._gap = GAP_S[0]

    def _unanswered(self, error: AdapterError, missing: int) -> None:
        self._answers.clear()
        if self._answered:
            what = f"{count(missing, 'job')} that the queue does not show {'is' if missing == 1 else 'are'}"
            log.error("the records of ended jobs cannot be read: %s; %s unknown until they can", error, what)
        self._answered = False

    def _unrecorded(self) -> None:
        if self._kept:
            log.warning(
                "%s keeps no record of jobs that have left its queue: one that is not shown for long has failed",
                self._adapter.name,
            )
        self._kept = False
        self._answers.clear()

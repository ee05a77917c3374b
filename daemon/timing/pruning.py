"""Once a day, drop what ended long ago, from the journal and from the adapter, a part after each cycle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from ...adapters.base import Adapter, AdapterError
from ..state.journal import Journal, JournalError
from .age_clock import AgeClock

log = logging.getLogger("pilotfish.service")
EVERY_S = 86400.0
#: Seconds from the start of the daemon to the first pruning: time to correct a clock that is wrong after a boot.
FIRST_S = 3600.0


class Pruning:
    """Drops old workflows.

    Args:
        journal: has the workflows.
        adapter: forgets their jobs.
        keep_days: returns the days for which ended workflows stay.
    """

    def __init__(self, journal: Journal, adapter: Adapter, keep_days: Callable[[], float]) -> None:
        self._journal, self._adapter, self._keep_days = journal, adapter, keep_days
        self._due_at, self._age_clock = time.monotonic() + FIRST_S, AgeClock()
        self._steps: Iterator[list[str]] = iter(())

    def prune(self, present: float, now: float) -> None:
        """Drop a part of what is old; begin again once a day.

        Args:
            present: the resource manager's clock, epoch seconds; 0: not known yet.
            now: monotonic seconds.
        """
        if not present:
            return
        age_now = self._age_clock.read(present, now)
        if now >= self._due_at:
            self._due_at = now + EVERY_S
            self._steps = self._journal.prune_steps(age_now - 86400.0 * self._keep_days())
        try:
            for key in next(self._steps, ()):
                self._adapter.forget(key)
        except (AdapterError, JournalError) as error:
            self._steps = iter(())
            log.warning("old workflows could not be dropped: %s", error)

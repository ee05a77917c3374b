"""Jobs that have left the queue: ask the resource manager's records how they ended.

Rule: all missing jobs are asked for at once, at most MOST of them, with growing gaps between requests. While records
cannot be read nothing is known about these jobs; this is logged once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

from ...adapters.base import Adapter, AdapterError
from ...formats.text import count
from ...simulate.model.snapshot import JobView
from .queue import Records

log = logging.getLogger("pilotfish.cycle")
#: Jobs in one request; those asked for longest ago, or never, come first.
MOST = 200
#: Seconds between two requests: the first, doubled up to the last while nothing new is missing or found.
GAP_S = (1.0, 60.0)


class EndedJobs:
    """Looks up missing jobs.

    Args:
        adapter: whose records are read.
        clock: seconds, monotonic.
    """

    def __init__(self, adapter: Adapter, clock: Callable[[], float]) -> None:
        self._adapter, self._clock = adapter, clock
        self._answers: dict[str, JobView | None] = {}
        self._asked_at: dict[str, float] = {}
        self._gap, self._last = GAP_S[0], -math.inf
        self._has_records = self._answered = True

    def look_up(self, missing: Mapping[str, float]) -> Records | None:
        """Return the records of the jobs that are missing now; None if no records are kept.

        `missing` has by key a time before which the job cannot have been started, epoch seconds.
        """
        self._answers = {key: view for key, view in self._answers.items() if key in missing}
        self._asked_at = {key: at for key, at in self._asked_at.items() if key in missing}
        if missing.keys() - self._asked_at.keys():
            self._gap = GAP_S[0]
        if missing and self._clock() - self._last >= self._gap:
            self._ask(missing)
        return self._answers if self._has_records else None

    def _ask(self, missing: Mapping[str, float]) -> None:
        keys = sorted(missing, key=lambda key: self._asked_at.get(key, -math.inf))[:MOST]
        self._last, self._gap = self._clock(), min(2 * self._gap, GAP_S[1])
        self._asked_at |= dict.fromkeys(keys, self._last)
        try:
            records = self._adapter.recall({key: missing[key] for key in keys})
        except AdapterError as error:
            self._answers.clear()
            if self._answered:
                jobs_text = (
                    f"{count(len(missing), 'job')} that the queue does not show {'is' if len(missing) == 1 else 'are'}"
                )
                log.error("the records of ended jobs cannot be read: %s; %s unknown until they can", error, jobs_text)
            self._answered = False
            return
        if not self._answered:
            log.warning("the records of ended jobs can be read again")
        if records is None and self._has_records:
            long = (
                "%s keeps no record of jobs that have left its queue: a job that is missing for long counts as failed"
            )
            log.warning(long, self._adapter.name)
        self._answered, self._has_records = True, records is not None
        self._answers = {} if records is None else self._answers | {key: records.get(key) for key in keys}
        if records:
            self._gap = GAP_S[0]

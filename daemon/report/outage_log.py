"""Logs when the resource manager cannot be reached, and when it can be reached again.

Rule: each of these is logged at most once in EVERY_S, however often they alternate. An outage that lasts is logged in
any case, and the next such line says how many short ones the log leaves out.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from ...formats.text import count

log = logging.getLogger("pilotfish.service")
EVERY_S = 60.0


class OutageLog:
    """The outages so far.

    Args:
        clock: seconds, monotonic.

    Attributes:
        lasts: the resource manager cannot be reached now.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.lasts = False
        self._logged_at, self._is_logged, self._short = -math.inf, False, 0

    def begin(self, why: str) -> None:
        """Note that a cycle could not reach the resource manager."""
        self.lasts = True
        if self._is_logged or self._clock() - self._logged_at < EVERY_S:
            return
        self._logged_at, self._is_logged = self._clock(), True
        before = f" (after {count(self._short, 'short outage')} that the log leaves out)" if self._short else ""
        log.error("the cluster cannot be reached: %s; nothing is decided until it can%s", why, before)
        self._short = 0

    def end(self) -> None:
        """Note that a cycle has reached it."""
        if self._is_logged:
            log.warning("the cluster can be reached again")
        elif self.lasts:
            self._short += 1
        self.lasts = self._is_logged = False

"""A watch: a record of a resource manager without a service, which decides nothing and needs nothing compiled.

Rule: it reads the counters of events as often as it may, and looks only if they have moved, after a while in any case.
An error of the resource manager is recorded, too, and said once until it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

from ...adapters.base import Adapter, AdapterError
from .recorder import Recorder

log = logging.getLogger("pilotfish.record")
#: Longest time between two looks, seconds: the counters do not count everything.
LONGEST_S = 60.0


class Watch:
    """Looks again and again.

    Args:
        adapter: is asked for the counters.
        recorder: keeps what is seen.
        clock: seconds, monotonic.
    """

    def __init__(self, adapter: Adapter, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._adapter, self._recorder, self._clock = adapter, recorder, clock
        self._recorded = recorder.adapter(adapter)
        self._activity: Hashable = None
        self._looked_at = -LONGEST_S
        self._is_away = False

    def step(self) -> bool:
        """Look if there is something to see; return whether it looked.

        Raises KeyboardInterrupt: the record ends before the look that was interrupted.
        """
        activity = self._counters()
        is_idle = activity is not None and activity == self._activity
        if is_idle and self._clock() < self._looked_at + LONGEST_S:
            return False
        self._looked_at, self._activity = self._clock(), activity
        self._recorder.clock()
        try:
            self._recorded.snapshot()
            self._recorded.queue()
        except AdapterError as error:
            if not self._is_away:
                log.warning("the resource manager cannot be read: %s", error)
            self._is_away = True
            self._recorder.end(None)
            return True
        except KeyboardInterrupt:
            self._recorder.forget_look()
            raise
        if self._is_away:
            log.warning("the resource manager can be read again")
        self._is_away = False
        self._recorder.end_look()
        return True

    def _counters(self) -> Hashable:
        try:
            activity = self._adapter.activity()
        except AdapterError:
            return None
        return None if activity is None else (activity.arrivals, activity.others)

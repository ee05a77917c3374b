"""Costs of the service over all its runs: CPU seconds, and requests to the resource manager; and until when it ran.

Rule: both are kept in the journal, so that a card can show them while the service runs, and after it has ended. What
came after the last note, at most EVERY_S, is not counted if the service is killed. The processes of the service count,
too: their CPU time once they have ended, and the requests of its cards.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from ...adapters.base import NOT_SENT, Adapter
from ...simulate.model.snapshot import Snapshot
from ..state.journal import Journal
from ..state.unsaved import Unsaved
from .cycle_report import CycleReport, Observer

#: The name of the costs in the journal.
KEPT = "cost"
EVERY_S = 300.0


def used_cpu_s() -> float:
    """Return the CPU time of this process, and of its children that have ended, seconds."""
    return sum(os.times()[:4])


class RunningCost(Observer):
    """Notes what the service costs.

    Args:
        adapter: counts its requests, or does not.
        journal: has the costs of earlier runs.
        unsaved: receives the costs.
        clock: seconds, monotonic.
        before_s: CPU time of this process that an earlier run of the service has counted, seconds.
        card_requests: returns the requests that the cards have sent.

    Raises:
        ConfigError: the journal is damaged.
    """

    def __init__(
        self, adapter: Adapter, journal: Journal, unsaved: Unsaved, clock: Callable[[], float], before_s: float = 0.0,
        card_requests: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self._adapter, self._unsaved, self._clock = adapter, unsaved, clock
        self._before, self._before_s = journal.kept(KEPT), before_s
        self._card_requests = card_requests
        self._began, self._noted_at = clock(), -math.inf
        self._looked_at: float | None = self._before.get("until")

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Note the costs, if it is time to."""
        self._looked_at = snapshot.time
        if self._clock() - self._noted_at >= EVERY_S:
            self.note()

    def note(self) -> None:
        """Note the costs up to now."""
        self._noted_at = now = self._clock()
        self._unsaved.kept[KEPT] = {
            "cpu_s": self._earlier("cpu_s") + used_cpu_s() - self._before_s,
            "running_s": self._earlier("running_s") + now - self._began,
            "requests": self._requests(),
            "until": self._looked_at,
        }

    def _earlier(self, name: str) -> float:
        value: Any = self._before.get(name)
        return value or 0.0

    def _requests(self) -> int | None:
        """Return the requests that were sent so far; None: the adapter does not count them."""
        load = self._adapter.load()
        if load is None:
            return None
        sent = sum(number for (_, outcome), number in load.requests.items() if outcome not in NOT_SENT)
        return int(self._earlier("requests")) + sent + self._card_requests()

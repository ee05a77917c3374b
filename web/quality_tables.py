"""The accuracy of the forecasts and the newest card, asked of the service now and then for all who look.

Rule: what is about the jobs of all users is shown only to those who may see them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ..daemon.state.recorded_outcome import ForecastOutcome, QueueRecord
from ..simulate.errors import PilotfishError
from .facts import Table, accuracy_tables, card_table

#: Seconds for which an answer is shown.
KEPT_S = 300.0


class QualityTables:
    """Keeps the tables.

    Args:
        ask: sends a request to the service. Raises PilotfishError.
        clock: seconds, monotonic.
    """

    def __init__(self, ask: Callable[..., dict[str, Any]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._due, self._tables, self._asking = clock(), list[Table](), asyncio.Lock()

    async def tables(self) -> list[Table]:
        """Return the tables; the service is asked in a thread. Raises PilotfishError if it does not answer."""
        async with self._asking:
            if self._clock() >= self._due:
                self._tables = await asyncio.to_thread(self._learn)
                self._due = self._clock() + KEPT_S
            return self._tables

    def _learn(self) -> list[Table]:
        reply, card = self._ask("accuracy"), self._ask("card")
        try:
            jobs = [ForecastOutcome(*job) for job in reply["jobs"]]
            return [*accuracy_tables(jobs, [QueueRecord(*job) for job in reply["starts"]]), card_table(card)]
        except (LookupError, TypeError, ValueError) as error:  # it may be of another version
            raise PilotfishError(f"the service's answer is not understood: {error!r}") from None

"""Follow the service: ask it for the board while a viewer looks, and pass its changes on to all who look.

Rule: however many look, there is one question at a time. While no viewer looks, the service is asked once a minute, so
that the past is there. A service that does not answer is shown as such, and asked again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..simulate.errors import PilotfishError
from .board_copy import BoardCopy

log = logging.getLogger("pilotfish.web")
#: Seconds between two questions while a viewer looks, and while none does.
LOOKED_AT_S, ALONE_S = 2.0, 60.0


class Follower:
    """Keeps a copy of the board up to date.

    Args:
        ask: sends a request to the service. Raises PilotfishError.
    """

    def __init__(self, ask: Callable[..., dict[str, Any]]) -> None:
        self._ask, self._viewers = ask, 0
        self._woken, self._changed, self._asking = asyncio.Event(), asyncio.Condition(), asyncio.Lock()
        self._asked_at = -ALONE_S
        self.copy = BoardCopy()
        #: Why the service does not answer; "": it does.
        self.trouble = "the service has not been asked yet"

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Ask often meanwhile."""
        self._viewers += 1
        self._woken.set()
        try:
            yield
        finally:
            self._viewers -= 1

    async def run(self) -> None:
        """Follow, until it is cancelled."""
        while True:
            await self.refresh()
            self._woken.clear()
            wait_s = LOOKED_AT_S if self._viewers else ALONE_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), wait_s)

    async def refresh(self) -> None:
        """Ask the service, unless that was done a moment ago."""
        async with self._asking:
            if time.monotonic() - self._asked_at >= LOOKED_AT_S / 2:
                await self._ask_once()

    async def _ask_once(self) -> None:
        self._asked_at = time.monotonic()
        trouble, changed = "", False
        try:
            reply = await asyncio.to_thread(self._ask, "board", unless=self.copy.mark or None)
            changed = self.copy.take(reply)
        except PilotfishError as error:
            trouble = str(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # it may be of another version
            trouble = f"the service's answer is not understood: {error!r}"
        if trouble != self.trouble:
            (log.warning if trouble else log.info)("%s", trouble or "the service answers")
        if changed or trouble != self.trouble:
            self.trouble = trouble
            async with self._changed:
                self._changed.notify_all()

    async def news(self, version: int, patience_s: float) -> bool:
        """Wait for a change after a version of the copy; return whether there was one within so many seconds."""
        if self.copy.version != version:
            return True
        try:
            async with asyncio.timeout(patience_s), self._changed:
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

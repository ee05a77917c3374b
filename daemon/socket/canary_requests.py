"""The request `step_up`: an administrator lets a daemon that has stepped back to shadow go live again.

Rule: only a person steps up. Who asked, and why, is in the log and in the journal before the mode changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ...simulate.errors import PilotfishError
from ..canary.canary_watch import CanaryWatch
from ..loop import Cycle
from ..state.users import Peer
from .access import Access
from .intake import text_of
from .pause_requests import LONGEST_TEXT

log = logging.getLogger("pilotfish.requests")


class CanaryRequests:
    """Answers it.

    Args:
        cycle: of the daemon.
        canary: of the daemon; None: all jobs are handed over.
        access: judges who may.
        open_again: opens the service in its new mode.
    """

    def __init__(
        self, cycle: Cycle, canary: CanaryWatch | None, access: Access, open_again: Callable[[], None]
    ) -> None:
        self._cycle, self._canary, self._access, self._open_again = cycle, canary, access, open_again

    def step_up(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Go live again. Raises ForbiddenError, PilotfishError."""
        self._access.check_administers(peer)
        canary, tracker = self._canary, self._cycle.tracker
        if canary is None or canary.state.stepped_back is None:
            raise PilotfishError(f"it has not stepped back; its mode is {self._cycle.mode}")
        if not self._cycle.applier.mode.keeps:
            raise PilotfishError("a dry run keeps nothing, so it does not step up")
        if tracker.blocked:
            raise PilotfishError(f"the journal cannot be written, so that it stays in shadow: {tracker.blocked}")
        before = canary.state
        why = text_of(request, "why", longest=LONGEST_TEXT) if request.get("why") is not None else ""
        canary.step_up(str(peer), tracker.present, why)
        if tracker.blocked:
            canary.state = before
            raise PilotfishError(f"the journal cannot be written, so that it stays in shadow: {tracker.blocked}")
        log.warning("%s lets it step up; it had stepped back: %s", peer, before.why)
        self._open_again()
        return {"stepped_back": before.stepped_back, "why": before.why}

"""The viewers of a page, and what each may see.

Rule: the service decides. A viewer whom the site's proxy does not name sees what the service lets everybody see.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..daemon.socket.ipc import DaemonError, NoDaemonError
from .board_copy import Sees

#: Seconds for which what a user may see is remembered, and most users that are.
KNOWN_S, MOST_USERS = 60.0, 10_000


def sees_none(uid: int | None) -> bool:
    """See no user's jobs."""
    return False


def sees_all(uid: int | None) -> bool:
    """See the jobs of all."""
    return True


class Viewers:
    """Finds out what a user sees.

    Args:
        ask: sends a request to the service.
        clock: seconds, monotonic.
    """

    def __init__(self, ask: Callable[..., dict[str, Any]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._known = dict[str, tuple[float, Sees]]()

    def of(self, user: str | None, *, for_everybody: bool) -> Sees:
        """Return what a user sees; it may ask the service. Raises NoDaemonError if that does not answer.

        Args:
            user: as the proxy names them; None: it names no user.
            for_everybody: the service lets each user see the jobs of all.
        """
        if for_everybody:
            return sees_all
        if user is None:
            return sees_none
        until, sees = self._known.get(user, (0.0, sees_none))
        if self._clock() < until:
            return sees
        sees = self._learn(user)
        if len(self._known) >= MOST_USERS:
            self._known.clear()
        self._known[user] = self._clock() + KNOWN_S, sees
        return sees

    def _learn(self, user: str) -> Sees:
        try:
            rights = self._ask("rights", as_user=user)
        except NoDaemonError:
            raise
        except DaemonError:  # the service knows no such user
            return sees_none
        own_uid = rights["uid"]
        return sees_all if rights["administers"] else lambda uid: uid == own_uid

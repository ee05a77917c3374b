"""Asks OAR for scheduling passes, until the jobs that may begin have begun.

Rule: OAR is asked after each change, and again once in EVERY_S: it looks at a notification that comes too soon after a
pass 10 s later only, and a pass may plan a start for the next one. After FOR_S it is left alone: at least each 60 s it
begins a pass anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from .commands import poke
from .world import World

log = logging.getLogger("pilotfish.adapters")
EVERY_S, FOR_S = 1.0, 20.0


class Passes:
    """Requests for passes to one server.

    Args:
        server: Host and port of Almighty.
        clock: Monotonic clock, seconds.
    """

    def __init__(self, server: tuple[str, int], clock: Callable[[], float]) -> None:
        self._server, self._clock = server, clock
        self._awaited: dict[int, float] = {}  # jobs that may begin, and since when, OAR's clock
        self._asked_at = float("-inf")

    def next_at(self, otherwise: float) -> float:
        """Return when OAR is to be asked next, by the monotonic clock; `otherwise` if no job is awaited."""
        return self._asked_at + EVERY_S if self._awaited else otherwise

    def wait_for(self, job: int, since: float) -> None:
        """Ask from now on until this job begins; `since` is OAR's clock, epoch seconds."""
        self._awaited[job] = since

    def ask(self, world: World, now: float, *, at_once: bool = False) -> None:
        """Ask if a job is awaited, and it is due or must be at once.

        Args:
            world: OAR as it was last read.
            now: Its clock now, epoch seconds.
            at_once: Ask also within EVERY_S.
        """
        if not self._awaited or (not at_once and self._clock() - self._asked_at < EVERY_S):
            return
        waiting = {job.id for job in world.jobs if job.state == "Waiting"}
        for job, since in list(self._awaited.items()):
            begun = world.now > since and job not in waiting
            if begun or now - since > FOR_S:
                del self._awaited[job]
        if not self._awaited:
            return
        self._asked_at = self._clock()
        if not poke(self._server):
            log.debug("Almighty does not answer at %s:%d", *self._server)

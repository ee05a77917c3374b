"""Notices OAR's scheduling passes, and asks for passes until the jobs that may begin have begun.

Rule: OAR counts the least time between two passes in whole seconds, and handles a request that comes too soon only 10 s
later. So it is asked after each change, unless a pass has just begun, and again at each whole second. After FOR_S it is
not asked any more, because it begins a pass at least every 60 s anyway. DEAF_S after a pass, this class reports news
once more, because jobs that were submitted in between may wait for these 10 s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from ..file_watch import FileWatch
from .commands import poke
from .records.world import OarState

log = logging.getLogger("pilotfish.adapters")
FOR_S = 20.0
#: OAR's default of the least time between two passes, which it counts in whole seconds, and one more.
DEAF_S = 6.0
#: What OAR runs first in a pass, after the submission that causes it is in the database, and half a second to a second
#: before it asks for the jobs that wait.
FIRST_PROGRAM = Path("/usr/lib/oar/NodeChangeState")
#: Least length of a pass on a small machine, and by how much a request is later than the whole second, seconds.
PASS_S, LATER_S = 0.5, 0.02


class Passes:
    """The passes of one server.

    Args:
        server: Host and port of Almighty.
        file: What the shim reads in each pass; None: there is no shim, and no pass is heard of.
        clock: Monotonic clock, seconds.
    """

    def __init__(self, server: tuple[str, int], file: Path | None, clock: Callable[[], float]) -> None:
        self._server, self._clock = server, clock
        read = () if file is None else (file, FIRST_PROGRAM) if FIRST_PROGRAM.exists() else (file,)
        self._watch = FileWatch(read, clock) if read else None
        self._awaited: dict[int, float] = {}  # jobs that may begin, and since when, OAR's clock
        self._ask_at = self._begun_at = float("-inf")
        self._news_at = float("inf")

    def next_at(self, otherwise: float) -> float:
        """Return when OAR is to be asked, or there is news; `otherwise` if neither. Times of the monotonic clock."""
        return min(self._news_at, self._ask_at if self._awaited else otherwise)

    @property
    def descriptor(self) -> int | None:
        """A descriptor that is readable when a pass is heard of; None: none ever is."""
        return self._watch.descriptor if self._watch is not None and self._watch.descriptor >= 0 else None

    def hear(self, timeout_s: float) -> bool:
        """Wait for at most so many seconds until OAR begins a pass, the shim reads its file in one, or it was deaf."""
        if self._watch is None or self.descriptor is None:
            time.sleep(max(0.0, timeout_s))
        elif self._watch.read(timeout_s):
            self._begun_at = self._clock()
            self._news_at = self._begun_at + DEAF_S
            return True
        if self._clock() < self._news_at:
            return False
        self._news_at = float("inf")
        return True

    def close(self) -> None:
        """Hear of no more passes."""
        if self._watch is not None:
            self._watch.close()

    def wait_for(self, job: int, since: float) -> None:
        """Ask from now on until this job begins; `since` is OAR's clock, epoch seconds."""
        self._awaited[job] = since

    def ask(self, world: OarState, now: float, *, at_once: bool = False) -> None:
        """Ask if a job is awaited, and it is due or wanted at once.

        Args:
            world: OAR as it was last read.
            now: Its clock now, epoch seconds.
            at_once: Ask also between whole seconds, unless a pass has just begun.
        """
        clock = self._clock()
        if not self._awaited or (not at_once and clock < self._ask_at):
            return
        waiting = {job.id for job in world.jobs if job.state == "Waiting"}
        for job, since in list(self._awaited.items()):
            begun = world.now > since and job not in waiting
            if begun or now - since > FOR_S:
                del self._awaited[job]
        if not self._awaited:
            return
        free_at = self._begun_at + PASS_S  # a request at a whole second is worth a try in any case
        self._ask_at = max(clock, free_at)
        self._ask_at += 1.0 - (now + self._ask_at - clock) % 1.0 + LATER_S
        if not (at_once and clock < free_at) and not poke(self._server):
            log.debug("Almighty does not answer at %s:%d", *self._server)

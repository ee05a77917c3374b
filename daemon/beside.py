"""Jobs of this node with the counters beside them: what completed is learned once its counts have come in.

Rule: no cycle waits for a counter, or fails for one. Only jobs that teach are counted, and of these only those on one
node: what is spread over several is not the same on each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress

from ..profiles.alongside import Alongside
from ..simulate.snapshot import JobView, Snapshot
from .memory import Memory

log = logging.getLogger("pilotfish.profiles")


class Beside:
    """Hands what completed jobs used to the memory, with what was counted of them.

    Args:
        alongside: the counters of this node.
        memory: what learns.
    """

    def __init__(self, alongside: Alongside, memory: Memory) -> None:
        self._alongside, self._memory = alongside, memory
        self._held: dict[str, JobView] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Begin, look and end with counting, by what runs now. O(jobs)."""
        try:
            self._look(snapshot)
        except Exception as error:  # a counter that surprises us must not take the daemon down
            log.error("counters beside jobs are given up: %s: %s", type(error).__name__, error)
            self._give_up()

    def _look(self, snapshot: Snapshot) -> None:
        self._settle()
        here = [view for view in snapshot.jobs if view.pid is not None]
        running = {
            view.key: view.pid
            for view in here
            if view.pid is not None and len(view.nodes) == 1 and self._memory.learns(view.job)
        }
        self._alongside.follow(running, alone=len(here) == 1)

    def keep(self, views: Iterable[JobView]) -> None:
        """Learn from completed jobs; from those that are counted once that has come in."""
        views = list(views)
        self._held |= {view.key: view for view in views if self._alongside.counts(view.key)}
        self._memory.keep(view for view in views if view.key not in self._held)

    def close(self) -> None:
        """Learn what is left with what has come in, and end all counting."""
        self._settle()
        self._give_up()

    def _give_up(self) -> None:
        held, self._held = list(self._held.values()), {}
        with suppress(Exception):
            self._alongside.close()
        self._alongside = Alongside(())
        self._memory.keep(held)

    def _settle(self) -> None:
        """Learn from those whose counts have come in; let go of those that ended otherwise."""
        for key in self._alongside.ended:
            if key not in self._held:
                self._alongside.drop(key)
            elif self._alongside.ready(key):
                view = self._held.pop(key)
                counted = self._alongside.take(key, dict(view.usage).get("cpu_seconds", 0.0))
                self._memory.keep([view], {key: counted})

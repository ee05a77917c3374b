"""The jobs whose properties OAR has to evaluate now, and the wait for its answers.

Rule: only properties of waiting jobs count, and never those of a job that OAR places in any case. Those of jobs that
are not handed over are needed for forecasts of the whole queue, and come last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from .commands import OarCommands
from .job_views import PREFIX, OarSelection, key_of
from .records.properties import AllowedNodes, Properties, Waiting
from .records.requests import left_to_oar
from .records.world import OarJob

#: Seconds between two looks whether OAR has answered.
POLL_S = 0.05


class PropertyEvaluation:
    """Evaluates properties while the adapter goes on.

    Args:
        commands: Returns what runs OAR's commands.
        nodes: Names of the nodes on which jobs may be placed.
        selection: The jobs that are handed over; none without a shim.
        user: Name of our own user.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        commands: Callable[[], OarCommands],
        nodes: Collection[str],
        selection: OarSelection,
        user: str,
        clock: Callable[[], float],
    ) -> None:
        self._clock, self._selection, self._user = clock, selection, user
        self._properties = Properties(lambda text: commands().ask_for_nodes(text, clock), nodes, clock)
        self._waiting: list[Waiting] = []
        self._whole_queue = False

    def answer(self, properties: str) -> AllowedNodes | None:
        """Return the nodes that properties allow; None: not known yet."""
        return self._properties.answer(properties)

    def of_any_queue(self, properties: str) -> frozenset[str] | None:
        """Return all of OAR's nodes that properties (not "") allow, as forecasts of the whole queue need it."""
        self._whole_queue = True
        return self._properties.nodes(properties)

    def outdate(self) -> None:
        """Note that OAR's nodes have changed."""
        self._properties.outdate()

    def void(self) -> None:
        """Note that OAR cannot be read."""
        self._properties.void()

    def follow(self, jobs: Iterable[OarJob], let_go: Collection[int]) -> None:
        """Take the answer that has come, and ask for what these jobs need.

        Args:
            jobs: All jobs, in OAR's order.
            let_go: Ids of jobs that were let go for good.
        """
        self._waiting = list(self._needed(jobs, let_go))
        self._properties.take_answer()
        self._properties.ask_next(self._waiting)

    def proceed(self) -> bool:
        """Take the answer if one has come, and ask on; return whether a handed-over job can go on with it."""
        if not self._properties.is_asking:
            return False
        news = self._properties.take_answer()
        self._properties.ask_next(self._waiting)
        return news

    def next_at(self) -> float:
        """Return when to call `proceed`, inf if no question is open."""
        return self._clock() + POLL_S if self._properties.is_asking else math.inf

    def settle(self, timeout_s: float) -> None:
        """Wait for the answers that handed-over jobs need, at most so many seconds."""
        deadline = self._clock() + timeout_s
        unknown = {job.properties for job in self._waiting if job.offered}
        while any(self.answer(properties) is None for properties in unknown) and self._clock() < deadline:
            time.sleep(POLL_S)
            self._properties.take_answer()
            self._properties.ask_next(self._waiting)

    def _needed(self, jobs: Iterable[OarJob], let_go: Collection[int]) -> Iterator[Waiting]:
        for job in jobs:
            if job.state != "Waiting" or not job.properties or "besteffort" in job.types:
                continue
            handed_over = self._selection.takes(job) and job.first == job.id and not left_to_oar(job)
            offered = handed_over and job.id not in let_go
            if (offered or self._whole_queue) and key_of(job, self._user).startswith(PREFIX):
                yield Waiting(job.id, job.user, job.properties, offered)

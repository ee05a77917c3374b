"""Asking the resource manager's accounting what ended jobs used, where nothing else tells, and learning from it.

Rule: seldom, and of many jobs at once: a job is asked for some time after its end, because accounting is late, and
again and again with growing gaps until it is there. Which jobs are still to be asked for is in the journal alone, so
that neither a restart nor accounting that is away for long forgets one, and memory holds one request's worth. What
takes too long is asked for in smaller parts.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..adapters.base import Adapter, AdapterError
from ..simulate.booked import Booked
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobState, JobView
from .exporter import Metrics
from .journal import Journal, JournalError
from .memory import Memory
from .queue import Event, Queue
from .render.text import count
from .wanted import Wanted

if TYPE_CHECKING:
    from ..profiles.measurement import Measurement

log = logging.getLogger("pilotfish.books")
#: Jobs in one request.
MOST = 100
#: Longest pause between two requests, longest wait for one job's entry to be asked for again, and how long it is
#: asked for at all, seconds.
LONGEST_S, LATER_S, GIVE_UP_S = 900.0, 3600.0, 7 * 86400.0


class Books:
    """Follows the jobs that completed.

    Args:
        clock: seconds, monotonic.
        delay_s: seconds from a job's end until it is asked for.
        every_s: least seconds between two times of asking.
    """

    def __init__(
        self,
        adapter: Adapter,
        journal: Journal,
        memory: Memory,
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        delay_s: float,
        every_s: float,
    ) -> None:
        self._adapter, self._journal, self._memory, self._metrics = adapter, journal, memory, metrics
        self._clock, self._delay_s, self._every_s = clock, delay_s, every_s
        self._most, self._gap, self._next = MOST, every_s, -math.inf
        self._answered = self._told = True
        self._learned: set[str] = set()  # of which the journal could not yet be told

    def wanted(self, events: Iterable[Event], queue: Queue, views: Iterable[JobView]) -> list[Wanted]:
        """The jobs that have just completed and teach something, for the journal.

        Args:
            views: of these, as they are shown: what a job is called is not in the journal.
        """
        found, shown = [], {view.key: view.job for view in views}
        for entry in (event.entry for event in events if event.entry.state is JobState.COMPLETED):
            name = self._memory.kept_as(entry.job) or self._memory.kept_as(shown.get(entry.key, entry.job))
            if name and entry.finish_time is not None:
                since = queue.submissions[entry.workflow].submit_time
                found.append(Wanted(entry.key, name, since, entry.finish_time, entry.finish_time + self._delay_s))
        return found

    def look(self, now: float, cluster: Cluster) -> None:
        """Ask for what is due, if it is time to; `now` is the resource manager's, epoch seconds."""
        if self._clock() < self._next:
            return
        try:
            if due := self._journal.books_due(now, self._most):
                self._ask(due, now, cluster)
        except JournalError as error:
            self._gap = min(2 * self._gap, LONGEST_S)
            log.warning("whose use to look up cannot be told now: %s", error)
        self._next = self._clock() + self._gap

    def _ask(self, due: Sequence[Wanted], now: float, cluster: Cluster) -> None:
        try:
            found = self._adapter.books({wanted.key: wanted.since for wanted in due})
        except AdapterError as error:
            self._unanswered(error, due, now)
            return
        if not self._answered:
            log.warning("what ended jobs used can be read from the accounting of %s again", self._adapter.name)
        self._answered, self._gap, self._most = True, self._every_s, min(2 * self._most, MOST)
        later: list[Wanted] = []
        shown: list[tuple[Wanted, Measurement]] = []
        for wanted in due:
            entry = None if found is None else found.get(wanted.key)
            if found is None:
                self._count("not kept")
            elif entry is not None:
                if wanted.key not in self._learned and (run := self._run_of(entry, cluster)):
                    shown.append((wanted, run))
            elif now - wanted.ended < GIVE_UP_S:
                later.append(self._again(wanted, now))
            else:
                self._count("not found")
        if not self._learn(shown):
            later += [self._again(wanted, now) for wanted, _ in shown]
        self._settle(due, later)

    def _run_of(self, entry: Booked, cluster: Cluster) -> Measurement | None:
        """What an entry shows; None where that is nothing."""
        from ..profiles.books import measurement

        kinds = {cluster.nodes[i].type for name in entry.placed if (i := cluster.index.get(name)) is not None}
        kind = kinds.pop() if len(kinds) == 1 else None
        whole = kind is not None and entry.cores >= kind.cores
        run = measurement(entry, f"{self._adapter.name} accounting", whole=whole)
        if run is None:
            self._count("not measured")
            self._say_unmeasured(entry)
            return None
        return replace(run, node_type=kind.name if kind else None)

    def _learn(self, shown: Sequence[tuple[Wanted, Measurement]]) -> bool:
        """Keep it; False where that is not possible now."""
        if not self._memory.book([(wanted.name, run) for wanted, run in shown]):
            return False
        self._learned |= {wanted.key for wanted, _ in shown}
        self._count("learned", len(shown))
        return True

    def _settle(self, due: Sequence[Wanted], later: Sequence[Wanted]) -> None:
        """Tell the journal; until it can be told, what was learned is not learned again."""
        open_still = {wanted.key for wanted in later}
        try:
            self._journal.settle_books([wanted.key for wanted in due if wanted.key not in open_still], later)
        except JournalError as error:
            log.debug("%s; the same jobs are asked for again", error)
            return
        self._learned.clear()

    def _unanswered(self, error: AdapterError, due: Sequence[Wanted], now: float) -> None:
        """Leave it alone for longer each time. What may be the fault of one job's entry is narrowed down to that."""
        self._gap = min(2 * self._gap, LONGEST_S)
        if not error.transient or error.kind == "timeout":
            if len(due) == 1:
                self._settle(due, [replace(self._again(due[0], now), due=now + LATER_S)])
            self._most = max(1, len(due) // 2)
        if self._answered:
            what = f"{count(len(due), 'job')} or more {'waits' if len(due) == 1 else 'wait'} for it"
            log.warning("what ended jobs used cannot be read from the accounting: %s; %s", error, what)
        self._answered = False

    def _again(self, wanted: Wanted, now: float) -> Wanted:
        gap_s = min(self._delay_s * 2.0 ** (wanted.tries + 1), LATER_S)
        return replace(wanted, due=now + gap_s, tries=wanted.tries + 1)

    def _say_unmeasured(self, entry: Booked) -> None:
        if self._told and entry.completed and entry.run_s:
            log.warning(
                "the accounting of %s has no CPU time of some jobs, from which nothing is learned"
                " (`pilotfish probes` tells why)",
                self._adapter.name,
            )
            self._told = False

    def _count(self, outcome: str, jobs: int = 1) -> None:
        self._metrics.booked.labels(outcome).inc(jobs)

"""Learn from the resource manager's accounting what ended jobs used, if no other source reports it.

Rule: requests are rare and for many jobs at once. A job is looked up some time after its end, because accounting is
late, and again with growing gaps until it is found. The pending jobs are in the journal alone, so that neither a
restart nor a long outage of the accounting forgets one, and memory holds one request's worth. A request that takes too
long is repeated in smaller parts.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...adapters.base import Adapter, AdapterError
from ...formats.text import count
from ...profiles.prediction.similar_jobs import traits_of
from ...simulate.model.accounting_record import TOO_MUCH_CPU_TIME, AccountingRecord
from ...simulate.model.cluster import Cluster
from ...simulate.model.snapshot import JobState, Snapshot
from ..report.cycle_report import CycleReport, Observer, completed_views
from ..report.metrics import Metrics
from ..state.journal import Journal, JournalError
from ..state.pending_usage import PendingUsage
from ..state.queue import JobEvent, Queue
from ..state.unsaved import Unsaved
from .profile_learning import LearnedProfiles

if TYPE_CHECKING:
    from ...profiles.measurement import Measurement

log = logging.getLogger("pilotfish.accounting")
#: Jobs in one request.
MOST = 100
#: Longest gap between two requests, longest gap until one job is asked for again, and how long it is asked for at all,
#: seconds.
LONGEST_S, LATER_S, GIVE_UP_S = 900.0, 3600.0, 7 * 86400.0


class UsageReader(Observer):
    """Reads the usage of completed jobs.

    Args:
        adapter: whose accounting is read.
        journal: has the pending jobs.
        profiles: learn from the usage.
        queue: of the jobs, and `unsaved` for those newly pending.
        clock: seconds, monotonic.
        delay_s: seconds from a job's end to its first request.
        every_s: least seconds between two requests.
    """

    def __init__(
        self,
        adapter: Adapter,
        journal: Journal,
        profiles: LearnedProfiles,
        metrics: Metrics,
        queue: Queue,
        unsaved: Unsaved,
        clock: Callable[[], float],
        *,
        delay_s: float,
        every_s: float,
    ) -> None:
        self._adapter, self._journal, self._profiles, self._metrics = adapter, journal, profiles, metrics
        self._queue, self._unsaved = queue, unsaved
        self._clock, self._delay_s, self._every_s = clock, delay_s, every_s
        self._most, self._gap, self._next = MOST, every_s, -math.inf
        self._answered, self._warned_unmeasured = True, False
        self._learned: set[str] = set()  # keys learned from, and not yet noted in the journal

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Note the completed jobs whose usage is worth reading.

        A job that was handed over is named by its view, because the journal does not have its name.
        """
        shown = {view.key: view.job for view in completed_views(events, snapshot)}
        for entry in (event.entry for event in events if event.entry.state is JobState.COMPLETED):
            name = self._profiles.stored_as(entry.job) or self._profiles.stored_as(shown.get(entry.key, entry.job))
            if name and entry.finish_time is not None:
                since, due = self._queue.submissions[entry.workflow].submit_time, entry.finish_time + self._delay_s
                traits = traits_of(shown.get(entry.key, entry.job), entry.since or since)
                text = json.dumps(traits) if traits else ""
                self._unsaved.pending.append(PendingUsage(entry.key, name, since, entry.finish_time, due, traits=text))

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Ask for the usage of the jobs that are due, if the last request is long enough ago."""
        if self._clock() < self._next:
            return
        try:
            if due := self._journal.usage_due(snapshot.time, self._most):
                self._ask(due, snapshot.time, snapshot.cluster)
        except JournalError as error:
            self._gap = min(2 * self._gap, LONGEST_S)
            log.warning("the journal cannot be read to see which jobs' usage is pending: %s", error)
        self._next = self._clock() + self._gap

    def _ask(self, due: Sequence[PendingUsage], now: float, cluster: Cluster) -> None:
        try:
            records = self._adapter.usage({pending.key: pending.since for pending in due})
        except AdapterError as error:
            self._note_failure(error, due, now)
            return
        if not self._answered:
            log.warning("the accounting of %s can be read again", self._adapter.name)
        self._answered, self._gap, self._most = True, self._every_s, min(2 * self._most, MOST)
        later: list[PendingUsage] = []
        runs: list[tuple[PendingUsage, Measurement]] = []
        for pending in due:
            record = None if records is None else records.get(pending.key)
            if records is None:
                self._count("not kept")
            elif record is not None:
                if pending.key not in self._learned and (run := self._measurement(record, cluster)):
                    runs.append((pending, replace(run, traits=json.loads(pending.traits or "{}"))))
            elif now - pending.ended < GIVE_UP_S:
                later.append(self._again(pending, now))
            else:
                self._count("not found")
        if self._profiles.store_runs([(pending.name, run) for pending, run in runs]):
            self._learned |= {pending.key for pending, _ in runs}
            self._count("learned", len(runs))
        else:
            later += [self._again(pending, now) for pending, _ in runs]
        self._save(due, later)

    def _measurement(self, record: AccountingRecord, cluster: Cluster) -> Measurement | None:
        """Return what a record shows; None if nothing can be learned from it.

        Nodes of one type are alike here, however fast each has been lately: a profile names a type of the cluster file.
        """
        from ...profiles.imports.imported import accounted_run

        kinds = {cluster.nodes[i].type.nominal for name in record.placed if (i := cluster.index.get(name)) is not None}
        kind = kinds.pop() if len(kinds) == 1 else None
        whole_node = kind is not None and record.cores >= kind.cores
        if record.obstacle == TOO_MUCH_CPU_TIME:
            self._count("impossible")
            return None
        if record.obstacle:
            self._count("not measured")
            self._warn_unmeasured(record)
            return None
        run = accounted_run(record, f"{self._adapter.name} accounting", whole=whole_node)
        fits = kind is None or run.memory_bytes is None or run.memory_bytes <= kind.memory
        return replace(run, node_type=kind.name if kind else None, memory_bytes=run.memory_bytes if fits else None)

    def _save(self, due: Sequence[PendingUsage], later: Sequence[PendingUsage]) -> None:
        """Note in the journal what is done; until that succeeds, no job is learned from twice."""
        again = {pending.key for pending in later}
        try:
            self._journal.settle_usage([pending.key for pending in due if pending.key not in again], later)
        except JournalError as error:
            log.debug("%s; the same jobs are asked for again", error)
            return
        self._learned.clear()

    def _note_failure(self, error: AdapterError, due: Sequence[PendingUsage], now: float) -> None:
        """Wait longer each time, and halve the request where one job's record may be at fault."""
        self._gap = min(2 * self._gap, LONGEST_S)
        if not error.transient or error.kind == "timeout":
            if len(due) == 1:
                self._save(due, [replace(self._again(due[0], now), due=now + LATER_S)])
            self._most = max(1, len(due) // 2)
        if self._answered:
            jobs_text = f"{count(len(due), 'job')} or more {'waits' if len(due) == 1 else 'wait'} for it"
            log.warning("what ended jobs used cannot be read from the accounting: %s; %s", error, jobs_text)
        self._answered = False

    def _again(self, pending: PendingUsage, now: float) -> PendingUsage:
        gap_s = min(self._delay_s * 2.0 ** (pending.tries + 1), LATER_S)
        return replace(pending, due=now + gap_s, tries=pending.tries + 1)

    def _warn_unmeasured(self, record: AccountingRecord) -> None:
        if not self._warned_unmeasured and record.completed and record.run_s:
            log.warning(
                "the accounting of %s has no CPU time of some jobs, so their profiles are not learned"
                " (`pilotfish probes` shows why)",
                self._adapter.name,
            )
            self._warned_unmeasured = True

    def _count(self, outcome: str, jobs: int = 1) -> None:
        self._metrics.usage_lookups.labels(outcome).inc(jobs)

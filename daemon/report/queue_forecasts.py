"""Forecasts of the starts that the resource manager itself decides, for all jobs in its queue, and their errors.

Rule: an oracle forecasts what it knows, and a replay under EASY backfilling the rest, see `oracle.queue_oracle`. The
forecasts are made after a cycle, from its snapshot, and take at most SHARE of a core: the longer the queue, the less
often. Which jobs wait is as new as the last cycle for every question, and a forecast says when it was made. A job that
is handed over takes part with its planned start; in shadow and in a dry run, which do nothing, the resource manager
starts it like every other. Once enough jobs have started, the interval of a start comes from
their errors: those of the same user if there are enough, else of all. An error is the logarithm of actual over forecast
wait, counted from the first forecast, with SPARE_S more. The error of a guess counts in both directions, and
so do all errors for the later forecasts of a job, which know more and lack the bias of the first. Until then, predicted
run times are guesses, and the interval reaches at least SPARE_S later than the forecast, because a resource manager
starts jobs in passes, some time after they could start.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from ...adapters.base import Adapter, AdapterError
from ...profiles.prediction.conformal import AdaptiveBounds
from ...simulate.model.observed_queue import ObservedJob, ObservedQueue
from ...simulate.model.plan import LEVEL
from ...simulate.model.snapshot import JobState, JobViews, Snapshot
from ...simulate.replay.queue_forecast import STEP, ExpectedRun, QueueForecast, forecast_queue
from ..oracle.queue_oracle import EASY, QueueOracle
from ..state.queue import Queue
from ..state.queue_entry import Entry
from ..state.recorded_outcome import QueueRecord
from ..state.users import user_name
from .cycle_report import CycleReport, Observer
from .metrics import Metrics
from .queue_run_times import QueueRunTimes
from .start_accuracy import start_errors

#: Largest share of the time that forecasts take; where nothing has changed, they are made again after LONGEST_S.
SHARE, LONGEST_S = 0.005, 60.0
#: Longest time until an answer of the oracle is taken, seconds.
ORACLE_S = 0.5
#: Added to waits before they are compared, seconds: errors of a few seconds say little.
SPARE_S = 10.0
#: Newest gaps from an end to the next start on the same nodes that count; the longest that is one, seconds.
GAPS, LONGEST_GAP_S = 200, 60.0


class QueueForecasts(Observer):
    """Forecasts the queue.

    Args:
        adapter: has the queue.
        queue: has the plans of the jobs that are handed over.
        changed: receives the records that have changed.
        metrics: receives the errors.
        clock: seconds, monotonic.
        past: records of jobs seen before, in the order of their ends.
        breathe: called between two steps of a forecast, so that clients are answered meanwhile.
        oracle: knows the rules of the resource manager; None: nothing does.
    """

    def __init__(
        self,
        adapter: Adapter,
        queue: Queue,
        changed: dict[str, QueueRecord],
        metrics: Metrics,
        clock: Callable[[], float],
        past: Iterable[QueueRecord] = (),
        breathe: Callable[[], None] = lambda: None,
        oracle: QueueOracle | None = None,
    ) -> None:
        self.oracle = oracle or QueueOracle()
        self._adapter, self._queue, self._changed, self._metrics, self._clock = adapter, queue, changed, metrics, clock
        self._breathe, self._answered_s = breathe, 0.0
        self._runs, self._bounds = QueueRunTimes(), AdaptiveBounds(LEVEL)
        self._records = dict[str, QueueRecord]()
        self._gaps = deque[float](maxlen=GAPS)
        self._due, self._made_at, self._made_of, self._observed_of = -math.inf, -math.inf, JobViews(), JobViews()
        #: The queue as it was seen last; None before, and where it is not known.
        self.observed: ObservedQueue | None = None
        #: When the forecasts were made, epoch seconds; 0: never.
        self.time = 0.0
        self._dry, self._by_rules = False, 0
        self.forecasts: dict[str, QueueForecast] = {}
        self._present: dict[str, ObservedJob] = {}
        for record in past:
            self._runs.learn(record)
            self._learn_start(record)
            if record.finish_time is None:
                self._records[record.key] = record

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Forecast the queue, if it is time to."""
        now = self._clock()
        if now < self._due or (self._made_of is snapshot.jobs and now - self._made_at < LONGEST_S):
            return
        self._made_at, self._made_of, self._answered_s, began = now, snapshot.jobs, 0.0, time.thread_time()
        first = self.observed is None  # it also loads the replay
        self._observed_of, observed = snapshot.jobs, self._adapter.queue()
        if observed is None:
            self._due = math.inf
            return
        self._dry = report.dry
        self.update(observed)
        self._due = now + (0.0 if first else (time.thread_time() - began - self._answered_s) / SHARE)

    def observe(self, snapshot: Snapshot) -> None:
        """Find out which jobs are in the queue of a snapshot; their forecasts stay. O(jobs) for a new snapshot."""
        if self.observed is not None and self._observed_of is not snapshot.jobs:
            with suppress(AdapterError):  # the answer says how old the forecasts are
                self._observed_of, observed = snapshot.jobs, self._adapter.queue()
                if observed is not None:
                    self._take_in(observed)

    def _take_in(self, observed: ObservedQueue) -> ObservedQueue:
        """Learn from a queue; return it without the jobs that have ended, and as planned."""
        self._follow(observed)
        jobs = [self._as_planned(job) for job in observed.jobs if not job.state.ended]
        self.observed = replace(observed, jobs=jobs)
        self._present = {job.key: job for job in jobs}
        return self.observed

    def update(self, observed: ObservedQueue) -> None:
        """Learn from a queue, and forecast it. O(jobs log jobs)."""
        present = self._take_in(observed)
        self.oracle.note_queue(present)
        self._make(present)

    def proceed(self) -> None:
        """Let the oracle go on; what it answers counts at once. The loop calls it between cycles."""
        queue = self.observed
        if queue is not None and self.oracle.proceed(queue, self._expected, self._planned_begin):
            self._make(queue)

    @property
    def patience_s(self) -> float:
        """Seconds within which `proceed` is to be called again."""
        return ORACLE_S if self.oracle.is_busy else math.inf

    def _make(self, queue: ObservedQueue) -> None:
        """Forecast a queue."""
        now, forecasts = queue.time, dict[str, QueueForecast]()
        begins = {job.key: job.begin for job in queue.jobs if job.begin and self._entry(job) is None}
        for number, (key, forecast) in enumerate(self._forecast(queue).items()):
            if number % STEP == 0:
                self._answer()
            forecasts[key] = self._corrected(forecast, self._records[key], now, begins.get(key, now))
        self.forecasts, self.time = forecasts, now
        for job in queue.jobs:
            if job.waiting:
                self._note_forecast(job, forecasts[job.key], now)

    def _forecast(self, queue: ObservedQueue) -> dict[str, QueueForecast]:
        """Return the forecast of each job that waits: the oracle's, or that of a replay under EASY."""
        answers = {key: one for key, one in self.oracle.forecasts(queue).items() if one.start_time is not None}
        waiting, self._by_rules = [job.key for job in queue.jobs if job.waiting], len(answers)
        if all(key in answers for key in waiting):
            return {key: answers[key] for key in waiting}
        replayed = forecast_queue(queue, self._expected, tuple(self._gaps), breathe=self._answer)
        return {key: answers.get(key, forecast) for key, forecast in replayed.items()}

    def _answer(self) -> None:
        """Answer clients between two steps; the time that this takes is theirs."""
        began = time.thread_time()
        self._breathe()
        self._answered_s += time.thread_time() - began

    def source(self) -> dict[str, Any]:
        """Return what the forecasts come from, and how many do, as `status` shows it."""
        state = self.oracle.state
        return {
            **asdict(state),
            "unfollowed": list(state.unfollowed),
            "jobs": self._by_rules if state.by != EASY else 0,
        }

    def document(self, job: ObservedJob) -> dict[str, Any]:
        """Return the document of a job that is not handed over, as `status` shows it."""
        forecast, plan = self.of(job), None
        if forecast.start_time is not None and forecast.finish_time is not None:
            plan = {
                "nodes": [],
                "start_time": forecast.start_time,
                "start_within": forecast.start_within,
                "finish_time": forecast.finish_time,
                "finish_within": forecast.finish_within,
                "run_time": forecast.finish_time - forecast.start_time,
                "forecast_by": None,
                "reserved": None,
                "next_best": None,
            }
        return {
            "id": job.key.partition("/")[2],
            "key": job.key,
            "name": job.name,
            "owner": None if job.owner is None else user_name(job.owner),
            "partition": job.queue,
            "state": str(job.state),
            "nodes": [] if job.waiting else sorted(job.where),
            "start_time": job.start_time,
            "submit_time": job.submit_time,
            "walltime": job.walltime,
            "tasks": job.tasks,
            "plan": plan,
            "manager_start_time": job.manager_start,
            "unknown": forecast.unknown,
        }

    def of(self, job: ObservedJob) -> QueueForecast:
        """Return the forecast of a job; an empty one if it does not wait."""
        if not job.waiting:
            return QueueForecast()
        return self.forecasts.get(job.key) or QueueForecast(unknown="it was submitted a moment ago")

    def end_of_run(self, job: ObservedJob) -> dict[str, float | None]:
        """Return when a job that runs is expected to end, epoch seconds, from past runs; None: they do not say."""
        run = self._expected(job) if job.key in self._records and job.start_time is not None else None
        if run is None or run.guess or job.start_time is None or job.start_time + run.median <= self.time:
            return dict.fromkeys(("finish_time", "finish_early", "finish_late"))
        ends = (job.start_time + span for span in (run.median, run.low, run.high))
        return dict(zip(("finish_time", "finish_early", "finish_late"), ends, strict=True))

    def find(self, key: str) -> ObservedJob | None:
        """Return the job of a key that waits or runs; None if there is no such job."""
        return self._present.get(key)

    def waiting(self, key: str) -> ObservedJob | None:
        """Return the waiting job of a key; None if no such job waits."""
        job = self.find(key)
        return job if job is not None and job.waiting else None

    def _learn_start(self, record: QueueRecord) -> None:
        """Note how far off the first forecast of a start was."""
        if record.start_time is None or record.said_start is None or record.said_time is None:
            return
        waited, forecast = (max(0.0, at - record.said_time) + SPARE_S for at in (record.start_time, record.said_start))
        error = math.log(waited / forecast)
        self._bounds.learn(_groups(record), -error, abs(error) if record.said_guessed else error)

    def _corrected(self, forecast: QueueForecast, record: QueueRecord, now: float, begin: float) -> QueueForecast:
        """Return the forecast with the interval that held for starts like it; the end moves with the start.

        Args:
            forecast: of the replay.
            record: its job.
            now: time of the queue.
            begin: before which the job cannot start, however far off other forecasts were.
        """
        start, within, ends = forecast.start_time, forecast.start_within, forecast.finish_within
        if start is None or within is None or ends is None or not now:
            return forecast
        if (bounds := self._bounds.of(_groups(record))) is None:
            early, late = within[0], max(within[1], start + SPARE_S)
        else:
            below, above = bounds if record.said_time in (None, now) else (max(bounds),) * 2
            wait = start - now + SPARE_S
            early = min(start, max(now, now + wait * math.exp(-below) - SPARE_S))
            late = max(start, now + wait * math.exp(above) - SPARE_S)
            if forecast.guessed:  # past errors say little about jobs that are not known
                early, late = min(early, within[0]), max(late, within[1])
            early = max(early, min(start, begin))
        ended = early - within[0] + ends[0], late - within[1] + ends[1]
        return replace(forecast, start_within=(early, late), finish_within=ended)

    def _expected(self, job: ObservedJob) -> ExpectedRun | None:
        record = self._records[job.key]
        run = self._runs.expected(record)
        return run and replace(run, guess=not self._runs.known(record) or self._bounds.of(_groups(record)) is None)

    def _as_planned(self, job: ObservedJob) -> ObservedJob:
        """Return the job; one that we start when we have planned to begins then."""
        begin = self._planned_begin(job)
        return job if begin is None else replace(job, begin=begin)

    def _planned_begin(self, job: ObservedJob) -> float | None:
        """Return when a job that waits is planned to begin by us; None: it is not."""
        entry = self._entry(job)
        if entry is None or entry.outlook is None:
            return None
        return entry.outlook.time + entry.outlook.planned.start_time

    def _entry(self, job: ObservedJob) -> Entry | None:
        """Return the entry of a job that we shall start; None: the resource manager does."""
        return self._queue.find(job.key) if job.waiting and not self._dry else None

    def _follow(self, observed: ObservedQueue) -> None:
        """Note which jobs are new, have begun, or have ended, and learn from those."""
        ended, present = list[QueueRecord](), dict[str, QueueRecord]()
        started, ends = list[ObservedJob](), dict[str, list[float]]()
        for job in observed.jobs:
            record = self._records.get(job.key) or _record(job)
            present[job.key] = record
            if job.finish_time is not None:
                for name in job.where:
                    ends.setdefault(name, []).append(job.finish_time)
            if job.waiting:
                if record.start_time is not None:  # it was requeued
                    record.start_time = record.finish_time = None
                continue
            if record.start_time is None and job.start_time is not None:
                record.start_time = job.start_time
                self._changed[job.key] = record
                self._count(record)
                self._learn_start(record)
                started.append(job)
            if record.finish_time is None and job.finish_time is not None:
                record.finish_time = job.finish_time
                record.learned = job.start_time is not None and job.state is not JobState.CANCELLED
                ended.append(record)
                if record.start_time is not None:
                    self._changed[job.key] = record
        for times in ends.values():
            times.sort()
        has_records = bool(self._records)
        self._records = present
        for record in sorted(ended, key=lambda record: record.finish_time or 0.0):
            self._runs.learn(record)
        for job in started if has_records else ():
            self._note_gap(job, ends)

    def _note_gap(self, job: ObservedJob, ends: dict[str, list[float]]) -> None:
        """Note how long the nodes of a job that has begun were left, if it waited for them; `ends` ascend."""
        since = max(job.submit_time or 0.0, job.begin or 0.0)
        start = job.start_time or 0.0
        ended = ((times, bisect_right(times, start)) for name in job.where if (times := ends.get(name)))
        before = [times[count - 1] for times, count in ended if count]
        if before and since < max(before) and start - max(before) <= LONGEST_GAP_S:
            self._gaps.append(start - max(before))

    def _note_forecast(self, job: ObservedJob, forecast: QueueForecast, now: float) -> None:
        """Note what is said of a job for the first time, by us and by the resource manager."""
        record, entry = self._records[job.key], self._entry(job)
        if forecast.start_time is None or forecast.start_within is None or job.tasks > 1:
            return  # a task that starts is a job of its own
        if entry is not None and entry.outlook is None:
            return  # what we shall do is not decided
        if record.said_start is None:
            record.said_time, record.said_start = now, forecast.start_time
            record.said_early, record.said_late = forecast.start_within
            record.said_guessed = forecast.guessed
            self._changed[job.key] = record
        if record.manager_start is None and job.manager_start is not None:
            record.compared_time, record.compared_start = now, forecast.start_time
            record.manager_start = job.manager_start
            self._changed[job.key] = record

    def _count(self, record: QueueRecord) -> None:
        for (by, compared), error in start_errors(record).items():
            self._metrics.start_errors.labels(by, "yes" if compared else "no").observe(abs(error))


def _groups(record: QueueRecord) -> tuple[tuple[str, int | None], ...]:
    return ("user", record.owner), ("all", None)


def _record(job: ObservedJob) -> QueueRecord:
    size = job.nodes * job.cores
    return QueueRecord(job.key, job.name, job.owner, job.account, job.queue, size, job.walltime, job.submit_time)

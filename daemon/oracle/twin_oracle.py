"""The oracle of a resource manager whose own rules are known: its twin.

Rule: it is asked only while jobs wait and the run times of most jobs are known; without them a replay under EASY is
nearer. Questions take at most SHARE of a CPU, and an answer holds for LONGEST_S. The log and `status` say
what keeps the rules from forecasting.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from dataclasses import replace

from ...adapters.base import Adapter
from ...formats.site.site_texts import SiteTexts
from ...formats.text import count
from ...simulate.errors import PilotfishError
from ...simulate.model.observed_queue import ObservedQueue
from ...simulate.replay.queue_forecast import QueueForecast
from .queue_oracle import Answers, Expected, OracleState, Planned, QueueOracle
from .twin_messages import TwinAnswer, TwinQuestion
from .twin_process import TwinProcess

log = logging.getLogger("pilotfish")
#: Largest share of a CPU that the twin takes, at a low priority; least seconds between two questions.
SHARE, LEAST_S = 0.05, 10.0
#: Seconds after which an answer is too old; until a site that could not be forecast, or a process, is tried again.
LONGEST_S, AGAIN_S = 900.0, 300.0
#: Least share of the jobs whose run times must be known.
KNOWN = 0.5
#: Largest share of the jobs of the queue that the twin may not see.
UNSEEN = 0.1
#: A number in a sentence.
_NUMBER = re.compile(r"\d[\d,.]*")
#: Who forecasts, for people.
BY = "its own rules"


class TwinOracle(QueueOracle):
    """Asks a process for forecasts by the rules of the resource manager.

    Args:
        adapter: reads what these rest on.
        clock: seconds, monotonic.
        process: makes the forecasts.
    """

    def __init__(self, adapter: Adapter, clock: Callable[[], float], process: TwinProcess | None = None) -> None:
        self._adapter, self._clock, self._process = adapter, clock, process or TwinProcess()
        self._asked_at, self._due = -math.inf, -math.inf
        self._answer, self._answer_at = TwinAnswer(), -math.inf
        # its rules are known; an answer about the queue as it is now is wanted
        self._has_rules, self._is_wanted = True, False
        self._is_reading = False
        self._why_not = "no job has waited yet"

    @property
    def state(self) -> OracleState:
        """Its own rules, or why they do not forecast."""
        if not self._has_rules:
            return OracleState()
        return OracleState(BY, "", self._answer.unfollowed) if self._is_fresh else OracleState(why_not=self._why_not)

    @property
    def _is_fresh(self) -> bool:
        return not self._why_not and self._clock() - self._answer_at <= LONGEST_S

    @property
    def is_busy(self) -> bool:
        """True while a site is read or an answer is awaited."""
        return self._process.is_busy or (self._is_wanted and self._clock() >= self._due)

    def proceed(self, queue: ObservedQueue, expected: Expected, planned: Planned) -> bool:
        """Take the answer that has come, or go on to read the site, and ask about it; return whether there is news."""
        if self._process.is_busy:
            return self._take()
        if not self._is_wanted or self._clock() < self._due:
            return False
        if not self._is_reading and (why_not := _unknown_runs(queue, expected)):
            self._is_wanted = False  # nothing is read until the queue was seen again
            return self._keep_from(why_not)
        site = self._adapter.site()
        self._has_rules = self._is_wanted = self._is_reading = site is not None
        if site is None:
            return False
        if not site.texts:
            return bool(site.why_not) and self._keep_from(site.why_not)
        self._is_wanted = self._is_reading = False
        return self._ask(site, queue, expected, planned)

    def note_queue(self, queue: ObservedQueue) -> None:
        """Want an answer about the queue, if a job waits."""
        self._is_wanted = self._has_rules and any(job.waiting for job in queue.jobs)

    def forecasts(self, queue: ObservedQueue) -> Answers:
        """Return the forecasts of the newest answer. O(jobs)."""
        if not self._is_fresh:
            return {}
        waiting = (job.key for job in queue.jobs if job.waiting)
        return {key: forecast for key in waiting if (forecast := self._forecast(key, queue.time)) is not None}

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _ask(self, site: SiteTexts, queue: ObservedQueue, expected: Expected, planned: Planned) -> bool:
        """Ask about a site that was read; return whether it is news why not."""
        runs, groups = dict[str, tuple[float, float, float, int]](), dict[object, int]()
        jobs, begins = [job for job in queue.jobs if not job.state.ended], dict[str, float]()
        for job in jobs:
            if (run := expected(job)) is not None:
                group = groups.setdefault(job.owner, len(groups))
                runs[_number(job.key)] = run.low, run.median, run.high, group
            if (begin := planned(job)) is not None:
                begins[_number(job.key)] = begin
        self._asked_at = self._clock()
        self._due = self._asked_at + LEAST_S
        shown = site.texts["scontrol_job.txt"].count("JobId=")
        if shown < (1.0 - UNSEEN) * len(jobs):
            return self._keep_from(f"this account sees {count(shown, 'job')} of {len(jobs)} (PrivateData)")
        self._process.ask(TwinQuestion(site.texts, site.missing, site.time, runs, begins))
        return False

    def _take(self) -> bool:
        """Take the answer, if it has come; return whether it has."""
        try:
            answer = self._process.take()
        except PilotfishError as error:
            self._due = self._clock() + AGAIN_S
            return self._keep_from(str(error))
        if answer is None:
            return False
        now = self._clock()
        self._due = max(self._due, self._asked_at + answer.cpu_s / SHARE)
        if answer.why_not:
            self._due = now + AGAIN_S
        self._keep_from(answer.why_not)
        self._answer, self._answer_at = answer, self._asked_at
        return True

    def _keep_from(self, why_not: str) -> bool:
        """Note why the rules do not forecast, "": they do; return whether that is news.

        The log has it once, however often the numbers in it change.
        """
        is_news = why_not != self._why_not
        if _NUMBER.sub("", why_not) != _NUMBER.sub("", self._why_not):
            by = f"a replay under EASY ({why_not})" if why_not else "the resource manager's own rules"
            log.info("starts are forecast by %s", by)
        self._why_not = why_not
        return is_news

    def _forecast(self, key: str, now: float) -> QueueForecast | None:
        """Return the forecast of a job, from now on; None: the answer does not know the job."""
        number = _number(key)
        if (why := self._answer.unknown.get(number)) is not None:
            return QueueForecast(unknown=why)
        if (times := self._answer.jobs.get(number)) is None:
            return None
        start, early, late, end, first_end, last_end = times
        moved = max(0.0, now - start)  # it should have begun: it begins at any moment
        forecast = QueueForecast(start, end, (early, late), (first_end, last_end))
        return forecast if not moved else replace(
            forecast, start_time=now, finish_time=end + moved, start_within=(now, max(now, late)),
            finish_within=(max(now, first_end), max(end + moved, last_end)),
        )  # fmt: skip


def _unknown_runs(queue: ObservedQueue, expected: Expected) -> str:
    """Return why too little is known of how long jobs run, or "". O(jobs)."""
    jobs = [job for job in queue.jobs if not job.state.ended]
    predicted = sum((run := expected(job)) is not None and not run.guess for job in jobs)
    if predicted >= KNOWN * len(jobs):
        return ""
    return f"too few jobs have ended to know the run times of {len(jobs) - predicted} of {len(jobs)}"


def _number(key: str) -> str:
    """Return the resource manager's number in the key of a job."""
    return key.rpartition("/")[2]

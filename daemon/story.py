"""A job's story: what was chosen for it, what was foretold, what came true; and the one sentence of a cycle.

Rule: records gather here until the journal has taken them; measuring a forecast against what came of it
happens here and nowhere else.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..profiles.classes import classify_on
from ..simulate.plan import LEVEL, Cancel, Plan, PlannedJob, Rejection, Start
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobState
from .accuracy import inside, model_of, profile_of, source_of
from .apply import Applied, describe
from .endings import ending
from .exporter import Metrics
from .guard import Guard, Judged, forecast_error
from .learned import rests_on_default
from .queue import RETRY_S, Entry, Event, Forecast, Queue
from .relearning import Missed, Relearning
from .render.text import count, percent, seconds
from .wanted import Wanted

if TYPE_CHECKING:
    from .cycle import Report

log = logging.getLogger("pilotfish.job")


class Story:
    """What the journal has not been told yet: `records` of jobs, `outcomes` of intents, `errors` of forecasts, jobs
    that are `wanted` of the books; and `missed`: the profiles, by name, that are to be learned anew.
    """

    def __init__(self, queue: Queue, metrics: Metrics, guard: Guard) -> None:
        self._queue, self._metrics, self.guard = queue, metrics, guard
        self.cycle, self.now = 0, 0.0
        self.records: list[tuple[Any, ...]] = []
        self._choices: dict[str, str] = {}
        self._complaint = ""  # what the last action failed of; many that fail alike are one line
        self._foretold: dict[tuple[str, str], str] = {}  # a dry run decides the same again and again: told once
        self.outcomes: dict[int, str] = {}
        self.errors: list[tuple[Judged, float]] = []
        self.wanted: list[Wanted] = []
        self.relearning: Relearning | None = None
        self.missed: dict[str, Missed] = {}

    @property
    def pending(self) -> bool:
        """Whether there is something to tell."""
        return bool(self.records or self.outcomes or self.errors or self.wanted)

    def told(self) -> None:
        """The journal has it all."""
        self.records.clear()
        self.outcomes.clear()
        self.errors.clear()
        self.wanted.clear()

    def happened(self, events: Iterable[Event], cluster: Cluster | None = None) -> None:
        """Note what a snapshot or a user did to jobs; measures the forecasts of those that completed on a cluster."""
        for event in events:
            entry = event.entry
            text = _ending(entry) if entry.state.ended else event.text
            self._tell(entry.key, event.kind, text)
            if event.kind == "lost" or (entry.state.ended and entry.state is not JobState.COMPLETED):
                log.warning("%s %s", entry.key, text, extra={"job": entry.key, "cycle": self.cycle})
            if entry.state is JobState.COMPLETED and cluster is not None:
                self._measure(entry, cluster)

    def relearned(self, entry: Entry) -> None:
        """Note that what is known of a waiting job has been learned anew."""
        about = entry.job.profile.provenance
        self._tell(entry.key, "relearned", f"profile {profile_of(entry.job)}, from {count(about.runs, 'run')}")

    def settle(self, entry: Entry) -> None:
        """Close the entry's open intent by what the snapshot has shown."""
        if entry.intent is not None:
            self.outcomes[entry.intent] = "started" if entry.handed else "not started"
            entry.intent = None

    def chose(self, entry: Entry, planned: PlannedJob, plan: Plan, cluster: Cluster) -> None:
        """Note that the plan starts a job now, with its forecast, contention model and class, and the runner-up."""
        within = (planned.within.earliest, planned.within.latest) if planned.within else None
        entry.forecast = Forecast(
            self.now + planned.start_time,
            self.now + planned.finish_time,
            planned.isolated_run_time,
            planned.contention_slowdown,
            (self.now + within[0], self.now + within[1]) if within else None,
        )
        entry.expected = entry.forecast.finish_time
        self._queue.dirty[entry.key] = entry
        where = ", ".join(planned.nodes)
        data: dict[str, Any] = {
            "policy": plan.policy,
            "profile": profile_of(entry.job),
            "source": source_of(entry.job),
            "class": classify_on(entry.job.profile, cluster, planned.nodes).name,
            "model": model_of(planned.nodes, cluster),
            "nodes": planned.nodes,
            "run_time": entry.forecast.run_time,
            "run_within": entry.forecast.run_within,
            "isolated_run_time": planned.isolated_run_time,
            "contention_slowdown": planned.contention_slowdown,
            "evaluations": plan.evaluations,
        }
        slowed = planned.contention_slowdown
        text = f"{plan.policy} chose {where}: forecast {seconds(entry.forecast.run_time)}"
        if within:
            text += f" ({percent(LEVEL)} between {seconds(within[0])} and {seconds(within[1])})"
        text += ", no slowdown" if slowed < 1.005 else f", slowdown {slowed:.2f}"
        if planned.why is not None:
            data["runner_up"] = {"nodes": planned.why.nodes, "cost_s": planned.why.cost_s}
            text += f"; runner-up {', '.join(planned.why.nodes)}, {_worse(planned.why.cost_s)}"
        self._choices[entry.key] = text
        self._tell(entry.key, "chosen", text, data)

    def applied(self, applied: Applied, entry: Entry, *, intent: int, dry: bool) -> None:
        """Note what came of an action. A start that failed stays open: the next snapshot tells whether it
        happened.
        """
        self._queue.dirty[entry.key] = entry
        if not isinstance(applied.action, Start):
            if isinstance(applied.action, Cancel):
                entry.not_before = self.now + (RETRY_S[0] if applied.transient else RETRY_S[1])
            self.outcomes[intent] = applied.error or ("dry-run" if dry else "applied")
        elif not applied.sent:  # this is certain: it is not started, and may be tried again
            entry.intent, entry.nodes, entry.not_before = None, (), self.now + RETRY_S[0]
            self.outcomes[intent] = "not sent"
        elif applied.error:
            entry.refused = "" if applied.transient else applied.error
        else:
            entry.intent, entry.handed = None, not dry
            if dry:
                entry.nodes = ()
            else:
                entry.state, entry.start_time = JobState.RUNNING, self.now
            self.outcomes[intent] = "dry-run" if dry else "applied"
        text = describe(applied.action) + (f": {applied.error}" if applied.error else "")
        told, self._complaint = self._complaint, applied.error
        if applied.error and applied.sent and applied.error != told:  # what is not asked is said of the cluster
            log.warning("%s", text, extra={"job": entry.key, "cycle": self.cycle})
        self._tell(entry.key, "failed" if applied.error else "dry-run" if dry else "applied", text)
        choice = self._choices.pop(entry.key, "")
        if dry:
            self._foretold |= {(entry.key, "chosen"): choice, (entry.key, "dry-run"): text}

    def rejected(self, rejection: Rejection) -> None:
        """Note an action that the check dropped."""
        self._tell(rejection.action.key, "rejected", f"{describe(rejection.action)}: {rejection.reason}")

    def _tell(self, key: str, kind: str, text: str, data: dict[str, Any] | None = None) -> None:
        if self._foretold.get((key, kind)) == text:
            return
        self.records.append((key, self.now, self.cycle, kind, text, data))
        log.debug("%s %s: %s", key, kind, text, extra={"job": key, "cycle": self.cycle})

    def _measure(self, entry: Entry, cluster: Cluster) -> None:
        if entry.start_time is None or entry.finish_time is None:
            return
        run_time = entry.finish_time - entry.start_time
        if run_time < 0.0:  # a clock was set back: nobody knows how long it ran
            return
        if entry.forecast:
            error = forecast_error(entry.forecast.run_time, run_time)
            self._metrics.forecast_error.labels("run_time").observe(error)
            self._metrics.slowdown.observe(run_time / max(entry.forecast.isolated_run_time, 1e-9))
            if not rests_on_default(entry.job):  # what nobody knew was not foretold
                self._judge(entry, Judged(model_of(entry.nodes, cluster), source_of(entry.job)), error)
                if within := entry.forecast.run_within:
                    self._metrics.errors.ended(source_of(entry.job), inside=inside(run_time, within))
        if entry.promised is not None:
            taken = self._queue.submissions[entry.workflow].submit_time
            submitted = taken if entry.since is None else entry.since
            error = forecast_error(entry.promised - submitted, entry.finish_time - submitted)
            self._metrics.forecast_error.labels("finish_time").observe(error)

    def _judge(self, entry: Entry, whose: Judged, error: float) -> None:
        profile = profile_of(entry.job)
        self._metrics.errors.observe(whose, profile, error)
        self.errors.append((whose, error))
        before = self.guard.distrusted
        if self.guard.add(error, whose):
            self._say_guard(before)
        if self.relearning and (median := self.relearning.add(profile, error)) is not None:
            self.missed[profile] = Missed(entry.job, median)

    def _say_guard(self, before: frozenset[Judged]) -> None:
        """Say who has come to be distrusted, or trusted again, since `before`."""
        guard = self.guard
        for whose in sorted(guard.distrusted - before) if guard.enabled else ():
            log.warning(
                "the median forecast error of model %s is %s, over the bound of %s: policy %s decides for now",
                whose,
                percent(guard.median(whose) or 0.0),
                percent(guard.bound),
                guard.fallback,
            )
        for whose in sorted(before - guard.distrusted):
            more = "" if guard.tripped else ": the configured policy decides"
            log.warning("forecasts of model %s are good again%s", whose, more)


def _ending(entry: Entry) -> str:
    return ending(entry.state, entry.exit_code, entry.signal, entry.reason)


def _worse(cost_s: float) -> str:
    """What the runner-up would have cost; inf where the job would never have fit there."""
    if math.isinf(cost_s):
        return "would never fit"
    return f"{seconds(cost_s)} worse" if cost_s >= 5e-4 else "as good"


def say_stuck(stuck: Mapping[str, str], before: Mapping[str, str]) -> None:
    """One line for all that have come to wait for the same reason; both by key."""
    reasons: dict[str, list[str]] = {}
    for key in stuck.keys() - before.keys():
        reasons.setdefault(stuck[key], []).append(key)
    for reason, keys in reasons.items():
        who = min(keys) if len(keys) == 1 else f"{len(keys)} jobs ({min(keys)}, ...)"
        log.warning("%s wait%s: %s", who, "s" if len(keys) == 1 else "", reason, extra={"job": min(keys)})


def sentence(report: Report, states: Counter[JobState], seconds: float) -> str:
    """One sentence on a cycle, or "" when nothing happened in it."""
    kinds = Counter(event.kind for event in report.events)
    failed = sum(bool(applied.error) for applied in report.applied)
    parts = [f"{count} {kind}" for kind, count in sorted(kinds.items()) if kind != "started"]
    done = [describe(applied.action) for applied in report.applied if not applied.error]
    if done:
        parts.append(", ".join(done[:4]) + (f" and {len(done) - 4} more" if len(done) > 4 else ""))
    if failed:
        parts.append(f"{failed} not applied")
    if report.rejected:
        parts.append(f"{len(report.rejected)} rejected by the check")
    if not parts:
        return ""
    if report.plan is not None:
        parts.append(f"planned {count(len(report.plan.jobs), 'job')} by {report.policy}")
    left = f"{states[JobState.RUNNING]} running, {states[JobState.PENDING]} waiting"
    return f"{'; '.join(parts)}; {left} ({seconds * 1e3:.0f} ms)"

"""The log of each job: what was chosen for it, why, what was done and how it ended; `explain` shows it.

Rule: a record waits in `Unsaved` until the journal has taken it. What repeats every cycle is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ...formats.hostlist import fold
from ...formats.text import count, percent, seconds
from ...profiles.classes import classify_on
from ...simulate.model.plan import LEVEL, Action, Plan, PlannedJob, Rejection, Start
from ...simulate.model.snapshot import JobState, Snapshot
from ..state.applied import Applied, describe, would_have
from ..state.endings import ending
from ..state.forecasts import JobForecast, order_text
from ..state.profile_labels import has_default_profile, profile_of
from ..state.queue import JobEvent
from ..state.queue_entry import Entry
from ..state.unsaved import Unsaved
from ..state.users import user_name
from .accuracy import MUCH, model_of, source_of

log = logging.getLogger("pilotfish.job")
#: Jobs of a workflow that end alike in one cycle and have a line of the log each.
MOST_ALIKE = 4
#: The kind of the records that name a profile in their text.
RELEARNED = "relearned"
#: In place of a text that repeats: any text does.
ANY = "*"
#: Jobs for which is remembered what was recorded of them while nothing is carried out.
MOST_REPEATED = 10_000


class JobLog:
    """Writes records of jobs to `unsaved` and to the log; `cycle` and `now` (epoch s) are the last snapshot's.

    Args:
        unsaved: collects the records.
        owner: returns the uid of a job's user; None: not known.
        find: returns the job of a key, None if it was not taken in.
        dry: nothing is carried out; what would be done is recorded when it is first decided.

    Attributes:
        quiet: the applier prints the decisions of a dry run itself.
    """

    def __init__(
        self,
        unsaved: Unsaved,
        owner: Callable[[Entry], int | None],
        find: Callable[[str], Entry | None],
        *,
        dry: bool = False,
    ) -> None:
        self._unsaved, self._owner, self._find, self._dry, self.quiet = unsaved, owner, find, dry, False
        self.cycle, self.now = 0, 0.0
        self._choices: dict[str, str] = {}
        self._last_error = ""  # several actions that fail alike in a row are logged once
        self._repeated: dict[str, dict[str, str]] = {}  # by job and kind: a dry run, or a start that waits for its turn
        self._stuck: Mapping[str, str] = {}

    def add_events(self, events: Iterable[JobEvent]) -> None:
        """Record what a snapshot or a user did to jobs; many of one workflow that end alike are one line of the log."""
        alike: dict[tuple[str, str], list[tuple[Entry, str]]] = {}
        for event in events:
            entry, text = event.entry, event.text
            if entry.state.ended:
                text = ending(entry.state, entry.exit_code, entry.signal, entry.reason)
                self._repeated.pop(entry.key, None)
                self._choices.pop(entry.key, None)
            self._add(entry.key, event.kind, text)
            if event.kind == "lost" or (entry.state.ended and entry.state is not JobState.COMPLETED):
                alike.setdefault((entry.workflow, str(entry.state)), []).append((entry, text))
        for (workflow, state), ended in alike.items():
            for entry, text in ended if len(ended) <= MOST_ALIKE else ():
                log.warning("%s %s", entry.key, text, extra=self._fields(entry))
            if len(ended) > MOST_ALIKE:
                jobs, (entry, text) = count(len(ended), "job"), ended[0]
                extra = {"cycle": self.cycle}
                log.warning("%s: %s %s (%s: %s)", workflow, jobs, state, entry.key, text, extra=extra)

    def add_taken(self, entry: Entry, taken: float | None) -> None:
        """Record the share of its run time that others took from an ended job; None = unknown."""
        if taken is not None and taken >= MUCH:
            text = f"others took {percent(taken)} of its time on the CPUs; its error counts against no model or profile"
            self._add(entry.key, "external", text, {"taken": round(taken, 4)})

    def add_relearned(self, entry: Entry) -> None:
        """Record that a waiting job is planned with a profile learned again."""
        about = entry.job.profile.provenance
        self._add(entry.key, RELEARNED, f"profile {profile_of(entry.job)}, from {count(about.runs, 'run')}")

    def add_choice(
        self, entry: Entry, forecast: JobForecast, planned: PlannedJob, plan: Plan, snapshot: Snapshot,
        user: int | None, *, by_manager: bool = False,
    ) -> None:  # fmt: skip
        """Record that the plan starts a job now: nodes, forecast, contention model, class, runner-up, who is preempted.

        Args:
            entry: the job in the queue.
            forecast: of this start.
            planned: the job in the plan.
            plan: that starts the job.
            snapshot: that it was planned for.
            user: uid of the job's owner; None: not known.
            by_manager: the resource manager has started the job, and the plan only forecasts it.
        """
        cluster = snapshot.cluster
        within = (planned.within.earliest, planned.within.latest) if planned.within else None
        data: dict[str, Any] = {
            "policy": "" if by_manager else plan.policy,
            "objective": "" if by_manager else plan.objective,
            "profile": profile_of(entry.job),
            "source": source_of(entry.job),
            "user": user,
            "class": classify_on(entry.job.profile, cluster, planned.nodes).name,
            "model": model_of(planned.nodes, cluster),
            "nodes": planned.nodes,
            "node_speed": forecast.node_speed,
            "run_time": forecast.run_time,
            "run_within": forecast.run_within,
            "isolated_run_time": planned.isolated_run_time,
            "contention_slowdown": planned.contention_slowdown,
            "evaluations": plan.evaluations,
        }
        who = f"{plan.policy} for {plan.objective}" if plan.objective else plan.policy
        if by_manager:
            who = "the resource manager"
            self._repeated.get(entry.key, {}).pop("chosen", None)
        guess = "?" * has_default_profile(entry.job)
        text = f"{who} chose {fold(planned.nodes)}: forecast {seconds(forecast.run_time)}{guess}"
        if within:
            text += f" ({percent(LEVEL)} between {seconds(within[0])} and {seconds(within[1])})"
        slowdown = planned.contention_slowdown
        text += ", no slowdown" if slowdown < 1.005 else f", slowdown {slowdown:.2f}"
        if entry.offered and entry.plain_end is not None and entry.since is not None:
            ours, plain = forecast.finish_time - entry.since, entry.plain_end - entry.since
            data |= {"turnaround": ours, "plain_turnaround": plain}
            text += f"; turnaround {seconds(ours)}, {seconds(plain)} in the queue's own order"
        if planned.scored is not None and not by_manager:
            data["scored"] = asdict(planned.scored)
            text += f"; {order_text(planned.scored)}"
        if planned.why is not None:
            data["runner_up"] = {"nodes": planned.why.nodes, "cost_s": planned.why.cost_s}
            text += f"; runner-up {fold(planned.why.nodes)}{_cost(planned.why.cost_s)}"
        if preempted := _preempted(planned.nodes, snapshot):
            data["preempts"] = preempted
            lost = ", ".join(f"{key} ({seconds(core_s)} of a core's work)" for key, core_s in preempted.items())
            text += f"; may end preemptible jobs there: {lost}"
        self._choices[entry.key] = text
        self._add(entry.key, "chosen", text, data)

    def add_applied(self, applied: Applied, entry: Entry | None) -> None:
        """Record the outcome of an action.

        Args:
            applied: the action and its error, if any.
            entry: its job; None: a job that was released before it was taken in.
        """
        key, text = applied.action.key, describe(applied.action) + (f": {applied.error}" if applied.error else "")
        if self._dry:
            self._add_would_be(key, would_have(applied.action), applied.action, entry)
            return
        last_error, self._last_error = self._last_error, applied.error
        fields = self._fields(entry) if entry is not None else {"job": key, "cycle": self.cycle}
        if applied.error and applied.sent and applied.error != last_error:  # one not sent is logged for the cluster
            log.warning("%s", text, extra=fields)
        elif not applied.error:
            log.info("%s%s", text, self.about(applied.action), extra=fields)
        kind = "failed" if applied.error else "applied"
        self._add(key, kind, text)
        choice = self._choices.pop(key, "")
        if not applied.sent:
            self._repeated[key] = {"chosen": choice, kind: text}
        else:
            self._repeated.pop(key, None)

    def _add_would_be(self, key: str, text: str, action: Action, entry: Entry | None) -> None:
        """Record what would have been done with a job, once for each kind of action; the journal counts the others."""
        verbs, verb = self._repeated.setdefault(key, {"chosen": ANY}), type(action).__name__
        if len(self._repeated) > MOST_REPEATED:
            del self._repeated[next(iter(self._repeated))]
        self._choices.pop(key, None)
        if verb in verbs:
            return
        verbs[verb] = ANY
        self._add(key, "would", text)
        if not self.quiet:
            extra = self._fields(entry) if entry is not None else {"job": key, "cycle": self.cycle}
            log.info("%s%s", text, self.about(action), extra=extra)

    def about(self, action: Action) -> str:
        """Return whose job an action is for, its name in the resource manager, and what a start gains: ` (A, B, C)`.

        It is "" of a job that was not taken in.
        """
        entry = self._find(action.key)
        if entry is None:
            return ""
        owner = self._owner(entry)
        words = ["" if owner is None else _account(owner), entry.job.known_as.rpartition(" of ")[0]]
        if isinstance(action, Start) and entry.offered and entry.forecast and entry.plain_end is not None:
            gain_s = entry.plain_end - entry.forecast.finish_time
            when = f"{seconds(abs(gain_s))} {'sooner' if gain_s > 0 else 'later'} than" if abs(gain_s) >= 1.0 else "as"
            words.append(f"ends {when} in the queue's own order{'?' * has_default_profile(entry.job)}")
        text = ", ".join(filter(None, words))
        return f" ({text})" if text else ""

    def _fields(self, entry: Entry) -> dict[str, Any]:
        """Return the fields of a line about a job in the log."""
        owner = self._owner(entry)
        return {"job": entry.key, "user": None if owner is None else _account(owner), "cycle": self.cycle}

    def add_rejected(self, rejection: Rejection) -> None:
        """Record an action that the check dropped."""
        self._add(rejection.action.key, "rejected", f"{describe(rejection.action)}: {rejection.reason}")

    def warn_stuck(self, stuck: Mapping[str, str]) -> None:
        """Log one line for each reason that has come to keep jobs waiting; `stuck` is reason by key."""
        reasons: dict[str, list[str]] = {}
        for key in stuck.keys() - self._stuck.keys():
            reasons.setdefault(stuck[key], []).append(key)
        self._stuck = stuck
        for reason, keys in reasons.items():
            who = min(keys) if len(keys) == 1 else f"{count(len(keys), 'job')} ({min(keys)}, ...)"
            log.warning(
                "%s wait%s: %s",
                who,
                "s" if len(keys) == 1 else "",
                reason,
                extra={"job": min(keys), "cycle": self.cycle},
            )

    def _add(self, key: str, kind: str, text: str, data: dict[str, Any] | None = None) -> None:
        if self._repeated.get(key, {}).get(kind) in (text, ANY):
            return
        self._unsaved.records.append((key, self.now, self.cycle, kind, text, data))
        log.debug("%s %s: %s", key, kind, text, extra={"job": key, "cycle": self.cycle})


def _account(owner: int) -> str:
    """Return the name of a user, `uid N` without one."""
    return user_name(owner).partition(" (uid ")[0]


def _preempted(nodes: Collection[str], snapshot: Snapshot) -> dict[str, float]:
    """Return the preemptible jobs that a start on these nodes may end, and the core-seconds that each would lose."""
    preempted = (view for view in snapshot.jobs.yielding if not set(nodes).isdisjoint(view.yields))
    return {
        view.key: len(view.yields) * view.job.profile.threads * (snapshot.time - (view.start_time or snapshot.time))
        for view in preempted
    }


def _cost(cost_s: float | None) -> str:
    """Return what the runner-up would have cost, if that is a time."""
    if cost_s is None:
        return ""
    return f", {seconds(cost_s)} worse" if cost_s >= 5e-4 else ", as good"

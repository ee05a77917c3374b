"""The cycle: observe -> snapshot -> decide -> forecast -> check -> apply -> report.

Rule: one thread, one pass, every step once. An intent is journalled before it is carried out; when it
cannot be, the daemon goes on observing and starts nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..adapters.base import Adapter
from ..simulate.errors import PilotfishError
from ..simulate.job import Job, Profile
from ..simulate.plan import Action, Cancel, Plan, Rejection
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobState, JobView, NodeState, Snapshot
from .accuracy import profile_of, source_of
from .apply import Applied, Applier, carry_out
from .books import Books
from .check import check, holds_nodes
from .collector import collected_after
from .exporter import Metrics
from .guard import Guard
from .journal import Journal
from .learned import learnable
from .ledger import Ledger
from .neighbours import Neighbours
from .offers import take_in
from .planning import Options, Planner, Problem, next_due, pose, seen_running, simulate_plan, starts
from .power import PowerSaver
from .queue import Entry, Event, Queue, Submission, busy
from .reap import lapsed, overdue
from .recall import Recall
from .relearning import Missed, renewed
from .shadow import Seen, Shadow
from .standing import Standing
from .story import Story, say_stuck, sentence

log = logging.getLogger("pilotfish.cycle")
LONGEST_RECHECK_S = 60.0
#: Seconds that a job which was placed may take to begin before its pin is taken back.
PIN_S = 10.0


@dataclass(slots=True)
class Report:
    """What a cycle did; `more`: once its starts have happened there is more to plan."""

    number: int
    events: list[Event] = field(default_factory=list)
    plan: Plan | None = None
    policy: str = ""
    applied: list[Applied] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    more: bool = False


class Cycle:
    """The loop's body; the state between two cycles is the queue, which the journal can rebuild.

    Args:
        options: how to plan, as the configuration says; replaced by a reload.
        clock: seconds, for durations only; all times of jobs are the resource manager's.
        planner: makes the plan; the product's own by default.
        recheck_s: seconds until a plan that has drifted is made anew, doubled while nothing else happens.
    """

    def __init__(
        self,
        adapter: Adapter,
        applier: Applier,
        journal: Journal,
        metrics: Metrics,
        guard: Guard,
        options: Options,
        clock: Callable[[], float],
        *,
        planner: Planner = simulate_plan,
        recheck_s: float = 1.0,
    ) -> None:
        self.adapter, self.applier, self.journal, self.metrics = adapter, applier, journal, metrics
        self.guard, self.options, self.planner, self.clock = guard, options, planner, clock
        self.queue: Queue = journal.load()
        self.story = Story(self.queue, metrics, guard)
        self.ledger = Ledger(journal, self.queue, self.story)
        self.shadow = Shadow()
        self.standing = Standing(adapter, clock)
        self.recall = Recall(adapter, clock)
        self.number = 0
        self.changed = True
        self.power: PowerSaver | None = None
        self.books: Books | None = None
        self.stopping: Callable[[], bool] = lambda: False
        self.count: Callable[[Snapshot], None] = lambda snapshot: None
        self.learn: Callable[[list[JobView]], None] = lambda views: None
        self.relearn: Callable[[Mapping[str, Missed]], Mapping[str, Profile]] = lambda missed: {}
        self.know: Callable[[Job], Job] = lambda job: job
        self.company: Callable[[Cluster], Cluster] = lambda cluster: cluster
        self.recheck_s = self._gap = recheck_s
        self._recheck_at = math.inf
        self._nodes: tuple[NodeState, ...] = ()
        self._holders: set[str] = set()
        self._neighbours = Neighbours()
        self.stuck: dict[str, str] = {}

    def run(self) -> Report:
        """Go through one cycle. Raises AdapterError when the world cannot be seen; nothing has happened
        then.
        """
        with collected_after():
            return self._run()

    def _run(self) -> Report:
        began = self.clock()
        self.number += 1
        report = Report(self.number)
        # 1. Observe: one snapshot, the only picture of the world that this cycle decides on.
        snapshot = self.adapter.snapshot()
        self.count(snapshot)
        snapshot = dataclasses.replace(snapshot, cluster=self.company(snapshot.cluster))
        # 2. Fold it in: what started, ended or failed, and which intents came true.
        report.events = self._fold(snapshot)
        # 3. Decide, if anything has changed since the last plan.
        problem = self._pose(snapshot) if self._due(snapshot, report.events) else None
        plan = self._decide(problem, snapshot, report) if problem else None
        # 4. Forecast: what the plan foretells of each job is noted, and what is to start now becomes actions.
        starting = self._forecast(plan, problem, snapshot) if plan and problem else []
        actions = self._cancels() + self._releases(snapshot, starting) + starting
        # 5. Check the actions against a fresh snapshot, and drop those that no longer fit.
        if actions:
            report.rejected = check(actions, self.adapter.look_again([action.key for action in actions]))
            actions = self._left(actions, report.rejected)
        # 6. Journal the intents: from here on a restart knows what may have happened.
        intended = self.ledger.intend(actions)
        # 7. Apply.
        report.applied = carry_out(intended, self.applier)
        # 8. Journal the outcome.
        self.ledger.conclude(report.applied, dry=self.applier.dry)
        started = not self.applier.dry and any(not applied.error for applied in report.applied)
        self.changed = self.changed or (report.more and started)
        if any(not applied.sent for applied in report.applied):
            self._renew()
        if self.power:
            planned = {name for job in report.plan.jobs for name in job.nodes} if report.plan else set()
            self.power.save(snapshot, planned, self.applier)
        if self.books:
            self.books.look(snapshot.time, snapshot.cluster)
        # 9. Report.
        self._report(report, snapshot, began)
        return report

    def take(self, submission: Submission) -> None:
        """Take in a workflow that the journal has."""
        self.queue.add(submission)
        self._renew()

    def replace_guard(self, guard: Guard) -> None:
        """Judge forecasts by another bound from now on."""
        self.guard = self.story.guard = guard
        self._renew()

    @property
    def busy(self) -> bool:
        """Whether jobs of ours run."""
        return any(busy(entry) for entry in self.queue.active())

    @property
    def now(self) -> float:
        """Time of the last snapshot, epoch seconds of the resource manager's clock; 0 before the first."""
        return self.story.now

    def cancel(self, entries: list[Entry]) -> None:
        """Cancel jobs as a user asked; the next cycle ends those that run."""
        self.story.happened(self.queue.cancel(entries, self.now, "cancelled by a user"))
        self._renew()
        self.ledger.save()

    def _renew(self) -> None:
        """What the last plan was made for has changed."""
        self.changed = True
        self.standing.drop()

    def _fold(self, snapshot: Snapshot) -> list[Event]:
        self.story.cycle, self.story.now = self.number, snapshot.time
        records = self.recall.look(self.queue.missing(snapshot))
        if take_in(self.queue, snapshot, self.know, records):
            self._renew()
        open_intents = [entry for entry in self.queue.active() if entry.intent is not None]
        events = self.queue.observe(snapshot, records)
        for entry in open_intents:
            if entry.handed or entry.state is not JobState.UNKNOWN:
                self.story.settle(entry)
        self.story.happened(events, snapshot.cluster)
        if events:
            self._follow(snapshot, events)
        done = {event.entry.key for event in events if event.entry.state is JobState.COMPLETED}
        if done:
            views = [view for view in snapshot.jobs if view.key in done]
            self.learn(views)
            self.story.wanted += self.books.wanted(events, self.queue, views) if self.books else []
        if self.story.missed:
            self._relearn(snapshot)
        self.ledger.save()
        return events

    def _relearn(self, snapshot: Snapshot) -> None:
        """Learn anew what has come to miss; jobs that wait are planned with that from now on."""
        found = self.relearn(self.story.missed)
        self.story.missed.clear()
        self.metrics.errors.relearned.inc(len(found))
        for entry in self.queue.active() if found else ():
            profile = found.get(profile_of(entry.job)) if entry.waiting and learnable(entry.job) else None
            if profile and (job := renewed(entry.job, profile, snapshot.cluster)):
                entry.change(job)
                self.story.relearned(entry)
                self._renew()

    def _due(self, snapshot: Snapshot, events: list[Event]) -> bool:
        """Whether to plan: something changed, or the last plan has drifted; and there is something to
        start.
        """
        if snapshot.node_states != self._nodes:
            self._renew()
        holders = {view.key for view in snapshot.jobs if holds_nodes(view)}
        freed, self._holders = self._holders - holders, holders  # a neighbour that ends makes room, too
        news = self.changed or bool(events) or bool(freed)
        drifted = snapshot.time >= self._recheck_at
        self._nodes = snapshot.node_states
        if self.blocked or not (news or drifted):
            self.changed = news or bool(self.blocked)
            return False
        self.changed = False
        self._gap = self.recheck_s if news else min(2 * self._gap, LONGEST_RECHECK_S)
        self._recheck_at = math.inf
        return any(entry.waiting for entry in self.queue.active())

    def _pose(self, snapshot: Snapshot) -> Problem:
        """The planning problem of this moment, with running jobs as far along as their simulated twins."""
        self._follow(snapshot, [])
        return pose(self.queue, snapshot, self.shadow.progress, self.options.window, self._neighbours)

    def _follow(self, snapshot: Snapshot, events: list[Event]) -> None:
        running = seen_running(self.queue, snapshot)
        ended = {
            event.entry.key: Seen(self.queue.as_planned(event.entry), event.entry.nodes, event.entry.start_time)
            for event in events
            if event.entry.state.ended and event.entry.start_time is not None
        }
        try:
            self.shadow.follow(snapshot.cluster, running, ended, snapshot.time)
        except Exception as error:  # a twin that cannot be followed must not take the daemon down
            log.error("cycle %d: running jobs cannot be followed: %s: %s", self.number, type(error).__name__, error)
            self.shadow = Shadow()

    def _decide(self, problem: Problem, snapshot: Snapshot, report: Report) -> Plan | None:
        say_stuck(problem.stuck, self.stuck)
        self.stuck = problem.stuck
        if not problem.startable:
            self._recheck(snapshot.time, self._backoff(snapshot.time))
            return None
        wanted = self.guard.policy(self.options.policy, {source_of(job) for job in problem.workflow.jobs})
        for policy in dict.fromkeys((wanted, self.guard.fallback)):
            objective = self.options.objective if policy == wanted else "makespan"
            began = self.clock()
            options = dataclasses.replace(
                self.options, policy=policy, objective=objective, should_stop=self._limit(began)
            )
            try:
                plan = self._plan(problem, snapshot, options, report)
            except Exception as error:  # a policy must not take the daemon down
                self.standing.drop()
                log.error(
                    "cycle %d: policy %s failed: %s: %s",
                    self.number,
                    policy,
                    type(error).__name__,
                    error,
                    exc_info=not isinstance(error, PilotfishError),
                )
                self.metrics.decisions.labels(policy, "failed").inc()
                continue
            if plan is None:
                return None
            self.metrics.planned(policy, plan, self.clock() - began)
            report.plan, report.policy = plan, policy
            due = min(next_due(plan, problem), self._backoff(snapshot.time))
            self._recheck(snapshot.time, due)
            return plan
        self._recheck(snapshot.time, 0.0)
        return None

    def _plan(self, problem: Problem, snapshot: Snapshot, options: Options, report: Report) -> Plan | None:
        """The last plan where it serves, else a new one; None where news ended the search: the next cycle has it."""
        if plan := self.standing.next(problem, snapshot.cluster, options, report.events):
            report.more = True
            return plan
        plan = self.planner(problem, snapshot.cluster, options)
        if self.standing.interrupted:
            self.changed = True
            return None
        self.standing.keep(plan, problem)
        report.more = problem.beyond
        return plan

    def _limit(self, began: float) -> Callable[[], bool]:
        deadline = began + (self.options.time_limit or math.inf)
        return lambda: self.stopping() or self.clock() > deadline or self.standing.news()

    def _forecast(self, plan: Plan, problem: Problem, snapshot: Snapshot) -> list[Action]:
        for planned in plan.jobs:
            entry = self.queue.find(planned.id)
            if entry and not entry.state.ended:
                entry.expected = snapshot.time + planned.finish_time
                if entry.promised is None:
                    entry.promised = entry.expected
                    self.queue.dirty[entry.key] = entry
        actions: list[Action] = []
        for start, planned in starts(plan, problem):
            self.story.chose(problem.startable[start.key], planned, plan, snapshot.cluster)
            actions.append(start)
        return actions

    def _left(self, actions: list[Action], rejected: list[Rejection]) -> list[Action]:
        for rejection in rejected:
            self.story.rejected(rejection)
        if rejected:
            self.standing.drop()
            self._recheck(self.now, 0.0)
        refused = {id(rejection.action) for rejection in rejected}
        return [action for action in actions if id(action) not in refused]

    def _cancels(self) -> list[Action]:
        return [
            Cancel(entry.key)
            for entry in self.queue.active()
            if entry.cancel_wanted and entry.handed and entry.not_before <= self.now and not self.blocked
        ]

    def _releases(self, snapshot: Snapshot, starting: list[Action]) -> list[Action]:
        """Pins that have not become a start: the nodes are for others, and the job may go elsewhere. And jobs that are
        not to be kept any longer: their start is the resource manager's to choose."""
        if self.blocked:
            return []
        patience = max(PIN_S, self.adapter.capabilities.begins_within_s)
        keep = {action.key for action in starting}
        return [*overdue(snapshot, patience), *lapsed(snapshot, starting=keep)]

    def _report(self, report: Report, snapshot: Snapshot, began: float) -> None:
        for applied in report.applied:
            outcome = "dry-run" if self.applier.dry else "failed" if applied.error else "applied"
            self.metrics.decisions.labels(report.policy or "none", outcome).inc()
        if report.rejected:
            self.metrics.decisions.labels(report.policy or "none", "rejected").inc(len(report.rejected))
        states = Counter[JobState](entry.state for entry in self.queue.entries())
        self.metrics.saw(snapshot, states)
        self.metrics.set_mode(self.mode)
        self.metrics.cycle_duration.observe(self.clock() - began)
        text = sentence(report, states, self.clock() - began)
        if text:
            log.info("cycle %d: %s", report.number, text, extra={"cycle": report.number})

    @property
    def blocked(self) -> str:
        """Why the journal cannot be written, or ""."""
        return self.ledger.blocked

    @property
    def mode(self) -> str:
        """The mode as the metric names it."""
        if self.blocked:
            return "blocked"
        if self.policy != self.options.policy:
            return "fallback"
        return "dry-run" if self.applier.dry else "live"

    @property
    def policy(self) -> str:
        """The policy that decides for the jobs there are now."""
        if not self.guard.tripped:
            return self.options.policy
        return self.guard.policy(self.options.policy, {source_of(entry.job) for entry in self.queue.active()})

    def _backoff(self, now: float) -> float:
        """Seconds until the next start that failed may be tried again."""
        later = [e.not_before - now for e in self.queue.active() if e.not_before > now and e.waiting]
        return min(later, default=math.inf)

    def _recheck(self, now: float, due_s: float) -> None:
        self._recheck_at = now + max(due_s, self._gap)

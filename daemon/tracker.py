"""The state of all jobs between two cycles: the queue and what follows it from one snapshot to the next.

Rule: only a snapshot, a user, or the outcome of an action changes a job. All of it can be rebuilt from the journal.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..adapters.base import Adapter
from ..simulate.model.job import Job
from ..simulate.model.plan import Action, Cancel, Plan, PlannedJob, Rejection, Release
from ..simulate.model.snapshot import JobState, JobView, Snapshot
from .deciders import DEADLINE, Deciders
from .due_ahead import due_ahead
from .due_releases import CONFIGURED, handed_back, lapsed, overdue
from .learning.external_load import LoadOfOthers, taken_by_others
from .learning.forecast_errors import ForecastErrors, interval_groups, owner_of
from .learning.job_profiles import GivenProfiles
from .observed_starts import ObservedStarts
from .planning.isolation import Isolation
from .planning.problem import LATER, Neighbours, Problem, build_problem, just_ended, running_jobs, starts
from .planning.progress import Progress
from .planning.trigger import Trigger
from .report.job_log import JobLog
from .state.applied import Applied
from .state.audit import AuditedChange
from .state.ended_jobs import EndedJobs
from .state.forecasts import NOW_S, JobForecast, Outlook
from .state.handed_over import MOST_TAKEN_IN, take_in
from .state.job_stages import JobStage
from .state.pauses import KEPT, Pause, Pauses
from .state.profile_labels import label_of
from .state.queue import JobEvent, Queue, Submission
from .state.queue_entry import Entry, busy
from .state.unsaved import Unsaved
from .state.write_ahead import WriteAhead

log = logging.getLogger("pilotfish.cycle")
#: Seconds that a placed job may take to begin before its pin is released.
PIN_S = 10.0
#: Jobs that ended last since the last plan, whose effect on others is simulated.
MOST_ENDED = 5000


class JobTracker:
    """Follows every job.

    Args:
        queue: the jobs.
        write_ahead: writes every change to the journal.
        isolation: has the workflows that make planning fail.
        unsaved: collects what else must be written.
        forecasts: measures the jobs that complete.
        trigger: is renewed when something changes that the last plan does not know.
        clock: seconds, monotonic.
        profiles: replace the default profile of jobs that are handed over.
        others: knows what other programs leave of the nodes.
        most_taken_in: see `take_in`.
        breathe: called between two steps of long computations, so that clients are answered meanwhile.
        pauses: what administrators have stopped.
        dry: nothing is carried out.
    """

    def __init__(
        self,
        adapter: Adapter,
        queue: Queue,
        write_ahead: WriteAhead,
        isolation: Isolation,
        unsaved: Unsaved,
        forecasts: ForecastErrors,
        trigger: Trigger,
        clock: Callable[[], float],
        profiles: GivenProfiles,
        others: LoadOfOthers,
        most_taken_in: float = MOST_TAKEN_IN,
        breathe: Callable[[], None] = lambda: None,
        pauses: Pauses | None = None,
        *,
        dry: bool = False,
    ) -> None:
        self.pauses = Pauses() if pauses is None else pauses
        self._adapter, self.unsaved, self._forecasts, self._trigger = adapter, unsaved, forecasts, trigger
        self.queue, self.write_ahead, self._isolation = queue, write_ahead, isolation
        self._deciders = Deciders(queue)
        owner = lambda entry: owner_of(entry, queue.submissions[entry.workflow])  # noqa: E731
        self.log = JobLog(unsaved, owner, queue.find, dry=dry)
        self._observed = ObservedStarts(queue, forecasts, self.log) if dry else None
        self._ended_jobs = EndedJobs(adapter, clock)
        self._profiles, self._clock, self._seen_at = profiles, clock, clock()
        self._progress, self._others, self._most_taken_in = Progress(breathe), others, most_taken_in
        self._just_ended, self._breathe = dict[str, JobView](), breathe  # ended since `_progress` was advanced
        self._followed: Snapshot | None = None  # the one to which `_progress` was advanced
        self._neighbours = Neighbours()
        self._stuck: dict[str, str] = {}
        self._rejected: Mapping[str, str] = {}  # by the queue policy of the last plan
        self.limited: Mapping[str, str] = {}  #: why jobs did not start in the last plan, by key
        self.left: Mapping[str, str] = {}  #: why the last plan leaves jobs to the resource manager, by key
        #: The last snapshot; None before the first.
        self.snapshot: Snapshot | None = None
        #: The configuration pauses it: nothing is planned or started, and what was handed over is given back.
        self.paused = False
        #: Called with what a client asked for, before it is done.
        self.note_input: Callable[..., None] = lambda kind, *facts: None

    @property
    def now(self) -> float:
        """Time of the last snapshot, epoch seconds of the resource manager's clock; 0 before the first."""
        return self.log.now

    @property
    def present(self) -> float:
        """The present on the resource manager's clock, epoch seconds; 0 before the first snapshot."""
        return self.now + (self._clock() - self._seen_at) if self.now else 0.0

    @property
    def blocked(self) -> str:
        """The reason why the journal cannot be written, or ""."""
        return self.write_ahead.blocked

    @property
    def halted(self) -> str:
        """The mode in which nothing is started, `blocked` or `paused`, or ""."""
        return "blocked" if self.blocked else "paused" if self.pause_of_all else ""

    @property
    def pause_of_all(self) -> Pause | None:
        """The pause of all jobs, of an administrator or of the configuration."""
        return CONFIGURED if self.paused else self.pauses.of_all

    @property
    def paused_partitions(self) -> list[str]:
        """Names of the partitions that are paused; "": all jobs are."""
        return sorted({pause.partition for pause in self.pauses} | ({""} if self.paused else set()))

    def _pause_of(self, job: Job) -> Pause | None:
        """Return the pause that holds for a job."""
        return CONFIGURED if self.paused else self.pauses.of(job)

    def _gives_back(self, job: Job) -> Pause | None:
        """Return the pause for which a job is given back now, if it is held."""
        pause = self._pause_of(job)
        return None if pause is None or pause.keeps_held else pause

    def note_pauses(self) -> None:
        """Note that pauses have begun or ended: plan again, and write them to the journal."""
        self.unsaved.kept[KEPT] = self.pauses.state()
        self._trigger.renew()

    def note_change(self, kind: str, by: str, target: str = "", owner: int | None = None, **facts: str) -> None:
        """Note a change of what the daemon may do for the audit; the arguments are those of `audit.AuditedChange`."""
        self.unsaved.changes.append(AuditedChange(self.present or time.time(), kind, by, target, owner, **facts))

    @property
    def holds_anything(self) -> bool:
        """True if the last snapshot shows a job that we pin or may hold."""
        return self.snapshot is not None and bool(handed_back(self.snapshot))

    @property
    def stuck(self) -> dict[str, str]:
        """Reasons why waiting jobs are not planned, by key: they fit nowhere now, are rejected, or set aside."""
        if not self._isolation.reasons:
            return self._stuck
        return self._stuck | self._isolation.split(entry.key for entry in self.queue.active() if entry.waiting)

    @property
    def any_running(self) -> bool:
        """True if a job of ours runs, or may run."""
        return any(busy(entry) for entry in self.queue.active())

    @property
    def any_waiting(self) -> bool:
        """True if a job waits to be started."""
        return any(entry.waiting for entry in self.queue.active())

    @property
    def _observes_start(self) -> bool:
        return self._observed is not None and self._observed.any_new(self.now)

    def retry_in(self, now: float) -> float:
        """Return in how many seconds the next start that failed may be tried again; inf if none failed."""
        later = [e.not_before - now for e in self.queue.active() if e.not_before > now and e.waiting]
        return min(later, default=math.inf)

    def add(self, submission: Submission) -> None:
        """Take in a workflow that the journal has."""
        self.note_input("submit", submission)
        self.queue.add(submission)
        self._trigger.renew()

    def cancel(self, entries: Iterable[Entry], by: str = "a user") -> None:
        """Cancel jobs for a user (`by`); the next cycle ends those that run."""
        chosen = list(entries)
        self.note_input("cancel", [entry.key for entry in chosen], by)
        self._deciders.note_cancel((entry.key for entry in chosen), by)
        self.log.add_events(self.queue.cancel(chosen, self.now, f"cancelled by {by}"))
        self._trigger.renew()
        self.save()

    def renew_profile(self, entry: Entry) -> None:
        """Plan a waiting job, whose profile was learned again, with the new profile."""
        self.log.add_relearned(entry)
        self._trigger.renew()

    def with_interference(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with known facts about its nodes: speed, load of others, pair factors of programs."""
        cluster = self._forecasts.speeds.on(self._profiles.with_interference(snapshot.cluster))
        cluster = self._others.leave(cluster, snapshot.time)
        return replace(snapshot, cluster=cluster)

    def fold(self, snapshot: Snapshot, cycle: int) -> list[JobEvent]:
        """Update every job from a snapshot, and return what happened. O(jobs).

        Args:
            snapshot: the cluster and its jobs at this moment.
            cycle: its number, for the job log.
        """
        self.snapshot = snapshot
        self.log.cycle, self.log.now, self._seen_at = cycle, snapshot.time, self._clock()
        records = self._ended_jobs.look_up(self.queue.missing(snapshot))
        intake = take_in(self.queue, snapshot, self._profiles.with_profile, records, self._most_taken_in)
        if intake.news:
            self._trigger.renew()
        self._trigger.unfinished = intake.unfinished
        events = self.queue.observe(snapshot, records, self._adapter.capabilities.late_s)
        self._isolation.prune(snapshot)
        if over := self.pauses.expire(snapshot.time):
            self.note_pauses()
            for pause in over:
                self.note_change("resume", DEADLINE, pause.partition, why=pause.why)
            log.info("its time is over: %s", "; ".join(pause.reason for pause in over))
        self.log.add_events(events)
        for event in events:
            if event.entry.state is JobState.COMPLETED:
                submission = self.queue.submissions[event.entry.workflow]
                view = snapshot.jobs.by_key.get(event.entry.key)
                taken_share = None
                if view is not None:
                    taken_share = taken_by_others(view, snapshot.jobs)
                    self._others.learn(view, taken_share)
                self.log.add_taken(event.entry, taken_share)
                self._forecasts.measure(event.entry, submission, snapshot.cluster, taken_share)
        self._just_ended |= just_ended(self.queue, events)
        for key in list(self._just_ended)[:-MOST_ENDED]:
            del self._just_ended[key]
        return events

    def save(self) -> None:
        """Write all changes to the journal, if it can be written."""
        self.write_ahead.save()

    def problem(self, snapshot: Snapshot, window: int | None, returning: Collection[str] | None) -> Problem | None:
        """Return the planning problem of this moment, with running jobs as far as their simulation; None: no job waits.

        Args:
            snapshot: the cluster and its jobs at this moment.
            window: the most waiting jobs to consider; None = all.
            returning: nodes that take no job now, but that a job may wait for, for a policy that switches nodes; None:
                the policy has nothing to decide while no job waits.
        """
        if self._followed is not snapshot:
            self._follow(snapshot)
        if self.pause_of_all or (returning is None and not (self.any_waiting or self._observes_start)):
            return None
        self._progress.settle()  # clients are answered meanwhile, and may change the queue
        problem = build_problem(
            self.queue,
            snapshot,
            self._progress.of,
            window,
            self._neighbours,
            self._set_aside,
            returning or (),
            self._breathe,
        )
        self._note_stuck(problem)
        return self._isolation.applied(replace(problem, observes=self._observes_start))

    def _set_aside(self, keys: Iterable[str]) -> dict[str, str]:
        """Return why jobs are not planned, by key: planning fails with them, or their partition is paused."""
        keys = list(keys)
        entries = [entry for key in keys if (entry := self.queue.find(key))] if self.pauses else []
        paused = {entry.key: pause.reason for entry in entries if (pause := self._pause_of(entry.job))}
        return self._isolation.split(keys) | paused

    def _note_stuck(self, problem: Problem) -> None:
        self._stuck = {**self._rejected, **problem.stuck}
        self.log.warn_stuck(self._stuck)

    def note_forecasts(
        self, plan: Plan, problem: Problem, snapshot: Snapshot, released: Mapping[str, str]
    ) -> list[Action]:
        """Note when the plan expects each job to end, and return the starts and releases that are due now.

        Args:
            plan: the plan.
            problem: that the plan answers.
            snapshot: that the problem was made from.
            released: why jobs are not placed, by key: those held for us are released.
        """
        self._rejected, self.limited, self.left = plan.rejected, plan.waits, released
        self._deciders.note_policy(plan.policy, is_fallback=self._forecasts.guard.overrules(plan.policy))
        if problem.beyond:
            active, considered = self.queue.active(), problem.workflow.index
            later = [entry.key for entry in active if entry.waiting and entry.key not in considered]
            self.limited = {**dict.fromkeys(later, LATER), **self.limited}
        for key in self.limited:
            if entry := self.queue.find(key):
                entry.outlook = None
        self._note_stuck(problem)
        for planned in plan.jobs:
            entry = self.queue.find(planned.id)
            if entry and not entry.state.ended:
                planned = self._corrected(planned, entry)
                entry.expected = snapshot.time + planned.finish_time + planned.late_s
                ours = entry.waiting and planned.id not in released
                entry.outlook = Outlook(planned, snapshot.time, plan.forecast_by) if ours else None
                self._note_label(entry, planned, snapshot)
                if self._observed is not None:
                    self._observed.note(entry, planned, plan, snapshot)
                elif entry.promised is None:
                    entry.promised = entry.expected
                    self.queue.dirty[entry.key] = entry
                if entry.plain_end is None and planned.id in plan.plain_finish_times:
                    entry.plain_end = snapshot.time + plan.plain_finish_times[planned.id]
                    self.queue.dirty[entry.key] = entry
        run_times = {one.id: one.finish_time - one.start_time for one in plan.jobs}
        actions: list[Action] = [
            Release(key, why, run_times.get(key) if self._trusts_run_time(problem.startable[key]) else None)
            for key, why in released.items() if problem.startable[key].held
        ]  # fmt: skip
        for start, planned in starts(plan, problem):
            entry = problem.startable[start.key]
            if start.key in released or not entry.waiting:  # its user has cancelled it during the plan
                continue
            planned = self._corrected(planned, entry)
            speed = self._forecasts.speeds.of(planned.nodes)
            forecast = JobForecast.of(planned, snapshot.time, speed)
            if self._observed is None:  # else it is a start in a world that is not this one
                entry.forecast, entry.expected = forecast, forecast.finish_time + planned.late_s
                self.queue.dirty[entry.key] = entry
            user = owner_of(entry, self.queue.submissions[entry.workflow])
            self.log.add_choice(entry, forecast, planned, plan, snapshot, user)
            actions.append(start)
        return actions

    def _trusts_run_time(self, entry: Entry) -> bool:
        """Return whether something is known of what a job needs, and forecasts do not miss."""
        return entry.job.profile.provenance.source != "default" and not self._forecasts.guard.tripped

    def _expected_s(self, key: str) -> float | None:
        """Return the run time of a waiting job in the last plan that has it, seconds; None if it is not trusted."""
        entry = self.queue.find(key)
        if entry is None or entry.outlook is None or not self._trusts_run_time(entry):
            return None
        return entry.outlook.planned.finish_time - entry.outlook.planned.start_time

    def _note_label(self, entry: Entry, planned: PlannedJob, snapshot: Snapshot) -> None:
        """Note the profile with which a waiting job was forecast; made again only for another profile or start."""
        starts = planned.start_time <= NOW_S
        if entry.waiting and (starts or entry.labelled is not entry.job.profile):
            label = label_of(entry.job, snapshot.cluster, planned.nodes)
            entry.labelled = entry.job.profile
            if label != entry.label:
                entry.label = label
                self.queue.dirty[entry.key] = entry

    def _corrected(self, planned: PlannedJob, entry: Entry) -> PlannedJob:
        """Return a planned job with the prediction interval that held for jobs like it; a guess has none."""
        return self._forecasts.intervals.corrected(
            planned, interval_groups(entry, self.queue.submissions[entry.workflow])
        )

    def actions(self, snapshot: Snapshot, starts: Sequence[Action]) -> list[Action]:
        """Return all actions of this cycle: cancels, releases, and the given starts, or submissions ahead of a start.

        A pin that has not become a start in time is released: the nodes are for others, and the job may go elsewhere.
        So is a job that must not be held any longer: its start is the resource manager's to choose.
        """
        if self.blocked:
            return list(starts)
        cancels = [
            Cancel(entry.key)
            for entry in self.queue.active()
            if entry.cancel_wanted and (entry.taken or entry.stage is JobStage.AHEAD) and entry.not_before <= self.now
        ]
        can, views, back = self._adapter.capabilities, snapshot.jobs.by_key, list[Release]()
        if self.paused or self.pauses:
            back = handed_back(snapshot, self._gives_back)
            starts = [one for one in starts if not self._is_paused(one.key)]  # a pause may have begun since the plan
            if self.pauses.next_end < math.inf:
                self._trigger.wake(snapshot.time, self.pauses.next_end - snapshot.time)
        given_back, starting = {one.key for one in back}, {action.key for action in starts}
        stops = self.pause_of_all is not None
        ahead = [] if starts or stops else due_ahead(self.queue, self.now, can.ahead_s)  # a start waits for nothing
        releases = [one for one in overdue(snapshot, max(PIN_S, can.begins_within_s)) if one.key not in given_back]
        held = [
            one if self._pause_of(views[one.key].job) else replace(one, expected_s=self._expected_s(one.key))
            for one in lapsed(snapshot, starting=starting | given_back)
        ]
        pauses = [(one, self._pause_of(views[one.key].job)) for one in back]
        self._deciders.note_cycle(cancelled=cancels, given_back=pauses, due=(*releases, *held))
        return [*cancels, *back, *releases, *held, *starts, *ahead]

    def _is_paused(self, key: str) -> bool:
        """Return whether a pause holds for a job of ours."""
        entry = self.queue.find(key)
        return entry is not None and self._pause_of(entry.job) is not None

    def without_rejected(self, actions: Sequence[Action], rejected: Sequence[Rejection]) -> list[Action]:
        """Return the actions that the check accepted; a rejection makes the plan void."""
        for rejection in rejected:
            self.log.add_rejected(rejection)
        if rejected:
            self._trigger.replan(self.now)
        dropped = {id(rejection.action) for rejection in rejected}
        return [action for action in actions if id(action) not in dropped]

    def intend(self, actions: Sequence[Action]) -> Sequence[Action]:
        """Journal the intents, and return the actions that may be carried out: all of them, or none."""
        if not actions or self.snapshot is None:
            return ()
        decisions = self._deciders.decisions(actions, self.snapshot)
        return self.write_ahead.intend(decisions, cycle=self.log.cycle, now=self.now)

    def conclude(self, results: Sequence[Applied]) -> None:
        """Note and journal the outcomes of the intended actions."""
        for applied in results:
            entry = self.queue.find(applied.action.key)
            if entry is not None or isinstance(applied.action, Release):
                self.write_ahead.conclude(applied, entry, now=self.now)
                self.log.add_applied(applied, entry)
        if results:
            self.save()

    def _follow(self, snapshot: Snapshot) -> None:
        """Advance the simulation of running jobs to the snapshot; start over if that fails."""
        self._followed, ended, self._just_ended = snapshot, self._just_ended, {}
        running = running_jobs(self.queue, snapshot)
        try:
            self._progress.follow(snapshot.cluster, running, ended, snapshot.time)
        except Exception as error:  # a simulation that fails must not take the daemon down
            reason = f"{type(error).__name__}: {error}"
            log.error("cycle %d: running jobs cannot be followed: %s", self.log.cycle, reason)
            self._progress, self._others = Progress(self._breathe), LoadOfOthers()

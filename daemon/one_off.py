"""The daemon's cycle without a service: run one workflow by its plan, or preview what the daemon would do with a queue.

Rule: it is the same cycle with the same planner, with a journal in memory and no guard; a preview is one dry cycle, and
writes nothing. A workflow begins by the plan that its user has seen, and is planned again whenever something happens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..adapters.base import Adapter, AdapterError
from ..simulate.errors import InvalidJobError
from ..simulate.model.job import Job, Workflow
from ..simulate.model.plan import Plan, Rejection, Start
from ..simulate.model.snapshot import JobState
from ..simulate.queue_policies.policy_specs import parts_of
from .apply import Live, Recording
from .assembly import Deciding, assemble, decided_by
from .config import DaemonConfig
from .learning.external_load import LoadOfOthers
from .learning.guard_rail import Guard
from .planning.guarded_planner import simulate_plan
from .planning.plan_cache import FixedPlan
from .planning.problem import Options, Planner
from .report.adapter_metrics import metered
from .report.cycle_report import CycleReport
from .report.metrics import Metrics
from .state.applied import describe
from .state.journal import Journal
from .state.queue import Submission

STEP_S = 0.25
#: The cluster is read at least this often, even if the adapter reports no change.
READ_EVERY_S = 1.0
#: Longest time that a preview waits for what a snapshot only begins to ask for, seconds.
SETTLE_S = 10.0


def beginning_with(plan: Plan, run: str, workflow: Workflow, clock: Callable[[], float]) -> Planner:
    """Return a planner whose first plan was made before; it simulates every later one.

    Args:
        plan: of the whole workflow.
        run: id of the run.
        workflow: the planned workflow.
        clock: seconds, monotonic.
    """
    if parts_of(plan.policy).limit is not None:  # the plan's times do not say what waits for power or energy
        return simulate_plan
    first = iter((FixedPlan(f"{run}/", plan, workflow, clock),))
    return lambda problem, cluster, options: next(first, simulate_plan)(problem, cluster, options)


class WorkflowRun:
    """A workflow that runs from its submission to its end.

    Args:
        run: its id, unique in the adapter, without '/'.
        workflow: its jobs.
        metrics: of the run.
        clock: seconds, monotonic, for durations; epoch times are the adapter's.
        options: how to plan.
        planner: makes each plan, see `beginning_with`.
        others: knows what other programs leave of the nodes; None = nothing is known yet.
    """

    def __init__(
        self,
        run: str,
        workflow: Workflow,
        adapter: Adapter,
        metrics: Metrics,
        clock: Callable[[], float],
        options: Options,
        *,
        planner: Planner = simulate_plan,
        others: LoadOfOthers | None = None,
    ) -> None:
        self._adapter = adapter = metered(adapter, metrics)
        self._clock = clock
        self._journal = journal = _in_memory()
        self._cancelled: Callable[[], bool] = lambda: False
        self._cycle = assemble(
            adapter, Live(adapter), journal, metrics, Deciding(_no_guard(options.policy), options), clock,
            planner=planner, stopping=lambda: self._cancelled(), others=others,
        )  # fmt: skip
        self.submission = Submission(run, workflow, adapter.snapshot().time)
        journal.submit(self.submission, None)
        self._cycle.tracker.add(self.submission)

    def until_ended(self, show: Callable[[CycleReport | None], None], cancelled: Callable[[], bool]) -> Submission:
        """Run the workflow to its end.

        Args:
            show: called with the report of each cycle, and with None every STEP_S in between.
            cancelled: called as often, and during a search for a plan; once it returns True, the search ends, waiting
                jobs are cancelled and running ones ended.

        Raises:
            AdapterError: the resource manager cannot be reached, and trying again will not help; running jobs go on.
            InvalidJobError: planning fails with the workflow.
        """
        self._cancelled = cancelled
        while not self.submission.state.ended:
            if self._cancelled():
                self._cancelled = lambda: False  # the jobs that still run are waited for
                self._cycle.tracker.cancel([e for e in self.submission.entries.values() if not e.state.ended])
            try:
                show(self._cycle.run())
            except AdapterError as error:
                if not error.transient:
                    raise
            if reason := self._hopeless():
                raise InvalidJobError(f"{self.submission.workflow.name}: {reason}; running jobs go on")
            if not self.submission.state.ended and not self._cycle.trigger.changed:
                self._pause(show)
        return self.submission

    def _hopeless(self) -> str:
        """Return why the workflow cannot end, or ""; a job that no node or policy takes waits for the running ones."""
        tracker = self._cycle.tracker
        if reason := self._cycle.planner.isolation.reasons.get(self.submission.id):
            return reason
        if tracker.stuck and not tracker.any_running:
            key, reason = next(iter(tracker.stuck.items()))
            return f"job {key.removeprefix(f'{self.submission.id}/')!r} cannot start: {reason}"
        return ""

    def _pause(self, show: Callable[[CycleReport | None], None]) -> None:
        due = self._clock() + READ_EVERY_S
        while not self._adapter.wait(STEP_S) and not self._cancelled() and self._clock() < due:
            show(None)

    def close(self) -> None:
        """Drop the journal; the adapter stays open."""
        self._journal.close()


@dataclass(frozen=True)
class QueuePreview:
    """The decisions of one cycle.

    Args:
        plan: of the waiting jobs that were handed over; None = there is nothing to plan.
        starts: what would start now.
        actions: everything that would be done, each as one line.
        commands: the command lines that would be run for `actions`.
        rejected: actions that the check dropped.
        waits: why a job is not planned, by key.
        jobs: the waiting jobs that were handed over, under their keys.
    """

    plan: Plan | None
    starts: tuple[Start, ...]
    actions: tuple[str, ...]
    commands: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    waits: dict[str, str]
    jobs: tuple[Job, ...]


def preview_queue(
    adapter: Adapter, options: Options, profiles: Path, service: tuple[DaemonConfig, Journal] | None = None
) -> QueuePreview:
    """Return what the daemon would do now. Raises AdapterError.

    Args:
        adapter: whose queue is read.
        options: how to plan.
        profiles: a profile store that may be written to, such as a copy.
        service: its configuration, and a copy of its journal, which is closed; None = a daemon that has just been
            installed. `options` with another policy than the configured one have no guard.
    """
    from .learning.profile_learning import LearnedProfiles  # a run of a workflow needs no profile store

    journal, deciding = _in_memory(), Deciding(_no_guard(options.policy), options)
    if service is not None:
        config, journal = service
        configured = decided_by(config, journal)
        guard = configured.guard if options.policy == config.policy else deciding.guard
        deciding = replace(configured, guard=guard, options=options)
    try:
        if adapter.capabilities.offers:
            journal.keep_handed_over(adapter.name, time.time())
        recording, learned = Recording(lambda line: None), LearnedProfiles(profiles)
        cycle = assemble(
            adapter, recording, journal, Metrics(), deciding, time.monotonic, profiles=learned, most_taken_in=math.inf
        )
        adapter.settle(SETTLE_S)
        began = time.perf_counter()
        report = cycle.run()
        duration_s = time.perf_counter() - began
        tracker = cycle.tracker
        waiting = {entry.key: entry for entry in tracker.queue.active() if entry.state is JobState.PENDING}
        planned = {job.id for job in report.plan.jobs} if report.plan else set()
        waits = {key: entry.wait_reason for key, entry in waiting.items() if entry.wait_reason and key not in planned}
        waits |= {key: why for key, why in tracker.limited.items() if key in waiting and key not in planned}
        waits |= tracker.stuck
        actions = [applied.action for applied in report.applied]
        commands = [line for action in actions for line in adapter.preview(action)]
        plan = report.plan and replace(
            report.plan,
            jobs=tuple(job for job in report.plan.jobs if job.id in waiting and job.id not in waits),
            simulated_in=duration_s,
        )
        return QueuePreview(
            plan,
            tuple(action for action in actions if isinstance(action, Start)),
            tuple(map(describe, actions)),
            tuple(commands),
            tuple(report.rejected),
            waits,
            tuple(replace(entry.job, id=key) for key, entry in waiting.items()),
        )
    finally:
        journal.close()


def _in_memory() -> Journal:
    return Journal(Path(":memory:"), in_memory=True)


def _no_guard(policy: str) -> Guard:
    return Guard(bound=math.inf, window=1, fallback=policy, enabled=False)

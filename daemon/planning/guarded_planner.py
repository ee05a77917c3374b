"""Planning within limits: which policy, for how long, and what to do if it fails.

Rule: the guard chooses between the configured policy and the fallback, but a queue policy, which decides by walltimes,
is not overruled when forecasts miss. If a policy fails, this is logged and the fallback decides; if both fail, the
workflow that makes them fail is set aside (see `isolation`). The fallback knows of no limit of power or energy, so if a
policy with one fails, nothing is started. A search ends at its time limit, when the daemon stops, or once for news (see
`plan_cache`).
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ...formats.entry_points import register_mapping_policy
from ...formats.text import clean, count
from ...simulate.errors import PilotfishError
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from ...simulate.model.plan import Plan
from ...simulate.model.snapshot import Snapshot
from ...simulate.queue_policies.policy_specs import (
    COMPONENT,
    is_queue_policy,
    parts_of,
)
from ..learning.forecast_errors import ForecastErrors
from ..learning.guard_rail import Guard
from ..report.accuracy import source_of
from ..report.cycle_report import CycleReport
from ..report.metrics import Metrics
from ..report.placement_latency import PlacementLatency
from ..run_modes import RunMode
from ..state.queue import Queue
from .isolation import Isolation
from .kept_policy import KeptPolicy
from .node_shortlist import shortlist
from .passing import passed
from .placement_gain import placement_gain
from .plan_bounds import FORESIGHT, parsed, window
from .plan_steps import PlanSteps
from .power_saving import NodeSwitcher
from .problem import Options, Planner, Problem, next_due
from .residents import with_residents
from .trigger import Trigger

log = logging.getLogger("pilotfish.cycle")
#: Simulations x jobs that a plan may spend on runner-ups. Jobs that start now come first.
RUNNER_UP_BUDGET = 10_000
#: Nodes of jobs of several nodes that share them, running or not, up to which each forecast follows all of them.
MOST_TIED = 32
#: Seconds of a cycle after which the search for more workflows to set aside goes on in the next cycle.
ISOLATION_S = 2.0
#: Longest text of an error that is logged and shown, characters.
LONGEST_ERROR = 600


def simulate_plan(problem: Problem, cluster: Cluster, options: Options) -> Plan:
    """Plan with the simulator (loaded on first use) on the nodes that matter."""
    from ...simulate.model.objective import Objective
    from ...simulate.planning.planner import POLICIES, plan

    register_mapping_policy(options.policy, service=True)
    breathe = options.breathe or (lambda: None)
    if not getattr(POLICIES.get(options.policy), "every_node", False):
        problem, cluster = shortlist(problem, cluster, breathe)
    index = problem.workflow.index
    if not options.policy.startswith(COMPONENT):  # a component knows the running jobs by their ids
        in_python = _decides_in_python(options.policy, problem)
        problem = with_residents(problem, cluster, in_python=in_python, breathe=breathe)
    available, power = problem.available, options.power
    if power is not None:
        available = tuple({*available, *power.off, *power.switching, *power.waking})
    planned = plan(
        problem.workflow,
        cluster,
        policy=options.policy,
        objective=Objective.parse(options.objective),
        seed=options.seed,
        budget=options.budget,
        should_stop=options.should_stop,
        breathe=options.breathe,
        most_tied=MOST_TIED,
        underway=problem.running,
        available=available,
        explanation_runs=RUNNER_UP_BUDGET // max(len(problem.workflow.jobs), 1),
        submitted=problem.submitted,
        late=problem.late(every=options.all_late),
        latency_s=options.latency_s,
        may_reject=True,
        foresight=None if options.window is None else FORESIGHT,
        bounded=options.policy == "lookahead",  # it ends its search at the bound; nothing else here uses it
        now=options.now,
        kept=options.kept,
        power=power,
    )
    if problem.workflow.index is index:
        return planned
    return dataclasses.replace(planned, jobs=tuple(job for job in planned.jobs if job.id in index))


def _decides_in_python(policy: str, problem: Problem) -> bool:
    """Return whether a policy is called at each end: any queue policy but EASY and strict order of simple jobs."""
    from ...simulate.planning.planner import POLICIES
    from ...simulate.planning.queue_mapping import QueueMapping

    if not isinstance(POLICIES.get(policy), QueueMapping):
        return False
    spec = parsed(policy)
    if spec is None or spec.family != "easy" or spec.needs_nodes:
        return True
    groups = [job.profile.groups for job in problem.workflow.jobs]
    return any(len(row) > 1 or row[0].phases for row in groups) or any(job.after for job in problem.workflow.jobs)


def load_simulator(cluster: Cluster) -> None:
    """Plan a job, so that the first plan of the service takes no longer than the next: a job may wait for it."""
    job = Job("first", DEFAULT_PROFILE, walltime=1.0)
    simulate_plan(Problem(Workflow("first", (job,)), (), tuple(cluster.index), {}, {}), cluster, Options())


@dataclass(slots=True)
class GuardedPlanner:
    """Makes the plan of a cycle.

    Args:
        forecasts: holds the guard that trusts or distrusts forecasts.
        options: as configured; `use` replaces them.
        trigger: receives the time of the next plan.
        isolation: receives the workflows that make planning fail.
        clock: seconds, monotonic.
        latency: knows what a placement costs.
        kept: what the configured policy keeps from one plan to the next.
        switcher: knows the power states of nodes.
        make_plan: the planner.
        stopping: whether the daemon is about to stop; ends a search.
        breathe: called between two parts of a cycle and two simulated runs of its plan, so that clients are answered.
    """

    forecasts: ForecastErrors
    options: Options
    trigger: Trigger
    metrics: Metrics
    isolation: Isolation
    clock: Callable[[], float]
    latency: PlacementLatency
    kept: KeptPolicy
    switcher: NodeSwitcher
    make_plan: Planner = simulate_plan
    stopping: Callable[[], bool] = lambda: False
    breathe: Callable[[], None] = lambda: None
    released: Mapping[str, str] = field(default_factory=dict)  #: why jobs of the last plan are not placed, by key
    _failures: set[str] = field(default_factory=set)
    _steps: PlanSteps = field(init=False)
    _hopeless: bool = False

    def __post_init__(self) -> None:
        self._steps = PlanSteps(lambda: self.breathe(), self.clock)  # tests and a reload may replace `breathe`
        self.use(self.options)

    def use(self, options: Options, guard: Guard | None = None) -> None:
        """Plan with these options from now on; what was set aside is planned again.

        Args:
            options: as configured.
            guard: replaces the one in force; None: it stays.
        """
        self.options, self.switcher.by_policy = options, parts_of(options.policy).switches
        self.kept.use(options.policy)
        self.forecasts.guard = guard or self.forecasts.guard
        for policy in (options.policy, self.forecasts.guard.fallback):
            self.metrics.expect_policy(policy)
        self.isolation.reasons.clear()

    @property
    def set_aside(self) -> int:
        """Number of workflows that are not planned, because planning fails with them."""
        return len(self.isolation.reasons)

    @property
    def trouble(self) -> str:
        """Reason why jobs cannot be planned, for health checks; it names no workflow, because anyone may read it."""
        if self._hopeless:
            return "no policy can make a plan; the log has the reason"
        if aside := self.set_aside:
            workflows = count(aside, "workflow")
            return f"{workflows} set aside, because planning fails with {'it' if aside == 1 else 'them'}; see the log"
        return ""

    def decide(self, problem: Problem, snapshot: Snapshot, report: CycleReport, retry_s: float) -> Plan | None:
        """Return the plan of this cycle, if there is one, and set when to plan next.

        Args:
            problem: what to plan.
            snapshot: what it was made from.
            report: of this cycle; receives the plan, its policy, and whether there is more to plan.
            retry_s: seconds until a start that failed may be tried again.
        """
        self.breathe()
        until = self.clock() + ISOLATION_S
        while True:
            plan, failed = self._attempt(problem, snapshot, report, retry_s)
            self._hopeless = bool(failed) and not self.isolation.find_culprit(
                problem, lambda part: self._why_not(part, snapshot.cluster)
            )
            if not failed:
                self.breathe()
                return plan
            if self._hopeless or self.clock() > until:
                break
            problem = self.isolation.applied(problem)
        self.trigger.recheck(snapshot.time, 0.0)
        self.trigger.changed |= not self._hopeless  # more may have to be set aside
        return None

    def _attempt(
        self, problem: Problem, snapshot: Snapshot, report: CycleReport, retry_s: float
    ) -> tuple[Plan | None, bool]:
        """Return the plan of this cycle, if there is one, and whether all policies failed."""
        now, guard = snapshot.time, self.forecasts.guard
        before, guard.overruled_model = guard.overruled_model, self.kept.overruled
        if guard.overruled_model is not None and guard.overruled_model != before:
            instead, why = guard.overruled_model
            log.error("%s decides in place of %s: %s", instead, self.options.policy, why)
        elif guard.overruled_model is None and before is not None:
            log.warning("%s decides from now on", self.options.policy)
        if not (problem.startable or self.switches or problem.observes):
            self.trigger.recheck(now, retry_s)
            return None, False
        choice = self._trusted_policy(problem.workflow.jobs)
        limited = parts_of(choice).limit is not None
        for policy in dict.fromkeys((choice,) if limited else (choice, guard.fallback)):
            objective = self.options.objective if policy == choice else "turnaround"
            began = self.clock()
            limit = self._limit(began, report)
            options = dataclasses.replace(
                self.options, policy=policy, objective=objective, should_stop=limit,
                breathe=self._steps, latency_s=self.latency.gap_s,
                all_late=self.latency.of_all, now=now, kept=self.kept.kept,
                power=self.switcher.power(snapshot) if parts_of(policy).switches else None,
            )  # fmt: skip
            self._steps.begin()
            try:
                plan = self._plan(problem, snapshot.cluster, options, report)
            except Exception as error:  # a policy must not take the daemon down
                self._note_failure(policy, error, report)
                continue
            finally:
                self.metrics.longest_step.set(self._steps.end(policy))
            if policy == choice:
                self._failures.clear()
            if plan is None:
                return None, False
            self.metrics.count_plan(policy, plan, self.clock() - began)
            report.plan, report.policy = plan, policy
            gain = placement_gain(plan, problem, self.latency.cost_s)
            self.released = {} if self.options.place_all else dict(gain.released)
            if not (self.options.place_all or limited or options.power):  # else a job may wait on purpose
                self.released |= passed(plan, problem, snapshot.jobs)
            report.gain_of_holding_s = None if self.options.place_all else gain.of_holding_s
            self.trigger.recheck(now, min(next_due(plan, problem), retry_s))
            self.trigger.wake(now, plan.recheck_s)
            return plan, False
        return None, True

    def _why_not(self, problem: Problem, cluster: Cluster) -> str:
        """Return why the fallback policy cannot plan a problem, or ""."""
        deadline = self.clock() + (self.options.time_limit or math.inf)
        policy, cut = self.forecasts.guard.fallback, (lambda: self.clock() > deadline)
        options = dataclasses.replace(
            self.options, policy=policy, objective="makespan", should_stop=cut, breathe=self.breathe
        )
        try:
            self.make_plan(problem, cluster, options)
        except Exception as error:  # as in `_attempt`
            return _text(error)
        return ""

    def policy_for(self, queue: Queue) -> str:
        """Return the policy that decides for the jobs in the queue."""
        guard = self.forecasts.guard
        if not (guard.tripped or guard.overruled_model):
            return self.options.policy
        return self._trusted_policy(entry.job for entry in queue.active())

    def _trusted_policy(self, jobs: Iterable[Job]) -> str:
        """Return the configured policy, or the fallback if it would decide for these jobs by forecasts that miss."""
        policy = self.options.policy
        if is_queue_policy(policy):  # it decides by walltimes
            return self.forecasts.guard.instead_of_model(policy)
        return self.forecasts.guard.policy(policy, {source_of(job) for job in jobs})

    @property
    def switches(self) -> bool:
        """True if the policy switches nodes, so that it decides also while no job waits."""
        return parts_of(self.options.policy).switches

    @property
    def returning(self) -> Collection[str] | None:
        """Nodes that are being switched or boot, on which a policy that switches nodes counts; None: it does not."""
        return self.switcher.returning if self.switches else None

    def window(self, snapshot: Snapshot) -> int | None:
        """Return the most waiting jobs that a plan of this snapshot considers; None = all. See `plan_bounds`."""
        most, guard = self.options.window, self.forecasts.guard
        policies = (self.options.policy, guard.fallback) if guard.tripped else (self.options.policy,)
        running, nodes = len(snapshot.jobs.holding), len(snapshot.cluster.nodes)
        return None if most is None else min(most, *(window(policy, running, nodes) for policy in policies))

    def mode(self, queue: Queue, run_mode: RunMode) -> str:
        """Return `fallback` if the guard overrules the configured policy of a daemon that acts, else its mode."""
        return "fallback" if run_mode.acts and self.policy_for(queue) != self.options.policy else run_mode

    def _plan(self, problem: Problem, cluster: Cluster, options: Options, report: CycleReport) -> Plan | None:
        """Return the last plan if it still serves, else a new one; None if news ended the search."""
        cache = self.trigger.cache
        if plan := cache.next(problem, cluster, options, report.events):
            report.more = True
            return plan
        plan = self.make_plan(problem, cluster, options)
        if cache.interrupted:
            self.trigger.changed = True  # the next cycle plans with the news
            return None
        cache.store(plan, problem)
        if self.trigger.changed:  # a client was answered since the problem was made, or while it was made
            cache.drop()
        report.more = problem.beyond
        return plan

    def _note_failure(self, policy: str, error: Exception, report: CycleReport) -> None:
        self.trigger.cache.drop()
        text = f"policy {policy} failed: {_text(error)}"
        report.failures.append(text)
        if text not in self._failures:  # the same failure repeats in each cycle
            self._failures.add(text)
            log.error("cycle %d: %s", report.number, text, exc_info=not isinstance(error, PilotfishError))
        self.metrics.plans.labels(policy, "failed").inc()

    def _limit(self, began: float, report: CycleReport) -> Callable[[], bool]:
        """Return whether a search is to end, a question that it asks now and then; `report` counts the questions."""
        deadline = began + (self.options.time_limit or math.inf)

        def is_over() -> bool:
            report.questions += 1
            if self.stopping() or self.clock() > deadline:
                report.cut_at = report.cut_at or report.questions
                return True
            return self.trigger.cache.has_news()

        return is_over


def _text(error: Exception) -> str:
    return clean(f"{type(error).__name__}: {error}")[:LONGEST_ERROR]

"""Assembly: put a cycle together from its parts."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapters.base import Adapter
from ..simulate.model.bounded import turns
from .apply import Applier
from .canary.canary_watch import CanaryWatch
from .config import DaemonConfig
from .config_sections import PowerConfig
from .learning.external_load import LoadOfOthers
from .learning.forecast_errors import ForecastErrors
from .learning.guard_rail import FORGOTTEN, Guard
from .learning.guard_watch import GuardWatch
from .learning.interval_correction import IntervalCorrection, groups_of
from .learning.job_profiles import GivenProfiles
from .learning.node_speeds import NodeSpeeds
from .learning.profile_drift import ProfileDrift
from .loop import Cycle
from .mode_log import ModeLog
from .oracle.queue_oracle import QueueOracle
from .planning.guarded_planner import GuardedPlanner, simulate_plan
from .planning.isolation import Isolation
from .planning.kept_policy import KeptPolicy
from .planning.live_component import ComponentEvents
from .planning.plan_cache import PlanCache
from .planning.power_saving import NodeSwitcher
from .planning.problem import WINDOW, Options, Planner
from .planning.trigger import Trigger
from .report.accuracy import known
from .report.cycle_report import CycleReporter, Observer
from .report.delays import read_delays
from .report.hold_advice import HoldAdvice
from .report.hold_watch import HoldWatch
from .report.metrics import Metrics
from .report.placement_latency import PlacementLatency
from .report.queue_forecasts import QueueForecasts
from .state.forecasts import Forecaster
from .state.handed_over import MOST_TAKEN_IN
from .state.journal import Journal
from .state.pauses import KEPT, Pauses
from .state.unsaved import Unsaved
from .state.write_ahead import WriteAhead
from .tracker import JobTracker

if TYPE_CHECKING:
    from .learning.profile_learning import LearnedProfiles

log = logging.getLogger("pilotfish")
#: Jobs that ended last; and those of all users in turns from which prediction intervals and speeds of nodes are known
#: after a restart.
READ_JOBS, RECENT_JOBS = 10_000, 2000
#: Jobs of the resource manager's queue that are remembered from before a restart.
QUEUED_JOBS = 10_000


@dataclass(frozen=True, slots=True)
class Deciding:
    """The rules by which a daemon decides.

    Args:
        guard: overrules the policy of `options` while forecasts keep missing.
        options: how to plan.
        power: which idle nodes are powered down, whatever the policy.
        recheck_s: seconds until a plan that has drifted is made again.
    """

    guard: Guard
    options: Options
    power: PowerConfig = field(default_factory=PowerConfig)
    recheck_s: float = 1.0


def assemble(
    adapter: Adapter,
    applier: Applier,
    journal: Journal,
    metrics: Metrics,
    deciding: Deciding,
    clock: Callable[[], float],
    *,
    stopwatch: Callable[[], float] | None = None,
    planner: Planner = simulate_plan,
    stopping: Callable[[], bool] = lambda: False,
    breathe: Callable[[], None] = lambda: None,
    profiles: GivenProfiles | None = None,
    drift: ProfileDrift | None = None,
    observers: Callable[[JobTracker], Sequence[Observer]] = lambda tracker: (),
    delays_file: Path | None = None,
    others: LoadOfOthers | None = None,
    most_taken_in: float = MOST_TAKEN_IN,
    oracle: QueueOracle | None = None,
    canary: CanaryWatch | None = None,
) -> Cycle:
    """Return a cycle with everything around it.

    Args:
        adapter: reads the cluster.
        applier: carries actions out, or prints them.
        journal: what survives a restart; the queue is loaded from it.
        metrics: receives the numbers of each cycle.
        deciding: by what the daemon decides.
        clock: seconds, monotonic, for durations only.
        stopwatch: seconds, monotonic, for what no decision rests on but a limit in seconds: how long plans take; None:
            `clock`.
        planner: makes a plan; the simulator by default.
        stopping: whether the daemon is about to stop; ends a search.
        breathe: called between two parts of a cycle, two steps of a plan, and of a forecast of the resource manager's
            queue.
        profiles: replace default profiles; None = plan with the profiles that jobs came with.
        drift: watches the errors of profiles; None = no profile is ever learned again.
        observers: made for the tracker; called before the one that logs and exports each cycle.
        delays_file: where measured delays are kept; None: nowhere.
        others: knows what other programs leave of the nodes; None = nothing is known yet.
        most_taken_in: jobs of the resource manager's users that a cycle takes in; the others wait for the next ones.
        oracle: knows the rules by which the resource manager decides; None: nothing does.
        canary: watches which jobs are handed over; None: all are.
    """
    journal.damage.count_in(metrics.damaged_rows)
    unsaved, trigger = Unsaved(), Trigger(PlanCache(adapter, clock), deciding.recheck_s)
    drift = drift or ProfileDrift(bound=1.0, window=1, enabled=False)
    profiles = profiles or GivenProfiles()
    jobs = journal.forecasts(READ_JOBS)
    past = [jobs[place] for place in sorted(turns([job.user for job in jobs])[:RECENT_JOBS])]
    errors = ((groups_of(one.profile, one.source, one.user), one.forecast_s, one.actual_s) for one in past)
    speeds = NodeSpeeds((one.node, one.forecast_s, one.actual_s, one.node_speed) for one in known(past))
    intervals = IntervalCorrection(errors)
    forecasts = ForecastErrors(metrics, deciding.guard, drift, unsaved, profiles.learned_as, intervals, speeds)
    others = others or LoadOfOthers()
    queue = journal.load()
    isolation = Isolation(queue)
    write_ahead = WriteAhead(journal, queue, unsaved, dry=not applier.mode.acts)
    tracker = JobTracker(
        adapter, queue, write_ahead, isolation, unsaved, forecasts, trigger, clock, profiles,
        others, most_taken_in, breathe, Pauses(journal.kept(KEPT)) if applier.mode.keeps else Pauses(),
        dry=not applier.mode.acts,
    )  # fmt: skip
    latency = PlacementLatency(
        metrics, queue, clock, lambda: adapter.capabilities.launch_s,
        read_delays(delays_file) if delays_file else None, delays_file,
    )  # fmt: skip
    kept_policy = KeptPolicy(journal, unsaved, queue, metrics)
    power = deciding.power
    idle_s = power.idle_seconds if power.save else math.inf
    switcher = NodeSwitcher(applier, write_ahead, trigger, idle_s, power.spare_nodes)
    guarded = GuardedPlanner(
        forecasts, deciding.options, trigger, metrics, isolation, stopwatch or clock, latency, kept_policy, switcher,
        planner,
        stopping, breathe,
    )  # fmt: skip
    queued = journal.queued(QUEUED_JOBS)
    queue_forecasts = QueueForecasts(adapter, queue, unsaved.queued, metrics, clock, queued, breathe, oracle)
    watching = (
        *([canary] if canary is not None else ()),
        kept_policy,
        latency,
        HoldAdvice(adapter),
        HoldWatch(metrics.holds, queue),
        GuardWatch(metrics.guard, forecasts, kept_policy.doubt),
        ComponentEvents(),
        switcher,
        *observers(tracker),
        ModeLog(tracker, forecasts, journal.last_mode()),
        CycleReporter(metrics, queue, stopwatch or clock, lambda: tracker.paused_partitions),
        queue_forecasts,
    )
    return Cycle(adapter, applier, tracker, trigger, guarded, watching, queue_forecasts, clock)


def accounting_learners(
    config: DaemonConfig, adapter: Adapter, journal: Journal, profiles: LearnedProfiles, drift: ProfileDrift,
    metrics: Metrics, tracker: JobTracker, clock: Callable[[], float],
) -> list[Observer]:  # fmt: skip
    """Return the observers that learn profiles from accounting, in the order in which they must see events.

    The arguments are those of `assemble`; `config` says whether, and when, accounting is read.
    """
    from .learning.profile_learning import DriftRenewal  # a run of a workflow learns nothing
    from .learning.usage_reader import UsageReader

    section, learners = config.accounting, list[Observer]()
    if section.enabled and adapter.capabilities.accounting:
        sources = adapter, journal, profiles, metrics, tracker.queue, tracker.unsaved, clock
        learners.append(UsageReader(*sources, delay_s=section.delay_seconds, every_s=section.every_seconds))
    return [*learners, DriftRenewal(drift, profiles, metrics, tracker.queue, tracker.renew_profile)]


def accountants(
    config: DaemonConfig, file: Path, adapter: Adapter, journal: Journal, metrics: Metrics, tracker: JobTracker,
    before_s: float, stack: ExitStack,
) -> list[Observer]:  # fmt: skip
    """Return the observers that keep the costs of the service, and make its card if its resource manager has a twin.

    Args:
        config: of the service.
        file: where it was read from.
        adapter: counts its requests.
        journal: has the costs of earlier runs.
        metrics: show the card.
        tracker: keeps the costs.
        before_s: see `RunningCost`.
        stack: ends what they do.
    """
    from .report.running_cost import RunningCost  # a run of a workflow has neither
    from .report.score_card import ScoreCard, score_command

    card = None
    if config.score.enabled and (adapter.name == "slurm" or config.record.enabled):
        every_s = 3600.0 * config.score.every_hours
        card = ScoreCard(score_command(file), metrics.score, time.monotonic, every_s, config.card)
    sources = adapter, journal, tracker.unsaved, time.monotonic, before_s
    cost = RunningCost(*sources, lambda: 0 if card is None else card.requests)
    stack.callback(tracker.save)
    stack.callback(cost.note)
    if card is None:
        return [cost]
    stack.callback(card.close)
    return [cost, card]


#: Keys of the configuration by which the daemon decides. `decided_by` reads them for the service and for a preview.
DECIDING = frozenset(
    ("policy", "objective", "without_gain", "budget", "time_limit", "seed", "guard", "power", "cycle_seconds")
)


def decided_by(config: DaemonConfig, journal: Journal) -> Deciding:
    """Return the rules by which a configured daemon decides.

    Args:
        config: of the service.
        journal: of the service, or a copy; the guard remembers its forecast errors.
    """
    guard = guard_of(config, journal.last_errors(FORGOTTEN * config.guard.window))
    return Deciding(guard, options_of(config), config.power, max(1.0, config.cycle_seconds))


def options_of(config: DaemonConfig) -> Options:
    """Return how to plan."""
    chosen = config.model_dump(include={"policy", "objective", "seed", "budget", "time_limit"})
    return Options(**chosen, window=WINDOW, place_all=config.without_gain == "place")


def guard_of(config: DaemonConfig, errors: Iterable[tuple[Forecaster, float, int | None]] = ()) -> Guard:
    """Return the guard; `errors` are those from before a restart."""
    section = config.guard
    bound, window = section.max_median_error, section.window
    return Guard(bound=bound, window=window, fallback=section.policy, enabled=section.enabled, errors=errors)

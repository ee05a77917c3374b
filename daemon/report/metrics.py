"""The metrics of the daemon.

Rule: no label names a job or a user, so that the number of time series depends on nodes and configuration alone. The
first MOST_PROFILES profiles have a label each, all others share one. Any local user may read the labels, so none has a
word of a command, of a job's name or of a comment, nor a checksum that would confirm a guess: a profile that its owner
named has its name, if it is a plain one, every other profile a number.
"""

from __future__ import annotations

import itertools
import math
import platform
import re
from collections import Counter
from collections import Counter as Counts
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ... import __version__
from ...adapters.base import ERROR_KINDS
from ...built_from import commit
from ...profiles.identity import COMMAND, KIND
from ...profiles.prediction.conformal import MOST_GROUPS
from ...simulate.model.cluster import Node
from ...simulate.model.plan import (
    LEVEL,
    Action,
    Cancel,
    Place,
    Plan,
    PowerOff,
    PowerOn,
    Release,
    Submit,
    SubmitAhead,
)
from ...simulate.model.snapshot import JobState, Snapshot
from ...simulate.queue_policies.kept import LimitNow
from ...simulate.results.group_contrast import GroupContrast
from ..state.forecasts import Forecaster
from .accuracy import CALIBRATED, CALIBRATED_KINDS, ENOUGH_JOBS, NOT_RECORDED, SOURCES, Groups, factor
from .guard_metrics import GuardMetrics
from .hold_metrics import HoldMetrics
from .score_metrics import ScoreMetrics

MOST_PROFILES = 50
OTHERS = "others"
#: Shares of jobs inside: see `accuracy.CALIBRATED`.
_SHARES = ("below", "calibrated", "above")
#: Names of profiles that are labels. The others may be text of a command.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")


class ErrorMetrics:
    """Metrics of forecast errors: all, by contention model, by profile; `make` makes a metric, see `Metrics`."""

    def __init__(self, make: Any) -> None:
        from prometheus_client import Counter, Gauge, Histogram, Summary

        low, high = (f"{100 * share:.0f}" for share in CALIBRATED)
        text = "Actual over forecast or its inverse, the larger of the two, {}; direction: longer or shorter."
        self._all = make(
            Histogram,
            "forecast_error_factor",
            text.format("of run times, and of finish times counted from submission"),
            ("kind", "direction"),
            buckets=_FACTORS,
        )
        for kind in ("run_time", "finish_time"):
            for direction in ("longer", "shorter"):
                self._all.labels(kind, direction)
        self._by_model = make(
            Histogram,
            "model_forecast_error_factor",
            text.format("of run times, by contention model and source of the profile"),
            ("model", "source", "direction"),
            buckets=_FACTORS,
        )
        self._intervals = make(
            Counter,
            "forecast_intervals_total",
            f"Completed jobs: run time in or outside its {100 * LEVEL:.0f} % forecast interval, by source of profile.",
            ("source", "result"),
        )
        self._widths = make(
            Histogram,
            "forecast_interval_width_ratio",
            "Longest over shortest run time of the forecast intervals of completed jobs, by source of profile.",
            ("source",),
            buckets=_FACTORS,
        )
        for source in SOURCES:
            self._widths.labels(source)
            for result in ("inside", "outside"):
                self._intervals.labels(source, result)
        self._groups = make(
            Gauge,
            "forecast_interval_groups",
            f"Groups of {ENOUGH_JOBS} jobs or more, by their share of jobs inside since the start: {low} to {high} %,"
            " or below, or above.",
            ("kind", "share"),
        )
        self._inside: dict[tuple[Hashable, ...], tuple[int, int]] = {}
        for kind in CALIBRATED_KINDS:
            for share in _SHARES:
                self._groups.labels(kind, share)
        self._by_profile = make(
            Summary,
            "profile_forecast_error_log",
            "|ln(actual / forecast)| of run times, by profile: exp(sum / count) is the mean factor.",
            ("profile",),
        )
        self.external = make(
            Counter,
            "forecasts_not_judged_total",
            "Completed jobs whose error counts against no model or profile, because others used their CPUs.",
        )
        self.relearned = make(Counter, "profiles_relearned_total", "Profiles learned again because they had drifted.")
        self._labels: dict[str, str] = {}
        self._numbered: Counts[str] = Counts()

    def observe_kind(self, kind: str, error: float) -> None:
        """Count an error, a ratio (see `accuracy`), of a kind: run_time or finish_time."""
        self._all.labels(kind, _direction(error)).observe(factor(error))

    def observe(self, forecaster: Forecaster, profile: str, error: float) -> None:
        """Count the error of a run time, a ratio, under its forecaster and its profile's name."""
        labels = (*(label or NOT_RECORDED for label in forecaster), _direction(error))
        self._by_model.labels(*labels).observe(factor(error))
        self._by_profile.labels(self._label(profile)).observe(math.log(factor(error)))

    def count_interval(self, groups: Groups, source: str, width: float, *, inside: bool) -> None:
        """Count a completed job with a prediction interval.

        Args:
            groups: of the job.
            source: of its profile.
            width: longest over shortest run time of the interval.
            inside: whether its run time was.
        """
        self._widths.labels(source).observe(width)
        self._intervals.labels(source, "inside" if inside else "outside").inc()
        for group in groups:
            jobs, held = self._inside.pop(group, (0, 0))
            self._inside[group] = (jobs + 1, held + inside)
            if jobs >= ENOUGH_JOBS:
                self._groups.labels(group[0], _share(held / jobs)).dec()
            if jobs + 1 >= ENOUGH_JOBS:
                self._groups.labels(group[0], _share((held + inside) / (jobs + 1))).inc()
        while len(self._inside) > MOST_GROUPS:
            del self._inside[next(iter(self._inside))]

    def _label(self, profile: str) -> str:
        if profile not in self._labels and len(self._labels) < MOST_PROFILES:
            self._labels[profile] = profile if _PLAIN.fullmatch(profile) else self._number(profile)
        return self._labels.get(profile, OTHERS)

    def _number(self, profile: str) -> str:
        kind = next((kind for kind in (COMMAND, KIND) if profile.startswith(kind)), "profile: ")
        self._numbered[kind] += 1
        return f"{kind}#{self._numbered[kind]}"


def _share(inside: float) -> str:
    return _SHARES[0] if inside < CALIBRATED[0] else _SHARES[2] if inside > CALIBRATED[1] else _SHARES[1]


def _direction(error: float) -> str:
    return "longer" if error >= 1.0 else "shorter"


#: No factor is below 1. The first bucket stays empty, because a quantile in the lowest bucket is interpolated from 0.
_FACTORS = (0.99, 1.0, 1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
_SLOWDOWNS = (0.5, 0.8, 0.9, 0.99, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_LATENCIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_START_ERRORS = (1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0)
MODES = ("live", "shadow", "dry-run", "fallback", "paused", "blocked")
#: Outcomes of a plan, of a decided action, and of the lookup of an ended job in accounting.
_PLANS = ("planned", "truncated", "failed")
_OUTCOMES = ("applied", "would", "failed", "rejected")
_LOOKUPS = ("learned", "not measured", "not found", "not kept")
#: Names of actions in labels.
ACTIONS: dict[type[Action], str] = {
    Submit: "submit",
    SubmitAhead: "submit_ahead",
    Place: "place",
    Release: "release",
    Cancel: "cancel",
    PowerOff: "power_off",
    PowerOn: "power_on",
}


def begin_at_0(metric: Any, *values: Iterable[str]) -> None:
    """Begin to count at 0 for each combination of label values, so that a rate sees the first event."""
    for labels in itertools.product(*values):
        metric.labels(*labels)


class Metrics:
    """Every metric of the daemon, in a registry of its own.

    The mode is one of MODES: fallback = the guard overrules the policy; paused = an administrator or the configuration
    says so, for all jobs; blocked = the journal cannot be written.
    """

    def __init__(self) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            ProcessCollector,
            disable_created_metrics,
        )

        disable_created_metrics()
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def make(kind: Any, name: str, text: str, labels: tuple[str, ...] = (), **options: Any) -> Any:
            return kind(f"pilotfish_{name}", text, labels, registry=registry, **options)

        build = make(
            Gauge, "build_info", "1: version and commit of the running daemon, and version of its Python.",
            ("version", "commit", "python"),
        )  # fmt: skip
        build.labels(__version__, commit(), platform.python_version()).set(1)
        self.reload_successful = make(
            Gauge, "config_last_reload_successful", "1 if the last reload of the configuration was accepted, else 0."
        )
        self.reload_time = make(
            Gauge, "config_last_reload_success_timestamp_seconds",
            "When the configuration in force was read, at the start or by a reload, in seconds since 1970.",
        )  # fmt: skip
        self.mode = make(Gauge, "mode", "1 for the mode the daemon is in, 0 for the others.", ("mode",))
        self._paused = make(
            Gauge, "paused", 'While a pause holds, 1 for its partition; partition="": for all jobs.', ("partition",)
        )
        self.handover_share = make(Gauge, "handover_share", "Share of the eligible jobs that is handed over.")
        self.stepped_back = make(Gauge, "stepped_back", "1: the canary has stepped back to shadow by itself.")
        self.handover_jobs = make(
            Counter, "handover_jobs_total", "Jobs whose group was drawn, canary or control.", ("group",)
        )
        self._difference = make(
            Gauge, "canary_difference",
            "Canary minus control group, seconds but of the slowdown; low and high bound the interval of 95 %.",
            ("measure", "bound"),
        )  # fmt: skip
        begin_at_0(self.handover_jobs, ("canary", "control"))
        self._paused_partitions: Sequence[str] | None = None
        self.show_pauses(())
        self.cycle_duration = make(Histogram, "cycle_duration_seconds", "Time of a whole cycle.", buckets=_SECONDS)
        self.snapshot_age = make(
            Gauge, "snapshot_age_seconds", "Seconds since the last snapshot, or check that nothing has changed."
        )
        self.damaged_rows = make(
            Counter, "journal_unreadable_rows_total",
            "Damaged rows of the journal that only explain or teach, and were left out, by table.", ("table",),
        )  # fmt: skip
        self.jobs = make(Gauge, "jobs", "Jobs of workflows that have not ended.", ("state",))
        self.set_aside = make(Gauge, "workflows_set_aside", "Workflows not planned, because planning fails with them.")
        self.plans = make(Counter, "plans_total", "Plans by policy and outcome; failed: none.", ("policy", "outcome"))
        self.decisions = make(
            Counter,
            "decisions_total",
            "Decided actions by outcome; submit and place: starts of own jobs and of jobs that were handed over; "
            "failed: refused or not answered by the resource manager; rejected: by the check before it was sent.",
            ("action", "outcome"),
        )
        begin_at_0(self.decisions, ACTIONS.values(), _OUTCOMES)
        self.decision_duration = make(Histogram, "decision_duration_seconds", "Time to make a plan.", buckets=_SECONDS)
        self.placement_latency = make(
            Histogram,
            "placement_latency_seconds",
            "Time from the end of a job to the next start on its node, by phase: seen, decided, sent, started.",
            ("phase",),
            buckets=_LATENCIES,
        )
        self.longest_step = make(
            Gauge,
            "plan_longest_step_seconds",
            "Longest time of the last plan in which no client could be answered.",
        )
        self.evaluations = make(Counter, "whatif_evaluations_total", "Simulated placements.")
        self.slowdown = make(
            Histogram,
            "contention_slowdown_ratio",
            "Run time of a completed job over its isolated run time; without jobs whose isolated run time is a guess.",
            buckets=_SLOWDOWNS,
        )
        self.node_load = make(Gauge, "node_load_ratio", "Threads placed over cores.", ("node",))
        self.node_power = make(Gauge, "node_power_watts", "Power, by the power model.", ("node",))
        self._energy: Any = None  # unknown until a snapshot shows that each node's power is known
        self._make_energy = partial(
            make, Counter, "energy_joules_total", "Energy of all nodes, by the power model; absent if unknown."
        )
        self._limit_watts = make(
            Gauge, "power_limit_watts", "Power cap, or average power of the energy budget, while it holds.", ("kind",)
        )
        self._budget = make(
            Gauge,
            "energy_budget_joules",
            "Energy budget while it holds: energy consumed since its begin (estimated), and the balance that is left.",
            ("part",),
        )
        self.adapter_requests = make(
            Counter, "adapter_requests_total", "Requests to the resource manager.", ("adapter", "call", "result")
        )
        self.adapter_errors = make(
            Counter, "adapter_errors_total", "Requests to the resource manager that were sent and failed.", ("kind",)
        )
        begin_at_0(self.adapter_errors, ERROR_KINDS)
        self.usage_lookups = make(
            Counter, "accounting_jobs_total", "Ended jobs by outcome of their lookup in accounting.", ("outcome",)
        )
        begin_at_0(self.usage_lookups, _LOOKUPS)
        self.start_errors = make(
            Histogram,
            "start_forecast_error_seconds",
            "Error of the first forecast of a job's start, without sign, by the maker of the forecast: pilotfish, or "
            "the resource manager; compared: of jobs for which both exist.",
            ("by", "compared"),
            buckets=_START_ERRORS,
        )
        for by, compared in (("pilotfish", "no"), ("pilotfish", "yes"), ("manager", "yes")):
            self.start_errors.labels(by, compared)
        self.errors, self.score = ErrorMetrics(make), ScoreMetrics(make)
        self.holds, self.guard = HoldMetrics(make), GuardMetrics(make)
        self._limit_kind = ""
        self._last: Snapshot | None = None
        self._watts: float | None = None
        self._states = {state: self.jobs.labels(str(state)) for state in JobState}
        self._threads: list[int] = []
        self._node_load: list[Any] = []
        self._node_watts: list[float | None] = []

    def note_config_read(self) -> None:
        """Note that the configuration in force was read now."""
        self.reload_successful.set(1)
        self.reload_time.set_to_current_time()

    def set_mode(self, mode: str) -> None:
        """Show the daemon in `mode`, one of MODES."""
        for name in MODES:
            self.mode.labels(name).set(name == mode)

    def show_handover(self, share: float, *, is_stepped_back: bool) -> None:
        """Show the share that is handed over, [0, 1], and whether the canary has stepped back."""
        self.handover_share.set(share)
        self.stepped_back.set(is_stepped_back)

    def show_comparison(self, measures: Mapping[str, GroupContrast | None]) -> None:
        """Show the differences of the canary and its control group, by measure; None: not known."""
        for name, contrast in measures.items():
            if contrast is not None:
                bounds = {"mean": contrast.difference, "low": contrast.low, "high": contrast.high}
                for bound, value in bounds.items():
                    self._difference.labels(name, bound).set(math.nan if value is None else value)

    def show_pauses(self, partitions: Sequence[str]) -> None:
        """Show which partitions are paused; "": all jobs are."""
        if partitions == self._paused_partitions:
            return
        self._paused_partitions = partitions
        self._paused.clear()
        for name in ("", *partitions):
            self._paused.labels(name).set(name in partitions)

    def expect_policy(self, policy: str) -> None:
        """Begin to count the plans of a policy at 0."""
        begin_at_0(self.plans, (policy,), _PLANS)

    def count_plan(self, policy: str, plan: Plan, seconds: float) -> None:
        """Count a plan by its policy, and the seconds that it took."""
        self.decision_duration.observe(seconds)
        self.evaluations.inc(plan.evaluations)
        self.plans.labels(policy, "truncated" if plan.truncated else "planned").inc()

    def count_action(self, action: Action, outcome: str) -> None:
        """Count a decided action by its outcome, one of `applied`, `would`, `failed` and `rejected`."""
        self.decisions.labels(ACTIONS[type(action)], outcome).inc()

    def show_limit(self, limit: LimitNow | None) -> None:
        """Show a limit of power or energy while it holds."""
        kind = "" if limit is None or not limit.holds else "cap" if limit.balance_j is None else "budget"
        if kind != self._limit_kind:
            self._limit_watts.clear()
            self._budget.clear()
        self._limit_kind = kind
        if limit is None or not kind:
            return
        self._limit_watts.labels(kind).set(limit.watts)
        if limit.balance_j is not None:
            self._budget.labels("balance").set(limit.balance_j)
            self._budget.labels("consumed").set(limit.consumed_j)

    def show_snapshot(self, snapshot: Snapshot, states: Counter[JobState]) -> None:
        """Show the nodes of a snapshot, and how many of our jobs are in each state."""
        for state, gauge in self._states.items():
            gauge.set(states[state])
        if self._last is not None and self._watts is not None:
            self._energy.inc(self._watts * max(0.0, snapshot.time - self._last.time))
        self._watts = self._show_nodes(snapshot)
        if self._watts is not None and self._energy is None:
            self._energy = self._make_energy()
        self._last = snapshot

    def _show_nodes(self, snapshot: Snapshot) -> float | None:
        """Show the nodes that have changed; return the power of all, watts, if it is known of each."""
        nodes, threads = snapshot.cluster.nodes, snapshot.jobs.occupancy(snapshot.cluster).threads
        if self._last is None or self._last.cluster is not snapshot.cluster:
            self._threads, self._node_watts = [-1] * len(nodes), [None] * len(nodes)
            self.node_load.clear()
            self.node_power.clear()
            self._node_load = [self.node_load.labels(node.name) for node in nodes]
        elif threads == self._threads:
            return self._watts
        for i, (now, before) in enumerate(zip(threads, self._threads, strict=True)):
            if now == before:
                continue
            self._node_load[i].set(now / nodes[i].type.cores)
            self._node_watts[i] = watts = node_watts(nodes[i], now)
            if watts is not None:
                self.node_power.labels(nodes[i].name).set(watts)
        self._threads = threads
        known_watts = [watts for watts in self._node_watts if watts is not None]
        return sum(known_watts) if len(known_watts) == len(nodes) else None


def node_watts(node: Node, threads: int) -> float | None:
    """Return the power of a node, watts, by the formulas of `simulate.model.cluster.Power`; None if unknown.

    An upper bound: every placed thread counts as busy, although it may sleep or wait.

    Args:
        node: whose type has the power model.
        threads: placed on the node; at most its cores count.
    """
    power, busy = node.type.power, min(threads, node.type.cores)
    if power is None:
        return None
    if power.computing is not None:
        return power.idle + (power.computing - power.idle) * busy / node.type.cores
    uncore = power.per_socket * node.type.sockets * (power.idle_uncore if busy == 0 else 1.0)
    return power.idle + uncore + power.per_core * busy

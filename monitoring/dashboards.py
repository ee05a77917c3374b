"""The dashboards for Grafana, as one list of panels from which their JSON files are made.

Rule: a query names its metrics without the selectors of cluster and instance, and each sum keeps the cluster; `_select`
adds the selectors. Change a panel here, then write the files again:

    python monitoring/dashboards.py [FOLDER]

Source of the form: Grafana's JSON model of dashboards, schema version 39.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The selectors that every metric gets; they are the variables of each dashboard.
SELECTED = 'cluster=~"$cluster",instance=~"$instance"'
#: Names of metrics in a query, with their own selectors. `up` is Prometheus's own, and knows no cluster.
_METRIC = re.compile(r"\b((?:pilotfish|process)_\w+|up)(?:\{([^}]*)\})?")
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: Width of a dashboard, in its columns.
COLUMNS = 24


@dataclass(frozen=True)
class Query:
    """A query of a panel.

    Args:
        expr: in PromQL, without the selectors of cluster and instance.
        legend: text of its series; `{{label}}` stands for a label's value.
    """

    expr: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """A panel.

    Args:
        title: unique in all dashboards.
        text: what it shows, shown as its help.
        queries: at least one.
        unit: of Grafana.
        kind: of the panel: timeseries, stat, table, state-timeline or bargauge.
        width: in columns, of COLUMNS.
        height: in rows of 30 pixels.
        minimum: the least value of the axis; None: Grafana chooses.
        is_log: whether the axis is logarithmic.
        is_stacked: whether the series are drawn on top of each other.
        good: values below are green, above red; None: no colours.
        words: text for values, such as {"1": "up"}.
        alert: the alert whose runbook page explains what to do.
    """

    title: str
    text: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    minimum: float | None = 0.0
    is_log: bool = False
    is_stacked: bool = False
    good: float | None = None
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    alert: str = ""


@dataclass(frozen=True)
class Dashboard:
    """A dashboard: its name, its title, and its panels by the heading of their row."""

    name: str
    title: str
    rows: Mapping[str, Sequence[Panel]]

    @property
    def panels(self) -> list[Panel]:
        """All panels, in order."""
        return [panel for panels in self.rows.values() for panel in panels]


def _quantiles(metric: str, by: str, shares: Sequence[float], legend: str) -> tuple[Query, ...]:
    """Return queries for quantiles of a histogram; `{}` in the legend stands for the name of the quantile."""
    labels = f"le, cluster, {by}" if by else "le, cluster"
    rate = f"sum by ({labels}) (rate({metric}_bucket[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({share}, {rate})", legend.format("median" if share == 0.5 else f"{share:.0%}"))
        for share in shares
    )


def _a_minute(metric: str, by: str, legend: str, more: str = "") -> Query:
    """Return a query for how often something happens, by labels."""
    return Query(f"60 * sum by (cluster, {by}) (rate({metric}[$__rate_interval])){more}", legend)


def _share_inside(by: str) -> str:
    def rate(metric: str) -> str:
        return f"sum by (cluster, {by}) (rate({metric}[$__rate_interval]))"

    total = "pilotfish_forecast_intervals_total"
    return rate(f'{total}{{result="inside"}}') + " / " + rate(total)


_YES_NO = {"0": ("no", "text"), "1": ("yes", "red")}

OVERVIEW = Dashboard(
    "overview", "pilotfish: overview",
    {
        "Does it run?": (
            Panel(
                "Up", "Whether Prometheus gets the metrics. If not, jobs start in the resource manager's own order.",
                (Query('up{job="pilotfish"}', "{{instance}}"),), kind="stat", width=4, height=6,
                words={"0": ("down", "red"), "1": ("up", "green")}, alert="PilotfishDown",
            ),
            Panel(
                "Mode", "live; shadow: it decides and learns, and changes no job; fallback: a plain policy decides, "
                "because forecasts or a learned order were wrong; paused: an administrator or the configuration says "
                "so; blocked: the journal cannot be written, so nothing starts.",
                (Query("pilotfish_mode", "{{cluster}} {{mode}}"),), kind="state-timeline", width=12, height=6,
                words={"0": ("-", "transparent"), "1": ("now", "green")}, alert="PilotfishBlocked",
            ),
            Panel(
                "Age of the view", "Time since the cluster was last seen, or since the last check that nothing had "
                "changed.", (Query("pilotfish_snapshot_age_seconds", "{{cluster}} {{instance}}"),), unit="s", height=6,
                good=60.0, alert="PilotfishStale",
            ),
            Panel(
                "Paused", "1 while a pause holds: of a partition, or of all jobs.",
                (Query("pilotfish_paused", "{{cluster}} {{partition}}"),), width=6, height=5, alert="PilotfishPaused",
            ),
            Panel(
                "Last reload accepted", "If not, the configuration before is in force, and the daemon would not start "
                "with the new one.", (Query("pilotfish_config_last_reload_successful", "{{cluster}}"),), kind="stat",
                width=5, height=5, words={"0": ("no", "red"), "1": ("yes", "green")}, alert="PilotfishReloadFailed",
            ),
            Panel(
                "Running since", "Time since the daemon started.",
                (Query('time() - process_start_time_seconds{job="pilotfish"}', "{{cluster}} {{instance}}"),), unit="s",
                kind="stat", width=5, height=5, alert="PilotfishRestarts",
            ),
            Panel(
                "Versions", "Version and commit of each daemon, and of its Python.",
                (Query("count by (cluster, version, commit, python) (pilotfish_build_info)", "{{version}}"),),
                kind="table", width=8, height=5,
            ),
        ),
        "Jobs": (
            Panel(
                "Jobs handed over", "Jobs of pilotfish that have not ended, by state.",
                (Query("sum by (cluster, state) (pilotfish_jobs)", "{{cluster}} {{state}}"),), is_stacked=True,
            ),
            Panel(
                "Jobs held now", "Jobs that the resource manager holds for pilotfish.",
                (Query("pilotfish_held_jobs", "{{cluster}}"),),
            ),
            Panel(
                "Ends of holds a minute", "placed or released by pilotfish; expired at the deadline, so that the job "
                "waited for nothing; gone with the job.",
                (_a_minute("pilotfish_hold_seconds_count", "end", "{{cluster}} {{end}}"),),
                alert="PilotfishHoldsExpire",
            ),
            Panel(
                "Length of holds", "From the submission of a held job to the end of its hold.",
                _quantiles("pilotfish_hold_seconds", "", (0.5, 0.95), "{{{{cluster}}}} {}"), unit="s",
            ),
            Panel(
                "Decisions a minute", "Starts (submit, place), releases and others, by outcome; failed: refused by the "
                "resource manager; rejected: by the check before it was sent; would: in shadow and in a dry run.",
                (_a_minute(
                    "pilotfish_decisions_total", "action, outcome", "{{cluster}} {{action}} {{outcome}}", " > 0"
                ),), alert="PilotfishRefused",
            ),
            Panel(
                "Ended jobs a minute", "Jobs of pilotfish that ended, by state.",
                (_a_minute("pilotfish_jobs_ended_total", "state", "{{cluster}} {{state}}"),),
            ),
            Panel(
                "Median wait, by who started the job", "From submission to start: of jobs that pilotfish placed, and "
                "of those that the resource manager started alone.",
                _quantiles("pilotfish_job_waiting_seconds", "decided_by", (0.5,), "{{{{cluster}}}} {{{{decided_by}}}}"),
                unit="s",
            ),
            Panel(
                "From an end to the next start", "Mean time from the end of a job to the next start on its node, by "
                "phase: seen, decided, sent, started.",
                (Query(
                    "sum by (cluster, phase) (rate(pilotfish_placement_latency_seconds_sum[$__rate_interval])) / "
                    "sum by (cluster, phase) (rate(pilotfish_placement_latency_seconds_count[$__rate_interval]))",
                    "{{cluster}} {{phase}}",
                ),), unit="s", is_stacked=True,
            ),
            Panel(
                "Workflows set aside", "Workflows that are not planned, because planning fails with them.",
                (Query("pilotfish_workflows_set_aside", "{{cluster}}"),),
            ),
        ),
        "Does it pay?": (
            Panel(
                "Gain in mean wait", "How much shorter the mean wait is than in the resource manager's own order, on "
                "the newest card, as a share of that. Below 0: longer.",
                (Query(
                    '- sum by (cluster, policy) (pilotfish_score_waiting_difference_seconds{bound="mean"}) / '
                    'sum by (cluster, policy) (pilotfish_score_waiting_seconds{side="twin"})', "{{cluster}} {{policy}}",
                ),), unit="percentunit", minimum=None,
            ),
            Panel(
                "Mean wait on the card", "As recorded, in the twin of Slurm, and with the policy in it.",
                (Query("pilotfish_score_waiting_seconds", "{{cluster}} {{side}}, {{policy}}"),), unit="s",
            ),
            Panel(
                "Verdict and age of the card", "What the newest card says of the mean wait, and when it was made.",
                (Query(
                    "pilotfish_score_verdict * on (cluster, instance, policy) group_left () "
                    "(time() - pilotfish_score_timestamp_seconds)", "{{cluster}} {{verdict}}",
                ),), unit="s", kind="stat",
            ),
            Panel(
                "Canary against control group", "Mean of the canary minus that of the control group, with the interval "
                "of 95 %; below 0: the canary's jobs are better off.",
                (Query("pilotfish_canary_difference", "{{cluster}} {{measure}} {{bound}}"),), minimum=None, width=12,
                alert="PilotfishSteppedBack",
            ),
            Panel(
                "Share handed over", "Share of the eligible jobs that is handed over, and 1 if the canary has stepped "
                "back to shadow.",
                (
                    Query("pilotfish_handover_share", "{{cluster}} share"),
                    Query("pilotfish_stepped_back", "{{cluster}} stepped back"),
                ), width=12, alert="PilotfishSteppedBack",
            ),
        ),
        "The daemon itself": (
            Panel(
                "Memory", "Memory of the daemon's process, resident.",
                (Query('process_resident_memory_bytes{job="pilotfish"}', "{{cluster}} {{instance}}"),), unit="bytes",
                width=6,
            ),
            Panel(
                "CPU", "Cores that the daemon's process uses.",
                (Query(
                    'rate(process_cpu_seconds_total{job="pilotfish"}[$__rate_interval])', "{{cluster}} {{instance}}"
                ),), unit="none", width=6,
            ),
            Panel(
                "Time of a cycle", "From reading the cluster to the report.",
                _quantiles("pilotfish_cycle_duration_seconds", "", (0.5, 0.99), "{{{{cluster}}}} {}"), unit="s",
                width=6,
            ),
            Panel(
                "Time of a plan", "Time to decide.",
                _quantiles("pilotfish_decision_duration_seconds", "", (0.5, 0.99), "{{{{cluster}}}} {}"), unit="s",
                width=6,
            ),
            Panel(
                "Plans a minute", "By policy and outcome; truncated: cut by the limit of time.",
                (_a_minute("pilotfish_plans_total", "policy, outcome", "{{cluster}} {{policy}} {{outcome}}"),), width=8,
            ),
            Panel(
                "Simulated placements a second", "Placements that were tried in simulation.",
                (Query(
                    "sum by (cluster) (rate(pilotfish_whatif_evaluations_total[$__rate_interval]))", "{{cluster}}"
                ),), unit="ops",
            ),
            Panel(
                "Damaged rows of the journal", "Rows that only explain or teach and cannot be read, since the start.",
                (Query(
                    "sum by (cluster) (pilotfish_journal_unreadable_rows_total) or "
                    "0 * sum by (cluster) (pilotfish_build_info)", "{{cluster}}",
                ),), alert="PilotfishJournalDamaged",
            ),
        ),
    },
)  # fmt: skip

FORECASTS = Dashboard(
    "forecasts", "pilotfish: forecasts",
    {
        "Guard rail": (
            Panel(
                "Guard rail tripped", "1: a plain policy decides, because of these.",
                (Query("pilotfish_guard_tripped", "{{cluster}} {{cause}}"),), kind="stat", width=6, words=_YES_NO,
                alert="PilotfishFallback",
            ),
            Panel(
                "Forecast errors that the guard rail judges", "Median of the last run times, actual over forecast or "
                "its inverse, by contention model and source of the profile. Above the bound, a plain policy decides.",
                (
                    Query("pilotfish_guard_error_factor", "{{cluster}} {{model}} {{source}}"),
                    Query("pilotfish_guard_bound_factor", "{{cluster}} bound"),
                ), unit="suffix:x", width=10, minimum=1.0, is_log=True, alert="PilotfishFallback",
            ),
            Panel(
                "Jobs and profiles that say nothing", "A minute: completed jobs whose error counts against no model, "
                "because others used their CPUs; and profiles that are learned again, because they had drifted.",
                (
                    Query("60 * sum by (cluster) (rate(pilotfish_forecasts_not_judged_total[$__rate_interval]))",
                          "{{cluster}} not judged"),
                    Query("60 * sum by (cluster) (rate(pilotfish_profiles_relearned_total[$__rate_interval]))",
                          "{{cluster}} learned again"),
                ),
            ),
        ),
        "Run times": (
            Panel(
                "Forecast error, median and 90 %", "Actual over forecast or its inverse, the larger of the two: of run "
                "times, and of finish times counted from submission.",
                _quantiles("pilotfish_forecast_error_factor", "kind", (0.5, 0.9), "{{{{cluster}}}} {{{{kind}}}}, {}"),
                unit="suffix:x", width=12, minimum=1.0, is_log=True,
            ),
            Panel(
                "Median forecast error by contention model", "Of run times.",
                _quantiles("pilotfish_model_forecast_error_factor", "model", (0.5,), "{{{{cluster}}}} {{{{model}}}}"),
                unit="suffix:x", width=12, minimum=1.0, is_log=True,
            ),
            Panel(
                "Worst profiles", "Mean factor between actual and forecast run time of the ten worst profiles, since "
                "the start.",
                (Query(
                    "topk(10, exp(pilotfish_profile_forecast_error_log_sum / "
                    "(pilotfish_profile_forecast_error_log_count > 0)))", "{{cluster}} {{profile}}",
                ),), unit="suffix:x", kind="bargauge", minimum=1.0,
            ),
            Panel(
                "Slowdown by contention", "Run time over isolated run time of completed jobs.",
                _quantiles("pilotfish_contention_slowdown_ratio", "", (0.5, 0.9), "{{{{cluster}}}} {}"),
                unit="suffix:x",
            ),
            Panel(
                "Ended jobs looked up in accounting", "A minute, by outcome.",
                (_a_minute("pilotfish_accounting_jobs_total", "outcome", "{{cluster}} {{outcome}}"),),
            ),
        ),
        "Intervals and starts": (
            Panel(
                "Jobs inside their 80 % forecast interval", "Share of completed jobs, by source of the profile.",
                (Query(_share_inside("source"), "{{cluster}} {{source}}"),), unit="percentunit", width=6,
                alert="PilotfishForecastsDrift",
            ),
            Panel(
                "Median width of forecast intervals", "Longest over shortest run time.",
                _quantiles(
                    "pilotfish_forecast_interval_width_ratio", "source", (0.5,), "{{{{cluster}}}} {{{{source}}}}"
                ), unit="suffix:x", width=6, minimum=1.0, is_log=True,
            ),
            Panel(
                "Groups by their share of jobs inside", "Users, profiles and nodes with enough jobs: calibrated, or "
                "below or above.",
                (Query("sum by (cluster, kind, share) (pilotfish_forecast_interval_groups)",
                       "{{cluster}} {{kind}} {{share}}"),), width=6,
            ),
            Panel(
                "Error of start forecasts, median", "Of a job's first forecast, by its maker: pilotfish or the "
                "resource manager; compared: of jobs for which both exist.",
                _quantiles(
                    "pilotfish_start_forecast_error_seconds", "by, compared", (0.5,),
                    "{{{{cluster}}}} {{{{by}}}}, compared: {{{{compared}}}}",
                ), unit="s", width=6,
            ),
        ),
        "Calibration of nodes": (
            Panel(
                "Age of calibrations", "Time since the last `pilotfish calibrate --record` on each node.",
                (Query("pilotfish_calibration_age_seconds", "{{cluster}} {{node}}"),), unit="s",
                alert="PilotfishCalibrationOld",
            ),
            Panel(
                "Constants changed by the last calibration", "New value over old value, where the change exceeds both "
                "the bound and the noise of the measurement.",
                (Query("pilotfish_calibration_change_ratio", "{{node}} {{constant}}"),), kind="table",
                alert="PilotfishCalibrationChanged",
            ),
            Panel(
                "Changed constants and unreadable records", "Number of changed constants by node, and of records that "
                "cannot be read.",
                (
                    Query("pilotfish_calibration_changed_constants", "{{cluster}} {{node}}"),
                    Query("pilotfish_calibration_unreadable_files", "{{cluster}} unreadable records"),
                ), alert="PilotfishCalibrationUnreadable",
            ),
        ),
    },
)  # fmt: skip

POWER = Dashboard(
    "power", "pilotfish: nodes, power and energy",
    {
        "Nodes": (
            Panel(
                "Load of the nodes", "Threads placed over cores: mean, and shares of the nodes that are idle and full.",
                (
                    Query("avg by (cluster) (pilotfish_node_load_ratio)", "{{cluster}} mean"),
                    Query("avg by (cluster) (pilotfish_node_load_ratio == bool 0)", "{{cluster}} idle nodes"),
                    Query("avg by (cluster) (pilotfish_node_load_ratio >= bool 1)", "{{cluster}} full nodes"),
                ), unit="percentunit", width=12,
            ),
            Panel(
                "Nodes with the highest load", "Threads placed over cores, of twenty nodes.",
                (Query("topk(20, pilotfish_node_load_ratio)", "{{cluster}} {{node}}"),), unit="percentunit",
                kind="bargauge", width=12,
            ),
        ),
        "Power": (
            Panel(
                "Power and its limit", "Power of all nodes by the power model, and the cap, or the mean power of the "
                "energy budget, while it holds.",
                (
                    Query("sum by (cluster) (pilotfish_node_power_watts)", "{{cluster}} all nodes"),
                    Query("pilotfish_power_limit_watts", "{{cluster}} {{kind}}"),
                ), unit="watt", width=12,
            ),
            Panel(
                "Nodes with the highest power", "By the power model, of twenty nodes.",
                (Query("topk(20, pilotfish_node_power_watts)", "{{cluster}} {{node}}"),), unit="watt", kind="bargauge",
                width=12,
            ),
        ),
        "Energy": (
            Panel(
                "Energy an hour", "Energy of all nodes by the power model.",
                (Query("increase(pilotfish_energy_joules_total[1h])", "{{cluster}}"),), unit="joule", width=12,
            ),
            Panel(
                "Energy budget", "Energy consumed since the budget's begin, and the balance that is left.",
                (Query("pilotfish_energy_budget_joules", "{{cluster}} {{part}}"),), unit="joule", minimum=None,
                width=12,
            ),
        ),
    },
)  # fmt: skip

ADAPTER = Dashboard(
    "controller", "pilotfish: load on the controller",
    {
        "Cost": (
            Panel(
                "Requests a minute", "Requests to the resource manager, by call; without those that were not sent.",
                (_a_minute(
                    'pilotfish_adapter_requests_total{result!~"open|budget"}', "adapter, call", "{{cluster}} {{call}}"
                ),), is_stacked=True, width=12,
            ),
            Panel(
                "Time of a request", "Mean time until the resource manager answered, by call.",
                (Query(
                    "sum by (cluster, call) (rate(pilotfish_adapter_request_seconds_sum[$__rate_interval])) / "
                    "(sum by (cluster, call) (rate(pilotfish_adapter_request_seconds_count[$__rate_interval])) > 0)",
                    "{{cluster}} {{call}}",
                ),), unit="s", width=12,
            ),
            Panel(
                "Requests left", "Requests that may be sent now without a pause.",
                (Query("pilotfish_adapter_budget_left_requests", "{{cluster}} {{adapter}}"),),
            ),
            Panel(
                "Requests not sent a minute", "Because a breaker is open, or the budget is used up.",
                (_a_minute(
                    'pilotfish_adapter_requests_total{result=~"open|budget"}', "adapter, result",
                    "{{cluster}} {{result}}",
                ),),
            ),
            Panel(
                "Delays of the resource manager", "Mean time from the decision to the process (launch), and from the "
                "end of the process until its cores are free (release), since the start.",
                (Query(
                    "pilotfish_adapter_delay_seconds_sum / (pilotfish_adapter_delay_seconds_count > 0)",
                    "{{cluster}} {{delay}}",
                ),), unit="s",
            ),
        ),
        "Faults": (
            Panel(
                "Failed requests a minute", "Requests that were sent and failed, by kind of error.",
                (_a_minute(
                    'pilotfish_adapter_requests_total{result!~"ok|open|budget"}', "result", "{{cluster}} {{result}}",
                ),), alert="PilotfishErrors",
            ),
            Panel(
                "Circuit breakers", "State of the breaker of each service of the resource manager.",
                (Query("pilotfish_adapter_breaker == 1", "{{cluster}} {{service}} {{state}}"),), kind="state-timeline",
                words={"1": ("now", "blue")},
            ),
            Panel(
                "Unreadable rows", "Rows of the newest answers that cannot be read, by what they describe.",
                (Query("pilotfish_adapter_unreadable_rows", "{{cluster}} {{what}}"),),
            ),
            Panel(
                "Ends that the resource manager does not explain", "Jobs an hour.",
                (Query("increase(pilotfish_adapter_unknown_ends_total[1h])", "{{cluster}} {{adapter}}"),), width=12,
                alert="PilotfishUnknownEnds",
            ),
            Panel(
                "Disabled queues", "Queues of jobs that are handed over in which none starts.",
                (Query(
                    "sum by (cluster, queue) (pilotfish_adapter_closed_queue) or "
                    "0 * sum by (cluster) (pilotfish_build_info)", "{{cluster}} {{queue}}",
                ),), width=12, alert="PilotfishQueueDisabled",
            ),
        ),
    },
)  # fmt: skip

DASHBOARDS = (OVERVIEW, FORECASTS, POWER, ADAPTER)


def selected(expr: str) -> str:
    """Return a query with the selectors of cluster and instance at each metric."""

    def with_selectors(match: re.Match[str]) -> str:
        name, own = match.group(1), match.group(2)
        selectors = SELECTED if name != "up" else SELECTED.partition(",")[2]
        return f"{name}{{{own + ',' if own else ''}{selectors}}}"

    return _METRIC.sub(with_selectors, expr)


def document(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard in Grafana's form."""
    panels: list[dict[str, Any]] = []
    top = 0
    for heading, row in dashboard.rows.items():
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": heading, "collapsed": False, "gridPos": place, "panels": []}
        )
        top, left, height = top + 1, 0, 0
        for panel in row:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel)})
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return {
        "uid": f"pilotfish-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["pilotfish"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "links": [
            {
                "type": "dashboards", "tags": ["pilotfish"], "title": "pilotfish", "asDropdown": True,
                "includeVars": True, "keepTime": True, "icon": "external link", "targetBlank": False,
                "tooltip": "", "url": "",
            }
        ],
        "templating": {"list": [*_variables()]},
        "panels": panels,
    }  # fmt: skip


def _variables() -> list[dict[str, Any]]:
    """Return the variables: the source of data, the cluster, and the instance."""
    variables: list[dict[str, Any]] = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    ]
    for name, of in (("cluster", ""), ("instance", '{cluster=~"$cluster"}')):
        query = f"label_values(pilotfish_build_info{of}, {name})"
        variables.append(
            {
                "name": name, "label": name.title(), "type": "query", "datasource": _SOURCE,
                "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
                "multi": True, "includeAll": True, "allValue": ".*",
                "current": {"text": ["All"], "value": ["$__all"]},
            }
        )  # fmt: skip
    return variables


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.minimum is not None and panel.kind != "table":
        defaults["min"] = panel.minimum
    if panel.good is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.good}]
        defaults |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    if panel.words:
        options = {value: {"text": text, "color": color} for value, (text, color) in panel.words.items()}
        defaults["mappings"] = [{"type": "value", "options": options}]
    custom: dict[str, Any] = {}
    if panel.is_log:
        custom["scaleDistribution"] = {"type": "log", "log": 2}
    if panel.is_stacked:
        custom |= {"stacking": {"mode": "normal", "group": "A"}, "fillOpacity": 30}
    if custom:
        defaults["custom"] = custom
    is_now = panel.kind in ("stat", "table", "bargauge")
    targets = []
    for number, query in enumerate(panel.queries):
        target: dict[str, Any] = {
            "refId": chr(ord("A") + number), "expr": selected(query.expr), "legendFormat": query.legend,
            "datasource": _SOURCE,
        }  # fmt: skip
        if is_now:
            target |= {"instant": True, "range": False}
        if panel.kind == "table":
            target["format"] = "table"
        targets.append(target)
    drawn: dict[str, Any] = {
        "title": panel.title, "description": panel.text, "type": panel.kind, "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": _OPTIONS.get(panel.kind, {}),
        "targets": targets,
    }  # fmt: skip
    if panel.alert:
        page = f"docs/guides/alerts.md#{panel.alert.lower()}"
        drawn["description"] += f" Alert: {panel.alert}, see {page}."
    return drawn


_LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, dict[str, Any]] = {
    "stat": {"reduceOptions": _LAST, "textMode": "auto", "colorMode": "value", "graphMode": "none"},
    "bargauge": {"reduceOptions": _LAST, "orientation": "horizontal", "displayMode": "basic"},
    "state-timeline": {"showValue": "never", "mergeValues": True, "rowHeight": 0.9},
}


def texts() -> dict[str, str]:
    """Return the JSON files: their names, and what they have."""
    return {
        f"{dashboard.name}.dashboard.json": json.dumps(document(dashboard), indent=2) + "\n" for dashboard in DASHBOARDS
    }


def main(words: Sequence[str]) -> int:
    """Write the files into a folder, by default that of this file."""
    folder = Path(words[0]) if words else Path(__file__).parent
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

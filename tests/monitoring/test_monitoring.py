"""The alert rules and the dashboard ask for metrics that there are, in the form that Prometheus and Grafana read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import pilotfish
from pilotfish.adapters.base import Load
from pilotfish.daemon.report.adapter_metrics import LoadMetrics
from pilotfish.daemon.report.metrics import Metrics
from tests.promises import generator

FOLDER = Path(pilotfish.__file__).resolve().parent / "monitoring"
RULES = sorted(FOLDER.glob("*.rules.yaml"))
PANELS = [panel for path in sorted(FOLDER.glob("*.json")) for panel in json.loads(path.read_text())["panels"]]
UP, STARTED = 'up{job="pilotfish"}', 'process_start_time_seconds{job="pilotfish"}'
FAILED = 'pilotfish_decisions_total{action="place",outcome="failed"}'
INSIDE, OUTSIDE = (f'pilotfish_forecast_intervals_total{{result="{result}"}}' for result in ("inside", "outside"))
SERIES = {
    "counter": ["_total"],
    "gauge": [""],
    "summary": ["_sum", "_count"],
    "histogram": ["_bucket", "_sum", "_count"],
}


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Series that the daemon exports -> the labels that each may have."""
    series = {family.name + ending: set[str]() for family in Metrics().registry.collect()
              for ending in SERIES[family.type] if family.name.startswith("process_")}  # fmt: skip
    for name, kind, labels, _ in generator().metric_rows():
        stem = name.removesuffix("_total")
        series |= {stem + ending: set(labels.split(", ")) - {""} for ending in SERIES[kind]}
    return series


def asked(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:pilotfish|process)_\w+", expression))


def test_rules_are_in_prometheus_form_about_metrics_that_there_are(exported: dict[str, set[str]]) -> None:
    names, rules = [], [yaml.safe_load(path.read_text()) for path in RULES]
    assert all(each.keys() == {"groups"} for each in rules)
    for group in (group for each in rules for group in each["groups"]):
        assert group.keys() == {"name", "rules"}
        for rule in group["rules"]:
            assert {"alert", "expr", "labels", "annotations"} <= rule.keys() <= {
                "alert", "expr", "for", "labels", "annotations"}  # fmt: skip
            assert re.fullmatch(r"Pilotfish\w+", rule["alert"]) and re.fullmatch(r"\d+[smhd]", rule.get("for", "1s"))
            metrics = asked(rule["expr"])
            used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
            assert metrics <= exported.keys() and used <= {label for name in metrics for label in exported[name]}
            assert set(re.findall(r"pilotfish_\w+", str(rule["annotations"]))) <= exported.keys()
            assert rule["annotations"]["runbook"] == f"docs/guides/alerts.md#{rule['alert'].lower()}"
            names.append(rule["alert"])
    page = (FOLDER.parent / "docs" / "guides" / "alerts.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(names)
    assert len(set(names)) == len(names) >= 5


@pytest.mark.real
def test_prometheus_takes_the_rules() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: the rules were NOT checked by Prometheus itself")
    done = subprocess.run([tool, "check", "rules", *RULES], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


HOLDS = 'pilotfish_hold_seconds_count{end="%s"}'
#: Alert of the service -> cases: series with their values minute by minute, labels of the alert, and whether it fires at
#: these minutes.
CASES: dict[str, list[tuple[dict[str, str], dict[str, str], dict[int, bool]]]] = {
    "PilotfishDown": [
        ({UP: "1 1 0x20 1x9"}, {}, {6: False, 7: True, 23: False}),
        ({UP: "_x20 1x9"}, {}, {4: False, 5: True, 21: False}),
        ({UP: "1 0x3 1x20"}, {}, {4: False, 9: False}),
    ],
    "PilotfishRestarts": [
        ({STARTED: "1x10 2x10 3x10 4x60"}, {}, {32: False, 33: True, 70: True, 72: False}),
        ({STARTED: "1x10 2x10 3x60"}, {}, {22: False, 60: False}),
    ],
    "PilotfishStale": [
        ({"pilotfish_snapshot_age_seconds": "5 65 125x20 5x9"}, {}, {5: False, 6: True, 23: False}),
        ({"pilotfish_snapshot_age_seconds": "5 65 5x20"}, {}, {6: False, 9: False}),
    ],
    "PilotfishBlocked": [({'pilotfish_mode{mode="blocked"}': "0 1 1 0x9"}, {}, {1: False, 2: True, 3: False})],
    "PilotfishErrors": [
        (
            {'pilotfish_adapter_errors_total{kind="timeout"}': "0 2 4 6 8 8x40"},
            {"kind": "timeout"},
            {10: True, 30: False},
        ),
        ({'pilotfish_adapter_errors_total{kind="timeout"}': "0 1 1 2 2x40"}, {}, {10: False, 30: False}),
    ],
    "PilotfishRefused": [
        ({FAILED: "0 3 6 9 9x30"}, {"action": "place"}, {1: False, 4: True, 25: False}),
        ({FAILED.replace("failed", "applied"): "0 3 6 9 9x30"}, {}, {4: False, 25: False}),
    ],
    "PilotfishHoldsExpire": [
        ({HOLDS % "expired": "0+1x120", HOLDS % "placed": "0+1x120"}, {}, {20: False, 60: True}),
        ({HOLDS % "expired": "0+1x120", HOLDS % "placed": "0+9x120"}, {}, {60: False, 110: False}),
        ({HOLDS % "expired": "0 2 2x120", HOLDS % "placed": "0 2 2x120"}, {}, {60: False}),  # too few to say so
    ],
    "PilotfishFallback": [({'pilotfish_mode{mode="fallback"}': "1x20 0x9"}, {}, {14: False, 15: True, 22: False})],
    "PilotfishSteppedBack": [({"pilotfish_stepped_back": "0 1 1 0"}, {}, {0: False, 1: True, 3: False})],
    "PilotfishReloadFailed": [
        ({"pilotfish_config_last_reload_successful": "1 0x10 1x9"}, {}, {5: False, 6: True, 12: False})
    ],
    "PilotfishJournalDamaged": [
        (
            {'pilotfish_journal_unreadable_rows_total{table="story"}': "0 2 2x90"},
            {"table": "story"},
            {2: True, 80: False},
        )
    ],
    "PilotfishForecastsDrift": [
        ({INSIDE: "0+1x200", OUTSIDE: "0+3x200"}, {}, {60: False, 150: True}),
        ({INSIDE: "0+4x200", OUTSIDE: "0+1x200"}, {}, {150: False}),
        ({INSIDE: "0 1 1x200", OUTSIDE: "0 3 3x200"}, {}, {150: False}),  # too few to say so
    ],
    "PilotfishPaused": [
        (
            {'pilotfish_paused{partition="gpu"}': "1x1500 stale"},
            {"partition": "gpu"},
            {1439: False, 1440: True, 1502: False},
        )
    ],
}


def alerts_of(name: str) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / f"{name}.rules.yaml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_each_alert_of_the_service_has_cases_and_one_in_which_it_fires() -> None:
    assert CASES.keys() == alerts_of("service").keys()
    assert all({True, False} <= {fires for case in cases for fires in case[2].values()} for cases in CASES.values())


@pytest.mark.real
@pytest.mark.parametrize("alert", CASES)
def test_an_alert_of_the_service_fires_when_it_should_and_ends(alert: str, tmp_path: Path) -> None:
    """Whether it fires is asked by the series ALERTS, so that the texts of the alert stand in one place."""
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: the alert was NOT fired by Prometheus itself")
    tests = []
    for series, labels, moments in CASES[alert]:
        severity = alerts_of("service")[alert]["labels"]["severity"]
        of = "".join(f', {name}="{text}"' for name, text in {**labels, "severity": severity}.items())
        asked_for = f'count(ALERTS{{alertname="{alert}", alertstate="firing"{of}}})'
        tests.append(
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {"expr": asked_for, "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": 1}] * fires}
                    for at, fires in moments.items()
                ],
            }
        )
    file = {"rule_files": [str(FOLDER / "service.rules.yaml")], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(file))
    result = subprocess.run([tool, "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.real
def test_the_alert_of_a_disabled_queue_fires_after_a_minute_and_stops_at_once(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: the alert was NOT fired by Prometheus itself")
    load = LoadMetrics("oar", lambda: Load(closed=("pilotfish",)))
    (sample,) = [each for family in load.collect() for each in family.samples if each.name.endswith("_closed_queue")]
    series = sample.name + "{" + ",".join(f'{name}="{value}"' for name, value in sample.labels.items()) + "}"
    rules, rule = FOLDER / "adapter.rules.yaml", alerts_of("adapter")["PilotfishQueueDisabled"]
    texts = {name: text.replace("{{ $labels.queue }}", "pilotfish") for name, text in rule["annotations"].items()}
    fired = {"exp_labels": {**sample.labels, **rule["labels"]}, "exp_annotations": texts}
    expected = [
        {"alertname": rule["alert"], "eval_time": at, "exp_alerts": [fired] * fires}
        for at, fires in (("0m", False), ("1m", True), ("3m", True), ("4m", False))
    ]
    played = {"interval": "1m", "input_series": [{"series": series, "values": "1+0x3 stale"}]}
    test = {"rule_files": [str(rules)], "tests": [{**played, "alert_rule_test": expected}]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    done = subprocess.run([tool, "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboards_ask_for_metrics_and_labels_that_there_are(exported: dict[str, set[str]]) -> None:
    of_prometheus = {"cluster", "instance", "le", "job"}
    targets = [(panel["title"], target) for panel in PANELS for target in panel.get("targets", ())]
    for title, target in targets:
        metrics = asked(target["expr"])
        assert metrics <= exported.keys() and (metrics or target["expr"].startswith("up{")), title
        by = {word for words in re.findall(r"(?:by|on) \(([^)]*)\)", target["expr"]) for word in words.split(", ")}
        selected = set(re.findall(r"(\w+)[!=]~?\"", target["expr"]))
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        labels = {label for metric in metrics for label in exported[metric]}
        assert by | selected | shown <= labels | of_prometheus, title
    assert len(targets) > 50

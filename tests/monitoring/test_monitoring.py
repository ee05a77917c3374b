"""The alert rules and the dashboard ask for metrics that there are, in the form that Prometheus and Grafana read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import pilotfish
from pilotfish.adapters.base import BreakerState, Load
from pilotfish.daemon.report.adapter_metrics import LoadMetrics
from pilotfish.daemon.report.calibration_metrics import Calibrations
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.profiles.calibration.calibration_records import save_record
from pilotfish.profiles.calibration.statistics import MeasuredNumber
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from tests.profiles.calibration.calibrations import BARE

FOLDER = Path(pilotfish.__file__).resolve().parent / "monitoring"
RULES = sorted(FOLDER.glob("*.rules.yaml"))
DASHBOARD = json.loads((FOLDER / "pilotfish.dashboard.json").read_text())
SERIES = {
    "counter": ["_total"],
    "gauge": [""],
    "summary": ["_sum", "_count"],
    "histogram": ["_bucket", "_sum", "_count"],
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Series that the daemon exports -> the labels that each may have."""
    folder = tmp_path_factory.mktemp("kept")
    for found in (BARE, replace(BARE, speed=MeasuredNumber(4e8, 1e6, 20))):
        save_record(folder, found, "n1")
    metrics, calibrations = Metrics(), Calibrations(folder, Cluster("c", (Node("n1", NodeType("t", 1, 1, 1)),)), 0.1)
    calibrations.read()
    metrics.registry.register(calibrations)
    load = Load({("jobs", "ok"): 1}, {"jobs": (1, 0.1)}, {"oar": BreakerState.CLOSED}, 1.0, {"job": 1})
    load = replace(load, delays={"launch": (1, 2.0)}, unknown_ends=1, closed=("default",))
    metrics.registry.register(LoadMetrics("oar", lambda: load))
    metrics.set_mode("live")
    metrics.errors.observe(Forecaster("max-min", "measured"), "p", 0.1)
    metrics.expect_policy("mom")
    mean = {"mean": dict.fromkeys(("recorded", "twin", "pilotfish", "low", "high"), 1.0)}
    measures, handed = ("waiting", "turnaround", "slowdown"), ("seen", "compared", "placed", "released")
    card = {"judged": "easy", "days": 1.0, "verdict": "gain", "handed": dict.fromkeys(handed, 1)}
    metrics.score.show(card | {"measures": dict.fromkeys(measures, mean)}, 1.0)
    series: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        labels = {label for sample in family.samples for label in sample.labels}
        series |= {family.name + ending: labels for ending in SERIES[family.type]}
    return series


def asked(expression: str) -> set[str]:
    return set(re.findall(r"pilotfish_\w+", expression))


def test_rules_are_in_prometheus_form_about_metrics_that_there_are(exported: dict[str, set[str]]) -> None:
    names, rules = [], [yaml.safe_load(path.read_text()) for path in RULES]
    assert all(each.keys() == {"groups"} for each in rules)
    for group in (group for each in rules for group in each["groups"]):
        assert group.keys() == {"name", "rules"}
        for rule in group["rules"]:
            assert {"alert", "expr", "labels", "annotations"} <= rule.keys() <= {
                "alert", "expr", "for", "labels", "annotations"}  # fmt: skip
            assert re.fullmatch(r"Pilotfish\w+", rule["alert"]) and re.fullmatch(r"\d+[smhd]", rule.get("for", "1s"))
            (metric,) = asked(rule["expr"])
            used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
            assert metric in exported and used <= exported[metric]
            assert set(re.findall(r"pilotfish_\w+", str(rule["annotations"]))) <= exported.keys()
            names.append(rule["alert"])
    assert len(set(names)) == len(names) >= 5


@pytest.mark.real
def test_prometheus_takes_the_rules() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: the rules were NOT checked by Prometheus itself")
    done = subprocess.run([tool, "check", "rules", *RULES], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.real
def test_the_alert_of_a_disabled_queue_fires_after_a_minute_and_stops_at_once(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: the alert was NOT fired by Prometheus itself")
    load = LoadMetrics("oar", lambda: Load(closed=("pilotfish",)))
    (sample,) = [each for family in load.collect() for each in family.samples if each.name.endswith("_closed_queue")]
    series = sample.name + "{" + ",".join(f'{name}="{value}"' for name, value in sample.labels.items()) + "}"
    rules = FOLDER / "adapter.rules.yaml"
    alerts = [rule for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]]
    (rule,) = [each for each in alerts if each["alert"] == "PilotfishQueueDisabled"]
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


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(exported: dict[str, set[str]]) -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    titles = " ".join(panel["title"].lower() for panel in panels)
    assert all(word in titles for word in ("forecast error", "calibration", "plan"))
    for panel in panels:
        for target in panel["targets"]:
            metrics = asked(target["expr"])
            assert metrics and metrics <= exported.keys(), panel["title"]
            (metric,) = metrics
            by = {word for words in re.findall(r"by \(([^)]*)\)", target["expr"]) for word in words.split(", ")}
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert by | shown <= exported[metric] | {"le"}, panel["title"]


def test_the_dashboards_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in DASHBOARD["panels"]):
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken and max(x for x, _ in cells) < 24
        taken |= cells

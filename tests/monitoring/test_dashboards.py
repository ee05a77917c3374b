"""The dashboards: their files are what is generated, in Grafana's form, and each query finds data of a real daemon."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as grafana

import pilotfish
from pilotfish.cli.__main__ import main
from pilotfish.profiles.calibration.calibration_records import save_record
from pilotfish.profiles.calibration.statistics import MeasuredNumber
from tests.profiles.calibration.calibrations import BARE

ROOT = Path(pilotfish.__file__).resolve().parent
FOLDER, SERVE = ROOT / "monitoring", Path(__file__).with_name("serve_played.py")
PATIENCE_S = 120.0


def load_dashboards() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboards", FOLDER / "dashboards.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["dashboards"] = module
    spec.loader.exec_module(module)
    return module


DASHBOARDS = load_dashboards()
DOCUMENTS = [DASHBOARDS.document(dashboard) for dashboard in DASHBOARDS.DASHBOARDS]
PANELS = [panel for each in DOCUMENTS for panel in each["panels"] if panel["type"] != "row"]


def test_the_files_are_what_is_generated() -> None:
    files = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert files == DASHBOARDS.texts(), "python monitoring/dashboards.py"


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, one in items:
            yield from leaves(one, (*path, key))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["uid"])
def test_a_dashboard_has_grafanas_form(document: dict[str, Any]) -> None:
    """Grafana's own types, generated from its schema, read the document and lose no field of it."""
    parsed = grafana.Dashboard.from_json(json.loads(json.dumps(document)))
    again = dict(leaves(json.loads(JSONEncoder(sort_keys=True).encode(parsed))))
    lost = {path: value for path, value in leaves(document) if again.get(path) != value and value is not None}
    assert lost == {}
    assert document["schemaVersion"] == 39


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["uid"])
def test_panels_do_not_overlap_and_have_numbers_of_their_own(document: dict[str, Any]) -> None:
    covered: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in document["panels"]):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & covered and max(x for x, _ in cells) < DASHBOARDS.COLUMNS
        covered |= cells
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])


def test_every_metric_of_a_query_has_the_selectors() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            names = re.findall(r"\b(?:pilotfish|process)_\w+|\bup\b", target["expr"])
            assert names and target["expr"].count('instance=~"$instance"') == len(names), panel["title"]
    assert DASHBOARDS.selected('a_b + up{job="x"}') == 'a_b + up{job="x",instance=~"$instance"}'


def test_titles_are_unique_and_alerts_have_a_page() -> None:
    titles = [panel["title"] for panel in PANELS]
    assert len(set(titles)) == len(titles)
    alerts = {panel.alert for dashboard in DASHBOARDS.DASHBOARDS for panel in dashboard.panels} - {""}
    page = (ROOT / "docs/guides/alerts.md").read_text()
    assert alerts and alerts == set(re.findall(r"^### (\w+)$", page, re.MULTILINE))


def test_each_question_is_answered_by_panels() -> None:
    """The table of the guide: a question, then dashboard and panels."""
    page = (ROOT / "docs/guides/dashboards.md").read_text()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if re.match(r"\| \d+ \|", line)
    ]
    panels = {one.title.partition(": ")[2]: {panel.title for panel in one.panels} for one in DASHBOARDS.DASHBOARDS}
    assert [int(number) for number, *_ in rows] == [*range(1, 16)]
    for _, _, dashboard, named, _ in rows:
        assert set(named.split("; ")) <= panels[dashboard], named


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_configuration(folder: Path, port: int) -> Path:
    cluster = {
        "schema": "pilotfish/cluster/v1", "name": "tiny",
        "node_types": {"t": {
            "cores": 2, "memory": "1GiB", "memory_bandwidth": "1GB/s", "power": {"idle": 100, "computing": 200}}},
        "nodes": [{"names": "n[1-2]", "type": "t"}],
    }  # fmt: skip
    settings = {
        "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state", "cycle_seconds": 0.2,
        "longest_cycle_seconds": 1, "access": {"root": True}, "profiles": "profiles.sqlite",
        "socket": {"path": str(folder / "s")}, "metrics": {"port": port}, "adapter": {"name": "simulated"},
        "record": {"enabled": True}, "handover": {"share": 0.7}, "calibration": {"folder": "calibrations"},
        "policy": "easy+energybud:budget=5e11,end=2040-01-01T00:00Z",
    }  # fmt: skip
    (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    (folder / "pilotfish.yaml").write_text(yaml.safe_dump(settings))
    return folder / "pilotfish.yaml"


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """Serve a daemon and a Prometheus that reads it; return the address of the Prometheus."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed: the queries of the dashboards were NOT tried")
    port, web_port = free_port(), free_port()
    assert main(["generate", "site", "gpu", "--jobs", "40", "-o", str(tmp_path / "site")]) == 0
    (tmp_path / "calibrations").mkdir()
    for record in (BARE, replace(BARE, speed=MeasuredNumber(4e8, 1e6, 20))):
        save_record(tmp_path / "calibrations", record, "n1")
    scrape = {"job_name": "pilotfish", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    rules = [str(path) for path in sorted(FOLDER.glob("*.rules.yaml"))]
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "5s"}, "rule_files": rules}
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(settings | {"scrape_configs": [scrape]}))
    config = write_configuration(tmp_path, port)
    words = [f"--config.file={tmp_path / 'prometheus.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
             f"--web.listen-address=127.0.0.1:{web_port}", "--log.level=error"]  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        served = [sys.executable, str(SERVE), str(config), str(tmp_path / "site")]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "GOMAXPROCS": "1"}
        processes = [
            subprocess.Popen(argv, env=environment, stdout=log, stderr=log) for argv in (served, [program, *words])
        ]
        try:
            yield f"http://127.0.0.1:{web_port}"
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(20) for process in processes]
            assert codes == [0, 0], (tmp_path / "log").read_text()[-2000:]


def values(address: str, expr: str) -> list[float]:
    """Return the numbers of a query of a dashboard."""
    for variable, value in (("$__rate_interval", "30s"), ("$cluster", "tiny"), ("$instance", ".*")):
        expr = expr.replace(variable, value)
    answer = requests.get(f"{address}/api/v1/query", params={"query": expr}, timeout=10).json()
    assert answer["status"] == "success", f"{expr}: {answer}"
    return [float(sample["value"][1]) for sample in answer["data"]["result"]]


@pytest.mark.real
def test_each_query_finds_data_of_a_running_daemon(prometheus: str, record_property: Any) -> None:
    queries = {(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]}
    began, waits_for = time.monotonic(), queries
    while waits_for and time.monotonic() - began < PATIENCE_S:
        time.sleep(1.0)
        try:
            waits_for = {
                query
                for query in waits_for
                if not any(math.isfinite(number) for number in values(prometheus, query[1]))
            }
        except requests.ConnectionError:
            continue
    took_s = time.monotonic() - began
    record_property("measured", f"{len(queries)} queries of {len(PANELS)} panels found data within {took_s:.0f} s")
    assert {title for title, _ in waits_for} == set()

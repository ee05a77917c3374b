"""Recorded calibrations as the daemon's metrics, whatever files their folder has."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pilotfish.daemon.report.calibration_metrics import Calibrations
from pilotfish.profiles.calibration.calibration_records import save_record
from pilotfish.profiles.calibration.result import NOT_IDLE
from pilotfish.profiles.calibration.statistics import MeasuredNumber
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from tests.profiles.calibration.calibrations import BARE

KIND = NodeType("t", 4, 1e9, 1e9)
LAB = Cluster("lab", (Node("n1", KIND), Node("n2", KIND)))
NOW = 1772366400.0 + 3600.0


def shown(calibrations: Calibrations) -> list[str]:
    registry = CollectorRegistry()
    registry.register(calibrations)
    lines = generate_latest(registry).decode().splitlines()
    return [line.removeprefix("pilotfish_calibration_") for line in lines if line[0] != "#"]


@pytest.fixture
def watched(tmp_path: Path) -> Calibrations:
    return Calibrations(tmp_path, LAB, 0.1, lambda: NOW)


def test_age_and_change_of_each_node_that_is_in_the_cluster(tmp_path: Path, watched: Calibrations) -> None:
    slower = replace(BARE, speed=MeasuredNumber(4e8, 1e6, 20))
    for name, found in (("n1.site.org", BARE), ("n1.site.org", slower), ("n2", BARE), ("stranger", BARE)):
        save_record(tmp_path, found, name)
    watched.read()
    assert shown(watched) == [
        'age_seconds{node="n1"} 3600.0', 'age_seconds{node="n2"} 3600.0',
        'changed_constants{node="n1"} 1.0', 'changed_constants{node="n2"} 0.0',
        'change_ratio{constant="loop_speed",node="n1"} 0.8', "unreadable_files 0.0",
    ]  # fmt: skip
    save_record(tmp_path, slower, "n1.site.org")
    watched.read()
    assert 'changed_constants{node="n1"} 0.0' in shown(watched)


def test_calibrations_of_a_busy_node_do_not_count(tmp_path: Path, watched: Calibrations) -> None:
    busy = replace(BARE, speed=MeasuredNumber(4e8, 1e6, 20), notes=(f"{NOT_IDLE}: in 3 of 9 runs",))
    for found in (BARE, busy, BARE, busy, busy):
        save_record(tmp_path, found, "n1")
    watched.read()
    assert shown(watched)[:2] == ['age_seconds{node="n1"} 3600.0', 'changed_constants{node="n1"} 0.0']


@pytest.mark.real
def test_a_thread_reads_until_it_is_closed(tmp_path: Path, watched: Calibrations) -> None:
    save_record(tmp_path, BARE, "n1")
    watched.watch()
    end = time.monotonic() + 60.0
    while len(shown(watched)) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    watched.close()
    assert 'age_seconds{node="n1"} 3600.0' in shown(watched)
    while any(thread.name == "calibrations" for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert all(thread.name != "calibrations" for thread in threading.enumerate())


def test_a_change_within_the_noise_does_not_count(tmp_path: Path, watched: Calibrations) -> None:
    for found in (BARE, replace(BARE, speed=MeasuredNumber(4e8, 2e8, 3))):
        save_record(tmp_path, found, "n1")
    watched.read()
    assert 'changed_constants{node="n1"} 0.0' in shown(watched)


def test_without_records_only_the_number_of_unreadable_files_is_shown(tmp_path: Path) -> None:
    calibrations = Calibrations(tmp_path / "nowhere", LAB, 0.1)
    calibrations.read()
    assert shown(calibrations) == ["unreadable_files 0.0"]


def test_each_unreadable_file_costs_one_warning(
    tmp_path: Path, watched: Calibrations, caplog: pytest.LogCaptureFixture
) -> None:
    save_record(tmp_path, BARE, "n1")
    bad = [tmp_path / f"n1@2099-01-0{i}T00-00-00.000000Z.json" for i in range(1, 5)]
    os.mkfifo(bad[0])
    bad[1].mkdir()
    with open(bad[2], "wb") as file:
        file.truncate(100 * 2**20)
    bad[3].write_text('{"schema": ')
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            watched.read()
    assert len(caplog.records) == 4 and all(str(path) in caplog.text for path in bad)
    assert shown(watched)[0] == 'age_seconds{node="n1"} 3600.0' and shown(watched)[-1] == "unreadable_files 4.0"


def test_a_folder_that_is_a_file_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x").write_text("")
    calibrations = Calibrations(tmp_path / "x", LAB, 0.1)
    with caplog.at_level(logging.WARNING):
        calibrations.read()
        calibrations.read()
    assert len(caplog.records) == 1 and shown(calibrations) == ["unreadable_files 1.0"]


def test_a_scrape_reads_no_file(tmp_path: Path, watched: Calibrations) -> None:
    path = save_record(tmp_path, BARE, "n1")
    watched.read()
    path.unlink()
    tmp_path.rmdir()
    assert shown(watched)[0] == 'age_seconds{node="n1"} 3600.0'

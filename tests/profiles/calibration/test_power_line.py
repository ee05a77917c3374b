"""Energy counters as the kernel lays them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.profiles.calibration.watts import joules, read_counters


def zone(root: Path, name: str, label: str, energy: str, span: str = "262143328850") -> None:
    (root / name).mkdir()
    for key, text in (("name", label), ("energy_uj", energy), ("max_energy_range_uj", span)):
        (root / name / key).write_text(f"{text}\n")


def test_packages_are_read_and_nothing_else(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", "100")
    zone(tmp_path, "intel-rapl:1", "package-1", "200")
    zone(tmp_path, "intel-rapl:0:0", "core", "50")
    zone(tmp_path, "intel-rapl:2", "psys", "900")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", "100")
    assert read_counters(tmp_path) == {"intel-rapl:0": (100, 262143328850), "intel-rapl:1": (200, 262143328850)}


@pytest.mark.parametrize("energy", ["", "many", "1.5"])
def test_a_counter_that_makes_no_sense_is_none(tmp_path: Path, energy: str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", energy)
    assert read_counters(tmp_path) == {}


def test_where_there_are_none_there_are_none(tmp_path: Path) -> None:
    assert read_counters(tmp_path / "nowhere") == {}


def test_energy_between_two_readings() -> None:
    assert joules({"a": (1_000_000, 9_000_000)}, {"a": (3_500_000, 9_000_000)}) == 2.5
    assert joules({"a": (8_000_000, 9_000_000)}, {"a": (500_000, 9_000_000)}) == 1.5  # it came round
    assert joules({"a": (0, 9)}, {"b": (1, 9)}) is None
    assert joules({}, {}) is None
